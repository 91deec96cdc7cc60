//! Bytes of RFC 7143 §11 and RFC 7144 §5, §6: one file a PDU, each decoded and encoded, so that
//! target and initiator share them. All numbers are big-endian.
//!
//! Unknown codes are values, not errors: what a machine does about them is its own affair. Reserved
//! bits are ignored when decoded and zero when encoded.

pub mod ahs;
pub mod async_message;
pub mod bhs;
pub mod data_in;
pub mod data_out;
pub mod digest;
pub mod framer;
pub mod login_request;
pub mod login_response;
pub mod logout_request;
pub mod logout_response;
pub mod nop_in;
pub mod nop_out;
pub mod r2t;
pub mod reject;
pub mod scsi_command;
pub mod scsi_response;
pub mod serial;
pub mod snack;
pub mod task_request;
pub mod task_response;
pub mod text_request;
pub mod text_response;

#[cfg(test)]
mod tests;
