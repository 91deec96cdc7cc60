//! The document: a tree as TOML, with the comments and the order of who wrote it.
//!
//! A document is read whole or not at all, with the place of what is wrong. It is rewritten value
//! by value: where the tree has not changed not a byte of the text does. Where only rows have, the
//! lines of others are not looked at either.

mod edit;
mod layout;
mod problem;
mod rewrite;
mod set;

use toml_edit::de::Deserializer;
use toml_edit::visit_mut::VisitMut;
use toml_edit::{Document, DocumentMut, Formatted, Value};

use crate::tree::{Tree, VERSION};
pub(crate) use edit::edit;
pub(crate) use problem::one_line as in_words;
pub use problem::{DocumentProblem, TextPlace};
pub use rewrite::rewrite;
pub use set::{SetError, set, set_all, unset};

/// The tree that a document describes. References between rows are not looked at.
///
/// # Errors
///
/// The first thing that is wrong, and where.
pub fn parse(text: &str) -> Result<Tree, DocumentProblem> {
    let document = || Document::parse(text).map_err(|error| DocumentProblem::syntax(text, &error));
    let syntax = document()?;
    check_version(text, &syntax)?;
    Tree::deserialize(Deserializer::from(syntax)).or_else(|error| {
        // Reading has used it up.
        Err(DocumentProblem::meaning(text, &document()?, &error))
    })
}

/// A tree as a document of its own.
#[must_use]
pub fn write(tree: &Tree) -> String {
    rewrite("", tree)
}

/// What a newer version means is not guessed at.
fn check_version(text: &str, document: &Document<&str>) -> Result<(), DocumentProblem> {
    let Some(version) = document.get("version") else {
        return Ok(());
    };
    let Some((what, way_out)) = version.as_integer().and_then(unknown_version) else {
        return Ok(());
    };
    Err(DocumentProblem {
        place: version.span().map(|span| TextPlace::of(text, span.start)),
        key: "version".to_owned(),
        what,
        way_out: Some(way_out),
    })
}

/// What is wrong with a version that cannot be read, and the way out.
fn unknown_version(version: i64) -> Option<(String, String)> {
    let is_known = (1..=i64::from(VERSION)).contains(&version);
    (!is_known).then(|| {
        let what = format!("version {version} is not known to this program");
        (what, format!("it reads version {VERSION}"))
    })
}

/// A tree in the form that rewriting compares: tables and values, defaults left out.
fn canonical(tree: &Tree) -> DocumentMut {
    // Rows are strings, numbers, lists and tables with text keys, all of which TOML has.
    let mut document = toml_edit::ser::to_document(tree).unwrap_or_default();
    OneLine.visit_document_mut(&mut document);
    document
}

/// Writes each text on one line. As several they would end as the lines of the document do, and
/// be read as another text.
struct OneLine;

impl VisitMut for OneLine {
    fn visit_string_mut(&mut self, text: &mut Formatted<String>) {
        if !text.value().contains(['\n', '\r']) {
            return;
        }
        // What JSON escapes, TOML does in the same way; and DEL.
        let escaped = serde_json::to_string(text.value()).unwrap_or_default();
        let escaped = escaped.replace('\u{7f}', "\\u007f");
        if let Ok(Value::String(escaped)) = escaped.parse() {
            *text = escaped;
        }
    }
}

#[cfg(test)]
mod tests;
