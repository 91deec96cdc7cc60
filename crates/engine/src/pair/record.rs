//! What is remembered of a copy that is not complete, so that another run can go on.
//!
//! A record is known by who the two volumes are, and not by how they were called: it is never found
//! for another volume that stands in the place of the first. It lies in the state directory and is
//! written as everything there is, whole or not at all, and synced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;
use super::open::Pair;
use crate::state;

/// The record of a copy.
#[derive(Debug)]
pub(super) struct Record {
    dir: PathBuf,
    name: String,
    /// Everything in it but the last line.
    head: String,
}

const FIRST_LINE: &str = "lunar copy 2\n";

impl Record {
    /// The record of copies between these volumes; `None` where one of them cannot be known again.
    pub(super) fn of(pair: &Pair, dir: &Path) -> Option<Self> {
        let [a, b] = &pair.particulars;
        let [from, to] = [a.identity.as_deref()?, b.identity.as_deref()?];
        let octets = pair.shapes[0].octets;
        let written = pair.written.iter();
        let written: String = written
            .map(|(seconds, nanoseconds)| format!("written {seconds}.{nanoseconds:09}\n"))
            .collect();
        Some(Self {
            dir: dir.to_owned(),
            name: format!("copy-{}", state::digest(&format!("{from}\n{to}"))),
            head: format!("{FIRST_LINE}from {from}\nto {to}\nsize {octets}\n{written}"),
        })
    }

    /// How much was durable at the end of the run before.
    pub(super) fn load(&self) -> Result<u64, Error> {
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
        let copied = rest.trim_end().strip_prefix("copied ");
        let copied = copied.and_then(|copied| copied.parse().ok());
        copied.ok_or(Error::Resume(UNREADABLE))
    }

    /// Remembers that so many octets are durable at the destination.
    pub(super) fn save(&self, copied: u64) -> io::Result<()> {
        let text = format!("{}copied {copied}\n", self.head);
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

const NONE: &str = "no copy between these two was interrupted, or one of them is another volume \
    than then; leave --resume out to begin anew";
const OTHER: &str = "the source was changed since the copy was begun; leave --resume out to begin \
    anew";
const UNREADABLE: &str =
    "the record of the copy is damaged, or of another version; leave --resume out to begin anew";

/// Why a volume cannot be known again.
pub(super) const UNKNOWN: &str = "one of the two is empty after a restart, or does not say who it \
    is; leave --resume out to begin anew";
