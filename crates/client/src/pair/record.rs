//! What is remembered of a copy that is not complete, so that another run can go on.
//!
//! A record is known by the identities of the two volumes, not by their addresses: it is never
//! found for another volume that stands in the place of the first. It lies in the state directory
//! and is written as everything there is, whole or not at all, and synced.
//!
//! A record also has the modification times of B's files. After a run that ended in order they must
//! be the same. A run that was cut off wrote to B after its last record, so that a slightly later
//! time is taken for its own. A slightly earlier time is accepted as well: after a power cut a file
//! may have an older modification time than before.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::PairError;
use super::open::VolumePair;
use super::ranges::Ranges;
use runtime::files;
use runtime::lockfile::{Attempt, LockFile};

/// The record of a copy.
#[derive(Debug)]
pub(super) struct Record {
    dir: PathBuf,
    name: String,
    /// Everything in it but how far the copy came.
    head: String,
    /// No other copy of these two is made meanwhile; `None` where there can be no lock.
    lock: Option<LockFile>,
}

const FIRST_LINE: &str = "lunar copy 4\n";

/// When the files of a volume were written to last, in seconds since 1970 and nanoseconds.
pub(super) type FileTimes = Vec<(i64, u64)>;

/// The record without the identities of the two volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedCopy {
    /// This many bytes are durable at B, ...
    pub(super) copied: u64,
    /// ... but for these, which cannot be read from A.
    pub(super) unreadable: Ranges,
    /// When the files of B had been written to last.
    pub(super) written: FileTimes,
    /// The run ended in order: it has written nothing since.
    pub(super) ended: bool,
}

impl Record {
    /// The record of copies between these volumes; `None` where one of them cannot be known again.
    /// It is locked until it is dropped.
    pub(super) fn of(pair: &VolumePair, dir: &Path) -> Result<Option<Self>, PairError> {
        let [a, b] = &pair.particulars;
        let (Some(from), Some(to)) = (a.identity.as_deref(), b.identity.as_deref()) else {
            return Ok(None);
        };
        let bytes = pair.shapes[0].bytes;
        let written = pair.written.iter();
        let written: String = written
            .map(|(seconds, nanoseconds)| format!("written {seconds}.{nanoseconds:09}\n"))
            .collect();
        let mut record = Self {
            dir: dir.to_owned(),
            name: format!("copy-{}", files::digest(&format!("{from}\n{to}"))),
            head: format!("{FIRST_LINE}from {from}\nto {to}\nsize {bytes}\n{written}"),
            lock: None,
        };
        match record.lock() {
            Ok(false) => Err(PairError::Busy),
            // What cannot be locked cannot be written either, which is told when it is tried.
            Ok(true) | Err(_) => Ok(Some(record)),
        }
    }

    /// Returns whether no other copy has it.
    fn lock(&mut self) -> io::Result<bool> {
        files::make(&self.dir)?;
        let path = self.dir.join(&self.name).with_extension("lock");
        let attempt = LockFile::acquire(&path)?;
        let is_ours = matches!(attempt, Attempt::Locked(_));
        if let Attempt::Locked(lock) = attempt {
            self.lock = Some(lock);
        }
        Ok(is_ours)
    }

    /// What was remembered of the run before, if the files of B may be as it left them; they were
    /// written to last at these times.
    pub(super) fn load(&self, written: &FileTimes) -> Result<SavedCopy, PairError> {
        let path = self.dir.join(&self.name);
        let text = match files::read(&path) {
            Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
            Err(cause) if files::nothing_is_there(&cause) => return Err(PairError::Resume(NONE)),
            Err(cause) => return Err(PairError::Record { path, cause }),
        };
        let whole = whole(&text).ok_or(PairError::Damaged(path))?;
        let state = if text.starts_with(&self.head) {
            whole
        } else {
            return Err(PairError::Resume(OTHER));
        };
        if state.may_have_left(written) {
            Ok(state)
        } else {
            Err(PairError::Resume(WRITTEN))
        }
    }

    /// Remembers how far it came.
    pub(super) fn save(&self, state: &SavedCopy) -> io::Result<()> {
        let text = format!("{}{}", self.head, state.text());
        files::make(&self.dir)?;
        files::replace(&self.dir, &self.name, text.as_bytes())
    }

    /// The copy is complete.
    pub(super) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.dir.join(&self.name)) {
            Err(cause) if !files::nothing_is_there(&cause) => Err(cause),
            _ => Ok(()),
        }
    }
}

/// What a record says, of whichever volumes; `None` if it was cut or altered.
fn whole(text: &str) -> Option<SavedCopy> {
    let head = text
        .starts_with(FIRST_LINE)
        .then(|| text.find("\nrun "))??;
    SavedCopy::parse(&text[head + 1..])
}

impl SavedCopy {
    fn text(&self) -> String {
        let mut text = if self.ended {
            "run ended\n"
        } else {
            "run going on\n"
        }
        .to_owned();
        for (seconds, nanoseconds) in &self.written {
            text += &format!("left {seconds}.{nanoseconds:09}\n");
        }
        let before = |range: &&Range<u64>| range.start < self.copied;
        for Range { start, end } in self.unreadable.iter().filter(before) {
            text += &format!("unreadable {start} {}\n", end.min(&self.copied));
        }
        text + &format!("copied {}\n", self.copied)
    }

    /// The lines behind the head; a record that was cut anywhere is `None`.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        let mut state = Self {
            ended: match lines.next()? {
                "run ended" => true,
                "run going on" => false,
                _ => return None,
            },
            copied: lines.next_back()?.strip_prefix("copied ")?.parse().ok()?,
            ..Self::default()
        };
        for line in lines {
            if let Some(left) = line.strip_prefix("left ") {
                let (seconds, nanoseconds) = left.split_once('.')?;
                let left = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
                state.written.push(left);
                continue;
            }
            let (start, end) = line.strip_prefix("unreadable ")?.split_once(' ')?;
            state.unreadable.add(start.parse().ok()?..end.parse().ok()?);
        }
        Some(state)
    }

    /// Whether files of B that were written to last at these times may be as the run left them.
    /// Where nothing was copied, it does not matter what they hold.
    fn may_have_left(&self, written: &FileTimes) -> bool {
        let since = |(now, then): (&(i64, u64), &(i64, u64))| {
            let [now, then] =
                [now, then].map(|time| i128::from(time.0) * SECOND + i128::from(time.1));
            (-OLDER * SECOND..=NEWER * SECOND).contains(&(now - then))
        };
        let mut times = written.iter().zip(&self.written);
        self.copied == 0
            || *written == self.written
            || !self.ended && written.len() == self.written.len() && times.all(since)
    }
}

/// In nanoseconds.
const SECOND: i128 = 1_000_000_000;

/// A run that was cut off wrote to B for at most this many seconds after its last record, which it
/// renews once a second and a tick, without a write that begins meanwhile. If that took longer, the
/// copy is not resumed.
const NEWER: i128 = 5;

/// File systems write modification times down within half a minute or so; with lazytime it can be a
/// day, and after a power cut the copy is not resumed.
const OLDER: i128 = 60;

const NONE: &str = "no interrupted copy between these two is recorded, or one of them is a \
    different volume now; omit --resume to start over";
const OTHER: &str = "the source has changed since the copy started; omit --resume to start over";
const WRITTEN: &str =
    "B may have been written to since the copy was interrupted; omit --resume to start over";

/// Why a volume cannot be known again.
pub(super) const UNKNOWN: &str = "one of the two is empty after a restart, or has no identity; \
    omit --resume to start over";
