//! What the kernel tells of open files and their names: whether a name still leads to a file, how
//! it becomes durable, how large a block device is, and locks.
//!
//! Locks are on bytes of an open file description (F_OFD_SETLK): unlike those of a process they end
//! with the last descriptor of that description, and hold against others in one process.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io, mem};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

/// Whether a path, its last part no link, leads to this open file.
///
/// # Errors
///
/// When the kernel does not say. That nothing is there is no error.
pub fn leads_to(path: &Path, file: impl AsFd) -> io::Result<bool> {
    let ours = rustix::fs::fstat(file)?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.st_dev, ours.st_ino)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
            _ => Err(error),
        },
    }
}

/// Makes the name of a file or directory durable, as far as its parent may be opened for that.
///
/// # Errors
///
/// When the parent cannot be opened for another reason, or be synced.
pub fn sync_parent(path: &Path) -> rustix::io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::open(parent, flags, Mode::empty()) {
        Ok(parent) => rustix::fs::fsync(parent),
        Err(Errno::ACCESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The size of a block device in bytes. Takes no lock, other than seeking to its end, which waits
/// for whatever is being discarded.
///
/// # Errors
///
/// When it is not a block device, or gone.
pub fn device_size(device: impl AsFd) -> io::Result<u64> {
    // SAFETY: BLKGETSIZE64 stores a u64, whatever the width of the size_t in its number.
    let getter = unsafe { Getter::<BLKGETSIZE64, u64>::new() };
    // SAFETY: it does nothing but that; other descriptors do not know it.
    Ok(unsafe { ioctl(device, getter) }?)
}

const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);

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

/// Unlocks a byte.
///
/// # Errors
///
/// What the kernel says where the file system has no locks.
pub fn release_byte(file: impl AsFd, at: u64) -> io::Result<()> {
    let mut lock = byte(at, libc::F_UNLCK)?;
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
