//! Lock files: names that one program at a time has.
//!
//! The kernel unlocks a file however its owner ends. An owner that ends normally removes the
//! file before it unlocks it, so that it never removes that of another one; the process that gets
//! the lock then finds that the file has lost its name, and tries again.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use ::io::files::leads_to;
use rustix::fs::OFlags;

use crate::files::check_regular;

/// A lock file of ours, until it is dropped.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    /// Locked.
    _file: File,
}

/// What came of an attempt to lock a file.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Locked(LockFile),
    /// Another one has it.
    HeldBy(LockHolder),
}

/// The program that holds a lock file, as far as the file says.
#[derive(Debug)]
pub struct LockHolder(Option<u32>);

impl LockFile {
    /// Locks a file, which only its owner can read and which is created if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be created or locked, or is not a regular file.
    pub fn acquire(path: &Path) -> io::Result<Attempt> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).mode(0o600);
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            options.custom_flags(flags.bits().cast_signed());
            let mut file = options.open(path)?;
            check_regular(&file)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Ok(Attempt::HeldBy(LockHolder::of(&mut file)));
                }
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
            if leads_to(path, &file)? {
                // Only for the message of another process; a full file system keeps no lock back.
                let _ = file
                    .set_len(0)
                    .and_then(|()| writeln!(file, "{}", process::id()));
                let path = path.to_owned();
                return Ok(Attempt::Locked(Self { path, _file: file }));
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl LockHolder {
    fn of(file: &mut File) -> Self {
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        Self(read.ok().and_then(|_| text.trim().parse().ok()))
    }

    /// ` (kill PID)`, if its number is known.
    pub fn stop_command(&self) -> String {
        let command = self.0.map(|id| format!(" (kill {id})"));
        command.unwrap_or_default()
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Some(id)) = self else {
            return f.write_str("another process");
        };
        write!(f, "process {id}")?;
        let name = fs::read_to_string(format!("/proc/{id}/comm"));
        name.map_or(Ok(()), |name| write!(f, " ({})", name.trim()))
    }
}

#[cfg(test)]
mod tests;
