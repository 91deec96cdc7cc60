//! Where each row of a document is written, found without reading what it says.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use toml_parser::Source;
use toml_parser::lexer::{Lexer, Token, TokenKind};

/// The lines of each row.
///
/// A row's lines are those of its tables, `[volume.db]` and all below as `[volume.db.limit]`, with
/// the comments above each header. Rows that are written otherwise are not found: in
/// `[volume]\ndb = { … }`, as `volume.db.address = …` above all tables, or with the tables of
/// another row between their own.
#[derive(Debug, Default)]
pub(super) struct Layout<'a> {
    sections: HashMap<Cow<'a, str>, Section<'a>>,
    /// Sections of which some rows are written otherwise.
    irregular: HashSet<Cow<'a, str>>,
    /// Where the lines begin that follow the last value.
    end: usize,
}

/// The rows of a section.
#[derive(Debug, Default)]
pub(super) struct Section<'a> {
    rows: HashMap<Cow<'a, str>, Range<usize>>,
    /// Where the lines of the last one end.
    end: usize,
}

/// A table whose lines have begun: the keys of its header, and where.
type Open<'a> = (Vec<Cow<'a, str>>, usize);

impl<'a> Layout<'a> {
    /// The layout of a document that is a tree.
    pub(super) fn of(document: &'a str) -> Self {
        let source = Source::new(document);
        let (mut layout, mut open) = (Self::default(), None);
        for line in Lines(source.lex()) {
            let mut keys = line.keys.iter().filter_map(|token| key(source, token));
            match line.kind {
                LineKind::Header => {
                    layout.close(open.take());
                    // What stands between two tables is about the second one.
                    open = Some((keys.collect(), layout.end));
                }
                LineKind::Value if open.is_none() => layout.irregular.extend(keys.next()),
                LineKind::Value => {}
            }
            layout.end = line.end;
        }
        layout.close(open);
        layout
    }

    /// Notes a table whose last line has been seen.
    fn close(&mut self, table: Option<Open<'a>>) {
        let Some((keys, start)) = table else { return };
        let mut keys = keys.into_iter();
        let (section, row) = (keys.next().unwrap_or_default(), keys.next());
        let Some(row) = row else {
            self.irregular.insert(section);
            return;
        };
        let rows = self.sections.entry(section.clone()).or_default();
        let known = rows.rows.entry(row).or_insert(start..start);
        if known.end != start {
            self.irregular.insert(section);
        }
        known.end = self.end;
        rows.end = self.end;
    }

    /// A section whose rows have all been found. It has none where it is not there.
    pub(super) fn section(&self, name: &str) -> Option<Option<&Section<'a>>> {
        (!self.irregular.contains(name)).then(|| self.sections.get(name))
    }

    /// Where a section is written that was not there.
    pub(super) fn end(&self) -> usize {
        self.end
    }
}

impl Section<'_> {
    /// The lines of a row.
    pub(super) fn row(&self, name: &str) -> Option<Range<usize>> {
        self.rows.get(name).cloned()
    }

    /// Where a row is written that was not there.
    pub(super) fn end(&self) -> usize {
        self.end
    }
}

/// What a key says; one that is quoted may have escapes.
fn key<'a>(source: Source<'a>, token: &Token) -> Option<Cow<'a, str>> {
    let mut text = Cow::Borrowed("");
    source.get(token)?.decode_key(&mut text, &mut ());
    Some(text)
}

/// A header, or a value with its key. It may take several lines of the text.
#[derive(Debug, Default)]
struct Line {
    kind: LineKind,
    keys: Vec<Token>,
    /// Where the next line begins.
    end: usize,
}

#[derive(Debug, Default)]
enum LineKind {
    #[default]
    Value,
    Header,
}

/// The lines of a document that are neither blank nor only a comment.
struct Lines<'a>(Lexer<'a>);

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let blank = [
            TokenKind::Whitespace,
            TokenKind::Comment,
            TokenKind::Newline,
        ];
        let first = self.0.find(|token| !blank.contains(&token.kind()))?;
        let mut line = Line::default();
        let (mut depth, mut in_key) = (0_usize, true);
        match first.kind() {
            TokenKind::Eof => return None,
            TokenKind::LeftSquareBracket => line.kind = LineKind::Header,
            _ => line.keys.push(first),
        }
        for token in self.0.by_ref() {
            match token.kind() {
                TokenKind::Eof => {
                    line.end = token.span().start();
                    break;
                }
                TokenKind::Newline if depth == 0 => {
                    line.end = token.span().end();
                    break;
                }
                TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => depth += 1,
                TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                    in_key = false;
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Equals => in_key = false,
                TokenKind::Atom | TokenKind::BasicString | TokenKind::LiteralString if in_key => {
                    line.keys.push(token);
                }
                _ => {}
            }
        }
        Some(line)
    }
}
