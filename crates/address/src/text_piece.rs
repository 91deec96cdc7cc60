//! A stretch of the text that is parsed, which knows where it stands.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::error::{SyntaxFault, SyntaxProblem};

pub(super) type Parsed<T> = Result<T, SyntaxFault>;

#[derive(Clone, Copy, Debug)]
pub(super) struct TextPiece<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> TextPiece<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn span(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Blames the whole piece.
    pub(super) fn fault(self, problem: SyntaxProblem) -> SyntaxFault {
        SyntaxFault {
            span: self.span(),
            problem,
        }
    }

    /// Its first character, or nothing.
    pub(super) fn first(self) -> Self {
        let len = self.text.chars().next().map_or(0, char::len_utf8);
        self.split_at(len).0
    }

    /// The first `len` bytes and the rest; `len` is a character boundary inside the piece.
    pub(super) fn split_at(self, len: usize) -> (Self, Self) {
        let (head, tail) = self.text.split_at(len);
        let tail = TextPiece {
            text: tail,
            at: self.at + len,
        };
        (TextPiece { text: head, ..self }, tail)
    }

    /// What is before the first `separator` and what is after it.
    pub(super) fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        let (head, tail) = self.split_at(at);
        Some((head, tail.split_at(separator.len_utf8()).1))
    }

    /// What is before the last `separator` and what is after it.
    pub(super) fn rsplit_once(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.rfind(separator)?;
        let (head, tail) = self.split_at(at);
        Some((head, tail.split_at(separator.len_utf8()).1))
    }

    pub(super) fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let piece = rest?;
            let (head, tail) = match piece.split_once(separator) {
                Some((head, tail)) => (head, Some(tail)),
                None => (piece, None),
            };
            rest = tail;
            Some(head)
        })
    }

    pub(super) fn strip_prefix(self, prefix: &str) -> Option<Self> {
        self.text
            .starts_with(prefix)
            .then(|| self.split_at(prefix.len()).1)
    }

    /// The bytes that the piece stands for, `%XX` undone.
    pub(super) fn bytes(self) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.text.len());
        let mut rest = self;
        while let Some((plain, escape)) = rest.split_once('%') {
            bytes.extend_from_slice(plain.text.as_bytes());
            let digits = escape.text.as_bytes();
            let [high, low] = [0, 1].map(|i| digits.get(i).and_then(|d| hexadecimal(*d)));
            let (Some(high), Some(low)) = (high, low) else {
                let at = escape.at - 1;
                return Err(SyntaxFault {
                    span: at..at + 1,
                    problem: SyntaxProblem::Escape,
                });
            };
            bytes.push(high << 4 | low);
            rest = escape.split_at(2).1;
        }
        bytes.extend_from_slice(rest.text.as_bytes());
        Ok(bytes)
    }

    /// The text that the piece stands for.
    pub(super) fn string(self) -> Parsed<String> {
        let text = String::from_utf8(self.bytes()?).map_err(|_| {
            self.fault(SyntaxProblem::Bytes("this is not UTF-8 after decoding %XX"))
        })?;
        if text.chars().any(char::is_control) {
            Err(self.fault(SyntaxProblem::Bytes(
                "control characters are not allowed here",
            )))
        } else {
            Ok(text)
        }
    }

    /// The path that the piece stands for.
    pub(super) fn path(self) -> Parsed<PathBuf> {
        let bytes = self.bytes()?;
        if bytes.contains(&0) {
            Err(self.fault(SyntaxProblem::Bytes("a path cannot contain the byte 0")))
        } else {
            Ok(OsString::from_vec(bytes).into())
        }
    }
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}
