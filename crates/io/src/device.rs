//! What the kernel tells of block devices.

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

/// The size of a block device in bytes. Takes no lock, other than seeking to its end, which waits
/// for whatever is being discarded.
///
/// # Errors
///
/// When it is not a block device, or gone.
pub fn size(device: impl AsFd) -> io::Result<u64> {
    // SAFETY: BLKGETSIZE64 stores a u64, whatever the width of the size_t in its number.
    let getter = unsafe { Getter::<BLKGETSIZE64, u64>::new() };
    // SAFETY: it does nothing but that; other descriptors do not know it.
    Ok(unsafe { ioctl(device, getter) }?)
}

const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
