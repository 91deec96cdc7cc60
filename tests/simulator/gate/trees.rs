//! Random trees, each made of the one before, and what a tree means to an initiator: the manual's
//! words again, written without a look at how plan and server read them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use address::{Address, ItemCount};
use control::check::{address_of, check};
use control::tree::{
    Access, LimitRow, LunNumber, LunRow, LunRows, PortalGroupTag, PortalRow, Portals, TargetRow,
    Tree, VolumeRow,
};
use sim::Rng;

use super::{DISKS, fabrics};

pub(super) const TARGETS: [&str; 2] = [
    "iqn.2026-11.org.example:red",
    "iqn.2026-11.org.example:blue",
];

/// The last one can be the name of a group, too.
pub(super) const INITIATORS: [&str; 4] = [
    "iqn.2026-11.org.example:h0",
    "iqn.2026-11.org.example:h1",
    "iqn.2026-11.org.example:h2",
    "iqn.2026-11.org.example",
];

/// Portals as they are written.
pub(super) const PORTALS: [&str; 2] = ["192.0.2.1", "192.0.2.2:3261"];

/// LUNs that there can be.
pub(super) const LUNS: u16 = 4;

const VOLUMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const GROUPS: [&str; 3] = ["few", "many", "iqn.2026-11.org.example"];

/// Where a portal is.
pub(super) fn address(portal: usize) -> SocketAddr {
    let portals: [([u8; 4], u16); 2] = [([192, 0, 2, 1], 3260), ([192, 0, 2, 2], 3261)];
    portals[portal].into()
}

/// Another tree, which can be served.
pub(super) fn after(rng: &mut Rng, old: &Tree) -> Tree {
    loop {
        let mut tree = old.clone();
        let edits = if rng.one_in(6) { 20 } else { 1 + rng.below(4) };
        (0..edits).for_each(|_| edit(rng, &mut tree));
        tidy(&mut tree);
        if check(&tree).problems.is_empty() {
            return tree;
        }
    }
}

fn edit(rng: &mut Rng, tree: &mut Tree) {
    match rng.below(13) {
        0..=2 => edit_volume(rng, tree),
        3 => edit_group(rng, tree),
        4 => edit_targets(rng, tree),
        5 => fabrics::edit(rng, tree),
        _ => {
            let name = *rng.pick(&TARGETS);
            if let Some(row) = tree.target.get_mut(name) {
                edit_target(rng, row);
            }
        }
    }
}

/// References that lead nowhere are dropped.
fn tidy(tree: &mut Tree) {
    let (volumes, groups) = (&tree.volume, &tree.group);
    for row in tree.target.values_mut() {
        let is_there = |_: &LunNumber, lun: &mut LunRow| volumes.contains_key(lun.volume());
        row.luns.retain(is_there);
        row.view.retain(|group, _| groups.contains_key(group));
        row.view.values_mut().for_each(|luns| luns.retain(is_there));
        row.allow
            .retain(|name| groups.contains_key(name) || !GROUPS[..2].contains(&&**name));
    }
}

fn edit_volume(rng: &mut Rng, tree: &mut Tree) {
    let name = *rng.pick(&VOLUMES);
    let fresh = any_address(rng, tree);
    let Some(row) = tree.volume.get_mut(name) else {
        tree.volume.insert(name.to_owned(), VolumeRow::new(fresh));
        return;
    };
    match rng.below(8) {
        0 => drop(tree.volume.remove(name)),
        1 => row.readonly = !row.readonly,
        2 => row.limit = row.limit.is_none().then(wide_limit),
        3 => row.serial = rng.one_in(2).then(|| format!("S{}", rng.below(1 << 30))),
        4 | 5 => row.address = rewrapped(rng, &row.address),
        _ => row.address = fresh,
    }
}

/// A limit that is never reached.
fn wide_limit() -> LimitRow {
    LimitRow {
        iops: Some(ItemCount(1_000_000)),
        ..LimitRow::default()
    }
}

