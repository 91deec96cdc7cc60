//! Files that only their owner can read, and that are old or new after a power cut.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use ::io::files::sync_parent;
use rustix::fs::OFlags;

/// The directory, for its owner only, if it is not there. When this returns, its name and those of
/// the directories that were made around it are durable.
pub fn make(dir: &Path) -> io::Result<()> {
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<_> = dir.ancestors().take_while(missing).collect();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })?;
    new.iter().try_for_each(|dir| Ok(sync_parent(dir)?))
}

/// The bytes of a file that has at most `most`.
///
/// # Errors
///
/// As the file system has it; [`io::ErrorKind::FileTooLarge`] where there are more, which are not
/// read.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    take(File::open(path)?, most)
}

/// The same of a regular file: nothing else is waited for.
///
/// # Errors
///
/// As of [`read_at_most`], and for a pipe or a device.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    take(open_regular(path)?, most)
}

/// A regular file, for [`take`]: what is asked of it in between is of the file that is read then,
/// whatever its path names meanwhile.
///
/// # Errors
///
/// As the file system has it, and for a pipe or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    check_regular(&file)?;
    Ok(file)
}

/// The bytes of an open file that has at most `most`.
///
/// # Errors
///
/// As of [`read_at_most`].
pub fn take(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Puts bytes in place of a file that only its owner can read, as [`Replacement`] does.
pub fn replace(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(name);
    let new = path.with_extension("new");
    let replacement = Replacement {
        path: &path,
        new: &new,
        mode: PRIVATE,
    };
    replacement.make(bytes, |_| Ok(()), |_| Ok(()))
}

/// Of a file that only its owner can read.
pub const PRIVATE: u32 = 0o600;

/// A file that takes the place of another: after a power cut there is the old one or the new one.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where the new one is written, in the same directory.
    pub new: &'a Path,
    /// Permission bits of the new one.
    pub mode: u32,
}

impl Replacement<'_> {
    /// Writes a new file, has `dress` give it what else it needs, syncs it, puts it in the old
    /// one's place, and syncs the directory. `step` is told of each step before it is made, and can
    /// have it fail.
    ///
    /// # Errors
    ///
    /// As the file system has it. Nothing is left of the new file, unless it is the sync of the
    /// directory that fails: then the new one is in place, and a power cut may bring back the old.
    pub fn make(
        &self,
        bytes: &[u8],
        dress: impl FnOnce(&File) -> io::Result<()>,
        mut step: impl FnMut(&'static str) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = self.write(bytes, dress, &mut step);
        written.inspect_err(|_| drop(fs::remove_file(self.new)))?;
        step("sync folder")?;
        Ok(sync_parent(self.path)?)
    }

    fn write(
        &self,
        bytes: &[u8],
        dress: impl FnOnce(&File) -> io::Result<()>,
        step: &mut impl FnMut(&'static str) -> io::Result<()>,
    ) -> io::Result<()> {
        step("create")?;
        let mut file = create_as(self.new, self.mode)?;
        dress(&file)?;
        step("write")?;
        file.write_all(bytes)?;
        step("sync")?;
        file.sync_all()?;
        step("rename")?;
        fs::rename(self.new, self.path)
    }
}

/// A new file that only its owner can read. What is there already, from a crash or of another
/// else, is removed: it may be a link, and what was there may be open to others.
pub fn create(path: &Path) -> io::Result<File> {
    create_as(path, PRIVATE)
}

fn create_as(path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// What a file holds. A link is not followed, and what is not a regular file is not waited for.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut file = options.open(path)?;
    check_regular(&file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses what is not a regular file.
///
/// # Errors
///
/// When it is none, or the kernel does not say.
pub fn check_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// No file, or no directory that could hold one, or could be there by that name.
pub fn nothing_is_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// A file name's part that stands for `key`.
pub fn digest(key: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(key.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
