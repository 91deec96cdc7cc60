//! Names of files: whether one still leads to a file that is open, and how one becomes durable.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

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

#[cfg(test)]
mod tests;
