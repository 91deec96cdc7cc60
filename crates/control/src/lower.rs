//! From a tree to what the engine serves: an inventory, with secrets in it and every name resolved.

mod access;
mod switch;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;

use address::{Address, FileAddress, Size};
use block::identity;
use engine::inventory::{
    FcPortRow, Inventory, LunRow as UnitLun, TargetRow as ServedTarget, UnitRow,
};
use fc::wire::names::Wwn;
use iscsi::target::{IserPortals, NodeLogin};
use itertools::Itertools;
use zeroize::Zeroizing;

pub(crate) use switch::switch_options;

use crate::check::{Portal, address_of, iser_portals_by, naa_bytes, names_rows, parts, portal};
use crate::secret::SecretSource;
use crate::tree::{Access, DigestUse, LoginRow, LunRows, PortalIser, TargetRow, Tree, VolumeRow};

/// What a tree means on this machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// What tells this machine from others: identities of volumes follow from it.
    pub id: String,
    /// RELATIVE TARGET PORT IDENTIFIERS of portal groups, by target and tag.
    pub ports: BTreeMap<(String, u16), u16>,
    /// The secrets that the tree names.
    pub secrets: BTreeMap<SecretSource, Zeroizing<Vec<u8>>>,
}

impl Machine {
    fn ports_of(&self, target: &str, portals: &[(u16, SocketAddr)]) -> BTreeMap<u16, u16> {
        let id = |tag| Some((tag, *self.ports.get(&(target.to_owned(), tag))?));
        portals.iter().filter_map(|(tag, _)| id(*tag)).collect()
    }
}

/// The portal groups of a tree, by target and tag. A further port of Fibre Channel (NPIV) has that
/// of the port whose ENode it is at.
pub fn portal_groups(tree: &Tree) -> impl Iterator<Item = (String, u16)> {
    tree.target.iter().flat_map(|(name, row)| {
        row.portals.iter().flat_map(move |(tag, written)| {
            let further = match portal(&written.address) {
                Ok(Portal::Fcoe(port)) => port.npiv,
                _ => Vec::new(),
            };
            let further = further.into_iter().map(|wwpn| wwpn.to_string());
            let targets = iter::once(name.clone()).chain(further);
            targets.map(move |target| (target, tag.0))
        })
    })
}

/// The inventory of a tree that was checked. Volumes are served without what holds their blocks
/// where that cannot be opened. Files are made, or extended, for those rows alone that `makes`
/// names: a disk whose file is missing must not come back empty. Each
/// other row that is in `before` must have come from an equal row on this machine: its unit is
/// shared.
///
/// # Errors
///
/// What cannot be served, all of it.
pub fn inventory(
    tree: &Tree,
    machine: &Machine,
    before: &Inventory,
    makes: impl Fn(&str, &VolumeRow) -> bool,
) -> Result<Inventory, Vec<String>> {
    let (mut inventory, mut problems, mut units) = (Inventory::default(), Vec::new(), Vec::new());
    let parts = parts(tree);
    let rows = tree.volume.iter();
    let rows = rows.filter(|(name, _)| !parts.contains(*name));
    for pair in rows.merge_join_by(&before.units, |(row, _), (unit, _)| row.cmp(unit)) {
        let (row, kept) = pair.left_and_right();
        let Some((name, row)) = row else { continue };
        let is_made = makes(name, row);
        let stays = !is_made && !names_rows(row);
        let unit = match kept {
            Some((_, kept)) if stays && is_as_it_is(&kept.address) => Ok(Arc::clone(kept)),
            _ => unit(tree, machine, (name, row), is_made).map(Arc::new),
        };
        match unit {
            Ok(unit) => units.push((name.clone(), unit)),
            Err(cause) => problems.push(format!("volume.{name}: {cause}")),
        }
    }
    inventory.units = units.into_iter().collect();
    inventory.advertise.clone_from(&tree.discovery.advertise);
    inventory.iser = IserPortals {
        portals: iser_portals_by(tree, PortalIser::is_soft)
            .into_keys()
            .collect(),
        devices: iser_portals_by(tree, PortalIser::is_device)
            .into_keys()
            .collect(),
        without_crc: tree.daemon.iser_crc == Some(false),
    };
    for (name, row) in &tree.target {
        let added = add_target(tree, machine, (name, row), &mut inventory);
        problems.extend(added.err().map(|cause| format!("target.{name}: {cause}")));
    }
    if problems.is_empty() {
        Ok(inventory)
    } else {
        Err(problems)
    }
}

fn unit(
    tree: &Tree,
    machine: &Machine,
    (name, row): (&str, &VolumeRow),
    makes: bool,
) -> Result<UnitRow, String> {
    let mut address = resolved(tree, address_of(row)?)?;
    if let Some(limit) = &row.limit {
        address = Address::Limit {
            iops: limit.iops,
            rate: limit.rate,
            burst: limit.burst,
            volume: Box::new(address),
        };
    }
    if !makes {
        address = as_it_is(address);
    }
    let serial = row.serial.clone();
    Ok(UnitRow {
        may_be_absent: true,
        serial: Some(serial.unwrap_or_else(|| identity::serial(&format!("{} {name}", machine.id)))),
        naa: row.naa.as_deref().and_then(naa_bytes),
        vendor: row.vendor.clone(),
        product: row.product.clone(),
        removable: row.removable,
        read_only: row.readonly,
        block_size: row.block_size,
        ..UnitRow::new(address, row.address.clone())
    })
}

fn is_as_it_is(address: &Address) -> bool {
    address
        .leaves()
        .all(|leaf| !matches!(leaf, Address::File(file) if file.size.is_some()))
}

