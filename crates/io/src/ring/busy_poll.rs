//! Polling of network cards by a thread that has nothing to do.
//!
//! Without it a packet waits for the interrupt of its card, which cards delay to coalesce several.
//! With it the thread that would sleep takes packets out of the card's queue itself (NAPI busy
//! polling), and sleeps if none has come in time. Both rings do so per thread, from Linux 6.9 on;
//! what is set on sockets (SO_BUSY_POLL) counts for receives alone, and needs CAP_NET_ADMIN.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::IoUring;

/// `io_uring_napi` of the kernel's interface.
#[repr(C)]
struct UringNapi {
    limit_us: u32,
    /// Interrupts stay off meanwhile, for as long as an administrator has set for the interface.
    prefers: u8,
    reserved: [u8; 11],
}

/// `epoll_params` of the kernel's interface.
#[repr(C)]
struct EpollParams {
    limit_us: u32,
    /// Packets at once; 0: as many as the kernel takes for good.
    budget: u16,
    prefers: u8,
    reserved: u8,
}

/// IORING_REGISTER_NAPI.
const REGISTER_NAPI: libc::c_uint = 27;

/// EPIOCSPARAMS.
const SET_PARAMS: libc::c_ulong = 0x4008_8a01;

/// Has a ring do so when it waits.
pub(super) fn of_uring(ring: &IoUring, limit: Duration) -> io::Result<()> {
    let mut napi = UringNapi {
        limit_us: microseconds(limit),
        prefers: 1,
        reserved: [0; 11],
    };
    let ring = ring.as_raw_fd();
    // SAFETY: the call reads and writes `napi`, which has the size that it knows, and keeps no
    // pointer to it.
    let set = unsafe {
        let napi = &raw mut napi;
        libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_NAPI, napi, 1)
    };
    explain(set)
}

/// The same of an epoll instance.
pub(super) fn of_epoll(epoll: &OwnedFd, limit: Duration) -> io::Result<()> {
    let params = EpollParams {
        limit_us: microseconds(limit),
        budget: 0,
        prefers: 1,
        reserved: 0,
    };
    // SAFETY: the call reads `params`, which has the size that its number tells.
    let set = unsafe { libc::ioctl(epoll.as_raw_fd(), SET_PARAMS as _, &raw const params) };
    explain(set.into())
}

fn microseconds(limit: Duration) -> u32 {
    // The kernel takes no more than an `int` has.
    limit.as_micros().min(i32::MAX as u128) as u32
}

/// Kernels that know nothing of it call it invalid.
fn explain(set: libc::c_long) -> io::Result<()> {
    if set == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let cause = match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOTTY) => "this kernel is older than Linux 6.9",
        Some(libc::EOPNOTSUPP) => "this kernel was built without CONFIG_NET_RX_BUSY_POLL",
        _ => return Err(io::Error::other(format!("cannot busy-poll: {error}"))),
    };
    Err(io::Error::other(format!(
        "cannot busy-poll, as {cause}: omit it"
    )))
}
