//! Claims to names of an interface, which programs of one user agree on by locking files.
//!
//! The files lie where no other user can write, so that nobody else can take a name away, or make a
//! program follow a link. The kernel unlocks a file however its owner ends.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{env, fmt, process};

use rustix::fs::OFlags;

/// A folder of claims, of this user and this network namespace.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    user: u32,
}

/// A name, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    /// Locked.
    _file: File,
}

/// What came of a claim.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is ours.
    ByUs(Claim),
    /// Another one has it.
    By(Other),
}

/// A program that has a name.
#[derive(Debug)]
pub(super) struct Other(Option<u32>);

impl Folder {
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

    /// The number of the user whose it is.
    pub(super) const fn user(&self) -> u32 {
        self.user
    }

    /// Takes a name, unless another program has it.
    ///
    /// # Errors
    ///
    /// When the name cannot be locked.
    pub(super) fn take(&self, name: &str) -> io::Result<Taken> {
        let path = self.path.join(name);
        lock(&path).map_err(|cause| told(&path, &cause))
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

fn lock(path: &Path) -> io::Result<Taken> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let mut file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Taken::By(Other::of(&mut file))),
            Err(TryLockError::Error(cause)) => return Err(cause),
        }
        // Its owner may have removed it before we locked it.
        let ours = file.metadata()?;
        let there = fs::symlink_metadata(path);
        if there.is_ok_and(|there| there.st_ino() == ours.st_ino()) {
            file.set_len(0)?;
            writeln!(file, "{}", process::id())?;
            let path = path.to_owned();
            return Ok(Taken::ByUs(Claim { path, _file: file }));
        }
    }
}

impl Drop for Claim {
    /// The file goes before its lock does, so that nobody else's is removed.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Other {
    fn of(file: &mut File) -> Self {
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        Self(read.ok().and_then(|_| text.trim().parse().ok()))
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Some(id)) = self else {
            return f.write_str("another process");
        };
        write!(f, "process {id}")?;
        let name = fs::read_to_string(format!("/proc/{id}/comm"));
        name.map_or(Ok(()), |name| write!(f, " ({})", name.trim()))
    }
}
