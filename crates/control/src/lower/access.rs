//! Who may log in, and by what.

use std::collections::BTreeSet;

use fc::remote::Partners;
use fc::wire::names::Wwn;
use iscsi::auth::Hash;
use iscsi::target::{AccessGroup, ChapUser, Initiators, NodeAccess, TargetChap};

use super::Machine;
use crate::check::{InitiatorName, initiator};
use crate::tree::{ChapRow, GroupRow, HashName, LunRows, TargetRow, Tree};

/// Everyone whom a name of `allow` stands for: the initiators of a group, or itself.
fn named<'a>(tree: &'a Tree, name: &'a str) -> impl Iterator<Item = InitiatorName> + 'a {
    let group = tree.group.get(name);
    let itself = group.is_none().then(|| initiator(name)).flatten();
    let members = group.into_iter().flat_map(|row| &row.initiators);
    members.filter_map(|name| initiator(name)).chain(itself)
}

/// Whether a name of `allow` stands for everybody.
pub(super) fn is_everybody(tree: &Tree, name: &str) -> bool {
    named(tree, name).any(|name| name == InitiatorName::Everybody)
}

/// What everybody sees in place of a target's LUNs.
pub(super) fn everybodys_view<'a>(tree: &Tree, row: &'a TargetRow) -> Option<&'a LunRows> {
    let mut groups = row.allow.iter().filter(|name| is_everybody(tree, name));
    groups.find_map(|group| row.view.get(group))
}

/// The WWPNs of a group.
pub(super) fn port_names(tree: &Tree, group: &str) -> BTreeSet<Wwn> {
    let names = named(tree, group).filter_map(|name| match name {
        InitiatorName::Port(wwpn) => Some(wwpn),
        _ => None,
    });
    names.collect()
}

/// The iSCSI names of a group.
pub(super) fn iscsi_names(tree: &Tree, group: &str) -> BTreeSet<String> {
    let names = named(tree, group).filter_map(|name| match name {
        InitiatorName::Iscsi(name) => Some(name),
        _ => None,
    });
    names.collect()
}

/// The initiators of a Fibre Channel port.
pub(super) fn partners(tree: &Tree, row: &TargetRow) -> Partners {
    if row.allow.iter().any(|name| is_everybody(tree, name)) {
        return Partners::Any;
    }
    let names = row.allow.iter().flat_map(|name| port_names(tree, name));
    Partners::Only(names.collect())
}

/// The initiators of an iSCSI target, in groups that prove the same. A name in `allow` itself has
/// nothing to prove.
pub(super) fn node(tree: &Tree, machine: &Machine, row: &TargetRow) -> Result<NodeAccess, String> {
    let mut groups = Vec::new();
    for name in &row.allow {
        let chap = match tree.group.get(name) {
            Some(group) => chap(machine, group)?,
            None => None,
        };
        let is_everybody = is_everybody(tree, name);
        let named = Initiators::Named(iscsi_names(tree, name));
        let everybody = is_everybody.then_some(Initiators::Everybody);
        groups.extend(
            [named]
                .into_iter()
                .chain(everybody)
                .map(|initiators| AccessGroup {
                    initiators,
                    chap: chap.clone(),
                }),
        );
    }
    Ok(NodeAccess::new(groups))
}

fn chap(machine: &Machine, group: &GroupRow) -> Result<Option<TargetChap>, String> {
    let Some(own) = &group.chap else {
        return Ok(None);
    };
    let mutual = group.mutual.as_ref();
    let mutual =
        mutual.map(|mutual| Ok::<_, String>((mutual.user.clone(), secret(machine, mutual)?)));
    Ok(Some(TargetChap {
        users: vec![ChapUser {
            name: own.user.clone(),
            initiator: None,
            secret: secret(machine, own)?,
        }],
        mutual: mutual.transpose()?,
        minimum: hash(group.chap_min.unwrap_or(HashName::Sha256)),
    }))
}

fn secret(machine: &Machine, chap: &ChapRow) -> Result<Vec<u8>, String> {
    let secret = machine.secrets.get(&chap.secret);
    let missing = || format!("the secret {} of {} was not read", chap.secret, chap.user);
    secret.map(|secret| secret.to_vec()).ok_or_else(missing)
}

fn hash(name: HashName) -> Hash {
    match name {
        HashName::Md5 => Hash::Md5,
        HashName::Sha1 => Hash::Sha1,
        HashName::Sha256 => Hash::Sha256,
        HashName::Sha3_256 => Hash::Sha3,
    }
}
