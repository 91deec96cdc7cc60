//! What is kept in files: the document, and its history.
//!
//! ```text
//!   CONFIG                    the document; the rename that replaces it is the one commit
//!   STATE/history/000018.next the document of generation 18, which hosts were not served yet
//!   STATE/history/000018.toml the same, when they were
//! ```
//!
//! The first line of a generation is a comment: who made it, when, by what, and what came of it.
//! The history is written first, then the document, and at last the generation gets its new name.
//! So a start can tell what it finds:
//!
//! | the last generation | the file is | |
//! |---|---|---|
//! | was served | the one before | somebody has put it back: it is to be applied anew |
//! | was not | the one before, or missing | an apply was killed before its commit: it is dropped |
//! | was not | the last one | it was killed after: volumes may not have been made or extended |

mod files;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

pub use files::{Files, NoSteps, RealFiles};

use crate::api::BODY_BYTES;
use crate::audit::{Audit, AuditOutcome};
use crate::gate::{Generation, Store};

/// How many generations are kept.
const KEPT: u64 = 200;

/// How the name of a generation ends that hosts were served.
const SERVED: &str = "toml";

/// How that of another one ends.
const NEXT: &str = "next";

/// How the line of facts begins, as a comment of TOML does; JSON follows.
const FACTS: &str = "# ";

/// The files of a configuration.
#[derive(Clone, Debug)]
pub struct FileStore<F = RealFiles> {
    config: PathBuf,
    history: PathBuf,
    files: F,
    audit: Option<Arc<Audit>>,
}

/// What was found at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The document; `None`: there is no file.
    pub text: Option<String>,
    /// The last generation that was applied, and its document.
    pub last: Option<(u64, String)>,
    /// The document of the last generation of which it is sure that hosts were served it.
    pub served: Option<String>,
    /// A generation that was never made, as its apply was killed before the commit.
    pub dropped: Option<u64>,
}

impl<F: Files> FileStore<F> {
    /// The store of a configuration file, with its history in a state directory, which is made.
    ///
    /// # Errors
    ///
    /// The state directory cannot be made.
    pub fn new(config: &Path, state: &Path, mut files: F) -> Result<Self, String> {
        let history = state.join("history");
        let made = files.make_folder(&history);
        made.map_err(|cause| format!("cannot create {}: {cause}", history.display()))?;
        Ok(Self {
            config: config.to_owned(),
            history,
            files,
            audit: None,
        })
    }

    /// The same, which commits nothing that has no line in this log.
    #[must_use]
    pub fn audited(self, audit: Arc<Audit>) -> Self {
        let audit = Some(audit);
        Self { audit, ..self }
    }

    /// Reads the file and the history.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read, and there is no history.
    pub fn find(&mut self) -> Result<Found, String> {
        let file = self.file();
        let mut numbers = self.numbers();
        numbers.reverse();
        let text = match file.clone() {
            Err(cause) if numbers.is_empty() => return Err(cause),
            file => file.ok().flatten(),
        };
        let mut kept = numbers
            .into_iter()
            .filter_map(|number| Some((number, self.text(number)?)));
        let (last, before) = (kept.next(), kept.next());
        let is = |one: &Option<(u64, String)>| {
            text.is_some() && one.as_ref().map(|(_, text)| text) == text.as_ref()
        };
        let served = self.served();
        let number = |one: &Option<(u64, String)>| one.as_ref().map(|(number, _)| *number);
        let was_served = number(&last) == number(&served);
        let is_missing = file == Ok(None) && before.is_some();
        let is_before = is_missing || is(&before);
        let is_dropped = is_before && !is(&last) && !was_served;
        let dropped = number(&last).filter(|_| is_dropped);
        if let Some(number) = dropped {
            self.forget(number);
        }
        let last = if is_dropped { before } else { last };
        Ok(Found {
            text,
            last,
            served: served.map(|(_, text)| text),
            dropped,
        })
    }

    /// The generations that are kept, from the first.
    #[must_use]
    pub fn generations(&self) -> Vec<Generation> {
        let numbers = self.numbers().into_iter();
        let line = |path: PathBuf| self.files.first_line(&path).ok();
        let read = |number| {
            let kept = line(self.path(number, SERVED)).or_else(|| line(self.path(number, NEXT)));
            facts(&kept?)
        };
        numbers.filter_map(read).collect()
    }

    fn numbers(&self) -> Vec<u64> {
        let mut numbers = self.numbers_as(NEXT);
        numbers.extend(self.numbers_as(SERVED));
        numbers.sort_unstable();
        numbers
    }

    /// The last generation that hosts were served, and its document.
    fn served(&self) -> Option<(u64, String)> {
        let mut numbers = self.numbers_as(SERVED);
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        let mut kept = numbers.into_iter();
        kept.find_map(|number| Some((number, self.text(number)?)))
    }

