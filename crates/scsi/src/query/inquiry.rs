//! INQUIRY (SPC-5 §6.7).

use super::{ascii, vpd};
use crate::alua;
use crate::commands::{Query, QueryResult};
use crate::wire::cdb::{bit, byte};
use crate::wire::lun::WELL_KNOWN_REPORT_LUNS;
use crate::wire::sense::Sense;

/// INQUIRY. Where the LUN names no unit, the answer says so by PERIPHERAL QUALIFIER 011b and
/// PERIPHERAL DEVICE TYPE 1Fh.
#[must_use]
pub fn inquiry(query: &Query<'_>) -> QueryResult {
    let page = byte(query.cdb, 2);
    let data = match (bit(query.cdb, 1, EVPD), page) {
        (true, page) => vpd::page(query, page),
        (false, 0) => Some(standard(query)),
        (false, _) => None,
    };
    match data {
        Some(data) => QueryResult::Data(data),
        None => Sense::cdb_field(2, None).into(),
    }
}

/// PERIPHERAL QUALIFIER and PERIPHERAL DEVICE TYPE: a direct access block device, a well known
/// logical unit, or none.
pub(super) fn peripheral(query: &Query<'_>) -> u8 {
    match query.unit {
        Some(_) => 0x00,
        None if query.lun == WELL_KNOWN_REPORT_LUNS => 0x1e,
        None => 0x7f,
    }
}

fn standard(query: &Query<'_>) -> Vec<u8> {
    let target = &query.nexus.target;
    let mut data = vec![0; STANDARD_LEN];
    data[0] = peripheral(query);
    data[2] = SPC4;
    data[3] = HISUP | RESPONSE_DATA_FORMAT;
    data[4] = (STANDARD_LEN - 5) as u8;
    data[5] = alua::TPGS << 4 | THIRD_PARTY_COPY;
    data[6] = if target.ports.len() > 1 { MULTIP } else { 0 };
    data[7] = CMDQUE;
    data[8..36].fill(b' ');
    if let Some(unit) = query.unit {
        let identity = &unit.identity;
        data[1] = if identity.removable { RMB } else { 0 };
        data[8..16].copy_from_slice(&ascii::<8>(&identity.vendor));
        data[16..32].copy_from_slice(&ascii::<16>(&identity.product));
        data[32..36].copy_from_slice(&ascii::<4>(&identity.revision));
    }
    let versions = VERSIONS.iter().chain(&target.versions);
    for (to, version) in data[58..74].chunks_exact_mut(2).zip(versions) {
        to.copy_from_slice(&version.to_be_bytes());
    }
    data
}

const STANDARD_LEN: usize = 96;
const EVPD: u8 = 0x01;
const RMB: u8 = 0x80;
const HISUP: u8 = 0x10;
const RESPONSE_DATA_FORMAT: u8 = 0x02;
const THIRD_PARTY_COPY: u8 = 0x08;
const MULTIP: u8 = 0x10;
const CMDQUE: u8 = 0x02;

/// VERSION. SPC-5 would be 07h, which libiscsi 1.19 takes for an error; what SPC-5 and SBC-4 add is
/// told by the version descriptors.
const SPC4: u8 = 0x06;

/// SAM-5, SPC-4, SPC-5, SBC-3 and SBC-4, no version claimed; those of the transport follow.
const VERSIONS: [u16; 5] = [0x00a0, 0x0460, 0x05c0, 0x04c0, 0x0600];
