//! Software iWARP: RDMA over a TCP connection, without a device.
//!
//! | file | what | standard |
//! |---|---|---|
//! | [`startup`] | Request and Reply Frames before the first FPDU | RFC 5044 §7.1, RFC 6581 |
//! | [`fpdu`] | FPDUs: length, padding, CRC, markers | RFC 5044 §4 |
//! | [`ddp`] | headers of DDP and RDMAP | RFC 5041 §4, RFC 5040 §4 |
//! | [`terminate`] | the message that says why a connection ends, and its codes | RFC 5040 §4.8 |
//! | [`tags`] | memory that the peer may reach | RFC 5041 §7.1, RFC 5040 §8.1.1 |
//! | [`stream`] | one end of a connection | RFC 5040 §5, §7 |

mod crc;
pub mod ddp;
pub mod fpdu;
pub mod sink;
pub mod startup;
pub mod stream;
pub mod tags;
pub mod terminate;
