//! RDMA without I/O, clock or randomness: the vocabulary of a queue pair, and software iWARP as a
//! machine behind it.
//!
//! [`verbs`] is what a datamover of iSER asks of a queue pair. [`iwarp`] implements it over a TCP
//! connection: MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC 5040).
#![forbid(unsafe_code)]

pub mod iwarp;
#[cfg(any(test, feature = "testing"))]
pub mod test_support;
pub mod verbs;
