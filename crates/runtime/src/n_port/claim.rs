//! Claims to names of an interface, which programs of one user agree on by locking files.
//!
//! The files lie where no other user can write, so that no other user can take a name away, or make
//! a program follow a link.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use super::status_socket::connect_to;
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
        make_private(parent, user)?;
        if make_private(&path, user)? {
            clear_others(parent, &path);
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
        let attempt = LockFile::acquire(&path).or_else(|cause| match cause.kind() {
            // Another program has taken the folder for one that nothing uses.
            io::ErrorKind::NotFound => {
                make_private(&self.path, self.user)?;
                LockFile::acquire(&path)
            }
            _ => Err(cause),
        });
        attempt.map_err(|cause| told(&path, &cause))
    }
}

fn told(path: &Path, cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))
}

/// A folder that only this user can write to, and whether it is new.
fn make_private(folder: &Path, user: u32) -> io::Result<bool> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    let is_new = match made {
        Ok(()) => true,
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => false,
        Err(cause) => return Err(cause),
    };
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.st_uid() == user && found.st_mode() & 0o022 == 0 {
        return Ok(is_new);
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "other users can write there: remove it, or set XDG_RUNTIME_DIR",
    ))
}

/// Removes the folders of other network namespaces in which nothing lives: most of those are gone.
/// It is done where a namespace is new, so that they are never many.
fn clear_others(parent: &Path, own: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    for folder in folders.filter(|path| path != own && is_of_a_namespace(path)) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        entries.for_each(|entry| clear_dead(&entry.path()));
        // One in which anything is left stays.
        let _ = fs::remove_dir(&folder);
    }
}

fn is_of_a_namespace(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix("fcoe-"));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Removes a claim that no program holds, or a socket that none listens at.
fn clear_dead(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path).map(|found| found.file_type()) else {
        return;
    };
    if found.is_socket() {
        let refused = |cause: io::Error| cause.kind() == io::ErrorKind::ConnectionRefused;
        if connect_to(path).is_err_and(refused) {
            let _ = fs::remove_file(path);
        }
    } else if found.is_file() {
        // The file goes with the lock.
        drop(LockFile::acquire(path));
    }
}

#[cfg(test)]
mod tests;
