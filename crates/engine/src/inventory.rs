//! What is served, as a value: units, targets with their LUN maps, portals and Fibre Channel ports.
//!
//! An inventory names things and opens nothing. [`Inventory::check`] finds what is wrong in itself,
//! [`diff`] tells the steps from one to another, and [`crate::server`] makes them.

mod check;
mod cycle;
mod diff;
pub(crate) mod fcoe_port;
mod placed;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use address::Address;
use fc::remote::Partners;
use fc::wire::names::Wwn;
use iscsi::names::PORTAL_GROUP;
use iscsi::target::{IserPortals, NodeAccess, NodeLogin};

pub use check::{InventoryError, MOST_LUNS};
pub use cycle::LocalNode;
pub use diff::{Step, diff};
pub use fcoe_port::{FcoePort, NotAPort};
pub use placed::PlacedInventory;

/// Everything that a server serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Logical units, by names that nobody but this inventory knows. What an initiator knows a unit
    /// by follows from its volume, or from [`UnitRow::serial`].
    pub units: BTreeMap<String, Arc<UnitRow>>,
    /// iSCSI targets, by name as iSCSI compares names.
    pub targets: BTreeMap<String, TargetRow>,
    /// Where iSCSI listens; port 0 picks a free one.
    pub portals: Vec<SocketAddr>,
    /// Which of them take iSER, too, as they stand there.
    pub iser: IserPortals,
    /// What SendTargets answers with in place of the address that a connection came to.
    pub advertise: Vec<String>,
    /// Fibre Channel ports.
    pub fc_ports: Vec<FcPortRow>,
}

/// A logical unit.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitRow {
    /// The address of its volume.
    pub address: Address,
    /// The same, as it was written.
    pub written: String,
    /// The serial number that it is told to have; `None`: what its volume is known by.
    pub serial: Option<String>,
    /// The NAA designator that it is told to have (SPC-5 §7.7.6.6), big-endian; `None`: it follows
    /// from the serial number. A disk that was served by another program keeps its own.
    pub naa: Option<Vec<u8>>,
    /// T10 VENDOR IDENTIFICATION, up to 8 printable characters.
    pub vendor: Option<String>,
    /// PRODUCT IDENTIFICATION, up to 16.
    pub product: Option<String>,
    /// RMB = 1; can be ejected and loaded.
    pub removable: bool,
    /// Nothing can write.
    pub read_only: bool,
    /// Bytes in a logical block; `None`: the volume's own.
    pub block_size: Option<u32>,
    /// A unit of another target that is used through this server alone.
    pub sole_gateway: bool,
    /// Where its volume cannot be opened the unit is there without it, and gets it when it can.
    pub may_be_absent: bool,
}

/// What an initiator sees.
pub type LunRows = Vec<LunRow>;

/// A LUN, and the unit behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LunRow {
    /// The number.
    pub lun: u16,
    /// The name of the unit.
    pub unit: String,
    /// The initiator can only read through it, while others may write to the unit.
    pub read_only: bool,
}

impl LunRow {
    /// A LUN that can be written.
    #[must_use]
    pub fn new(lun: u16, unit: impl Into<String>) -> Self {
        Self {
            lun,
            unit: unit.into(),
            read_only: false,
        }
    }
}

/// An iSCSI target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetRow {
    /// TargetAlias.
    pub alias: Option<String>,
    /// What initiators see that no group names.
    pub luns: LunRows,
    /// What others see in place of that: their names, as iSCSI compares them, and LUNs.
    pub groups: Vec<(BTreeSet<String>, LunRows)>,
    /// Which initiators may log in.
    pub access: NodeAccess,
    /// What it negotiates with them; a change counts from the next login on.
    pub login: NodeLogin,
    /// Where they may: portals of the inventory, each with the tag of its portal group. If there is
    /// none, at every portal of the inventory, with tag 1.
    pub portals: Vec<(u16, SocketAddr)>,
    /// RELATIVE TARGET PORT IDENTIFIER of a portal group, by its tag; where it is missing it is the
    /// tag. Reservations are kept by it, and a unit of several targets knows their ports by it.
    pub port_ids: BTreeMap<u16, u16>,
}

/// A Fibre Channel port.
#[derive(Clone, Debug, PartialEq)]
pub struct FcPortRow {
    /// Where it is, and what it is called.
    pub port: FcoePort,
    /// What initiators see that no group names.
    pub luns: LunRows,
    /// What others see in place of that: their port names, and LUNs.
    pub groups: Vec<(BTreeSet<Wwn>, LunRows)>,
    /// Which ports may log in.
    pub partners: Partners,
    /// RELATIVE TARGET PORT IDENTIFIER; `None`: one that no port of this server had before, which
    /// may be another one at its next start.
    pub port_id: Option<u16>,
}

impl TargetRow {
    /// The tags of its portal groups, with the identifiers of their ports.
    pub(crate) fn ports(&self) -> BTreeMap<u16, u16> {
        let tags = self.portals.iter().map(|portal| portal.0);
        let only = self.portals.is_empty().then_some(PORTAL_GROUP);
        let port = |tag| (tag, self.port_ids.get(&tag).copied().unwrap_or(tag));
        tags.chain(only).map(port).collect()
    }
}

impl UnitRow {
    /// A unit of this volume, all else by default.
    #[must_use]
    pub fn new(address: Address, written: String) -> Self {
        Self {
            address,
            written,
            serial: None,
            naa: None,
            vendor: None,
            product: None,
            removable: false,
            read_only: false,
            block_size: None,
            sole_gateway: false,
            may_be_absent: false,
        }
    }

    /// Whether another row is the same unit with another volume: what initiators were told when
    /// they found it still holds.
    #[must_use]
    pub fn is_same_unit(&self, other: &Self) -> bool {
        self.serial == other.serial
            && self.naa == other.naa
            && self.vendor == other.vendor
            && self.product == other.product
            && self.removable == other.removable
    }
}

#[cfg(test)]
mod tests;
