//! Claims to names of an interface, which programs of one user agree on by locking files.
//!
//! The files lie where no other user can write, so that no other user can take a name away, or make
//! a program follow a link.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::lockfile::{Attempt, LockFile};

/// A folder of claims, of this user and this network namespace.
#[derive(Debug)]
pub(super) struct ClaimDir {
    path: PathBuf,
    user: u32,
}

impl ClaimDir {
    /// `/run/lunar` for root, else `$XDG_RUNTIME_DIR/lunar`, or what comes nearest.
    ///
    /// # Errors
    ///
    /// When there is none that only this user can write to.
    pub(super) fn of_this_user() -> io::Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        let run = (user == 0).then(|| PathBuf::from("/run/lunar"));
        let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let own = own.filter(|own| own.is_absolute());
        let own = own.map(|own| own.join("lunar"));
        let any = env::temp_dir().join(format!("lunar-{user}"));
        let candidates = run.into_iter().chain(own).chain([any]);
        let mut last = None;
        for path in candidates {
            match Self::at(&path, user) {
                Ok(folder) => return Ok(folder),
                Err(cause) => last = Some(told(&path, &cause)),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// One of this user at another place.
    #[cfg(test)]
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        Self::at(parent, rustix::process::geteuid().as_raw())
    }

    /// Names of interfaces hold within a network namespace.
    fn at(parent: &Path, user: u32) -> io::Result<Self> {
        let namespace = fs::metadata("/proc/self/ns/net")?.st_ino();
        let path = parent.join(format!("fcoe-{namespace}"));
        for folder in [parent, &path] {
            make_private(folder, user)?;
        }
        Ok(Self { path, user })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the user whose it is.
    pub(super) const fn user(&self) -> u32 {
        self.user
    }

    /// Takes a name, unless another program has it.
    ///
    /// # Errors
    ///
    /// When the name cannot be locked.
    pub(super) fn take(&self, name: &str) -> io::Result<Attempt> {
        let path = self.path.join(name);
        LockFile::acquire(&path).map_err(|cause| told(&path, &cause))
    }
}

fn told(path: &Path, cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))
}

/// A folder that only this user can write to.
fn make_private(folder: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.st_uid() == user && found.st_mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "other users can write there: remove it, or set XDG_RUNTIME_DIR",
    ))
}
