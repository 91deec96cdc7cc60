//! The file of the tokens.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::KeptToken;
use crate::alarm::{Alarm, AlarmBoard, AlarmKind};

/// Where tokens are kept.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// What is there could not be read, and not be put aside either: it is not overwritten.
    lost: Option<String>,
    alarms: Arc<AlarmBoard>,
}

impl TokenFile {
    /// Reads a file. What cannot be read is put aside: it may be mended.
    pub(super) fn read(path: PathBuf, alarms: Arc<AlarmBoard>) -> (Self, Vec<KeptToken>) {
        let mut file = Self {
            path,
            lost: None,
            alarms,
        };
        let tokens = match read(&file.path) {
            Ok(tokens) => tokens,
            Err(cause) => {
                file.put_aside(&cause);
                Vec::new()
            }
        };
        let aside = file.aside(0);
        if aside.exists() && file.lost.is_none() {
            file.tell_of(&aside);
        }
        (file, tokens)
    }

    fn put_aside(&mut self, cause: &str) {
        let path = self.path.display().to_string();
        let names = (0..).map(|number| self.aside(number));
        let mut free = names.filter(|aside| !aside.exists());
        let moved = free.next().map(|aside| fs::rename(&self.path, aside));
        tracing::error!("{path}: {cause}: no token counts that was in it");
        if let Some(Err(failed)) = moved {
            let lost = format!("{path} can neither be read ({cause}) nor be put aside ({failed})");
            let alarm = Alarm::new(AlarmKind::Tokens, format!("{lost}: no token counts"));
            let alarm = alarm
                .at(path)
                .way_out("mend it, or move it away, and restart the daemon");
            self.alarms.raise(alarm);
            self.lost = Some(lost);
        }
    }

    /// It is over when somebody has taken it away.
    fn tell_of(&self, aside: &Path) {
        let (path, aside_) = (self.path.display(), aside.display());
        let detail = format!("{path} could not be read, and lies at {aside_}: its tokens are gone");
        let alarm = Alarm::new(AlarmKind::Tokens, detail)
            .at(aside_.to_string())
            .way_out(
                "make tokens anew, or mend it and put it back before a restart; then remove it",
            );
        self.alarms.raise_while(alarm, aside.to_owned());
    }

    /// Where a file goes that cannot be read; earlier ones stay.
    fn aside(&self, number: u32) -> PathBuf {
        match number {
            0 => self.path.with_extension("json.spoilt"),
            number => self.path.with_extension(format!("json.spoilt.{number}")),
        }
    }

    /// Writes all tokens.
    pub(super) fn write(&mut self, tokens: &BTreeMap<String, KeptToken>) -> Result<(), String> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let tokens: Vec<_> = tokens.values().collect();
        let text = serde_json::to_string_pretty(&tokens).unwrap_or_default();
        let path = self.path.display().to_string();
        let written = crate::secret::keep(&self.path, &text);
        written.map_err(|cause| format!("cannot write {path}: {cause}"))?;
        self.alarms.clear_at(AlarmKind::Tokens, &path);
        Ok(())
    }

    /// What was revoked is in the file still.
    pub(super) fn is_behind(&self, token: &str, cause: &str) {
        if self.lost.is_some() {
            return;
        }
        let detail = format!("{cause}: the token {token} is revoked, and is in the file still");
        let alarm = Alarm::new(AlarmKind::Tokens, detail)
            .at(self.path.display().to_string())
            .way_out(
                "make room; it is tried again every 10 s, and counts if the daemon starts before",
            );
        self.alarms.raise(alarm);
    }
}

fn read(path: &Path) -> Result<Vec<KeptToken>, String> {
    match fs::read_to_string(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(cause.to_string()),
        Ok(text) => serde_json::from_str(&text).map_err(|cause| cause.to_string()),
    }
}
