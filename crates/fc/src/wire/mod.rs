//! Bytes on the Ethernet: one file a format, each decoded and encoded, so that target and
//! initiator share them. All numbers are big-endian but for the CRC of FCoE.
//!
//! Unknown codes are values, not errors: what a machine does about them is its own affair. Reserved
//! bits are ignored when decoded and zero when encoded.

pub mod bls;
pub mod els;
pub mod ethernet;
pub mod fcoe;
pub mod fcp;
pub mod fip;
pub mod frame;
pub mod names;
pub mod reader;

#[cfg(test)]
mod tests;
