//! Undoes what opening did to files, until it is known that they are used.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::files::leads_to;

use super::open;
use crate::backing::Backing;

/// Files that were created or extended for a command that has not begun its work yet: where
/// something else that it needs cannot be had, they become again what they were.
///
/// It keeps the files open, so that they stay locked; drop it when they are in use.
#[derive(Clone, Debug, Default)]
pub struct UndoLog(Arc<Mutex<Vec<UndoEntry>>>);

/// What an [`UndoLog`] holds, for one thread at a time.
#[derive(Debug)]
pub struct UndoEntries<'a>(MutexGuard<'a, Vec<UndoEntry>>);

#[derive(Debug)]
struct UndoEntry {
    backing: Arc<Backing>,
    path: PathBuf,
    change: FileChange,
}

/// What opening did to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileChange {
    /// It was not there.
    Created,
    /// It had this many bytes.
    Extended {
        /// Its length before, in bytes.
        from: u64,
        /// When it was written to last.
        written: (i64, u64),
    },
}

impl UndoLog {
    /// Code that creates or extends a file holds these from before it does so until it has added
    /// it, so that no file escapes an [`Self::undo`] by another thread.
    pub(super) fn entries(&self) -> UndoEntries<'_> {
        UndoEntries(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The files are used from now on, as they are.
    pub fn forget(&self) {
        self.entries().0.clear();
    }

    /// Removes what was created and cuts off what was added. Nothing may have been written to it.
    /// No other file is created or extended while the result is held.
    pub fn undo(&self) -> UndoEntries<'_> {
        let mut entries = self.entries();
        while let Some(entry) = entries.0.pop() {
            entry.change.undo(entry.backing.master(), &entry.path);
        }
        entries
    }
}

impl UndoEntries<'_> {
    pub(super) fn add(&mut self, backing: &Arc<Backing>, path: &Path, change: FileChange) {
        self.0.push(UndoEntry {
            backing: Arc::clone(backing),
            path: path.to_owned(),
            change,
        });
    }
}

impl FileChange {
    /// Makes a file, which must be open and locked, what it was before. Another file that has its
    /// name by now is left alone, and a file that was not extended yet keeps its time of change.
    pub(super) fn undo(self, file: &OwnedFd, path: &Path) {
        let is_longer = |len: u64| {
            let stat = rustix::fs::fstat(file);
            stat.is_ok_and(|stat| u64::try_from(stat.st_size).is_ok_and(|size| size > len))
        };
        match self {
            Self::Created if leads_to(path, file).unwrap_or(false) => {
                let _ = rustix::fs::unlink(path);
            }
            Self::Extended { from, written } if is_longer(from) => {
                let _ = rustix::fs::ftruncate(file, from);
                open::set_written(file, written);
            }
            _ => {}
        }
    }
}