/// A disk that no volume has, or no disk at all.
fn any_address(rng: &mut Rng, tree: &Tree) -> String {
    let used: BTreeSet<_> = tree.volume.values().filter_map(disk).collect();
    let free: Vec<_> = (0..DISKS).filter(|disk| !used.contains(disk)).collect();
    if rng.one_in(4) {
        return format!("null:{}k", 4 + 4 * rng.below(3));
    }
    let leaf = format!("file:/{}", rng.pick(&free));
    rewrapped(rng, &leaf)
}

/// The same disk with something else around it.
fn rewrapped(rng: &mut Rng, address: &str) -> String {
    let leaf = address.rsplit('(').next().unwrap_or(address);
    let leaf = leaf.trim_end_matches(')').trim_end_matches("?readonly");
    match rng.below(7) {
        0 => format!("stats({leaf})"),
        1 => format!("readonly({leaf})"),
        2 => format!("limit:iops=1M({leaf})"),
        3 if leaf.starts_with("file:") => format!("{leaf}?readonly"),
        _ => leaf.to_owned(),
    }
}

fn edit_group(rng: &mut Rng, tree: &mut Tree) {
    let name = *rng.pick(&GROUPS);
    if rng.one_in(8) {
        tree.group.remove(name);
        return;
    }
    let row = tree.group.entry(name.to_owned()).or_default();
    let member = any_initiator(rng);
    match row.initiators.iter().position(|one| *one == member) {
        Some(at) => drop(row.initiators.remove(at)),
        None => row.initiators.push(member),
    }
}

/// A name, in any spelling, or everybody.
fn any_initiator(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => "*".to_owned(),
        1 => rng.pick(&INITIATORS).to_uppercase(),
        _ => (*rng.pick(&INITIATORS)).to_owned(),
    }
}

fn edit_targets(rng: &mut Rng, tree: &mut Tree) {
    let name = *rng.pick(&TARGETS);
    if tree.target.remove(name).is_none() || !rng.one_in(4) {
        let mut row = TargetRow {
            portals: any_portals(rng),
            ..TargetRow::default()
        };
        (0..6).for_each(|_| edit_target(rng, &mut row));
        tree.target.insert(name.to_owned(), row);
    }
}

fn edit_target(rng: &mut Rng, row: &mut TargetRow) {
    match rng.below(16) {
        0..=4 => edit_luns(rng, &mut row.luns),
        5..=7 => row.view.values_mut().for_each(|luns| edit_luns(rng, luns)),
        8 | 9 => edit_view(rng, row),
        10 => row.portals = any_portals(rng),
        11 => row.alias = rng.one_in(2).then(|| "an alias".to_owned()),
        _ => edit_allow(rng, row),
    }
}

fn edit_luns(rng: &mut Rng, luns: &mut LunRows) {
    let lun = LunNumber(rng.below(usize::from(LUNS)) as u16);
    let volume = (*rng.pick(&VOLUMES)).to_owned();
    match rng.below(6) {
        0 => drop(luns.remove(&lun)),
        1 => drop(luns.insert(
            lun,
            LunRow::Limited {
                volume,
                access: Access::ReadOnly,
            },
        )),
        2 => {
            // The same volume, for reading or for writing.
            if let Some(row) = luns.get_mut(&lun) {
                let volume = row.volume().to_owned();
                let access = match row.access() {
                    Access::ReadOnly => Access::ReadWrite,
                    Access::ReadWrite => Access::ReadOnly,
                };
                *row = LunRow::Limited { volume, access };
            }
        }
        _ => drop(luns.insert(lun, LunRow::Volume(volume))),
    }
}

fn edit_view(rng: &mut Rng, row: &mut TargetRow) {
    let group = (*rng.pick(&GROUPS)).to_owned();
    if row.view.remove(&group).is_none() {
        let mut luns = LunRows::new();
        (0..3).for_each(|_| edit_luns(rng, &mut luns));
        row.view.insert(group, luns);
    }
}

fn edit_allow(rng: &mut Rng, row: &mut TargetRow) {
    let name = match rng.below(3) {
        0 => any_initiator(rng),
        _ => (*rng.pick(&GROUPS)).to_owned(),
    };
    match row.allow.iter().position(|one| *one == name) {
        Some(at) => drop(row.allow.remove(at)),
        None => row.allow.push(name),
    }
}

