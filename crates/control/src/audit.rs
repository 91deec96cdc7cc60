//! The audit log: a line of JSON for each call that changes something, or wanted to.
//!
//! A line is written and synced when all is decided and nothing is visible yet. Where that cannot
//! be done, nothing changes. What fails after it (the engine refuses, the file cannot be written)
//! has a second line that says so. Lines name secrets, and never show one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::gate::{Author, Candidate, Generation};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// It is being done; nothing but a line after this one says otherwise.
    Made,
    /// No row changes; what the tree only names is read again.
    Unchanged,
    /// It was not begun.
    Refused,
    /// It was begun and taken back.
    Failed,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in seconds since 1970.
    pub at: u64,
    /// A user of this machine, or a token.
    pub who: String,
    /// Where the call came from.
    pub from: String,
    /// By what: `lunar set`, `SIGHUP`.
    pub by: String,
    /// What was asked for.
    pub what: String,
    /// The generation that it makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The differences, in lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// Why it was refused or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The log.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    most: u64,
    state: Mutex<AuditState>,
}

#[derive(Debug, Default)]
struct AuditState {
    file: Option<File>,
    bytes: u64,
    /// The change that is being made, and whether it has its line.
    pending: Option<(Author, String, bool)>,
}

impl Audit {
    /// The log in a state directory. It is opened by the first line.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self::bounded(state, MOST)
    }

    /// The same, whose file is exchanged for a new one before it grows over so many bytes.
    #[must_use]
    pub fn bounded(state: &Path, most: u64) -> Self {
        Self {
            path: state.join("audit.jsonl"),
            most,
            state: Mutex::default(),
        }
    }

    /// A change begins. The gate makes one at a time.
    pub fn begin(&self, author: &Author, candidate: &Candidate) {
        self.state().pending = Some((author.clone(), asked(candidate), false));
    }

    /// A change that does not begin, as another one is under way.
    pub fn refused(&self, author: &Author, what: String, reason: &str) {
        self.tell(author, what, AuditOutcome::Refused, reason);
    }

    /// The process was killed before it had kept this generation, whatever a line says.
    pub fn killed(&self, author: &Author, generation: u64) {
        let entry = AuditEntry {
            generation: Some(generation),
            reason: Some("the daemon has ended before it was kept".to_owned()),
            ..entry(author, "start".to_owned(), AuditOutcome::Failed)
        };
        if let Err(cause) = self.append(&mut self.state(), &entry) {
            tracing::error!("{cause}");
        }
    }

    /// The change that has begun makes no generation: its line, before it does what it does.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing may be done.
    pub fn announce(&self, outcome: AuditOutcome, plan: Vec<String>) -> Result<(), String> {
        self.pending_line(|entry| AuditEntry {
            plan,
            outcome,
            ..entry
        })
    }

    /// All is decided for this generation: its line. Changes that did not begin have none.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing may change.
    pub fn commit(&self, generation: &Generation) -> Result<(), String> {
        self.pending_line(|entry| AuditEntry {
            generation: Some(generation.number),
            plan: generation.differences.clone(),
            ..entry
        })
    }

    /// Writes the line of the change that has begun.
    fn pending_line(&self, line: impl FnOnce(AuditEntry) -> AuditEntry) -> Result<(), String> {
        let mut state = self.state();
        let Some((author, what, _)) = state.pending.clone() else {
            return Ok(());
        };
        self.append(&mut state, &line(entry(&author, what, AuditOutcome::Made)))?;
        if let Some((.., has_line)) = &mut state.pending {
            *has_line = true;
        }
        Ok(())
    }

    /// The change has ended: with a line, where it has none yet or has failed after it.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn end(&self, refused: Option<&str>) -> Result<(), String> {
        let mut state = self.state();
        let Some((author, what, has_line)) = state.pending.take() else {
            return Ok(());
        };
        let outcome = match (refused, has_line) {
            (None, true) => return Ok(()),
            (None, false) => AuditOutcome::Unchanged,
            (Some(_), false) => AuditOutcome::Refused,
            (Some(_), true) => AuditOutcome::Failed,
        };
        let entry = AuditEntry {
            reason: refused.map(str::to_owned),
            ..entry(&author, what, outcome)
        };
        self.append(&mut state, &entry)
    }

    /// Something is done that makes no generation.
    ///
    /// # Errors
    ///
    /// The line cannot be written; then it must not be done.
    pub fn act(&self, author: &Author, what: String) -> Result<(), String> {
        self.append(&mut self.state(), &entry(author, what, AuditOutcome::Made))
    }

    /// What [`Self::act`] told has failed. That it is told nowhere else is no reason to fail more.
    pub fn failed(&self, author: &Author, what: String, reason: &str) {
        self.tell(author, what, AuditOutcome::Failed, reason);
    }

    fn tell(&self, author: &Author, what: String, outcome: AuditOutcome, reason: &str) {
        let entry = AuditEntry {
            reason: Some(reason.to_owned()),
            ..entry(author, what, outcome)
        };
        if let Err(cause) = self.append(&mut self.state(), &entry) {
            tracing::error!("{cause}");
        }
    }

    fn append(&self, state: &mut AuditState, entry: &AuditEntry) -> Result<(), String> {
        let written = self.line(state, entry);
        written.map_err(|cause: io::Error| {
            // What is left of the line must not become part of the next one.
            state.file = None;
            let path = self.path.display();
            format!("cannot write the audit log {path}: {cause}; without it nothing is changed")
        })
    }

    fn line(&self, state: &mut AuditState, entry: &AuditEntry) -> io::Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        if state.file.is_some() && state.bytes + line.len() as u64 > self.most {
            state.file = None;
            self.rotate()?;
        }
        if state.file.is_none() {
            let (file, bytes) = self.open()?;
            (state.file, state.bytes) = (Some(file), bytes);
        }
        if let Some(file) = &mut state.file {
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
            state.bytes += line.len() as u64;
        }
        Ok(())
    }

    /// The file, at its end, which a crash may have left in the middle of a line.
    fn open(&self) -> io::Result<(File, u64)> {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .mode(0o640)
            .open(&self.path)?;
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        } else if !fs::read(&self.path)?.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        Ok((file, bytes))
    }

    /// The oldest goes, and the others are renamed.
    fn rotate(&self) -> io::Result<()> {
        let old = |number: u32| self.path.with_extension(format!("jsonl.{number}"));
        for number in (1..KEPT).rev() {
            match fs::rename(old(number), old(number + 1)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => {}
            }
        }
        fs::rename(&self.path, old(1))
    }

    fn state(&self) -> MutexGuard<'_, AuditState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That rows are asked to be changed, in words.
pub(crate) const CHANGE_ROWS: &str = "change rows";

/// What a change is asked for, in words.
pub(crate) fn asked(candidate: &Candidate) -> String {
    match candidate {
        Candidate::File => "apply the file".to_owned(),
        Candidate::Text(_) => "apply a document".to_owned(),
        Candidate::Tree(_) => CHANGE_ROWS.to_owned(),
        Candidate::Generation(number) => format!("roll back to generation {number}"),
    }
}

fn entry(author: &Author, what: String, outcome: AuditOutcome) -> AuditEntry {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    AuditEntry {
        at: now.map_or(0, |now| now.as_secs()),
        who: author.who.clone(),
        from: author.from.clone(),
        by: author.by.clone(),
        what,
        generation: None,
        plan: Vec::new(),
        outcome,
        reason: None,
    }
}

/// Bytes of a file: tens of thousands of lines.
const MOST: u64 = 8 << 20;

/// Old files that are kept.
const KEPT: u32 = 4;

#[cfg(test)]
mod tests;
