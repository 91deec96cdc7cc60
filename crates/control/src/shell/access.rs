//! Maps the ACLs of LIO to `allow`, `view` and groups of the tree.
//!
//! | shell | tree |
//! |---|---|
//! | `acls/NAME` | NAME in `allow` |
//! | its mapped LUNs are the target's | no `view` |
//! | its mapped LUNs differ, or it has CHAP | `group.acl-TAIL` with this one initiator in `allow`; `view.acl-TAIL`; TAIL is the end of NAME |
//! | `acls/TAG`, a group of initiators | any other group in `allow` |
//! | `generate_node_acls=1` | `"*"` in `allow` |
//! | … with `demo_mode_write_protect=1` | `group.everybody` with `"*"` in `allow`, and a `view` of it that is read-only |
//! | … with CHAP of the portal group | a group with `"*"` and `chap` |
//!
//! A group `acl-…` or `everybody…` is deleted when no target refers to it any more. An ACL whose
//! group holds no settings any more becomes a bare name again. All portal groups of a target share
//! its LUNs and ACLs.

use fc::wire::names::Wwn;

use crate::check::EVERYBODY as ANY;
use crate::tree::{Access, GroupRow, LunRow, LunRows, TargetRow, Tree};

/// The prefix of groups that represent one ACL.
const ACL: &str = "acl-";

/// Bounds the tail of an IQN in the name of a group, which has at most 64 bytes.
const TAIL_MAX: usize = 48;

/// The name of a group that matches every initiator.
const EVERYBODY: &str = "everybody";

/// The entries of `allow` that are ACLs: all but those that match every initiator.
pub(super) fn acls<'a>(tree: &Tree, row: &'a TargetRow) -> Vec<&'a str> {
    let entries = row.allow.iter().map(String::as_str);
    entries.filter(|entry| !is_everybody(tree, entry)).collect()
}

/// The entry of `allow` that matches every initiator.
pub(super) fn everybody<'a>(tree: &Tree, row: &'a TargetRow) -> Option<&'a str> {
    let mut entries = row.allow.iter().map(String::as_str);
    entries.find(|entry| is_everybody(tree, entry))
}

fn is_everybody(tree: &Tree, entry: &str) -> bool {
    let has_any = |row: &GroupRow| row.initiators.iter().any(|name| name == ANY);
    entry == ANY || tree.group.get(entry).is_some_and(has_any)
}

/// Whether initiators without an ACL may write. They may unless their view has only read-only LUNs.
pub(super) fn everybody_writes(tree: &Tree, row: &TargetRow) -> bool {
    let view = everybody(tree, row).and_then(|entry| row.view.get(entry));
    let is_writable = |lun: &LunRow| lun.access() == Access::ReadWrite;
    view.is_none_or(|view| view.values().any(is_writable))
}

/// The initiators of an ACL.
pub(super) fn members(tree: &Tree, entry: &str) -> Vec<String> {
    match tree.group.get(entry) {
        Some(group) => group.initiators.clone(),
        None => vec![entry.to_owned()],
    }
}

/// The displayed name of an ACL: that of its initiator, or that of the group.
pub(super) fn label(tree: &Tree, entry: &str) -> String {
    match tree
        .group
        .get(entry)
        .map(|group| group.initiators.as_slice())
    {
        Some([one]) if entry.starts_with(ACL) => one.clone(),
        _ => entry.to_owned(),
    }
}

/// The ACL with this label.
pub(super) fn entry<'a>(tree: &Tree, row: &'a TargetRow, shown: &str) -> Option<&'a str> {
    let mut entries = acls(tree, row).into_iter();
    entries.find(|entry| label(tree, entry) == shown)
}

/// An entry of `allow` as part of a sentence.
pub(super) fn in_words(tree: &Tree, entry: &str) -> String {
    if is_everybody(tree, entry) {
        "initiators without an ACL".to_owned()
    } else {
        label(tree, entry)
    }
}

/// Whether an entry requires CHAP.
pub(super) fn has_chap(tree: &Tree, entry: &str) -> bool {
    tree.group
        .get(entry)
        .is_some_and(|group| group.chap.is_some())
}

/// Removes CHAP from a group, with what has no meaning without it.
pub(super) fn drop_chap(group: &mut GroupRow) {
    group.chap = None;
    group.mutual = None;
    group.chap_min = None;
}

/// The LUNs that an ACL sees.
pub(super) fn seen_by<'a>(row: &'a TargetRow, entry: &str) -> &'a LunRows {
    row.view.get(entry).unwrap_or(&row.luns)
}

