//! What is wrong with a document, where, and what was meant.

use std::fmt;

use address::nearest;
use serde::Serialize;
use toml_edit::{Document, Item, TomlError};

use crate::tree::{A_LIST, A_PORTAL};

/// A line and a column of a text, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TextPlace {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Why a document is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentProblem {
    /// Where in the text, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<TextPlace>,
    /// The key, as in `volume.db.limit`; empty for the document itself.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl TextPlace {
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let last = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
        }
    }
}

impl DocumentProblem {
    /// What TOML itself does not allow.
    pub(super) fn syntax(text: &str, error: &TomlError) -> Self {
        let offset = error.span().map_or(text.len(), |span| span.start);
        let mut lines = error.message().lines();
        Self {
            place: Some(TextPlace::of(text, offset)),
            key: String::new(),
            what: lines.next().unwrap_or("this is not TOML").to_owned(),
            way_out: lines.next().map(str::to_owned),
        }
    }

    /// What TOML allows and a tree does not.
    pub(super) fn meaning(
        text: &str,
        document: &Document<&str>,
        error: &toml_edit::de::Error,
    ) -> Self {
        let offset = error.span().map(|span| span.start);
        let key = offset.map(|offset| key_at(document.as_item(), offset));
        let message = error.message();
        Self {
            place: offset.map(|offset| TextPlace::of(text, offset)),
            key: key.unwrap_or_default(),
            what: in_words(message),
            way_out: meant(message),
        }
    }
}

impl fmt::Display for DocumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(TextPlace { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.way_out {
            Some(way_out) => write!(f, ": {way_out}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DocumentProblem {}

/// The key of the innermost value around a place. The key itself counts too, as an unknown one has
/// its place there.
fn key_at(item: &Item, offset: usize) -> String {
    let Some(table) = item.as_table_like() else {
        return String::new();
    };
    for (name, inner) in table.iter() {
        let key = table.key(name);
        let name = key.map_or_else(|| name.to_owned(), |key| key.display_repr().into_owned());
        let on_key = key
            .and_then(toml_edit::Key::span)
            .is_some_and(|span| span.contains(&offset));
        let below = key_at(inner, offset);
        if !below.is_empty() {
            return format!("{name}.{below}");
        }
        if on_key || inner.span().is_some_and(|span| span.contains(&offset)) {
            return name;
        }
    }
    String::new()
}

/// The names that a message of serde quotes: the unknown one, then those that are known.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

/// A message of serde in our words, with what was meant.
pub(crate) fn one_line(message: &str) -> String {
    match meant(message) {
        Some(way_out) => format!("{}: {way_out}", in_words(message)),
        None => in_words(message),
    }
}

fn in_words(message: &str) -> String {
    let name = quoted(message).next().unwrap_or_default();
    if message.starts_with("unknown field") {
        format!("there is no key {name:?} here")
    } else if message.starts_with("unknown variant") {
        format!("{name:?} is not known here")
    } else if message.starts_with("missing field") {
        format!("{name:?} is missing")
    } else if message.starts_with("data did not match any variant of untagged enum LunRow") {
        "this is not a LUN".to_owned()
    } else if let Some((_, expected)) = message.split_once(", expected ")
        && message.starts_with("invalid ")
    {
        // What was written is not repeated: it may be a secret in the wrong place.
        let (what, example) = in_toml(expected);
        format!("{} is expected here{example}", what.replace('`', ""))
    } else {
        message.replace('`', "")
    }
}

/// What serde expects in words of TOML, and how that is written.
fn in_toml(expected: &str) -> (&str, &str) {
    match expected {
        "u8" => ("a number from 0 to 255", ""),
        "u16" => ("a number from 0 to 65535", ""),
        "u32" => ("a number from 0 to 4294967295", ""),
        "a boolean" => ("true or false", ""),
        "a sequence" => ("a list", ": write [\"a\", \"b\"]"),
        "a map" => ("a table", ": write { key = \"value\" }"),
        other => (other, ""),
    }
}

fn meant(message: &str) -> Option<String> {
    if message.contains("enum LunRow") {
        return Some("write \"VOLUME\" or { volume = \"VOLUME\", access = \"ro\" }".to_owned());
    }
    let expected = message.split_once(", expected ").map(|(_, what)| what);
    if expected == Some(A_LIST) {
        return Some("write [\"HOST:PORT\"], or { 1 = [\"HOST:PORT\"] } by tag".to_owned());
    }
    if expected == Some(A_PORTAL) {
        let forms = "write \"HOST:PORT\", or { address = \"HOST:PORT\", iser = true }";
        return Some(forms.to_owned());
    }
    if !message.starts_with("unknown") {
        return None;
    }
    let mut names = quoted(message);
    let unknown = names.next()?;
    let known: Vec<_> = names.collect();
    match nearest(unknown, known.iter().copied()) {
        Some(near) => Some(format!("did you mean {near:?}?")),
        None => Some(format!("it can be {}", known.join(", "))),
    }
}