/// An address whose files are neither made nor extended.
fn as_it_is(address: Address) -> Address {
    let mut strip = |leaf| match leaf {
        Address::File(file) => {
            Ok::<_, Infallible>(Address::File(FileAddress { size: None, ..file }))
        }
        leaf => Ok(leaf),
    };
    let Ok(address) = address.try_map_leaves(&mut strip);
    address
}

/// An address with the addresses of rows in place of their names.
fn resolved(tree: &Tree, address: Address) -> Result<Address, String> {
    address.try_map_leaves(&mut |leaf| match leaf {
        Address::Row(name) => {
            let row = tree
                .volume
                .get(&name)
                .ok_or_else(|| format!("there is no volume {name}"))?;
            resolved(tree, address_of(row)?)
        }
        leaf => Ok(leaf),
    })
}

fn add_target(
    tree: &Tree,
    machine: &Machine,
    (name, row): (&str, &TargetRow),
    inventory: &mut Inventory,
) -> Result<(), String> {
    if let Ok(wwpn) = name.parse::<Wwn>() {
        return add_fc_ports(tree, machine, (wwpn, row), inventory);
    }
    let mut portals = Vec::new();
    for (tag, written) in row.portals.iter() {
        if let Portal::Tcp(address) = portal(&written.address)? {
            portals.push((tag.0, address));
        }
    }
    if portals.is_empty() {
        // Nobody reaches it, and the engine would take it for reached everywhere.
        return Ok(());
    }
    let new = portals
        .iter()
        .filter(|(_, address)| !inventory.portals.contains(address));
    let new: Vec<_> = new.map(|(_, address)| *address).collect();
    inventory.portals.extend(new);
    let (luns, groups) = views(tree, row, access::iscsi_names);
    let target = ServedTarget {
        alias: row.alias.clone(),
        luns,
        groups,
        access: access::node(tree, machine, row)?,
        login: row.login.as_ref().map(login).unwrap_or_default(),
        port_ids: machine.ports_of(name, &portals),
        portals,
    };
    inventory.targets.insert(name.to_owned(), target);
    Ok(())
}

/// What the target negotiates. Keys of which there is one value only need not be told.
fn login(row: &LoginRow) -> NodeLogin {
    let digest = |digest: Option<DigestUse>| digest.map(|digest| digest == DigestUse::Crc32c);
    let bytes = |size: Option<Size>| size.and_then(|size| u32::try_from(size.0).ok());
    NodeLogin {
        header_digest: digest(row.header_digest),
        data_digest: digest(row.data_digest),
        initial_r2t: row.initial_r2t,
        immediate_data: row.immediate_data,
        data_segment: bytes(row.max_recv_data_segment_length),
        max_burst: bytes(row.max_burst_length),
        first_burst: bytes(row.first_burst_length),
        time2wait: row.default_time2wait,
        outstanding_r2t: row.max_outstanding_r2t,
        pdu_in_order: row.data_pdu_in_order,
        sequence_in_order: row.data_sequence_in_order,
        sessions: row.max_sessions.map(u32::from),
    }
}

/// Initiators by name, and what they see.
type GroupView<N> = (BTreeSet<N>, Vec<UnitLun>);

/// What initiators see by default, and what those of each group see instead. Where everybody has a
/// view, that is the default, and the LUNs of the target become the view of all others.
fn views<N: Ord>(
    tree: &Tree,
    row: &TargetRow,
    names: fn(&Tree, &str) -> BTreeSet<N>,
) -> (Vec<UnitLun>, Vec<GroupView<N>>) {
    let named = |group: &str, luns: &LunRows| (names(tree, group), units(luns));
    let views = row.view.iter().map(|(group, luns)| named(group, luns));
    let mut groups: Vec<_> = views.filter(|(names, _)| !names.is_empty()).collect();
    let Some(default) = access::everybodys_view(tree, row) else {
        return (units(&row.luns), groups);
    };
    for name in &row.allow {
        let mut names = names(tree, name);
        names.retain(|name| groups.iter().all(|(known, _)| !known.contains(name)));
        groups.push((names, units(&row.luns)));
    }
    groups.retain(|(names, _)| !names.is_empty());
    (units(default), groups)
}

fn add_fc_ports(
    tree: &Tree,
    machine: &Machine,
    (wwpn, row): (Wwn, &TargetRow),
    inventory: &mut Inventory,
) -> Result<(), String> {
    for (tag, written) in row.portals.iter() {
        let Portal::Fcoe(mut port) = portal(&written.address)? else {
            continue;
        };
        port.wwpn = Some(wwpn);
        for port in port.ports() {
            let name = port.wwpn.unwrap_or(wwpn).to_string();
            // Further ports of the ENode are targets of their own.
            let row = tree.target.get(&name).unwrap_or(row);
            let (luns, groups) = views(tree, row, access::port_names);
            inventory.fc_ports.push(FcPortRow {
                port,
                luns,
                groups,
                port_id: machine.ports.get(&(name, tag.0)).copied(),
                partners: access::partners(tree, row),
            });
        }
    }
    Ok(())
}

fn units(luns: &LunRows) -> Vec<UnitLun> {
    let lun = luns.iter().map(|(number, lun)| UnitLun {
        lun: number.0,
        unit: lun.volume().to_owned(),
        read_only: lun.access() == Access::ReadOnly,
    });
    lun.collect()
}

/// The secrets that a tree names.
#[must_use]
pub fn sources(tree: &Tree) -> Vec<SecretSource> {
    let groups = tree.group.values();
    let chap = groups.flat_map(|row| row.chap.iter().chain(&row.mutual));
    chap.map(|chap| chap.secret.clone()).collect()
}

#[cfg(test)]
mod tests;
