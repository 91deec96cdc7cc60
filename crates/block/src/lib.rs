//! Volumes: anything that holds blocks.
//!
//! A [`volume::Volume`] is opened once; each core works on it through its own
//! [`volume::Handle`], which answers the operations of [`scsi::medium`].
//!
//! | volume | is kept in |
//! |---|---|
//! | [`ram::Ram`] | memory, as far as it was written |
//! | [`null::Null`] | nothing |
//! | [`file::FileVolume`] | a file |
//! | [`device::DeviceVolume`] | a block device |
//! | [`stripe`], [`concat`] | several other volumes |
//! | [`absent::Absent`] | nothing: the volume that it stands for cannot be opened now |
//! | [`readonly::Readonly`] | any other volume, which it protects |
//! | [`limit::Limit`], [`limit::Delay`] | any other volume, which they slow down |
//! | [`fault::FaultVolume`] | any other volume, which it has fail |
//! | [`verify::VerifyVolume`] | any other volume, which it checks |
//! | [`stats::Stats`] | any other volume, which it watches |
//!
//! A capacity is the number of whole blocks that fit: bytes left over at the end of a file are
//! not part of the volume.
#![forbid(unsafe_code)]

pub mod absent;
mod backing;
mod child;
mod chunked;
pub mod concat;
pub mod device;
mod error;
pub mod fault;
pub mod file;
mod filter;
pub mod identity;
pub mod lease;
pub mod limit;
pub mod null;
pub mod parts;
pub mod ram;
pub mod readonly;
mod size;
mod start_policy;
pub mod stats;
pub mod stripe;
pub mod verify;
pub mod volume;
pub mod volumes;

pub use error::VolumeError;

#[cfg(test)]
mod tests;
