//! The state directory: what was acknowledged as durable is there after a restart.
//!
//! It is for its owner only: a user that can read a reservation key can preempt with it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::core::Store;
use runtime::files;
use runtime::lockfile::{Attempt, LockFile};

/// Files of the state directory, one a unit.
#[derive(Debug)]
pub struct StateDir {
    /// `None` where there is none.
    dir: Option<PathBuf>,
}

impl StateDir {
    /// A state directory. Each unit has a key in it, which must be the same after a restart, and
    /// can be part of a file name.
    #[must_use]
    pub fn new(dir: Option<&Path>) -> Self {
        Self {
            dir: dir.map(Path::to_owned),
        }
    }

    fn dir(&self) -> io::Result<&Path> {
        let none = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                "no home directory for the state directory: give --state-dir",
            )
        };
        self.dir.as_deref().ok_or_else(none)
    }

    /// Whether something can be saved: the directory exists, or could be made, and takes a file.
    pub fn probe(&self) -> io::Result<()> {
        let dir = self.dir()?;
        files::make(dir)?;
        if fs::metadata(dir)?.mode() & 0o1002 == 0o0002 {
            tracing::warn!(
                "every user can replace the reservations in {0}: chmod o-w {0}",
                dir.display()
            );
        }
        let probe = dir.join(format!(".probe-{}", std::process::id()));
        files::create(&probe)?;
        fs::remove_file(probe)
    }

    /// What was saved for a unit, if anything.
    ///
    /// # Errors
    ///
    /// When there may be something that cannot be read: going on without would admit an initiator
    /// that was fenced off.
    pub fn load(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        if self.dir.is_none() {
            return Ok(None);
        }
        match files::read(&self.path(key)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if files::nothing_is_there(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a unit's state ours until the lock is dropped; `None` where another server has it.
    ///
    /// # Errors
    ///
    /// When the file of the lock cannot be made.
    pub(crate) fn lock(&self, key: &str) -> io::Result<Option<LockFile>> {
        match LockFile::acquire(&self.path(key).with_extension("lock"))? {
            Attempt::Locked(lock) => Ok(Some(lock)),
            Attempt::HeldBy(_) => Ok(None),
        }
    }

    /// Where a unit's state is.
    #[must_use]
    pub fn path(&self, key: &str) -> PathBuf {
        let dir = self.dir.clone().unwrap_or_default();
        dir.join(file_name(key))
    }
}

impl fmt::Display for StateDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dir {
            Some(dir) => write!(f, "state directory {}", dir.display()),
            None => f.write_str("the state directory"),
        }
    }
}

impl Store for StateDir {
    fn save(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        files::replace(self.dir()?, &file_name(key), bytes)
    }
}

fn file_name(key: &str) -> String {
    format!("reservations-{key}")
}
