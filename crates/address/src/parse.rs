//! Reads addresses, by one table of what there is.

use super::error::{ParseError, SyntaxFault, SyntaxProblem, nearest};
use super::text_piece::{Parsed, TextPiece};
use super::{Address, DEPTH_MAX, fcoe, filter, leaf};

pub(super) fn address(text: &str) -> Result<Address, ParseError> {
    whole(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
}

/// The schemes and wrappers whose volumes can be opened, in the order of the manual.
#[must_use]
pub fn built() -> Vec<&'static str> {
    let built = KINDS.iter().filter(|kind| kind.built);
    built.map(|kind| kind.name).collect()
}

/// A volume of the table.
struct Scheme {
    name: &'static str,
    shape: SchemeShape,
    /// It can be opened, and not only be understood.
    built: bool,
}

enum SchemeShape {
    Leaf(&'static leaf::LeafRule),
    Wrapper(&'static filter::FilterRule),
}

fn whole(text: TextPiece<'_>) -> Parsed<Address> {
    let (address, rest) = nested(text, 0)?;
    match rest.text.chars().next() {
        None => Ok(address),
        Some(found) => Err(rest.first().fault(SyntaxProblem::Behind(found))),
    }
}

/// An address at the begin of `text`, and what follows it. `depth` is the number of parentheses
/// around it.
pub(super) fn nested(text: TextPiece<'_>, depth: usize) -> Parsed<(Address, TextPiece<'_>)> {
    if depth > DEPTH_MAX {
        return Err(text.first().fault(SyntaxProblem::TooDeep));
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
        SchemeShape::Leaf(rule) => {
            let (leaf, rest) = rest.split_at(leaf_end(rest, depth > 0));
            Ok((leaf::parse(kind.name, rule, name, leaf)?, rest))
        }
        SchemeShape::Wrapper(rule) => filter::parse(kind.name, rule, name, rest, depth),
    }
}

/// Where a leaf ends: inside parentheses at a comma or `)`, else with the text.
fn leaf_end(rest: TextPiece<'_>, inside: bool) -> usize {
    let end = if inside {
        rest.text.find([',', ')'])
    } else {
        None
    };
    end.unwrap_or(rest.text.len())
}

fn unknown(text: TextPiece<'_>, name: TextPiece<'_>, depth: usize) -> SyntaxFault {
    let (leaf, _) = text.split_at(leaf_end(text, depth > 0));
    let problem = match leaf.text.chars().next() {
        None => SyntaxProblem::Empty,
        Some(c) if c.is_whitespace() => return leaf.first().fault(SyntaxProblem::Blank),
        Some('/' | '.' | '~') => return leaf.fault(bare_path(leaf.text)),
        Some(_) if leaf.text.contains(['/', '.']) && !leaf.text.contains([':', '(']) => {
            return leaf.fault(bare_path(leaf.text));
        }
        Some(_) if name.is_empty() => return leaf.first().fault(SyntaxProblem::Empty),
        Some(_) => SyntaxProblem::UnknownScheme {
            name: name.text.to_owned(),
            near: nearest(name.text, built().into_iter()),
            known: built(),
        },
    };
    name.fault(problem)
}

fn bare_path(path: &str) -> SyntaxProblem {
    let scheme = match path {
        path if path.starts_with("/dev/") => "block",
        _ => "file",
    };
    SyntaxProblem::BarePath {
        scheme,
        path: path.to_owned(),
    }
}

const fn leaf(name: &'static str, rule: &'static leaf::LeafRule) -> Scheme {
    Scheme {
        name,
        shape: SchemeShape::Leaf(rule),
        built: true,
    }
}

const fn wrapper(name: &'static str, rule: &'static filter::FilterRule) -> Scheme {
    Scheme {
        name,
        shape: SchemeShape::Wrapper(rule),
        built: true,
    }
}

impl Scheme {
    const fn planned(self) -> Self {
        let built = false;
        Self { built, ..self }
    }
}

const KINDS: &[Scheme] = &[
    leaf("ram", &leaf::RAM),
    leaf("null", &leaf::NULL),
    leaf("file", &leaf::FILE),
    leaf("block", &leaf::BLOCK),
    leaf("scsi", &leaf::SCSI).planned(),
    leaf("rbd", &leaf::RBD).planned(),
    leaf("iscsi", &leaf::ISCSI),
    leaf("iser", &leaf::ISER),
    leaf("fcoe", &fcoe::FCOE),
    // Not offered: a daemon alone knows its rows.
    leaf("vol", &leaf::ROW).planned(),
    wrapper("stripe", &filter::STRIPE),
    wrapper("concat", &filter::CONCAT),
    wrapper("mirror", &filter::MIRROR).planned(),
    wrapper("limit", &filter::LIMIT),
    wrapper("delay", &filter::DELAY),
    wrapper("fault", &filter::FAULT),
    wrapper("verify", &filter::VERIFY),
    wrapper("stats", &filter::STATS),
    wrapper("readonly", &filter::READONLY),
];
