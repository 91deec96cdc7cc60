//! The machine room: the only crate with `unsafe`.
//!
//! Memory that the kernel may read and write, sockets, files, and the rings by which they move:
//! io_uring, and epoll as an equal second; Ethernet ports; RDMA devices.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod bsg;
pub mod counting;
pub mod cpu;
pub mod ether;
pub mod files;
pub mod limits;
pub mod memory;
pub mod rdma;
pub mod ring;
mod sync;
pub mod tcp;
