//! Asymmetric logical unit access (SPC-5 §5.17): one target port group holds every port.
//!
//! One process serves all its ports alike, so there is nothing that it could do worse by one of
//! them, and no other process that could take over: Standby, Unavailable and Offline would cut
//! hosts off from a unit that works, and are refused. What an initiator may do is to ask hosts to
//! prefer other paths (Active/non-optimized), and to take that back.

use crate::commands::{Query, QueryResult};
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::wire::cdb::{be16, byte};
use crate::wire::sense::Sense;

/// TPGS of standard INQUIRY data: explicit transitions, by SET TARGET PORT GROUPS. There are no
/// implicit ones, as a process that runs serves all its ports alike.
pub const TPGS: u8 = 0b10;

/// The number of the one TARGET PORT GROUP.
pub const GROUP: u16 = 1;

/// ASYMMETRIC ACCESS STATE (SPC-5 §5.17.2), as far as one process can be in it and still answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// Active/optimized.
    #[default]
    Optimized = 0x0,
    /// Active/non-optimized: everything is served, but hosts are asked to prefer another path.
    NonOptimized = 0x1,
}

impl AccessState {
    fn from_code(code: u8) -> Option<Self> {
        match code {
            0x0 => Some(Self::Optimized),
            0x1 => Some(Self::NonOptimized),
            _ => None,
        }
    }
}

/// REPORT TARGET PORT GROUPS (SPC-5 §6.34), with a header as PARAMETER DATA FORMAT asks for it.
#[must_use]
pub fn report_target_port_groups(query: &Query<'_>) -> QueryResult {
    let extended: &[u8] = match byte(query.cdb, 1) >> 5 {
        0 => &[],
        1 => &[0x10, 0, 0, 0],
        _ => return QueryResult::Fail(CommandFailure::Check(Sense::cdb_field(1, Some(7)))),
    };
    let group = group(query);
    let length = (extended.len() + group.len()) as u32;
    QueryResult::Data([&length.to_be_bytes(), extended, &group].concat())
}

/// The target port group descriptor. TARGET PORT COUNT has one byte, which bounds the ports told.
fn group(query: &Query<'_>) -> Vec<u8> {
    let ports = &query.nexus.target.ports;
    let ports = &ports[..ports.len().min(255)];
    let state = query
        .unit
        .map_or(AccessState::default(), |unit| unit.access_state);
    let [high, low] = GROUP.to_be_bytes();
    let mut bytes = vec![
        state as u8,
        SUPPORTED,
        high,
        low,
        0,
        0,
        0,
        ports.len() as u8,
    ];
    for port in ports {
        bytes.extend([0, 0]);
        bytes.extend(port.relative_id.to_be_bytes());
    }
    bytes
}

/// AN_SUP and AO_SUP.
const SUPPORTED: u8 = 0x03;

/// SET TARGET PORT GROUPS (SPC-5 §6.45). An empty list changes nothing.
#[must_use]
pub fn set_target_port_groups(query: &Query<'_>) -> QueryResult {
    match wanted(query.parameters) {
        Ok(None) => QueryResult::Good,
        Ok(Some(state)) => QueryResult::Change(UnitChange::AccessState(state)),
        Err(sense) => QueryResult::Fail(CommandFailure::Check(sense)),
    }
}

fn wanted(list: &[u8]) -> Result<Option<AccessState>, Sense> {
    if list.is_empty() {
        return Ok(None);
    }
    let descriptors = list.get(4..).ok_or(Sense::parameter_length())?;
    if descriptors.len() % 4 != 0 {
        return Err(Sense::parameter_length());
    }
    let mut wanted = None;
    for (descriptor, at) in descriptors.chunks_exact(4).zip((4_u16..).step_by(4)) {
        if wanted.is_some() || be16(descriptor, 2) != GROUP {
            return Err(Sense::parameter_field(at + 2, None));
        }
        let state = AccessState::from_code(byte(descriptor, 0) & 0x0f);
        wanted = Some(state.ok_or(Sense::parameter_field(at, Some(3)))?);
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests;
