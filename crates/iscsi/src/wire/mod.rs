//! Bytes of RFC 7143 §11 and RFC 7144 §5, §6: a request and its response in one file, decoded and
//! encoded, so that target and initiator share them. All numbers are big-endian.
//!
//! Unknown codes are values, not errors: what a machine does about them is its own affair. Reserved
//! bits are ignored when decoded and zero when encoded.

pub mod ahs;
pub mod async_message;
pub mod bhs;
pub mod data;
pub mod digest;
pub mod framer;
pub mod login;
pub mod logout;
pub mod nop;
pub mod reject;
pub mod scsi_command;
pub mod scsi_response;
pub mod serial;
pub mod snack;
pub mod task_management;
pub mod text;

#[cfg(test)]
mod tests;
