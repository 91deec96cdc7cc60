//! Memory for data: pools of buffers, and regions for RAM volumes. All access is by raw copies;
//! no slice exists over bytes that another core or the kernel may write.
//!
//! - [`Buffer`]: a counted claim on some bytes, wherever they lie. Bound to its core.
//! - [`Pool`]: page-aligned buffers of one core, for volumes that read into memory.
//! - [`Region`]: the memory of a RAM volume, shared by all cores, which knows what of it was ever
//!   written. A core works on it through its [`LocalRegion`].
//! - [`FileMap`]: a file in memory, of which pages are lent to be sent, through a core's
//!   [`LocalFileMap`]. The kernel alone reads them.
//! - [`MemoryLimit`]: what all regions of a process may hold together.

mod barrier;
mod bitmap;
mod buffer;
mod file_map;
mod granules;
mod huge;
mod limit;
mod locked;
mod mapping;
mod pool;
mod raw;
mod region;
#[cfg(test)]
mod tests;
mod write_claim;

pub use buffer::{Buffer, PrefetchQueue, ZEROS_MAX};
pub use file_map::{FileMap, LocalFileMap};
pub use granules::{GRANULE, Pages};
pub use limit::{MemoryLimit, NoSpace};
pub use locked::LockError;
pub use pool::{Pool, SLOT_MAX};
pub use region::{LocalRegion, Recall, Region};

pub(crate) use locked::{RegionUser, lock};
pub(crate) use mapping::{Mapping, PageRules};
pub(crate) use pool::PoolPart;

/// Lets what was stored past the cache reach memory before anything that this thread does next.
/// To be called before other threads or the kernel are told of it.
pub fn drain_stores() {
    raw::drain();
}
