//! The state directory: what was acknowledged as durable is there after a restart.
//!
//! It is for its owner only: a user that can read a reservation key can preempt with it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ::io::path::sync_parent;
use rustix::fs::OFlags;
use scsi::unit::UnitId;

use crate::core::Store;
use crate::lockfile::{Attempt, LockFile};

/// Files of the state directory, one a unit.
#[derive(Debug)]
pub struct StateDir {
    /// `None` where there is none.
    dir: Option<PathBuf>,
    /// File names, by unit.
    names: Vec<String>,
}

impl StateDir {
    /// A state directory for units with these keys, which must be the same after a restart, and
    /// can be part of a file name.
    #[must_use]
    pub fn new(dir: Option<&Path>, keys: Vec<String>) -> Self {
        let names = keys.into_iter().map(|key| format!("reservations-{key}"));
        Self {
            dir: dir.map(Path::to_owned),
            names: names.collect(),
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
        make(dir)?;
        if fs::metadata(dir)?.mode() & 0o1002 == 0o0002 {
            tracing::warn!(
                "every user can replace the reservations in {0}: chmod o-w {0}",
                dir.display()
            );
        }
        let probe = dir.join(format!(".probe-{}", std::process::id()));
        create(&probe)?;
        fs::remove_file(probe)
    }

    /// What was saved for a unit, if anything.
    ///
    /// # Errors
    ///
    /// When there may be something that cannot be read: going on without would admit an initiator
    /// that was fenced off.
    pub fn load(&self, unit: UnitId) -> io::Result<Option<Vec<u8>>> {
        if self.dir.is_none() {
            return Ok(None);
        }
        match read(&self.path(unit)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if nothing_is_there(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a unit's state ours until the lock is dropped; `None` where another server has it.
    ///
    /// # Errors
    ///
    /// When the file of the lock cannot be made.
    pub(crate) fn lock(&self, unit: UnitId) -> io::Result<Option<LockFile>> {
        match LockFile::acquire(&self.path(unit).with_extension("lock"))? {
            Attempt::Locked(lock) => Ok(Some(lock)),
            Attempt::HeldBy(_) => Ok(None),
        }
    }

    /// Where a unit's state is.
    #[must_use]
    pub fn path(&self, unit: UnitId) -> PathBuf {
        let dir = self.dir.clone().unwrap_or_default();
        dir.join(&self.names[unit.0 as usize])
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
    fn save(&self, unit: UnitId, bytes: &[u8]) -> io::Result<()> {
        replace(self.dir()?, &self.names[unit.0 as usize], bytes)
    }
}

/// The directory, for its owner only, if it is not there. When this returns, its name and those of
/// the directories that were made around it are durable.
pub(crate) fn make(dir: &Path) -> io::Result<()> {
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<_> = dir.ancestors().take_while(missing).collect();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })?;
    new.iter().try_for_each(|dir| Ok(sync_parent(dir)?))
}

/// Writes a new file, syncs it, puts it in the old one's place, and syncs the directory: after a
/// power cut there is the old state or the new one.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    let new = path.with_extension("new");
    let mut file = create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    File::open(dir)?.sync_all()
}

/// A new file that only its owner can read. What is there already, from a crash or of another
/// else, is removed: it may be a link, and what was there may be open to others.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// What a file holds. A link is not followed, and what is no regular file is not waited for.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut file = options.open(path)?;
    check_regular(&file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn check_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// No file, or no directory that could hold one, or could be there by that name.
pub(crate) fn nothing_is_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// A file name's part that stands for `key`.
pub(crate) fn digest(key: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(key.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
