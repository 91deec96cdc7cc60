//! Who may log in, and by what.

use std::collections::BTreeSet;

use fc::remote::Partners;
use iscsi::auth::Hash;
use iscsi::target::{ChapUser, NodeAccess, TargetChap};

use super::Machine;
use crate::check::{InitiatorName, initiator};
use crate::tree::{ChapRow, HashName, TargetRow, Tree};

/// Everyone whom a name of `allow` stands for: the initiators of a group, or itself.
fn named<'a>(tree: &'a Tree, name: &'a str) -> impl Iterator<Item = InitiatorName> + 'a {
    let group = tree.group.get(name);
    let itself = group.is_none().then(|| initiator(name)).flatten();
    let members = group.into_iter().flat_map(|row| &row.initiators);
    members.filter_map(|name| initiator(name)).chain(itself)
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
    let names: Vec<_> = row
        .allow
        .iter()
        .flat_map(|name| named(tree, name))
        .collect();
    if names.contains(&InitiatorName::Everybody) {
        return Partners::Any;
    }
    let ports = names.into_iter().filter_map(|name| match name {
        InitiatorName::Port(wwpn) => Some(wwpn),
        _ => None,
    });
    Partners::Only(ports.collect())
}

/// The initiators of an iSCSI target.
pub(super) fn node(tree: &Tree, machine: &Machine, row: &TargetRow) -> Result<NodeAccess, String> {
    let names: BTreeSet<_> = row
        .allow
        .iter()
        .flat_map(|name| named(tree, name))
        .collect();
    let everybody = names.contains(&InitiatorName::Everybody);
    let allowed = names.into_iter().filter_map(|name| match name {
        InitiatorName::Iscsi(name) => Some(name),
        _ => None,
    });
    let allowed: BTreeSet<_> = allowed.collect();
    Ok(NodeAccess {
        allow: (!everybody).then_some(allowed),
        chap: chap(tree, machine, row)?,
    })
}

fn chap(tree: &Tree, machine: &Machine, row: &TargetRow) -> Result<Option<TargetChap>, String> {
    let mut chap: Option<TargetChap> = None;
    for name in &row.allow {
        let Some((row, own)) = tree
            .group
            .get(name)
            .and_then(|row| Some((row, row.chap.as_ref()?)))
        else {
            continue;
        };
        let minimum = hash(row.chap_min.unwrap_or(HashName::Sha256));
        let chap = chap.get_or_insert_with(|| TargetChap {
            users: Vec::new(),
            mutual: None,
            minimum,
        });
        chap.minimum = chap.minimum.min(minimum);
        if let Some(mutual) = &row.mutual {
            chap.mutual = Some((mutual.user.clone(), secret(machine, mutual)?));
        }
        for name in named(tree, name) {
            let initiator = match name {
                InitiatorName::Iscsi(name) => Some(name),
                InitiatorName::Everybody => None,
                InitiatorName::Port(_) => continue,
            };
            chap.users.push(ChapUser {
                name: own.user.clone(),
                initiator,
                secret: secret(machine, own)?,
            });
        }
    }
    Ok(chap)
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
