//! Groups: names of initiators, and CHAP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Findings, check_row_name};
use crate::tree::{GroupRow, Tree};

/// Everybody.
pub const EVERYBODY: &str = "*";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (name, row) in &tree.group {
        check_row_name("group", name, findings);
        for initiator in &row.initiators {
            check_initiator(format_args!("group.{name}.initiators"), initiator, findings);
        }
        check_chap(name, row, findings);
    }
}

fn check_initiator(at: fmt::Arguments<'_>, name: &str, findings: &mut Findings) {
    if initiator(name).is_none() {
        findings.problem(
            at,
            format_args!("{name:?} is not the name of an initiator"),
            "write an IQN, a WWPN such as 20:00:52:54:00:78:41:00, or \"*\" for everybody",
        );
    }
}

/// Somebody who may log in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InitiatorName {
    /// Everybody.
    Everybody,
    /// An iSCSI name, as names are compared.
    Iscsi(String),
    /// The WWPN of an N_Port.
    Port(fc::wire::names::Wwn),
}

/// What a name of an initiator means.
#[must_use]
pub fn initiator(name: &str) -> Option<InitiatorName> {
    if name == EVERYBODY {
        return Some(InitiatorName::Everybody);
    }
    // What begins with `naa.` is an iSCSI name, of which a WWPN could be a part.
    let port = (!name.starts_with("naa."))
        .then(|| name.parse().ok())
        .flatten();
    let iscsi = || {
        address::normalise_iscsi_name(name)
            .ok()
            .map(InitiatorName::Iscsi)
    };
    port.map(InitiatorName::Port).or_else(iscsi)
}

fn check_chap(name: &str, row: &GroupRow, findings: &mut Findings) {
    match (&row.chap, &row.mutual) {
        (None, Some(_)) => findings.problem(
            format_args!("group.{name}.mutual"),
            "a target only proves itself to initiators that prove themselves (RFC 7143 §12.1.3)",
            "give the group chap too",
        ),
        (Some(chap), Some(mutual)) if chap.secret == mutual.secret => findings.problem(
            format_args!("group.{name}.mutual.secret"),
            "this is the secret of the initiators (RFC 7143 §9.2.1)",
            "give each side its own secret",
        ),
        (None, None) if row.chap_min.is_some() => findings.problem(
            format_args!("group.{name}.chap-min"),
            "the group logs in without CHAP",
            "give the group chap, or leave chap-min out",
        ),
        _ => {}
    }
    for chap in row.chap.iter().chain(&row.mutual) {
        if chap.user.is_empty() || chap.user.len() > 255 || chap.user.contains(['\0', '\n']) {
            findings.problem(
                format_args!("group.{name}"),
                format_args!("{:?} is not a CHAP name", chap.user),
                "write 1 to 255 bytes in one line",
            );
        }
    }
}

/// The rows of a target's `allow`: names of groups, and of initiators.
pub(super) fn check_allowed(tree: &Tree, at: &str, allow: &[String], findings: &mut Findings) {
    for name in allow {
        if tree.group.contains_key(name) || initiator(name).is_some() {
            continue;
        }
        let near = address::nearest(name, tree.group.keys().map(String::as_str));
        findings.problem(
            at,
            format_args!("there is no group {name:?}, and no initiator is called so"),
            &did_you_mean(near),
        );
    }
}

/// An initiator that two entries of `allow` name: what it has to prove and sees would follow from
/// their order.
pub(super) fn check_twice(tree: &Tree, at: &str, allow: &[String], findings: &mut Findings) {
    let mut known: BTreeMap<InitiatorName, &String> = BTreeMap::new();
    for entry in allow {
        for name in named(tree, entry) {
            if let Some(other) = known.insert(name.clone(), entry) {
                findings.problem(
                    at,
                    format_args!("{name} is allowed by {other} and by {entry}"),
                    "name it in one of them: they may see other LUNs or have other secrets",
                );
            }
        }
    }
}

/// Those whom an entry of `allow` names.
fn named(tree: &Tree, entry: &String) -> BTreeSet<InitiatorName> {
    let members = tree.group.get(entry).map(|row| &row.initiators[..]);
    let names = members.unwrap_or(std::slice::from_ref(entry)).iter();
    names.filter_map(|name| initiator(name)).collect()
}

/// Whether `allow` lets in an initiator of a group without naming the group itself. One that only
/// `*` admits sees the view of a group only if the group has its name.
pub(super) fn lets_in(tree: &Tree, allow: &[String], group: &GroupRow, is_fc: bool) -> bool {
    let allowed: BTreeSet<_> = allow.iter().flat_map(|entry| named(tree, entry)).collect();
    let names = group.initiators.iter();
    let is_own = |name: &InitiatorName| match name {
        InitiatorName::Everybody => false,
        InitiatorName::Iscsi(_) => !is_fc,
        InitiatorName::Port(_) => is_fc,
    };
    let mut names = names.filter_map(|name| initiator(name)).filter(is_own);
    let for_all = allowed.contains(&InitiatorName::Everybody);
    names.any(|name| for_all || allowed.contains(&name))
}

impl fmt::Display for InitiatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everybody => f.write_str(EVERYBODY),
            Self::Iscsi(name) => f.write_str(name),
            Self::Port(wwpn) => wwpn.fmt(f),
        }
    }
}

pub(super) fn did_you_mean(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean {near:?}?"),
        None => "write the name of a row that there is, or add one".to_owned(),
    }
}