/// The same LUNs with another access.
fn all_with_access(luns: &LunRows, access: Access) -> LunRows {
    let changed = |(number, lun): (&_, &_)| (*number, with_access(lun, access));
    luns.iter().map(changed).collect()
}

/// A LUN of the same volume with another access.
pub(super) fn with_access(lun: &LunRow, access: Access) -> LunRow {
    let volume = lun.volume().to_owned();
    match access {
        Access::ReadWrite => LunRow::Volume(volume),
        Access::ReadOnly => LunRow::Limited { volume, access },
    }
}

/// Allows or refuses initiators without an ACL. A view that was written by hand keeps its LUNs.
pub(super) fn set_everybody(tree: &mut Tree, target: &str, allowed: bool, write: bool) {
    let Some(row) = tree.target.get(target) else {
        return;
    };
    let old = everybody(tree, row).map(str::to_owned);
    let is_same = allowed == old.is_some() && (!allowed || write == everybody_writes(tree, row));
    if is_same {
        return;
    }
    let view = view_of_everybody(row, old.as_deref(), write).filter(|_| allowed);
    let is_kept = |entry: &&String| {
        let has_settings = has_chap(tree, entry) || !is_made_by_shell(entry);
        *entry != ANY && (has_settings || view.is_some())
    };
    let new = match old.as_ref().filter(is_kept) {
        _ if !allowed => None,
        Some(entry) => Some(entry.clone()),
        None if view.is_none() => Some(ANY.to_owned()),
        None => Some(group_of_everybody(tree)),
    };
    if let Some(row) = tree.target.get_mut(target) {
        row.allow.retain(|one| Some(one) != old.as_ref());
        row.view.retain(|one, _| Some(one) != old.as_ref());
        row.view.extend(new.clone().zip(view));
        row.allow.extend(new);
    }
    drop_unused_groups(tree, old.as_deref());
}

/// The view of initiators without an ACL: none if they see the LUNs as the target has them.
fn view_of_everybody(row: &TargetRow, old: Option<&str>, write: bool) -> Option<LunRows> {
    let protected = all_with_access(&row.luns, Access::ReadOnly);
    let by_hand = old
        .and_then(|entry| row.view.get(entry))
        .filter(|view| **view != protected);
    match (by_hand, write) {
        (None, true) => None,
        (None, false) => Some(protected),
        (Some(view), true) => Some(all_with_access(view, Access::ReadWrite)),
        (Some(view), false) => Some(all_with_access(view, Access::ReadOnly)),
    }
}

/// Updates the view of initiators without an ACL after the LUNs of a target have changed. A view
/// that was written by hand stays as it is.
pub(super) fn follow_luns(tree: &mut Tree, target: &str, before: &TargetRow) {
    let Some(entry) = everybody(tree, before).map(str::to_owned) else {
        return;
    };
    let protected = all_with_access(&before.luns, Access::ReadOnly);
    if before.view.get(&entry) == Some(&protected)
        && let Some(row) = tree.target.get_mut(target)
    {
        let view = all_with_access(&row.luns, Access::ReadOnly);
        row.view.insert(entry, view);
    }
}

/// Removes LUNs from all views of a target, of ACLs and of others.
pub(super) fn drop_from_views(tree: &mut Tree, target: &str, is_gone: &dyn Fn(&LunRow) -> bool) {
    let Some(before) = tree.target.get(target).cloned() else {
        return;
    };
    for (entry, view) in &before.view {
        let mut luns = view.clone();
        luns.retain(|_, lun| !is_gone(lun));
        if acls(tree, &before).contains(&entry.as_str()) {
            set_view(tree, target, entry, luns);
        } else if let Some(row) = tree.target.get_mut(target) {
            row.view.insert(entry.clone(), luns);
        }
    }
}

/// A group of all initiators without CHAP, which is created if necessary.
fn group_of_everybody(tree: &mut Tree) -> String {
    let plain = GroupRow {
        initiators: vec![ANY.to_owned()],
        ..GroupRow::default()
    };
    let mut names = numbered(EVERYBODY);
    let is_free = |name: &String| tree.group.get(name).is_none_or(|row| *row == plain);
    let name = names.find(is_free).unwrap_or_default();
    tree.group.insert(name.clone(), plain);
    name
}

/// `base`, `base-2`, `base-3` and so on.
fn numbered(base: &str) -> impl Iterator<Item = String> + use<> {
    let base = base.to_owned();
    let rest = base.clone();
    let further = (2_u64..).map(move |number| format!("{rest}-{number}"));
    std::iter::once(base).chain(further)
}

