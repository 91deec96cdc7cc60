//! The few things that a store does with files, each of which a crash may follow.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use ::io::files::sync_parent;
use runtime::files::{Replacement, read_regular};

use crate::api::BODY_BYTES;

/// Files of a store.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The first line of it, without its end.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn first_line(&self, path: &Path) -> io::Result<String>;

    /// The names in a folder.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn make_folder(&mut self, path: &Path) -> io::Result<()>;

    /// Puts a text in place of a file: after a crash it is the old one or the new one.
    ///
    /// # Errors
    ///
    /// As the file system has it. The old file is there, unless what failed came after the rename.
    fn replace(&mut self, path: &Path, text: &str) -> io::Result<()>;

    /// Gives a file another name in the same folder, for good.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn rename(&mut self, path: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// As the file system has it.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
}

/// Files of the file system. Between any two steps the process may end; `step` is told of each.
#[derive(Clone, Debug, Default)]
pub struct RealFiles<S = NoSteps> {
    step: S,
}

/// Is told of each step at which a crash could matter.
pub trait Steps {
    /// A step is about to be made.
    ///
    /// # Errors
    ///
    /// Where a test has it fail.
    fn step(&mut self, what: &'static str) -> io::Result<()>;
}

/// Nobody is told.
#[derive(Clone, Debug, Default)]
pub struct NoSteps;

impl Steps for NoSteps {
    fn step(&mut self, _: &'static str) -> io::Result<()> {
        Ok(())
    }
}

impl<S: Steps> RealFiles<S> {
    /// Files whose steps are told.
    pub fn with(step: S) -> Self {
        Self { step }
    }
}

/// The mode of a new file: a document tells who may log in where.
const MODE: u32 = 0o640;

/// The longest text: a document, with what the history says of it.
const TEXT_MAX: u64 = 2 * BODY_BYTES as u64;

impl<S: Steps> Files for RealFiles<S> {
    fn read(&self, path: &Path) -> io::Result<String> {
        // What is not UTF-8 is no document either, and is told as such, with its place.
        let bytes = read_regular(path, TEXT_MAX)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn first_line(&self, path: &Path) -> io::Result<String> {
        let line = BufReader::new(File::open(path)?).lines().next();
        line.unwrap_or_else(|| Ok(String::new()))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        Ok(fs::read_dir(folder)?.filter_map(name).collect())
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn replace(&mut self, path: &Path, text: &str) -> io::Result<()> {
        // A link stays one: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let replacement = Replacement {
            path: &path,
            new: &beside(&path),
            mode: MODE,
        };
        let old = fs::metadata(&path).ok();
        let dress = |file: &File| old.map_or(Ok(()), |old| dress_as(file, &old));
        replacement.make(text.as_bytes(), dress, |what| self.step.step(what))
    }

    fn rename(&mut self, path: &Path, to: &Path) -> io::Result<()> {
        self.step.step("rename")?;
        fs::rename(path, to)?;
        self.step.step("sync folder")?;
        Ok(sync_parent(to)?)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step.step("remove")?;
        fs::remove_file(path)
    }
}

fn dress_as(file: &File, old: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())?;
    // Without the privilege it belongs to who writes it.
    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}
