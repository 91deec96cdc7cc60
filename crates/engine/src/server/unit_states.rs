//! What hosts have made of units: reservations, and FORMAT UNIT or SANITIZE. The owners of units
//! tell it, and here it becomes plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::identity::hex;
use fc::wire::names::Wwn;
use scsi::long_operation::{LongOperationKind, OperationState};
use scsi::nexus::NexusIdentity;
use scsi::reserve::{Holding, Reservation, Reservations};
use scsi::unit::UnitState;
use scsi::wire::transport_id::{InitiatorPortName, port_name};

use super::{Served, Server};
use crate::mailbox::CoreMessage;

/// An I_T nexus by the names of its two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexusReport {
    /// The initiator: an iSCSI name, or the port name of a Fibre Channel port.
    pub initiator: String,
    /// ISID, in hexadecimal digits; none by Fibre Channel.
    pub isid: Option<String>,
    /// The target: an IQN, or a WWPN; `None` where it is not served any more.
    pub target: Option<String>,
    /// The tag of its portal group; none by Fibre Channel.
    pub portal_group: Option<u16>,
    /// RELATIVE TARGET PORT IDENTIFIER of the target's port.
    pub port: u16,
}

/// A registered I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationReport {
    /// The ports between which it is.
    pub nexus: NexusReport,
    /// Its reservation key.
    pub key: u64,
    /// It holds the reservation, alone or with all others.
    pub is_holder: bool,
}

/// What a unit is reserved by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationKind {
    /// RESERVE(6) or (10), by this nexus.
    Spc2(NexusReport),
    /// A persistent reservation of this type, as SPC-5 calls it.
    Persistent(&'static str),
}

/// The reservations of a unit that has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationReport {
    /// The unit's name in the inventory.
    pub unit: String,
    /// PRGENERATION.
    pub generation: u32,
    /// They outlive a power loss.
    pub aptpl: bool,
    /// What the unit is reserved by, if it is.
    pub kind: Option<ReservationKind>,
    /// The nexuses that are registered.
    pub registrations: Vec<RegistrationReport>,
}

/// FORMAT UNIT or SANITIZE of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct LongOperationReport {
    /// The unit's name in the inventory.
    pub unit: String,
    /// `format` or `sanitize`.
    pub kind: &'static str,
    /// How much is done, from 0 to 1; `None`: it has failed, and the medium is not to be used.
    pub progress: Option<f64>,
}

impl Server {
    /// The units that have registrations or are reserved, by name. `None` where core 0 has not
    /// answered within 5 s.
    #[must_use]
    pub fn reservations(&self) -> Option<Vec<ReservationReport>> {
        let states = self.unit_states()?;
        let served = self.served();
        let of = |(name, state): &(String, Arc<UnitState>)| served.reservations_of(name, state);
        Some(states.iter().filter_map(of).collect())
    }

    /// The units of which the medium is formatted or sanitized, or was in vain, by name. `None`
    /// where core 0 has not answered within 5 s.
    #[must_use]
    pub fn long_operations(&self) -> Option<Vec<LongOperationReport>> {
        let states = self.unit_states()?.into_iter();
        let of = |(unit, state): (String, Arc<UnitState>)| long_operation(unit, state.operation);
        Some(states.filter_map(of).collect())
    }

    fn unit_states(&self) -> Option<Vec<(String, Arc<UnitState>)>> {
        let states: BTreeMap<_, _> = self.ask(CoreMessage::UnitStates)?.into_iter().collect();
        let served = self.served();
        let known = served.units.iter().filter_map(|(name, unit)| {
            let state = states.get(&unit.id)?;
            Some((name.clone(), Arc::clone(state)))
        });
        Some(known.collect())
    }
}

impl Served {
    fn reservations_of(&self, name: &str, state: &UnitState) -> Option<ReservationReport> {
        let kept: &Reservations = &state.reservations;
        if kept.registrations().is_empty() && *kept.hold() == Holding::Free {
            return None;
        }
        let registrations = kept.registrations().iter();
        let registrations = registrations.map(|one| RegistrationReport {
            nexus: self.nexus(&one.nexus),
            key: one.key,
            is_holder: kept.is_holder(&one.nexus),
        });
        let kind = match kept.hold() {
            Holding::Free => None,
            Holding::Reserved(nexus) => Some(ReservationKind::Spc2(self.nexus(nexus))),
            Holding::Persistent(Reservation { kind, .. }) => {
                Some(ReservationKind::Persistent(kind.name()))
            }
        };
        Some(ReservationReport {
            unit: name.to_owned(),
            generation: kept.generation(),
            aptpl: kept.aptpl(),
            kind,
            registrations: registrations.collect(),
        })
    }

    fn nexus(&self, nexus: &NexusIdentity) -> NexusReport {
        let (initiator, isid) = match port_name(&nexus.initiator) {
            Some(InitiatorPortName::Iscsi(name, isid)) => (name.to_owned(), Some(hex(&isid))),
            Some(InitiatorPortName::Fcp(name)) => (Wwn(u64::from_be_bytes(name)).to_string(), None),
            None => (hex(&nexus.initiator), None),
        };
        let (target, portal_group) = self.target_port(nexus.port).unzip();
        NexusReport {
            initiator,
            isid,
            target,
            portal_group: portal_group.flatten(),
            port: nexus.port,
        }
    }

    /// The target of a port, and the tag of its portal group.
    fn target_port(&self, id: u16) -> Option<(String, Option<u16>)> {
        let mut fc_ports = self.fc_ports.iter();
        if let Some(port) = fc_ports.find(|port| port.number == id) {
            return Some((port.wwpn.to_string(), None));
        }
        let mut targets = self.inventory.targets.iter();
        targets.find_map(|(name, row)| {
            let mut ports = row.ports().into_iter();
            let (tag, _) = ports.find(|(_, port)| *port == id)?;
            Some((name.clone(), Some(tag)))
        })
    }
}

fn long_operation(unit: String, state: OperationState) -> Option<LongOperationReport> {
    let (kind, progress) = match state {
        OperationState::Idle => return None,
        OperationState::Running {
            operation,
            progress,
        } => (operation, Some(f64::from(progress) / 65_536.0)),
        OperationState::Failed(operation) => (operation, None),
    };
    let kind = match kind {
        LongOperationKind::Format => "format",
        LongOperationKind::Sanitize { .. } => "sanitize",
    };
    Some(LongOperationReport {
        unit,
        kind,
        progress,
    })
}
