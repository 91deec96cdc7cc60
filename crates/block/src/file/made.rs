//! What opening files changed on disk, until it is known that they are used.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::backing::Backing;

/// Files that were created or extended for a command that has not begun its work yet: where
/// something else that it needs cannot be had, they become again what they were.
///
/// It keeps the files open, so that they stay locked; drop it when they are in use.
#[derive(Clone, Debug, Default)]
pub struct Made(Arc<Mutex<Vec<Change>>>);

#[derive(Debug)]
struct Change {
    backing: Arc<Backing>,
    path: PathBuf,
    before: Before,
}

/// What there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// A file of so many bytes.
    File(u64),
}

impl Made {
    pub(super) fn add(&self, backing: &Arc<Backing>, path: &Path, before: Before) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push(Change {
            backing: Arc::clone(backing),
            path: path.to_owned(),
            before,
        });
    }

    /// Removes what was created and cuts off what was added. Nothing may have been written to it.
    pub fn undo(&self) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(change) = changes.pop() {
            let Change {
                backing,
                path,
                before,
            } = change;
            match before {
                Before::File(len) => {
                    let _ = rustix::fs::ftruncate(backing.master(), len);
                }
                Before::Nothing if is_at(backing.master(), &path) => {
                    let _ = rustix::fs::unlink(&path);
                }
                Before::Nothing => {}
            }
        }
    }
}

/// Whether the path still leads to the file.
fn is_at(file: &OwnedFd, path: &Path) -> bool {
    let (ours, found) = (rustix::fs::fstat(file), rustix::fs::lstat(path));
    match (ours, found) {
        (Ok(ours), Ok(found)) => (ours.st_dev, ours.st_ino) == (found.st_dev, found.st_ino),
        _ => false,
    }
}
