//! The summary that `ls` displays in brackets behind each node.

use super::Context;
use super::access;
use super::iser;
use super::kind::BackstoreKind;
use super::node::{Fabric, Node, TpgPlace};
use crate::tree::{Access, LunNumber, LunRow, Tree};

/// The summary of a node.
pub(super) fn summary(node: &Node, context: &Context<'_>) -> String {
    let tree = context.tree;
    let count = || node.children(tree).len();
    match node {
        Node::Root | Node::Backstores => "...".to_owned(),
        Node::Backstore(_) => match count() {
            number @ 0..=1 => format!("{number} Storage Object"),
            number => format!("{number} Storage Objects"),
        },
        Node::StorageObject(_, name) => volume(context, name),
        Node::Fabric(_) => counted(count(), "Target"),
        Node::Target(_) => counted(count(), "TPG"),
        Node::Tpg(_) => "enabled".to_owned(),
        Node::Luns(_) => counted(count(), "LUN"),
        Node::Portals(_) => counted(count(), "Portal"),
        Node::Acls(_) => counted(count(), "ACL"),
        Node::Acl(place, label) => acl(tree, place, label, count()),
        Node::Portal(..) => iser::summary(node, tree),
        Node::Lun(place, number) => lun(tree, place, *number),
        Node::MappedLun(place, label, number) => mapped_lun(tree, place, label, *number),
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn volume(context: &Context<'_>, name: &str) -> String {
    let row = context.tree.volume.get(name);
    let medium = row.map(BackstoreKind::medium).unwrap_or_default();
    let fact = context.machine.volume(name);
    let state = if fact.is_none_or(|fact| fact.is_present) {
        "activated"
    } else {
        "absent"
    };
    format!("{medium} {state}")
}

fn acl(tree: &Tree, place: &TpgPlace, label: &str, luns: usize) -> String {
    let luns = counted(luns, "Mapped LUN");
    let is_group = place
        .row(tree)
        .and_then(|row| access::entry(tree, row, label))
        .is_some_and(|entry| entry == label && tree.group.contains_key(entry));
    if is_group {
        let members = access::members(tree, label).len();
        format!("{}, {luns}", counted(members, "initiator"))
    } else {
        luns
    }
}

fn lun(tree: &Tree, place: &TpgPlace, number: LunNumber) -> String {
    let Some(lun) = place.row(tree).and_then(|row| row.luns.get(&number)) else {
        return String::new();
    };
    let Some(row) = tree.volume.get(lun.volume()) else {
        return "BROKEN STORAGE LINK".to_owned();
    };
    let kind = BackstoreKind::of(row).name();
    let medium = BackstoreKind::medium(row);
    let access = match lun.access() {
        Access::ReadWrite => "",
        Access::ReadOnly => " (ro)",
    };
    format!("{kind}/{} ({medium}){access}", lun.volume())
}

fn mapped_lun(tree: &Tree, place: &TpgPlace, label: &str, number: LunNumber) -> String {
    let Some(row) = place.row(tree) else {
        return String::new();
    };
    let entry = access::entry(tree, row, label).unwrap_or(label);
    let Some(lun) = access::seen_by(row, entry).get(&number) else {
        return String::new();
    };
    let access = match lun.access() {
        Access::ReadWrite => "rw",
        Access::ReadOnly => "ro",
    };
    let is_same = |one: &LunRow| one.volume() == lun.volume();
    match row.luns.iter().find(|(_, one)| is_same(one)) {
        Some((number, _)) => format!("lun{number} ({access})"),
        None => format!("{} ({access})", lun.volume()),
    }
}

/// Details of a node beyond its summary, one per line.
pub(super) fn details(node: &Node, context: &Context<'_>) -> Vec<String> {
    let tree = context.tree;
    match node {
        Node::StorageObject(_, name) => volume_details(context, name),
        Node::Fabric(Fabric::FibreChannel) => {
            let interfaces = context.machine.interfaces().into_iter();
            let row = |(name, mac)| format!("interface {name}: {}", super::fabrics::wwpn_of(mac));
            interfaces.map(row).collect()
        }
        Node::Acl(place, label) => {
            let row = place.row(tree);
            let entry = row.and_then(|row| access::entry(tree, row, label));
            let members = access::members(tree, entry.unwrap_or(label)).into_iter();
            members.map(|name| format!("wwn: {name}")).collect()
        }
        Node::Tpg(place) => {
            let row = place.row(tree);
            let allow = row.map(|row| row.allow.join(", ")).unwrap_or_default();
            vec![
                format!("target: {}", place.target),
                format!("allow: {allow}"),
            ]
        }
        _ => Vec::new(),
    }
}

fn volume_details(context: &Context<'_>, name: &str) -> Vec<String> {
    let Some(row) = context.tree.volume.get(name) else {
        return Vec::new();
    };
    let size = context.machine.volume(name).and_then(|fact| fact.size);
    let rows = [
        ("address", Some(row.address.clone())),
        ("size", size.map(address::exact_size)),
        ("serial", row.serial.clone()),
        ("naa", row.naa.clone()),
        ("vendor", row.vendor.clone()),
        ("product", row.product.clone()),
    ];
    let known = rows
        .into_iter()
        .filter_map(|(key, value)| Some(format!("{key}: {}", value?)));
    known.collect()
}
