//! Who sees what, before and after: from it follows which sessions end, and who is told what.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::SessionFact;
use crate::check::{EVERYBODY, Portal, initiator, portal};
use crate::tree::{Access, LunNumber, LunRow, LunRows, TargetRow, Tree};

/// What one initiator sees of one target: LUNs, their volumes, and what it may do.
type View<'a> = BTreeMap<u16, (&'a str, Access)>;

/// Two trees, and the sessions that are there when one follows the other.
pub(super) struct Sight<'a> {
    sessions: Vec<Seen<'a>>,
}

struct Seen<'a> {
    fact: &'a SessionFact,
    before: View<'a>,
    /// `None`: it may not log in any more.
    after: Option<View<'a>>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(old: &'a Tree, new: &'a Tree, sessions: &'a [SessionFact]) -> Self {
        let seen = |fact: &'a SessionFact| Seen {
            fact,
            before: view(old, fact).unwrap_or_default(),
            after: view(new, fact).filter(|_| is_reached(old, new, fact)),
        };
        Self {
            sessions: sessions.iter().map(seen).collect(),
        }
    }

    /// Initiators of sessions that end, of those that match.
    pub(super) fn cut(&self, matches: impl Fn(&SessionFact) -> bool) -> Vec<String> {
        self.hosts(|seen| seen.after.is_none() && matches(seen.fact))
    }

    /// Initiators that see other LUNs than before, of those that match, and those that may do
    /// something else with what they see.
    pub(super) fn told(&self, matches: impl Fn(&SessionFact) -> bool) -> [Vec<String>; 2] {
        let is_told = |differs: fn(&View<'_>, &View<'_>) -> bool| {
            self.hosts(|seen| {
                let differs = |after| differs(&seen.before, after);
                seen.after.as_ref().is_some_and(differs) && matches(seen.fact)
            })
        };
        [is_told(has_other_luns), is_told(has_other_access)]
    }

    /// Initiators that see a volume before and after.
    pub(super) fn users(&self, volume: &str) -> Vec<String> {
        let sees = |view: &View<'_>| view.values().any(|(name, _)| *name == volume);
        self.hosts(|seen| sees(&seen.before) && seen.after.as_ref().is_some_and(sees))
    }

    fn hosts(&self, matches: impl Fn(&Seen<'_>) -> bool) -> Vec<String> {
        let seen = self.sessions.iter().filter(|seen| matches(seen));
        let names: BTreeSet<_> = seen.map(|seen| seen.fact.initiator.clone()).collect();
        names.into_iter().collect()
    }
}

fn has_other_luns(before: &View<'_>, after: &View<'_>) -> bool {
    fn volumes<'a>(view: &'a View<'_>) -> impl Iterator<Item = (u16, &'a str)> {
        view.iter().map(|(lun, (volume, _))| (*lun, *volume))
    }
    !volumes(before).eq(volumes(after))
}

/// On a LUN that stays what it is.
fn has_other_access(before: &View<'_>, after: &View<'_>) -> bool {
    after.iter().any(|(lun, (volume, access))| {
        let was = before.get(lun);
        was.is_some_and(|(before, was)| before == volume && was != access)
    })
}

/// What an initiator sees; `None`: it may not log in. Its own name counts before everybody's.
fn view<'a>(tree: &'a Tree, fact: &SessionFact) -> Option<View<'a>> {
    let (target, name) = (tree.target.get(&fact.target)?, &*fact.initiator);
    if !admits(tree, target, name) {
        return None;
    }
    let mut named = target
        .view
        .iter()
        .filter(|(group, _)| names(tree, group, name));
    let mut allowed = target.allow.iter();
    let luns: &LunRows = match named.next() {
        Some((_, luns)) => luns,
        None if allowed.any(|group| names(tree, group, name)) => &target.luns,
        None => {
            let mut everybody = target.allow.iter().filter(|group| has(tree, group, name));
            let own = everybody.find_map(|group| target.view.get(group));
            own.unwrap_or(&target.luns)
        }
    };
    let lun = |(number, lun): (&LunNumber, &'a LunRow)| (number.0, (lun.volume(), lun.access()));
    Some(luns.iter().map(lun).collect())
}

/// Whether a group, or a name itself, names an initiator: not by naming everybody.
fn names(tree: &Tree, entry: &str, name: &str) -> bool {
    let mut members = members(tree, entry);
    members.any(|one| one != EVERYBODY && is_called(one, name))
}

fn admits(tree: &Tree, target: &TargetRow, name: &str) -> bool {
    let mut members = target.allow.iter().flat_map(|entry| members(tree, entry));
    members.any(|one| is_called(one, name))
}

/// The initiators of a group, or a name itself. What is the name of a group is no initiator's.
fn members<'a>(tree: &'a Tree, entry: &'a str) -> impl Iterator<Item = &'a str> {
    let row = tree.group.get(entry);
    let members = row.map_or(&[][..], |row| &row.initiators);
    let itself = row.is_none().then_some(entry);
    members.iter().map(String::as_str).chain(itself)
}

/// Whether a group has an initiator in it.
pub(super) fn has(tree: &Tree, group: &str, name: &str) -> bool {
    let row = tree.group.get(group);
    row.is_some_and(|row| {
        row.initiators
            .iter()
            .any(|allowed| is_called(allowed, name))
    })
}

/// Names have several spellings.
pub(super) fn is_called(allowed: &str, name: &str) -> bool {
    allowed == EVERYBODY
        || allowed == name
        || initiator(allowed).is_some_and(|allowed| Some(allowed) == initiator(name))
}

/// The portal group that a session is with; a session ends when that is another one.
fn portal_group(tree: &Tree, fact: &SessionFact) -> Option<u16> {
    let (target, came_by) = (tree.target.get(&fact.target)?, fact.portal?);
    let mut portals = target.portals.iter();
    let found = portals.find(|(_, written)| match portal(&written.address) {
        Ok(Portal::Tcp(address)) => takes(address, came_by),
        _ => false,
    });
    found.map(|(tag, _)| tag.0)
}

fn is_reached(old: &Tree, new: &Tree, fact: &SessionFact) -> bool {
    let after = portal_group(new, fact);
    fact.portal.is_none() || after.is_some() && after == portal_group(old, fact)
}

/// Whether a portal takes connections to an address.
fn takes(portal: SocketAddr, address: SocketAddr) -> bool {
    let (own, ip) = (portal.ip(), address.ip().to_canonical());
    let is_wildcard = own.is_unspecified() && (own.is_ipv6() || ip.is_ipv4());
    portal.port() == address.port() && (own.to_canonical() == ip || is_wildcard)
}

#[cfg(test)]
mod tests;
