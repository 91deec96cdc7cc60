//! Bytes: CDB fields, parameter data and sense data. All numbers are big-endian.

pub mod asc;
pub mod cdb;
pub mod designator;
pub mod lun;
pub mod reserve;
pub mod sense;
#[cfg(test)]
mod tests;
pub mod transport_id;
