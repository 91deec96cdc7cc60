//! Volumes that are not the same: who is told of it, and what is lost.

use address::{Address, Size};

use super::rows::{between, change};
use super::sight::Sight;
use super::{Difference, Impact, Plan};
use crate::check::address_of;
use crate::tree::{Tree, VolumeRow, pairs};

/// What a change of a volume does, and how that is said.
type Effect = (Impact, Option<&'static str>);

pub(super) fn compare(old: &Tree, new: &Tree, sight: &Sight<'_>, plan: &mut Plan) {
    for (name, before, after) in pairs(&old.volume, &new.volume) {
        if before == after {
            plan.stays += 1;
            continue;
        }
        let (impact, effect) = match (before, after) {
            (Some(before), None) => removed(before, old, new),
            (Some(before), Some(after)) => changed(before, after),
            (None, _) => (Impact::Quiet, None),
        };
        let hosts = sight.users(name);
        // Where nobody is, nobody is told.
        let (impact, effect) = match impact {
            Impact::Told if hosts.is_empty() => (Impact::Quiet, None),
            impact => (impact, effect),
        };
        plan.differences.push(Difference {
            change: change(before, after),
            row: format!("volume.{name}"),
            what: between(before, after),
            impact,
            effect: effect.map(str::to_owned),
            hosts: if impact > Impact::Quiet {
                hosts
            } else {
                Vec::new()
            },
        });
    }
}

/// A volume whose row goes. The same row makes the same disk again, unless it was in memory.
fn removed(row: &VolumeRow, old: &Tree, new: &Tree) -> Effect {
    if is_volatile(row) {
        return (Impact::Loses, Some("its data is in memory alone"));
    }
    let mut come = new
        .volume
        .iter()
        .filter(|(name, _)| !old.volume.contains_key(*name));
    let is_renamed = row.serial.is_none() && come.any(|(_, other)| other.address == row.address);
    if is_renamed {
        (
            Impact::Loses,
            Some("hosts see another disk: keep its serial to rename it"),
        )
    } else {
        (Impact::Quiet, None)
    }
}

fn is_volatile(row: &VolumeRow) -> bool {
    let address = address_of(row);
    address.is_ok_and(|address| address.leaves().any(|leaf| matches!(leaf, Address::Ram(_))))
}

fn changed(before: &VolumeRow, after: &VolumeRow) -> Effect {
    let named = |row: &VolumeRow| {
        let names = (row.vendor.clone(), row.product.clone(), row.removable);
        (row.serial.clone(), row.naa.clone(), names)
    };
    if named(before) != named(after) {
        return (Impact::Loses, Some("hosts see another disk"));
    }
    if before.block_size != after.block_size {
        return (Impact::Loses, Some("other blocks are other data"));
    }
    let (Ok(old), Ok(new)) = (address_of(before), address_of(after)) else {
        return (Impact::Loses, Some("other data"));
    };
    let protected = [
        before.readonly || is_protected(&old),
        after.readonly || is_protected(&new),
    ];
    let of_data = of_data(inside(&old), inside(&new), protected);
    match of_data {
        _ if protected[0] == protected[1] => of_data,
        (Impact::Told, _) => (
            Impact::Told,
            Some("capacity and write protection have changed"),
        ),
        _ => of_data.max((Impact::Told, Some("write protection has changed"))),
    }
}

/// What becomes of data when what holds it is named otherwise.
fn of_data(before: &Address, after: &Address, protected: [bool; 2]) -> Effect {
    if before == after {
        return (Impact::Quiet, None);
    }
    match (before, after) {
        (Address::Null(_), Address::Null(_)) => (Impact::Told, Some("capacity has changed")),
        (Address::File(old), Address::File(new)) if old.path == new.path => {
            match (grown(old.size, new.size), old.size > new.size) {
                _ if old.sync != new.sync && !protected[0] => (
                    Impact::Quiet,
                    Some("refused: sync cannot be changed while it is served"),
                ),
                // What can only be read is not made longer.
                (true, _) if !protected[1] => (Impact::Told, Some("capacity has changed")),
                (false, false) => (Impact::Quiet, None),
                _ => (Impact::Quiet, Some("the file stays as long as it is")),
            }
        }
        _ if before.leaves().any(|leaf| matches!(leaf, Address::Ram(_))) => {
            (Impact::Loses, Some("its data is in memory alone"))
        }
        _ => (
            Impact::Loses,
            Some("hosts go on with what the other volume holds"),
        ),
    }
}

/// A file is never made shorter.
fn grown(old: Option<Size>, new: Option<Size>) -> bool {
    new.is_some_and(|new| old.is_none_or(|old| old < new))
}

/// An address without what leaves data where it is and tells hosts nothing.
fn inside(address: &Address) -> &Address {
    let mut at = address;
    while let Address::Limit { volume, .. }
    | Address::Delay { volume, .. }
    | Address::Fault { volume, .. }
    | Address::Verify(volume)
    | Address::Stats(volume)
    | Address::Readonly(volume) = at
    {
        at = volume;
    }
    at
}

/// Whether a volume at this address can only be read.
fn is_protected(address: &Address) -> bool {
    match address {
        Address::Readonly(_) => true,
        Address::File(file) => file.read_only,
        Address::Block(device) => device.read_only,
        Address::Limit { volume, .. }
        | Address::Delay { volume, .. }
        | Address::Fault { volume, .. }
        | Address::Verify(volume)
        | Address::Stats(volume) => is_protected(volume),
        _ => false,
    }
}
