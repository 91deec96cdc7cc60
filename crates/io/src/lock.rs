//! Locks on bytes of a file, of an open file description (F_OFD_SETLK): unlike those of a process
//! they end with the last descriptor of that description, and hold against others in one process.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Locks one byte for reading, as often as others do. The file has to be open for reading.
///
/// # Errors
///
/// `WouldBlock` where another has locked it for writing; what the kernel says where the file system
/// has no locks.
pub fn share_byte(file: impl AsFd, at: u64) -> io::Result<()> {
    let mut lock = byte(at, libc::F_RDLCK)?;
    control(file, libc::F_OFD_SETLK, &mut lock)
}

/// Whether another open file description has locked a byte, for reading or for writing.
///
/// # Errors
///
/// As [`share_byte`].
pub fn is_byte_locked(file: impl AsFd, at: u64) -> io::Result<bool> {
    let mut lock = byte(at, libc::F_WRLCK)?;
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn byte(at: u64, kind: libc::c_int) -> io::Result<libc::flock> {
    let out_of_range = |_| io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: it consists of integers only, for which zeros are a value; l_pid has to be 0.
    let mut lock: libc::flock = unsafe { mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at.try_into().map_err(out_of_range)?;
    lock.l_len = 1;
    Ok(lock)
}

fn control(file: impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open as long as it is borrowed, and these commands read and write
    // one `flock`, which is borrowed for us alone.
    match unsafe { libc::fcntl(file, command, std::ptr::from_mut(lock)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
