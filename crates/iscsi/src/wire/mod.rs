//! Bytes of RFC 7143 §11, RFC 7144 §5, §6 and RFC 7145 §9: a request and its response in one file,
//! decoded and encoded, so that target and initiator share them. All numbers are big-endian.
//!
//! Unknown codes are values, not errors: what a machine does about them is its own affair. Reserved
//! bits are ignored when decoded and zero when encoded.

pub mod ahs;
pub mod bhs;
pub mod control;
pub mod data;
pub mod framer;
pub mod iser;
pub mod login;
mod pdu;
pub mod scsi_command;
pub mod serial;
pub mod task_management;

#[cfg(test)]
mod tests;
