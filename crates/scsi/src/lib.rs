//! SCSI as such: the device server of SAM-5, SPC-5 and SBC-4, knowing no transport, no clock and no
//! storage.
//!
//! A transport calls [`device::DeviceServer::execute`]; whatever the device server wants done comes
//! out of [`device::DeviceServer::poll`]: data to be sent or received by the transport, operations
//! on the medium, changes to be agreed upon by all cores.
#![forbid(unsafe_code)]

pub mod alua;
pub mod client;
pub mod commands;
pub mod device;
pub mod limits;
pub mod long_operation;
pub mod medium;
pub mod nexus;
pub mod order;
pub mod owner;
pub mod query;
pub mod received;
pub mod reserve;
pub mod residual;
pub mod statistics;
pub mod task;
#[cfg(test)]
mod testing;
pub mod unit;
pub mod unit_settings;
pub mod violation;
pub mod wire;
