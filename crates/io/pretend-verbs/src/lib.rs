//! A pretend libibverbs and librdmacm, in one file: devices in memory, whose queue pairs are
//! connected within the process. `io::rdma` opens it in tests in place of the real ones.
//!
//! It is stricter than a device: what a correct user never does (destroy what is in use, leave an
//! event unacknowledged, ask for more reads than were offered) is complained of, and tests look at
//! that at the end. It does on order what devices seldom do: see [`Order`].
//!
//! | address | device |
//! |---|---|
//! | 127.0.0.0/24 | `pretend0`, of InfiniBand or RoCE |
//! | 127.0.1.0/24 | `pretendw0`, of iWARP |
//!
//! Each copy of the file that is opened is a world of its own, so tests do not meet each other.

mod addresses;
mod cm;
mod connections;
mod errno;
mod execute;
mod objects;
mod opened;
mod orders;
#[allow(
    dead_code,
    reason = "declarations for two users, of which each leaves out some"
)]
#[path = "../../src/rdma/sys/mod.rs"]
mod sys;
mod verbs;
mod world;

pub use opened::OpenedWorld;
pub use orders::{Count, Order};
