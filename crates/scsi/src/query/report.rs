//! REPORT LUNS (SPC-5 §6.33) and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-5 §6.31).

use super::{NO_UNIT, unit};
use crate::commands::{Query, QueryResult};
use crate::wire::cdb::{bit, byte};
use crate::wire::lun::{Lun, WELL_KNOWN_REPORT_LUNS};
use crate::wire::sense::Sense;

/// REPORT LUNS, of every unit that the nexus sees. It is answered on them, on LUN 0, which need not
/// be one of them, and on the well known unit that is there for nothing else.
#[must_use]
pub fn report_luns(query: &Query<'_>) -> QueryResult {
    let other = query.lun.index() != Some(0) && query.lun != WELL_KNOWN_REPORT_LUNS;
    if query.unit.is_none() && other {
        return NO_UNIT.into();
    }
    let luns = query.nexus.target.luns.iter().map(|(lun, _)| *lun);
    match byte(query.cdb, 2) {
        ALL_BUT_WELL_KNOWN | ALL_BUT_SUBSIDIARY => list(luns),
        ALL => list(luns.chain([WELL_KNOWN_REPORT_LUNS])),
        WELL_KNOWN => list([WELL_KNOWN_REPORT_LUNS].into_iter()),
        ADMINISTRATIVE => list([].into_iter()),
        _ => Sense::cdb_field(2, None).into(),
    }
}

fn list(luns: impl Iterator<Item = Lun>) -> QueryResult {
    let mut data = vec![0; 8];
    data.extend(luns.flat_map(|lun| lun.0));
    let length = (data.len() - 8) as u32;
    data[..4].copy_from_slice(&length.to_be_bytes());
    QueryResult::Data(data)
}

/// SELECT REPORT. There are no conglomerates, so that 12h, which asks for the subsidiaries of the
/// addressed unit, is refused: it has none to ask for.
const ALL_BUT_WELL_KNOWN: u8 = 0x00;
const WELL_KNOWN: u8 = 0x01;
const ALL: u8 = 0x02;
const ADMINISTRATIVE: u8 = 0x10;
const ALL_BUT_SUBSIDIARY: u8 = 0x11;

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS, with timeouts (none specified) where REPD asks for
/// them.
#[must_use]
pub fn report_supported_task_management_functions(query: &Query<'_>) -> QueryResult {
    if let Err(failure) = unit(query) {
        return QueryResult::Fail(failure);
    }
    let mut data = vec![
        ABORT_TASK | ABORT_TASK_SET | CLEAR_TASK_SET | LOGICAL_UNIT_RESET | QUERY_TASK,
        QUERY_ASYNCHRONOUS_EVENT | QUERY_TASK_SET | NEXUS_RESET,
        0,
        0,
    ];
    if bit(query.cdb, 2, REPD) {
        data[3] = 12;
        data.resize(16, 0);
    }
    QueryResult::Data(data)
}

const REPD: u8 = 0x80;

const ABORT_TASK: u8 = 0x80;
const ABORT_TASK_SET: u8 = 0x40;
const CLEAR_TASK_SET: u8 = 0x10;
const LOGICAL_UNIT_RESET: u8 = 0x08;
const QUERY_TASK: u8 = 0x04;

const QUERY_ASYNCHRONOUS_EVENT: u8 = 0x04;
const QUERY_TASK_SET: u8 = 0x02;
const NEXUS_RESET: u8 = 0x01;
