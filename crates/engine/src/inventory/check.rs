//! What is wrong with an inventory, before anything of it is tried.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use block::identity::hex;
use iscsi::target::{Initiators, NodeAccess};

use super::cycle::{CycleSearch, LocalNode};
use super::{FcPortRow, Inventory, LunRows, TargetRow};

/// How many LUNs a target can have: as many as two bytes of single-level addressing tell apart
/// (SAM-5 §4.7.4).
pub const MOST_LUNS: usize = 16_384;

/// What is wrong. None of the inventory is served then, and what was served stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// A LUN twice in one map.
    #[error("{target} has LUN {lun} twice: give one of the volumes another number")]
    LunTwice {
        /// Whose map.
        target: String,
        /// Which number.
        lun: u16,
    },
    /// A number that no LUN can have.
    #[error("{target}: LUN {lun} is too high: the highest is {max}", max = MOST_LUNS - 1)]
    LunTooHigh {
        /// Whose map.
        target: String,
        /// Which number.
        lun: u16,
    },
    /// A LUN of a unit that is not there.
    #[error("{target}: LUN {lun} is of {unit:?}, which is not among the volumes")]
    NoUnit {
        /// Whose map.
        target: String,
        /// Which number.
        lun: u16,
        /// What it names.
        unit: String,
    },
    /// Two groups of a target that both name an initiator.
    #[error("{target}: {initiator} is in two groups that see different LUNs")]
    TwoGroups {
        /// Whose groups.
        target: String,
        /// Who is in both.
        initiator: String,
    },
    /// A portal of a target that is not listened to.
    #[error("{target} has a portal {portal}, which is not among the portals")]
    NoPortal {
        /// Whose.
        target: String,
        /// Which one.
        portal: SocketAddr,
    },
    /// A portal twice in one target.
    #[error("{target} has the portal {portal} twice: it is in one portal group")]
    PortalTwice {
        /// Whose.
        target: String,
        /// Which one.
        portal: SocketAddr,
    },
    /// An identifier that no port can have, or that two ports of a target have.
    #[error(
        "{target}: the port of portal group {tag} cannot have the identifier {port}: each port has \
         another one, from 1 on"
    )]
    PortId {
        /// Whose.
        target: String,
        /// Which portal group.
        tag: u16,
        /// RELATIVE TARGET PORT IDENTIFIER.
        port: u16,
    },
    /// A unit whose volume leads back to the unit.
    #[error(
        "{volume} leads back to itself through what is served here: give the unit a volume that \
         does not need it"
    )]
    Cycle {
        /// Which unit.
        unit: String,
        /// The address of its volume, as it was written.
        volume: String,
    },
    /// Bytes that are not a designator of type NAA.
    #[error(
        "{unit:?}: {naa} is not an NAA designator: it has 16 hexadecimal digits, of which the \
         first is 2, 3 or 5, or 32, of which the first is 6"
    )]
    NotNaa {
        /// Which unit.
        unit: String,
        /// The bytes, in hexadecimal.
        naa: String,
    },
    /// A designator that two units have.
    #[error("{unit:?} and {other:?} have the same NAA designator {naa}: give one of them another")]
    NaaTwice {
        /// Which unit.
        unit: String,
        /// The other one.
        other: String,
        /// The bytes, in hexadecimal.
        naa: String,
    },
    /// A name that iSCSI has no room for, or a character that it does not know.
    #[error("{name:?} is not an iSCSI name: {cause}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl Inventory {
    /// Whether this node can serve it, as far as it tells itself.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, node: LocalNode<'_>) -> Result<(), InventoryError> {
        self.check_designators()?;
        for (name, target) in &self.targets {
            check_name(name)?;
            self.check_luns(name, &target.luns)?;
            check_access(&target.access)?;
            self.check_portals(name, target)?;
            let mut known = BTreeSet::new();
            for (initiators, luns) in &target.groups {
                self.check_luns(name, luns)?;
                for initiator in initiators {
                    check_name(initiator)?;
                    if !known.insert(initiator) {
                        return Err(InventoryError::TwoGroups {
                            target: name.clone(),
                            initiator: initiator.clone(),
                        });
                    }
                }
            }
        }
        let mut ports = self.fc_ports.iter();
        ports.try_for_each(|port| self.check_fc_port(port))?;
        CycleSearch::new(self, node).run()
    }

    fn check_designators(&self) -> Result<(), InventoryError> {
        let mut known = BTreeMap::new();
        for (unit, row) in &self.units {
            let Some(naa) = &row.naa else { continue };
            let unit = unit.clone();
            if !is_naa(naa) {
                let naa = hex(naa);
                return Err(InventoryError::NotNaa { unit, naa });
            }
            if let Some(other) = known.insert(naa, unit.clone()) {
                let naa = hex(naa);
                return Err(InventoryError::NaaTwice { unit, other, naa });
            }
        }
        Ok(())
    }

    fn check_portals(&self, name: &str, row: &TargetRow) -> Result<(), InventoryError> {
        let (mut known, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (_, portal) in &row.portals {
            let (target, portal) = (name.to_owned(), *portal);
            if !self.portals.contains(&portal) {
                return Err(InventoryError::NoPortal { target, portal });
            }
            if !known.insert(portal) {
                return Err(InventoryError::PortalTwice { target, portal });
            }
        }
        for (tag, port) in row.ports() {
            if port == 0 || !ids.insert(port) {
                let target = name.to_owned();
                return Err(InventoryError::PortId { target, tag, port });
            }
        }
        Ok(())
    }

    fn check_fc_port(&self, row: &FcPortRow) -> Result<(), InventoryError> {
        let target = row.port.place.to_string();
        self.check_luns(&target, &row.luns)?;
        let mut known = BTreeSet::new();
        for (initiators, luns) in &row.groups {
            self.check_luns(&target, luns)?;
            if let Some(twice) = initiators.iter().find(|name| !known.insert(**name)) {
                let initiator = twice.to_string();
                return Err(InventoryError::TwoGroups { target, initiator });
            }
        }
        Ok(())
    }

    fn check_luns(&self, target: &str, luns: &LunRows) -> Result<(), InventoryError> {
        let mut known = BTreeSet::new();
        for row in luns {
            let lun = row.lun;
            if usize::from(lun) >= MOST_LUNS {
                let target = target.to_owned();
                return Err(InventoryError::LunTooHigh { target, lun });
            }
            if !known.insert(lun) {
                let target = target.to_owned();
                return Err(InventoryError::LunTwice { target, lun });
            }
            if !self.units.contains_key(&row.unit) {
                let (target, unit) = (target.to_owned(), row.unit.clone());
                return Err(InventoryError::NoUnit { target, lun, unit });
            }
        }
        Ok(())
    }
}

/// The formats of SPC-5 §7.7.6.6: by the first four bits 8 bytes, or 16 of format 6h.
fn is_naa(designator: &[u8]) -> bool {
    let format = designator.first().map(|byte| byte >> 4);
    match designator.len() {
        8 => matches!(format, Some(2 | 3 | 5)),
        16 => format == Some(6),
        _ => false,
    }
}

fn check_access(access: &NodeAccess) -> Result<(), InventoryError> {
    let named = access
        .groups()
        .iter()
        .filter_map(|group| match &group.initiators {
            Initiators::Everybody => None,
            Initiators::Named(names) => Some(names),
        });
    named.flatten().try_for_each(|name| check_name(name))
}

fn check_name(name: &str) -> Result<(), InventoryError> {
    let cause = match iscsi::names::normalise(name) {
        Ok(normal) if normal == name => return Ok(()),
        Ok(normal) => format!("iSCSI compares it as {normal}"),
        Err(cause) => cause.to_string(),
    };
    Err(InventoryError::Name {
        name: name.to_owned(),
        cause,
    })
}
