//! RELATIVE TARGET PORT IDENTIFIERS: each portal group of each target has its own for ever, as
//! persistent reservations are kept by them and a disk can be shown by several targets (SPC-5
//! §7.7.6.8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use crate::lower::portal_groups;
use crate::store::{Files, RealFiles};
use crate::tree::Tree;

/// The first one that is given; those below are of Fibre Channel ports.
const FIRST: u16 = 0x100;

/// The identifiers of the portal groups of a tree. New ones are given and kept.
pub(super) fn given(state: &Path, tree: &Tree) -> Result<BTreeMap<(String, u16), u16>, String> {
    let path = state.join("ports.json");
    let cannot =
        |what: &str, cause: io::Error| format!("cannot {what} {}: {cause}", path.display());
    let mut known = read(&path).map_err(|cause| cannot("read", cause))?;
    let before = known.len();
    give(&mut known, portal_groups(tree));
    if known.len() > before {
        let list: Vec<_> = known
            .iter()
            .map(|((name, tag), id)| (name, tag, id))
            .collect();
        let text = serde_json::to_string(&list).unwrap_or_default();
        let kept = RealFiles::<crate::store::NoSteps>::default().replace(&path, &text);
        kept.map_err(|cause| cannot("write", cause))?;
    }
    Ok(known)
}

/// Those of a tree that nothing is known of.
pub(super) fn anew(tree: &Tree) -> BTreeMap<(String, u16), u16> {
    let mut known = BTreeMap::new();
    give(&mut known, portal_groups(tree));
    known
}

fn read(path: &Path) -> io::Result<BTreeMap<(String, u16), u16>> {
    let text = match fs::read_to_string(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        text => text?,
    };
    let list: Vec<(String, u16, u16)> = serde_json::from_str(&text)?;
    Ok(list
        .into_iter()
        .map(|(name, tag, id)| ((name, tag), id))
        .collect())
}

fn give(known: &mut BTreeMap<(String, u16), u16>, groups: impl Iterator<Item = (String, u16)>) {
    let taken: BTreeSet<u16> = known.values().copied().collect();
    let mut free = (FIRST..=u16::MAX).filter(|id| !taken.contains(id));
    for group in groups {
        if !known.contains_key(&group)
            && let Some(id) = free.next()
        {
            known.insert(group, id);
        }
    }
}

#[cfg(test)]
mod tests;
