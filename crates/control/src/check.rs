//! What does not fit together in a tree, all of it at once: references that lead nowhere, names
//! that nobody has, and rows that contradict each other.
//!
//! Nothing is opened and no secret is read here; what only the machine can tell is found when a
//! change is prepared.

mod access;
mod iser;
mod process;
mod switch;
mod target;
mod volume;

use std::fmt;

use serde::Serialize;

use crate::tree::Tree;
pub use access::{EVERYBODY, InitiatorName, initiator};
pub(crate) use iser::iser_portals_by;
pub(crate) use target::new_overlaps;
pub use target::{Portal, portal};
pub use volume::address_of;
pub(crate) use volume::{naa_bytes, names_rows, parts};

/// Something that is wrong with a tree, or that its writer may not have meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeProblem {
    /// The row and key, as in `volume.db.address`.
    pub at: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
}

impl fmt::Display for TreeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.what, self.way_out)
    }
}

/// What a look at a tree has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The tree cannot be served with these.
    pub problems: Vec<TreeProblem>,
    /// It can with these.
    pub warnings: Vec<TreeProblem>,
}

impl Findings {
    fn problem(&mut self, at: impl fmt::Display, what: impl fmt::Display, way_out: &str) {
        self.problems.push(found(at, what, way_out));
    }

    fn warning(&mut self, at: impl fmt::Display, what: impl fmt::Display, way_out: &str) {
        self.warnings.push(found(at, what, way_out));
    }
}

fn found(at: impl fmt::Display, what: impl fmt::Display, way_out: &str) -> TreeProblem {
    TreeProblem {
        at: at.to_string(),
        what: what.to_string(),
        way_out: way_out.to_owned(),
    }
}

/// Looks at a whole tree.
#[must_use]
pub fn check(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    process::check(tree, &mut findings);
    volume::check(tree, &mut findings);
    access::check(tree, &mut findings);
    target::check(tree, &mut findings);
    iser::check(tree, &mut findings);
    switch::check(tree, &mut findings);
    findings
}

/// Whether a name can be that of a volume, a group or a switch: it becomes part of paths,
/// addresses and metrics.
pub(crate) fn is_row_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with(['.', '-'])
}

fn check_row_name(section: &str, name: &str, findings: &mut Findings) {
    if !is_row_name(name) {
        findings.problem(
            format_args!("{section}.{name:?}"),
            "this is not a name",
            "use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', the first one not '.' or '-'",
        );
    }
}

#[cfg(test)]
mod tests;