    /// Other names than those that are given here are those of copies.
    fn numbers_as(&self, ending: &str) -> Vec<u64> {
        let names = self.files.names(&self.history).unwrap_or_default();
        let number = |name: &String| {
            let number = name.split('.').next()?.parse().ok()?;
            (*name == file_name(number, ending)).then_some(number)
        };
        names.iter().filter_map(number).collect()
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    fn path(&self, number: u64, ending: &str) -> PathBuf {
        self.history.join(file_name(number, ending))
    }

    fn forget(&mut self, number: u64) {
        for ending in [NEXT, SERVED] {
            // What stays is found again at the next start.
            let _ = self.files.remove(&self.path(number, ending));
        }
    }

    /// What was refused may be in place: the sync after its rename can fail.
    fn put_back(&mut self, before: Option<String>, refused: &str) {
        let is_in_place = |text: String| text == refused && before.as_deref() != Some(refused);
        if !self.files.read(&self.config).is_ok_and(is_in_place) {
            return;
        }
        // What cannot be put back is told as an edit.
        let _ = match before {
            Some(before) => self.files.replace(&self.config, &before),
            None => self.files.remove(&self.config),
        };
    }

    fn cannot(&self, what: &str, cause: &io::Error) -> String {
        format!("cannot {what} {}: {cause}", self.config.display())
    }

    fn remember(&mut self, generation: &Generation, text: &str) -> io::Result<()> {
        let facts = serde_json::to_string(generation)?;
        let path = self.path(generation.number, NEXT);
        self.files
            .replace(&path, &format!("{FACTS}{facts}\n{text}"))
    }
}

fn file_name(number: u64, ending: &str) -> String {
    format!("{number:06}.{ending}")
}

/// What the first line of a generation says.
fn facts(line: &str) -> Option<Generation> {
    serde_json::from_str(line.strip_prefix(FACTS)?).ok()
}

impl<F: Files> Store for FileStore<F> {
    fn file(&self) -> Result<Option<String>, String> {
        match self.files.read(&self.config) {
            Ok(text) => Ok(Some(text)),
            // A link to what is not there now, such as a file on another disk, is not replaced.
            Err(cause) if fs::symlink_metadata(&self.config).is_ok() => {
                Err(self.cannot("read", &cause))
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(self.cannot("read", &cause)),
        }
    }

    fn announce(&mut self, drops_edit: bool) -> Result<(), String> {
        let Some(audit) = &self.audit else {
            return Ok(());
        };
        if drops_edit {
            audit.announce(
                AuditOutcome::Made,
                vec!["- the edit of the file".to_owned()],
            )
        } else {
            audit.announce(AuditOutcome::Unchanged, Vec::new())
        }
    }

    fn commit(&mut self, generation: &Generation, text: &str) -> Result<(), String> {
        if text.len() > BODY_BYTES {
            let told = format!("the configuration would have more than {BODY_BYTES} bytes");
            return Err(told);
        }
        let kept = self.remember(generation, text);
        kept.map_err(|cause| {
            self.forget(generation.number);
            let folder = self.history.display();
            format!("cannot keep the history in {folder}: {cause}")
        })?;
        if let Some(audit) = &self.audit {
            let told = audit.commit(generation);
            told.inspect_err(|_| self.forget(generation.number))?;
        }
        let before = self.files.read(&self.config).ok();
        if let Err(cause) = self.files.replace(&self.config, text) {
            self.put_back(before, text);
            self.forget(generation.number);
            return Err(self.cannot("write", &cause));
        }
        if let Some(old) = generation.number.checked_sub(KEPT) {
            self.forget(old);
        }
        Ok(())
    }

    fn serves(&mut self, generation: u64) -> Result<(), String> {
        let (next, path) = (self.path(generation, NEXT), self.path(generation, SERVED));
        match self.files.rename(&next, &path) {
            // It has the name of one that was served.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(format!("cannot rename {}: {cause}", next.display())),
            Ok(()) => Ok(()),
        }
    }

    fn withdraw(&mut self, generation: u64, text: &str) -> Result<(), String> {
        let written = self.files.replace(&self.config, text);
        self.forget(generation);
        written.map_err(|cause| self.cannot("write", &cause))
    }

    fn text(&self, generation: u64) -> Option<String> {
        let read = |ending| self.files.read(&self.path(generation, ending)).ok();
        let kept = read(SERVED).or_else(|| read(NEXT))?;
        match kept.split_once('\n') {
            Some((line, text)) if facts(line).is_some() => Some(text.to_owned()),
            // Somebody has put it here.
            _ => Some(kept),
        }
    }
}

#[cfg(test)]
mod tests;
