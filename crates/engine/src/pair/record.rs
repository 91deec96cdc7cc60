//! What is remembered of a copy that is not complete, so that another run can go on.
//!
//! A record is known by who the two volumes are, and not by how they were called: it is never found
//! for another volume that stands in the place of the first. It lies in the state directory and is
//! written as everything there is, whole or not at all, and synced.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Error;
use super::open::Pair;
use super::ranges::Ranges;
use crate::lockfile::{Attempt, LockFile};
use crate::state;

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

const FIRST_LINE: &str = "lunar copy 3\n";

impl Record {
    /// The record of copies between these volumes; `None` where one of them cannot be known again.
    /// It is locked until it is dropped.
    pub(super) fn of(pair: &Pair, dir: &Path) -> Result<Option<Self>, Error> {
        let [a, b] = &pair.particulars;
        let (Some(from), Some(to)) = (a.identity.as_deref(), b.identity.as_deref()) else {
            return Ok(None);
        };
        let octets = pair.shapes[0].octets;
        let written = pair.written.iter();
        let written: String = written
            .map(|(seconds, nanoseconds)| format!("written {seconds}.{nanoseconds:09}\n"))
            .collect();
        let mut record = Self {
            dir: dir.to_owned(),
            name: format!("copy-{}", state::digest(&format!("{from}\n{to}"))),
            head: format!("{FIRST_LINE}from {from}\nto {to}\nsize {octets}\n{written}"),
            lock: None,
        };
        match record.lock() {
            Ok(false) => Err(Error::Busy),
            // What cannot be locked cannot be written either, which is told when it is tried.
            Ok(true) | Err(_) => Ok(Some(record)),
        }
    }

    /// Returns whether no other copy has it.
    fn lock(&mut self) -> io::Result<bool> {
        state::make(&self.dir)?;
        let path = self.dir.join(&self.name).with_extension("lock");
        let attempt = LockFile::acquire(&path)?;
        let is_ours = matches!(attempt, Attempt::Locked(_));
        if let Attempt::Locked(lock) = attempt {
            self.lock = Some(lock);
        }
        Ok(is_ours)
    }

    /// How much was durable at the end of the run before, and what of it could not be read.
    pub(super) fn load(&self) -> Result<(u64, Ranges), Error> {
        let text = match fs::read_to_string(self.dir.join(&self.name)) {
            Ok(text) => text,
            Err(cause) if state::nothing_is_there(&cause) => return Err(Error::Resume(NONE)),
            Err(cause) => {
                let what = "read the record of the copy";
                return Err(Error::Machine { what, cause });
            }
        };
        if !text.starts_with(FIRST_LINE) {
            return Err(Error::Resume(UNREADABLE));
        }
        let rest = text.strip_prefix(&self.head).ok_or(Error::Resume(OTHER))?;
        reached(rest).ok_or(Error::Resume(UNREADABLE))
    }

    /// Remembers that so many octets are durable at the destination, but for some of them that
    /// cannot be read.
    pub(super) fn save(&self, copied: u64, unreadable: &Ranges) -> io::Result<()> {
        let mut text = self.head.clone();
        for Range { start, end } in unreadable.iter().filter(|range| range.start < copied) {
            text += &format!("unreadable {start} {}\n", end.min(&copied));
        }
        text += &format!("copied {copied}\n");
        state::make(&self.dir)?;
        state::replace(&self.dir, &self.name, text.as_bytes())
    }

    /// The copy is complete.
    pub(super) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.dir.join(&self.name)) {
            Err(cause) if !state::nothing_is_there(&cause) => Err(cause),
            _ => Ok(()),
        }
    }
}

/// What the lines behind the head say: ranges that could not be read, and how far the copy came.
fn reached(lines: &str) -> Option<(u64, Ranges)> {
    let mut unreadable = Ranges::default();
    let mut lines = lines.lines();
    let last = lines.next_back()?;
    for line in lines {
        let (start, end) = line.strip_prefix("unreadable ")?.split_once(' ')?;
        unreadable.add(start.parse().ok()?..end.parse().ok()?);
    }
    let copied = last.strip_prefix("copied ")?.parse().ok()?;
    Some((copied, unreadable))
}

const NONE: &str = "no interrupted copy between these two is recorded, or one of them is a \
    different volume now; omit --resume to start over";
const OTHER: &str = "the source has changed since the copy started; omit --resume to start over";
const UNREADABLE: &str =
    "the record of the copy is damaged or of another version; omit --resume to start over";

/// Why a volume cannot be known again.
pub(super) const UNKNOWN: &str = "one of the two is empty after a restart, or has no identity; \
    omit --resume to start over";