/// Returns the group of an ACL, which is created if the ACL is a bare name. A group `acl-…` that
/// another target uses as well is copied first. Groups with other names are shared on purpose.
pub(super) fn own_group(tree: &mut Tree, target: &str, entry: &str) -> String {
    let shared = users(tree, entry).any(|user| user != target);
    let group = tree.group.get(entry).cloned();
    let row = match group {
        Some(_) if !(shared && is_made_by_shell(entry)) => return entry.to_owned(),
        Some(row) => row,
        None => GroupRow {
            initiators: vec![entry.to_owned()],
            ..GroupRow::default()
        },
    };
    let base = match row.initiators.first().map(String::as_str) {
        Some(ANY) | None => EVERYBODY.to_owned(),
        Some(name) => format!("{ACL}{}", tail(name)),
    };
    let mut names = numbered(&base);
    let name = names
        .find(|name| !tree.group.contains_key(name))
        .unwrap_or_default();
    tree.group.insert(name.clone(), row);
    rename_entry(tree, target, entry, &name);
    name
}

/// What follows the last colon of an IQN; a WWPN without its colons.
fn tail(name: &str) -> String {
    let tail = match name.parse::<Wwn>() {
        Ok(_) => name.replace(':', ""),
        Err(_) => name.rsplit(':').next().unwrap_or(name).to_owned(),
    };
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    tail.chars().take(TAIL_MAX).map(plain).collect()
}

fn rename_entry(tree: &mut Tree, target: &str, old: &str, new: &str) {
    let Some(row) = tree.target.get_mut(target) else {
        return;
    };
    if let Some(entry) = row.allow.iter_mut().find(|entry| *entry == old) {
        new.clone_into(entry);
    }
    if let Some(view) = row.view.remove(old) {
        row.view.insert(new.to_owned(), view);
    }
}

/// Renames the group of an ACL for this target.
pub(super) fn rename_group(tree: &mut Tree, target: &str, entry: &str, new: &str) {
    let old = own_group(tree, target, entry);
    if let Some(row) = tree.group.get(&old).cloned() {
        tree.group.insert(new.to_owned(), row);
        rename_entry(tree, target, &old, new);
        drop_unused_groups(tree, Some(old.as_str()));
    }
}

/// Sets the LUNs that an ACL sees. The view is dropped if they equal the LUNs of the target.
pub(super) fn set_view(tree: &mut Tree, target: &str, entry: &str, luns: LunRows) -> String {
    let entry = own_group(tree, target, entry);
    if let Some(row) = tree.target.get_mut(target) {
        if row.luns == luns {
            row.view.remove(&entry);
        } else {
            row.view.insert(entry.clone(), luns);
        }
    }
    settle(tree, target, &entry)
}

/// Replaces the group of an ACL by the bare name if the group holds no settings any more.
pub(super) fn settle(tree: &mut Tree, target: &str, entry: &str) -> String {
    let viewed = |row: &TargetRow| row.view.contains_key(entry);
    let group = tree.group.get(entry);
    let name = match group.map(|group| (group.initiators.as_slice(), group)) {
        Some(([one], group)) if is_made_by_shell(entry) => {
            let plain = group.chap.is_none() && group.mutual.is_none() && group.chap_min.is_none();
            let is_view = tree.target.get(target).is_some_and(viewed);
            (plain && !is_view).then(|| one.clone())
        }
        _ => None,
    };
    let Some(name) = name else {
        return entry.to_owned();
    };
    rename_entry(tree, target, entry, &name);
    drop_unused_groups(tree, Some(entry));
    name
}

/// Removes an ACL with its view, and its group if that is unused now.
pub(super) fn remove(tree: &mut Tree, target: &str, entry: &str) {
    if let Some(row) = tree.target.get_mut(target) {
        row.allow.retain(|one| one != entry);
        row.view.remove(entry);
    }
    drop_unused_groups(tree, Some(entry));
}

/// Deletes groups of the shell that no target refers to.
pub(super) fn drop_unused_groups<'a>(tree: &mut Tree, names: impl IntoIterator<Item = &'a str>) {
    for name in names {
        if is_made_by_shell(name) && users(tree, name).next().is_none() {
            tree.group.remove(name);
        }
    }
}

fn is_made_by_shell(group: &str) -> bool {
    group.starts_with(ACL) || group.starts_with(EVERYBODY)
}

/// The targets that name a group.
pub(super) fn users<'a>(tree: &'a Tree, group: &'a str) -> impl Iterator<Item = &'a str> {
    let names = move |row: &TargetRow| {
        row.view.contains_key(group) || row.allow.iter().any(|entry| entry == group)
    };
    let rows = tree.target.iter().filter(move |(_, row)| names(row));
    rows.map(|(name, _)| name.as_str())
}
