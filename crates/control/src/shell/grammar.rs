//! The grammar of a line: `[PATH] COMMAND [value…] [key=value…]`.
//!
//! Words are separated by blanks. Quotes, single or double, keep blanks inside a word. A line that
//! begins with `#` is a comment.

use super::Refusal;

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without its quotes.
    pub text: String,
    /// Where it starts in the line, in bytes.
    pub start: usize,
    /// Where it ends in the line, in bytes.
    pub end: usize,
    /// How many bytes of `text` precede the first quote.
    bare: usize,
}

/// A parameter of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A positional value.
    Value(String),
    /// `key=value`.
    Keyword(String, String),
}

/// The parts of a line. The command may turn out to be a path without a slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) path: Option<String>,
    pub(super) command: Option<Word>,
    pub(super) parameters: Vec<Parameter>,
}

impl Word {
    /// A word that was split from another one.
    pub(super) fn bare(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            start: 0,
            end: 0,
            bare: usize::MAX,
        }
    }

    /// Whether the word is a path: it has a slash, or is `.`, `..` or a bookmark.
    #[must_use]
    pub fn is_path(&self) -> bool {
        let text = self.text.as_str();
        matches!(text, "." | "..") || text.starts_with('@') || text.contains('/')
    }

    /// The word as a parameter.
    pub(super) fn parameter(&self) -> Parameter {
        let is_key = |key: &str| {
            let mut bytes = key.bytes();
            !key.is_empty()
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        match self.text.split_once('=') {
            Some((key, value)) if key.len() < self.bare && is_key(key) => {
                Parameter::Keyword(key.to_owned(), value.to_owned())
            }
            _ => Parameter::Value(self.text.clone()),
        }
    }
}

/// Splits a line into words. The second value is the column, from 1, of a quote that is not closed.
/// Completion works on such lines.
#[must_use]
pub fn words(line: &str) -> (Vec<Word>, Option<usize>) {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<(char, usize)> = None;
    for (at, letter) in line.char_indices() {
        match quote {
            Some((open, _)) if letter == open => quote = None,
            None if letter.is_whitespace() => {
                words.extend(word.take().map(|word| Word { end: at, ..word }));
                continue;
            }
            _ => {
                let word = word.get_or_insert_with(|| Word {
                    text: String::new(),
                    start: at,
                    end: line.len(),
                    bare: usize::MAX,
                });
                if quote.is_none() && matches!(letter, '"' | '\'') {
                    word.bare = word.bare.min(word.text.len());
                    quote = Some((letter, line[..at].chars().count() + 1));
                } else {
                    word.text.push(letter);
                }
            }
        }
    }
    words.extend(word);
    (words, quote.map(|(_, column)| column))
}

/// Splits a line into its parts.
pub(super) fn parse(line: &str) -> Result<Line, Refusal> {
    if line.trim_start().starts_with('#') {
        return Ok(Line::default());
    }
    let (words, open) = words(line);
    if let Some(column) = open {
        let what = format!("The quote in column {column} is never closed.");
        return Err(Refusal::new(what));
    }
    let mut rest = words.iter().peekable();
    let path = rest.next_if(|word| word.is_path());
    let command = rest.next().cloned();
    Ok(Line {
        path: path.map(|word| word.text.clone()),
        command,
        parameters: rest.map(Word::parameter).collect(),
    })
}

/// Whether a line contains a secret and must not be stored in a history.
#[must_use]
pub fn holds_secret(line: &str) -> bool {
    let (words, _) = words(line);
    words.iter().any(|word| {
        let text = word.text.to_ascii_lowercase();
        text.starts_with("password=") || text.starts_with("mutual_password=")
    })
}
