//! Lock files: names that one program at a time has.
//!
//! The kernel unlocks a file however its owner ends. An owner that ends in good order removes the
//! file before it unlocks it, so that it never removes that of another one; who gets the lock then
//! finds that the file has lost its name, and tries again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use ::io::path::leads_to;
use rustix::fs::OFlags;

/// A lock file of ours, until it is dropped.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl LockFile {
    /// Locks a file, which only its owner can read and which is created if it is not there; `None`
    /// where another program has it locked. The file says which process has it, for people.
    ///
    /// # Errors
    ///
    /// When it cannot be created or locked, or is a symbolic link.
    pub(crate) fn acquire(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).mode(0o600);
            options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
            let mut file = options.open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
            if leads_to(path, &file)? {
                file.set_len(0)?;
                writeln!(file, "{}", process::id())?;
                let path = path.to_owned();
                return Ok(Some(Self { path, _file: file }));
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
