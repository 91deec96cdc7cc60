//! Reads addresses, by one table of what there is.

use super::Address;
use super::error::{Fault, ParseError, Problem, nearest};
use super::piece::{Parsed, Piece};
use super::{leaf, wrapper};

/// How deep wrappers may be nested: each level costs stack.
pub(super) const DEPTH_MAX: usize = 16;

pub(super) fn address(text: &str) -> Result<Address, ParseError> {
    whole(Piece::new(text)).map_err(|fault| ParseError::new(text, fault))
}

/// The schemes and wrappers whose volumes can be opened, in the order of the manual.
#[must_use]
pub fn built() -> Vec<&'static str> {
    let built = KINDS.iter().filter(|kind| kind.built);
    built.map(|kind| kind.name).collect()
}

/// A volume of the table.
struct Kind {
    name: &'static str,
    shape: Shape,
    /// It can be opened, and not only be understood.
    built: bool,
}

enum Shape {
    Leaf(&'static leaf::Rule),
    Wrapper(&'static wrapper::Rule),
}

fn whole(text: Piece<'_>) -> Parsed<Address> {
    let (address, rest) = nested(text, 0)?;
    match rest.text.chars().next() {
        None => Ok(address),
        Some(found) => Err(first(rest).fault(Problem::Behind(found))),
    }
}

/// An address at the begin of `text`, and what follows it. `depth` is the number of parentheses
/// around it.
pub(super) fn nested(text: Piece<'_>, depth: usize) -> Parsed<(Address, Piece<'_>)> {
    if depth > DEPTH_MAX {
        return Err(first(text).fault(Problem::TooDeep));
    }
    let end = text
        .text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+')));
    let (name, rest) = text.split_at(end.unwrap_or(text.text.len()));
    let kind = KINDS
        .iter()
        .find(|kind| kind.name == name.text)
        .ok_or_else(|| unknown(text, name, depth))?;
    match kind.shape {
        Shape::Leaf(rule) => {
            let (leaf, rest) = rest.split_at(leaf_end(rest, depth > 0));
            Ok((leaf::parse(kind.name, rule, name, leaf)?, rest))
        }
        Shape::Wrapper(rule) => wrapper::parse(kind.name, rule, name, rest, depth),
    }
}

/// Where a leaf ends: inside parentheses at a comma or `)`, else with the text.
fn leaf_end(rest: Piece<'_>, inside: bool) -> usize {
    let end = if inside {
        rest.text.find([',', ')'])
    } else {
        None
    };
    end.unwrap_or(rest.text.len())
}

fn unknown(text: Piece<'_>, name: Piece<'_>, depth: usize) -> Fault {
    let (leaf, _) = text.split_at(leaf_end(text, depth > 0));
    let problem = match leaf.text.chars().next() {
        None => Problem::Empty,
        Some(c) if c.is_whitespace() => return first(leaf).fault(Problem::Blank),
        Some('/' | '.' | '~') => return leaf.fault(bare_path(leaf.text)),
        Some(_) if leaf.text.contains(['/', '.']) && !leaf.text.contains([':', '(']) => {
            return leaf.fault(bare_path(leaf.text));
        }
        Some(_) if name.is_empty() => return first(leaf).fault(Problem::Empty),
        Some(_) => Problem::UnknownScheme {
            name: name.text.to_owned(),
            near: nearest(name.text, built().into_iter()),
        },
    };
    name.fault(problem)
}

fn bare_path(path: &str) -> Problem {
    let scheme = match path {
        path if path.starts_with("/dev/") => "block",
        _ => "file",
    };
    Problem::BarePath {
        scheme,
        path: path.to_owned(),
    }
}

/// The first character of a piece.
pub(super) fn first(piece: Piece<'_>) -> Piece<'_> {
    let len = piece.text.chars().next().map_or(0, char::len_utf8);
    piece.split_at(len).0
}

const fn leaf(name: &'static str, rule: &'static leaf::Rule) -> Kind {
    Kind {
        name,
        shape: Shape::Leaf(rule),
        built: true,
    }
}

const fn wrapper(name: &'static str, rule: &'static wrapper::Rule) -> Kind {
    Kind {
        name,
        shape: Shape::Wrapper(rule),
        built: true,
    }
}

impl Kind {
    const fn planned(self) -> Self {
        let built = false;
        Self { built, ..self }
    }
}

const KINDS: &[Kind] = &[
    leaf("ram", &leaf::RAM),
    leaf("null", &leaf::NULL),
    leaf("file", &leaf::FILE),
    leaf("block", &leaf::BLOCK),
    leaf("scsi", &leaf::SCSI).planned(),
    leaf("rbd", &leaf::RBD).planned(),
    leaf("iscsi", &leaf::ISCSI),
    leaf("iser", &leaf::ISER).planned(),
    leaf("fcoe", &leaf::FCOE),
    wrapper("stripe", &wrapper::STRIPE),
    wrapper("concat", &wrapper::CONCAT),
    wrapper("mirror", &wrapper::MIRROR).planned(),
    wrapper("limit", &wrapper::LIMIT),
    wrapper("delay", &wrapper::DELAY),
    wrapper("fault", &wrapper::FAULT),
    wrapper("verify", &wrapper::VERIFY),
    wrapper("stats", &wrapper::STATS),
    wrapper("readonly", &wrapper::READONLY),
];
