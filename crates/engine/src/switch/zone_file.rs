//! Zone files, and how they are read without holding anything up: one may lie on a server that does
//! not answer.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fc::fabric::zones::{TEXT_MAX, Zones};
use runtime::files;

use super::options::Zoning;

/// What is wrong with a zone file, with its path, line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ZonesError(String);

/// The zones of the file that `--zones` names.
///
/// # Errors
///
/// See [`ZonesError`].
pub fn read_zones(path: &Path) -> Result<Arc<Zones>, ZonesError> {
    let option = "--zones";
    let file = files::open_regular(path);
    let file = file.map_err(|cause| failed(option, path, &cause))?;
    read_open_zones(option, path, file)
}

/// The zones of a file that was opened at this path, which `option` has named.
///
/// # Errors
///
/// See [`ZonesError`].
pub fn read_open_zones(option: &str, path: &Path, file: File) -> Result<Arc<Zones>, ZonesError> {
    let shown = path.display();
    let failed = |cause: &dyn Display| failed(option, path, cause);
    let bytes = files::take(file, TEXT_MAX as u64).map_err(|cause| failed(&cause))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| failed(&"it is not UTF-8 text: check that it is the zone file"))?;
    if is_blank(&text) {
        return Err(failed(
            &"the file has no statement, as one that is being written: write another file and \
              rename it; for a fabric in which no port sees another, write: default deny",
        ));
    }
    let zones = Zones::parse(&text).map_err(|error| {
        ZonesError(format!(
            "{shown}:{}:{}: {}",
            error.line, error.column, error.what
        ))
    })?;
    Ok(Arc::new(zones))
}

fn failed(option: &str, path: &Path, cause: &dyn Display) -> ZonesError {
    ZonesError(format!("{option} {}: {cause}", path.display()))
}

/// Whether nothing stands in a zone file but comments.
fn is_blank(text: &str) -> bool {
    let mut statements = text.lines().map(|line| line.split('#').next());
    statements.all(|line| line.is_none_or(|line| line.trim().is_empty()))
}

/// The zones that options say.
pub(super) fn zones(zoning: &Zoning) -> Result<Arc<Zones>, ZonesError> {
    match zoning {
        Zoning::Closed => Ok(Arc::new(Zones::closed())),
        Zoning::Open => Ok(Arc::new(Zones::open())),
        Zoning::File(path) => read_zones(path),
        Zoning::Given(zones) => Ok(Arc::clone(zones)),
    }
}

/// The zone files that are being read, each by a thread of its own. At most one thread hangs at a
/// file, and at most [`READS_MAX`] in all.
#[derive(Clone, Debug, Default)]
pub struct ZoneReads(Arc<Mutex<BTreeSet<PathBuf>>>);

/// A zone file that is being read.
#[derive(Debug)]
pub struct PendingRead<T> {
    path: PathBuf,
    result: Receiver<T>,
}

/// Why a zone file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A thread hangs at it.
    #[error(
        "{0}: it is still being read since it was asked for before: see whether its disk answers"
    )]
    Busy(PathBuf),
    /// Threads hang at too many others.
    #[error("{0}: {READS_MAX} other files are still being read: see whether their disks answer")]
    Crowded(PathBuf),
    /// It takes longer than that.
    #[error("{0}: it was not read after {1:?}: see whether its disk answers")]
    Late(PathBuf, Duration),
    /// There can be no thread, or it has panicked.
    #[error("{0}: it cannot be read: {1}")]
    Thread(PathBuf, io::Error),
}

impl ZoneReads {
    /// Has a file read by a thread of its own. Nothing waits here.
    ///
    /// # Errors
    ///
    /// It is still being read, as are too many others, or there can be no thread.
    pub fn begin<T: Send + 'static>(
        &self,
        path: &Path,
        read: impl FnOnce(&Path) -> T + Send + 'static,
    ) -> Result<PendingRead<T>, ReadError> {
        let reading = self.enter(path)?;
        let (told, result) = channel();
        let thread = thread::Builder::new().name("zones".to_owned());
        let spawned = thread.spawn(move || {
            let zones = read(&reading.path);
            // Whoever has the result may ask for the file again.
            drop(reading);
            let _ = told.send(zones);
        });
        spawned.map_err(|cause| ReadError::Thread(path.to_owned(), cause))?;
        Ok(PendingRead {
            path: path.to_owned(),
            result,
        })
    }

    fn enter(&self, path: &Path) -> Result<Reading, ReadError> {
        let mut paths = self.paths();
        if paths.contains(path) {
            return Err(ReadError::Busy(path.to_owned()));
        }
        if paths.len() >= READS_MAX {
            return Err(ReadError::Crowded(path.to_owned()));
        }
        paths.insert(path.to_owned());
        Ok(Reading {
            reads: self.clone(),
            path: path.to_owned(),
        })
    }

    fn paths(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry among the files that are being read, until it is dropped.
struct Reading {
    reads: ZoneReads,
    path: PathBuf,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.reads.paths().remove(&self.path);
    }
}

impl<T> PendingRead<T> {
    /// Waits for what was read, until `patience` is over since `began`.
    ///
    /// # Errors
    ///
    /// It takes longer, or the thread has panicked.
    pub fn wait(&self, began: Instant, patience: Duration) -> Result<T, ReadError> {
        let left = patience.saturating_sub(began.elapsed());
        let result = self.result.recv_timeout(left);
        result.map_err(|cause| match cause {
            RecvTimeoutError::Timeout => ReadError::Late(self.path.clone(), patience),
            RecvTimeoutError::Disconnected => {
                let cause = io::Error::other("its thread has panicked");
                ReadError::Thread(self.path.clone(), cause)
            }
        })
    }
}

/// Zone files that are read at once: more than a daemon has switches, and few enough for threads
/// that may hang for ever.
const READS_MAX: usize = 64;