fn any_portals(rng: &mut Rng) -> Portals {
    let [one, other] = PORTALS.map(PortalRow::from);
    let group = |tag, portal: &PortalRow| (PortalGroupTag(tag), vec![portal.clone()]);
    match rng.below(8) {
        0 => Portals::default(),
        1 => Portals::One(vec![one]),
        2 => Portals::One(vec![other]),
        3 => Portals::Groups([group(1, &one), group(6, &other)].into()),
        4 => Portals::Groups([group(1, &other), group(6, &one)].into()),
        _ => Portals::One(vec![one, other]),
    }
}

/// The disk that a volume is on.
pub(super) fn disk(row: &VolumeRow) -> Option<usize> {
    let address = address_of(row).ok()?;
    let mut leaves = address.leaves();
    leaves.find_map(number)
}

/// The number of a disk.
pub(super) fn number(leaf: &Address) -> Option<usize> {
    let Address::File(file) = leaf else {
        return None;
    };
    let name = file.path.to_str()?.strip_prefix('/')?;
    name.parse().ok()
}

/// What stands behind a LUN.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenLun {
    pub(super) volume: String,
    pub(super) serial: Option<String>,
    /// The disk, if there is one.
    pub(super) disk: Option<usize>,
    pub(super) is_writable: bool,
}

impl SeenLun {
    /// Whether a host takes another one for another disk.
    pub(super) fn is_another(&self, other: &Self) -> bool {
        (&self.volume, &self.serial) != (&other.volume, &other.serial)
    }
}

/// LUNs, and what stands behind them.
pub(super) type View = BTreeMap<u16, SeenLun>;

/// What an initiator sees of a target; `None`: it may not log in. What its own name says counts
/// before what everybody's does.
pub(super) fn sees(tree: &Tree, initiator: &str, target: &str) -> Option<View> {
    let row = tree.target.get(target)?;
    let says = |entry: &str, wanted: &str| match tree.group.get(entry) {
        Some(group) => {
            let mut members = group.initiators.iter();
            members.any(|one| one.eq_ignore_ascii_case(wanted))
        }
        None => entry.eq_ignore_ascii_case(wanted),
    };
    let is_named = row.allow.iter().any(|entry| says(entry, initiator));
    let everybody = || row.allow.iter().filter(|entry| says(entry, "*"));
    if !is_named && everybody().next().is_none() {
        return None;
    }
    let own = row.view.iter().find(|(group, _)| says(group, initiator));
    let luns = match own {
        Some((_, luns)) => luns,
        None if is_named => &row.luns,
        None => {
            let view = everybody().find_map(|group| row.view.get(group));
            view.unwrap_or(&row.luns)
        }
    };
    let seen = luns.iter().filter_map(|(number, lun)| {
        let volume = tree.volume.get(lun.volume())?;
        let seen = SeenLun {
            volume: lun.volume().to_owned(),
            serial: volume.serial.clone(),
            disk: disk(volume),
            is_writable: lun.access() == Access::ReadWrite && !is_protected(volume),
        };
        Some((number.0, seen))
    });
    Some(seen.collect())
}

fn is_protected(row: &VolumeRow) -> bool {
    row.readonly || row.address.contains("readonly")
}

/// The tag of the portal group in which a target has a portal.
pub(super) fn portal_group(tree: &Tree, target: &str, portal: usize) -> Option<u16> {
    let mut portals = tree.target.get(target)?.portals.iter();
    let found = portals.find(|(_, written)| written.address == PORTALS[portal]);
    found.map(|(tag, _)| tag.0)
}

/// What SendTargets tells an initiator: targets, and where they are.
pub(super) fn found_by(tree: &Tree, initiator: &str) -> BTreeMap<String, BTreeSet<String>> {
    let addresses = |target: &str| -> BTreeSet<String> {
        let tagged = |portal| {
            let tag = portal_group(tree, target, portal)?;
            Some(format!("{},{tag}", address(portal)))
        };
        (0..PORTALS.len()).filter_map(tagged).collect()
    };
    let targets = TARGETS.iter();
    let open = targets.filter(|target| sees(tree, initiator, target).is_some());
    let found = open.map(|target| ((*target).to_owned(), addresses(target)));
    found
        .filter(|(_, addresses)| !addresses.is_empty())
        .collect()
}
