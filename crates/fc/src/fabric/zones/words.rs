//! A zone file as statements of words, each with its place.

use super::{ZoneError, ZoneFault};

/// A word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// From 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
}

impl Word<'_> {
    /// It is wrong.
    pub(super) fn wrong(&self, what: impl FnOnce(String) -> ZoneFault) -> ZoneError {
        self.fault(what(self.text.to_owned()))
    }

    /// Something is wrong here.
    pub(super) const fn fault(&self, what: ZoneFault) -> ZoneError {
        ZoneError {
            line: self.line,
            column: self.column,
            what,
        }
    }
}

/// The statements of a file, each with at least one word.
pub(super) fn statements(text: &str) -> Vec<Vec<Word<'_>>> {
    let mut statements = Vec::new();
    let mut open = Vec::new();
    for (text, number) in text.lines().zip(1..) {
        let goes_on = add_line(&mut open, text, number);
        if !goes_on && !open.is_empty() {
            statements.push(std::mem::take(&mut open));
        }
    }
    if !open.is_empty() {
        statements.push(open);
    }
    statements
}

/// Adds the words of a line, and tells whether its statement goes on in the next one.
fn add_line<'a>(words: &mut Vec<Word<'a>>, text: &'a str, line: usize) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return false;
        }
        if rest.trim_end() == "\\" {
            return true;
        }
        let before = &text[..text.len() - rest.len()];
        let column = before.chars().count() + 1;
        let (word, after) = rest.split_at(word_len(words, rest));
        let text = word;
        words.push(Word { text, line, column });
        rest = after;
    }
}

/// The first `=` of a statement is a word of its own, with blanks around it or without.
fn word_len(words: &[Word<'_>], rest: &str) -> usize {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    if words.iter().any(|word| word.text == "=") {
        return end;
    }
    match rest[..end].find('=') {
        Some(0) => 1,
        Some(at) => at,
        None => end,
    }
}
