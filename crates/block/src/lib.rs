//! Volumes: anything that holds blocks.
//!
//! A [`volume::Volume`] is opened once; each core works on it through its own
//! [`volume::Handle`], which answers the operations of [`scsi::medium`].
//!
//! | volume | is kept in |
//! |---|---|
//! | [`ram::Ram`] | memory, as far as it was written |
//! | [`null::Null`] | nothing |
//! | [`file::File`] | a file |
//! | [`device::Device`] | a block device |
//! | [`readonly::Readonly`] | any other volume, which it protects |
//!
//! A capacity is the number of whole blocks that fit: octets left over at the end of a file are
//! not part of the volume.
#![forbid(unsafe_code)]

mod backing;
pub mod device;
mod error;
pub mod file;
pub mod lease;
mod long;
pub mod null;
pub mod ram;
pub mod readonly;
mod size;
pub mod volume;

pub use error::OpenError;

#[cfg(test)]
mod tests;
