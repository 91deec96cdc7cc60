//! PERSISTENT RESERVE IN and OUT, RESERVE and RELEASE, as the opcode table calls them.

use std::sync::Arc;

use super::{Action, Holding, Register, RegisterAndMove, ReservationType};
use crate::commands::{Query, QueryResult};
use crate::nexus::{Nexus, NexusIdentity};
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::wire::asc;
use crate::wire::cdb::{be32, byte};
use crate::wire::reserve as wire;
use crate::wire::sense::{Sense, SenseKey, Status};

/// PERSISTENT RESERVE IN, every service action (SPC-5 §6.16).
#[must_use]
pub fn persistent_reserve_in(query: &Query<'_>) -> QueryResult {
    let Some(unit) = query.unit else {
        return absent();
    };
    let reservations = &unit.reservations;
    if matches!(reservations.hold, Holding::Reserved(_)) {
        return QueryResult::Fail(CommandFailure::Status(Status::ReservationConflict));
    }
    match action(query.cdb) {
        0x00 => QueryResult::Data(wire::keys(reservations)),
        0x01 => QueryResult::Data(wire::reservation(reservations)),
        0x02 => QueryResult::Data(wire::capabilities(reservations, unit.persistence)),
        0x03 => QueryResult::Data(wire::full_status(reservations)),
        _ => invalid_action(),
    }
}

/// PERSISTENT RESERVE OUT, every service action but REPLACE LOST RESERVATION (SPC-5 §6.17): as
/// reservations are never lost without the unit being lost (RLR_C = 0), that one is refused as
/// unknown.
#[must_use]
pub fn persistent_reserve_out(query: &Query<'_>) -> QueryResult {
    match requested(query) {
        Ok(action) => QueryResult::Change(UnitChange::PersistentReserve(action)),
        Err(sense) => QueryResult::Fail(CommandFailure::Check(sense)),
    }
}

/// RESERVE(6) and RESERVE(10) of the whole unit for the nexus itself (SPC-2 §7.21, §7.22).
#[must_use]
pub fn reserve(query: &Query<'_>) -> QueryResult {
    match query.unit {
        Some(_) => QueryResult::Change(UnitChange::Reserve),
        None => absent(),
    }
}

/// RELEASE(6) and RELEASE(10) (SPC-2 §7.16, §7.17).
#[must_use]
pub fn release(query: &Query<'_>) -> QueryResult {
    match query.unit {
        Some(_) => QueryResult::Change(UnitChange::Release),
        None => absent(),
    }
}

fn requested(query: &Query<'_>) -> Result<Action, Sense> {
    if query.unit.is_none() {
        return Err(ABSENT);
    }
    if be32(query.cdb, 5) as usize != query.parameters.len() {
        return Err(Sense::parameter_length());
    }
    if action(query.cdb) == REGISTER_AND_MOVE {
        return moved(query).map(Action::Move);
    }
    let list = wire::list(query.parameters, query.nexus.target.protocol)?;
    if list.initiators.is_some() && action(query.cdb) != REGISTER {
        return Err(Sense::parameter_field(20, Some(3)));
    }
    let key = list.key;
    Ok(match action(query.cdb) {
        REGISTER => Action::Register(register(query.nexus, &list, Some(key))),
        REGISTER_AND_IGNORE => Action::Register(register(query.nexus, &list, None)),
        0x01 => Action::Reserve {
            key,
            kind: kind(query.cdb)?,
        },
        0x02 => Action::Release {
            key,
            kind: kind(query.cdb)?,
        },
        0x03 => Action::Clear { key },
        code @ (0x04 | 0x05) => Action::Preempt {
            key,
            victim: list.service_action_key,
            kind: kind(query.cdb).ok(),
            abort: code == 0x05,
        },
        _ => return Err(INVALID_ACTION),
    })
}

const REGISTER: u8 = 0x00;
const REGISTER_AND_IGNORE: u8 = 0x06;
const REGISTER_AND_MOVE: u8 = 0x07;

fn register(nexus: &Nexus, list: &wire::List, key: Option<u64>) -> Register {
    let own = &nexus.identity;
    let ports = if list.all_ports {
        nexus
            .target
            .ports
            .iter()
            .map(|port| port.relative_id)
            .collect()
    } else {
        vec![own.port]
    };
    let siblings = ports.iter().filter(|port| **port != own.port);
    let initiators = list.initiators.as_ref();
    Register {
        key,
        new_key: list.service_action_key,
        siblings: siblings
            .map(|port| identity(&own.initiator, *port))
            .collect(),
        specified: initiators.map(|all| across(all, &ports)),
        aptpl: list.aptpl,
    }
}

fn across(initiators: &[Box<[u8]>], ports: &[u16]) -> Vec<Arc<NexusIdentity>> {
    let pairs = initiators
        .iter()
        .flat_map(|one| ports.iter().map(move |port| (one, *port)));
    pairs.map(|(one, port)| identity(one, port)).collect()
}

fn identity(initiator: &[u8], port: u16) -> Arc<NexusIdentity> {
    Arc::new(NexusIdentity {
        initiator: initiator.into(),
        port,
    })
}

fn moved(query: &Query<'_>) -> Result<RegisterAndMove, Sense> {
    let target = &query.nexus.target;
    let list = wire::move_list(query.parameters, target.protocol)?;
    if !target
        .ports
        .iter()
        .any(|port| port.relative_id == list.port)
    {
        return Err(Sense::parameter_field(18, None));
    }
    Ok(RegisterAndMove {
        key: list.key,
        new_key: list.service_action_key,
        to: identity(&list.initiator, list.port),
        unregister: list.unregister,
        aptpl: list.aptpl,
    })
}

/// SCOPE must be that of a logical unit.
fn kind(cdb: &[u8]) -> Result<ReservationType, Sense> {
    let byte = byte(cdb, 2);
    if byte & 0xf0 != 0 {
        return Err(Sense::cdb_field(2, Some(7)));
    }
    ReservationType::from_code(byte).ok_or(Sense::cdb_field(2, Some(3)))
}

fn action(cdb: &[u8]) -> u8 {
    byte(cdb, 1) & 0x1f
}

const INVALID_ACTION: Sense = Sense::cdb_field(1, Some(4));
const ABSENT: Sense = Sense::new(SenseKey::IllegalRequest, asc::LOGICAL_UNIT_NOT_SUPPORTED);

fn invalid_action() -> QueryResult {
    QueryResult::Fail(CommandFailure::Check(INVALID_ACTION))
}

fn absent() -> QueryResult {
    QueryResult::Fail(CommandFailure::Check(ABSENT))
}
