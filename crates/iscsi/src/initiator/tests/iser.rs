//! What only iSER has: messages, STags, and data that goes by RDMA Writes and Reads (RFC 7145 §7.3,
//! §8.3, §9).

mod logins;
mod pair;
mod reads;
mod receives;
mod stream;
mod writes;
mod wrong;
