//! `lunar`: a storage area network in one program.
#![forbid(unsafe_code)]
fn main() {}
