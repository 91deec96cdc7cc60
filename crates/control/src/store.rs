//! What is kept in files: the document, and its history.
//!
//! ```text
//!   CONFIG                    the document; the rename that replaces it is the one commit
//!   STATE/history/000018.toml the document of generation 18
//!   STATE/history/000018.json who, when, by what, and what came of it
//! ```
//!
//! A history that is one generation ahead of the file is of an apply that was killed before its
//! commit: it is dropped at the start.

mod files;

use std::io;
use std::path::{Path, PathBuf};

pub use files::{Files, NoSteps, RealFiles};

use crate::gate::{Generation, Store};

/// How many generations are kept.
const KEPT: u64 = 200;

/// The files of a configuration.
#[derive(Debug)]
pub struct FileStore<F = RealFiles> {
    config: PathBuf,
    history: PathBuf,
    files: F,
}

/// What was found at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The document; `None`: there is no file.
    pub text: Option<String>,
    /// The last generation that was applied, and its document.
    pub last: Option<(u64, String)>,
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
        })
    }

    /// Reads the file and the history.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read.
    pub fn find(&mut self) -> Result<Found, String> {
        let text = match self.files.read(&self.config) {
            Ok(text) => Some(text),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(self.cannot("read", &cause)),
        };
        let mut numbers = self.numbers();
        numbers.reverse();
        let mut kept = numbers
            .into_iter()
            .filter_map(|number| Some((number, self.text(number)?)));
        let (last, before) = (kept.next(), kept.next());
        let is = |one: &Option<(u64, String)>| {
            text.is_some() && one.as_ref().map(|(_, text)| text) == text.as_ref()
        };
        if is(&before) && !is(&last) {
            last.iter().for_each(|(number, _)| self.forget(*number));
            return Ok(Found { text, last: before });
        }
        Ok(Found { text, last })
    }

    /// The generations that are kept, from the first.
    #[must_use]
    pub fn generations(&self) -> Vec<Generation> {
        let numbers = self.numbers().into_iter();
        let read = |number| {
            let text = self.files.read(&self.path(number, "json")).ok()?;
            serde_json::from_str(&text).ok()
        };
        numbers.filter_map(read).collect()
    }

    fn numbers(&self) -> Vec<u64> {
        let names = self.files.names(&self.history).unwrap_or_default();
        let number = |name: &String| name.strip_suffix(".toml")?.parse().ok();
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    fn path(&self, number: u64, ending: &str) -> PathBuf {
        self.history.join(format!("{number:06}.{ending}"))
    }

    fn forget(&mut self, number: u64) {
        for ending in ["json", "toml"] {
            // What stays is found again at the next start.
            let _ = self.files.remove(&self.path(number, ending));
        }
    }

    fn cannot(&self, what: &str, cause: &io::Error) -> String {
        format!("cannot {what} {}: {cause}", self.config.display())
    }

    fn remember(&mut self, generation: &Generation, text: &str) -> io::Result<()> {
        let facts = serde_json::to_string_pretty(generation)?;
        self.files
            .replace(&self.path(generation.number, "json"), &facts)?;
        self.files
            .replace(&self.path(generation.number, "toml"), text)
    }
}

impl<F: Files> Store for FileStore<F> {
    fn file(&self) -> Result<String, String> {
        self.files
            .read(&self.config)
            .map_err(|cause| self.cannot("read", &cause))
    }

    fn commit(&mut self, generation: &Generation, text: &str) -> Result<(), String> {
        let kept = self.remember(generation, text);
        kept.map_err(|cause| format!("cannot keep the history: {cause}"))?;
        if let Err(cause) = self.files.replace(&self.config, text) {
            self.forget(generation.number);
            return Err(self.cannot("write", &cause));
        }
        if let Some(old) = generation.number.checked_sub(KEPT) {
            self.forget(old);
        }
        Ok(())
    }

    fn withdraw(&mut self, generation: u64, text: &str) -> Result<(), String> {
        let written = self.files.replace(&self.config, text);
        self.forget(generation);
        written.map_err(|cause| self.cannot("write", &cause))
    }

    fn text(&self, generation: u64) -> Option<String> {
        self.files.read(&self.path(generation, "toml")).ok()
    }
}

#[cfg(test)]
mod tests;
