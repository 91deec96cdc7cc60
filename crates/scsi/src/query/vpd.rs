//! Vital product data pages (SPC-5 §7.7, SBC-4 §6.6).

use super::inquiry::peripheral;
use crate::alua;
use crate::commands::Query;
use crate::limits;
use crate::medium::SanitizeKind;
use crate::nexus::TargetPort;
use crate::unit::UnitState;
use crate::wire::designator::{Association, Designator};

/// The page, whole; `None` where it is not supported. Where there is no unit, only the list of
/// pages is, and it lists itself.
pub(super) fn page(query: &Query<'_>, code: u8) -> Option<Vec<u8>> {
    let body = match (code, query.unit) {
        (0x00, Some(_)) => PAGES.iter().map(|page| page.0).collect(),
        (0x00, None) => vec![0x00],
        (_, Some(unit)) => {
            let (_, body) = PAGES.iter().find(|page| page.0 == code)?;
            body(unit, query)
        }
        (_, None) => return None,
    };
    let [high, low] = (body.len() as u16).to_be_bytes();
    let mut page = vec![peripheral(query), code, high, low];
    page.extend(body);
    Some(page)
}

type Body = fn(&UnitState, &Query<'_>) -> Vec<u8>;

/// What follows the header of each page, in the order of their codes.
const PAGES: &[(u8, Body)] = &[
    (0x00, |_, _| Vec::new()),
    (0x80, |unit, _| unit.identity.serial.clone().into_bytes()),
    (0x83, device_identification),
    (0x85, |_, _| Vec::new()),
    (0x86, extended_inquiry),
    (0x87, |_, _| EVERY_PAGE_SHARED.to_vec()),
    (0x88, scsi_ports),
    (0x8f, |_, _| third_party_copy()),
    (0xb0, |unit, _| block_limits(unit)),
    (0xb1, |unit, _| block_device_characteristics(unit)),
    (0xb2, |unit, _| logical_block_provisioning(unit)),
];

/// Mode page policy: all pages and subpages are shared by all nexuses.
const EVERY_PAGE_SHARED: [u8; 4] = [0x3f, 0xff, 0x00, 0];

fn device_identification(unit: &UnitState, query: &Query<'_>) -> Vec<u8> {
    let identity = &unit.identity;
    let target = &query.nexus.target;
    let vendor = [
        &super::ascii::<8>(&identity.vendor)[..],
        identity.serial.as_bytes(),
    ];
    let port = query.nexus.identity.port;
    let named =
        |designator: Designator<'_>, association| designator.encode(association, target.protocol);
    let name_of_port = target.ports.iter().find(|one| one.relative_id == port);
    [
        named(Designator::Naa(&identity.naa), Association::LogicalUnit),
        named(
            Designator::T10Vendor(&vendor.concat()),
            Association::LogicalUnit,
        ),
        named(
            Designator::RelativeTargetPort(port),
            Association::TargetPort,
        ),
        named(
            Designator::TargetPortGroup(alua::GROUP),
            Association::TargetPort,
        ),
        name_of_port
            .map(|port| port.designators.clone())
            .unwrap_or_default(),
        target.designators.clone(),
    ]
    .concat()
}

fn extended_inquiry(unit: &UnitState, _: &Query<'_>) -> Vec<u8> {
    let mut page = vec![0; 60];
    page[1] = HEADSUP | ORDSUP | SIMPSUP;
    page[2] = if unit.traits.write_cache { V_SUP } else { 0 };
    page[9] = MAX_SENSE_BYTES;
    page
}

const HEADSUP: u8 = 0x04;
const ORDSUP: u8 = 0x02;
const SIMPSUP: u8 = 0x01;
const V_SUP: u8 = 0x01;

/// MAXIMUM SUPPORTED SENSE DATA LENGTH: a header and one of each descriptor that is used.
const MAX_SENSE_BYTES: u8 = 40;

fn scsi_ports(_: &UnitState, query: &Query<'_>) -> Vec<u8> {
    let descriptor = |port: &TargetPort| {
        let [high, low] = port.relative_id.to_be_bytes();
        let mut descriptor = vec![0, 0, high, low, 0, 0, 0, 0, 0, 0];
        descriptor.extend((port.designators.len() as u16).to_be_bytes());
        descriptor.extend(&port.designators);
        descriptor
    };
    query
        .nexus
        .target
        .ports
        .iter()
        .flat_map(descriptor)
        .collect()
}

/// Third-party copy descriptors (SPC-5 §7.7.18): EXTENDED COPY(LID1) from blocks to blocks, between
/// units that are named by designators.
fn third_party_copy() -> Vec<u8> {
    let parameters = [
        &limits::COPY_CSCDS.to_be_bytes()[..],
        &limits::COPY_SEGMENTS.to_be_bytes(),
        &limits::COPY_LIST_BYTES.to_be_bytes(),
        &[0; 4],
    ];
    let mut general = vec![0; 32];
    general[..4].copy_from_slice(&1u32.to_be_bytes());
    general[4..8].copy_from_slice(&1u32.to_be_bytes());
    general[8..12].copy_from_slice(&limits::COPY_SEGMENT_BYTES.to_be_bytes());
    [
        copy_descriptor(0x0001, &SUPPORTED_COPY_COMMANDS),
        copy_descriptor(
            0x0004,
            &[&[0; 4], &parameters.concat()[..], &[0; 12]].concat(),
        ),
        copy_descriptor(0x0008, &SUPPORTED_COPY_DESCRIPTORS),
        copy_descriptor(0x8001, &general),
    ]
    .concat()
}

/// Bytes in the list, then for each opcode how many service actions follow, and those.
const SUPPORTED_COPY_COMMANDS: [u8; 10] = [9, 0x83, 1, 0x00, 0x84, 4, 0x00, 0x01, 0x03, 0x04];

/// Bytes in the list, then block to block segments, and CSCDs named by a designator.
const SUPPORTED_COPY_DESCRIPTORS: [u8; 3] = [2, 0x02, 0xe4];

fn copy_descriptor(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut descriptor = kind.to_be_bytes().to_vec();
    let len = body.len().next_multiple_of(4);
    descriptor.extend((len as u16).to_be_bytes());
    descriptor.extend(body);
    descriptor.resize(4 + len, 0);
    descriptor
}

fn block_limits(unit: &UnitState) -> Vec<u8> {
    let traits = &unit.traits;
    let mut page = vec![0; 60];
    page[0] = if traits.write_same_to_end { 0 } else { WSNZ };
    page[1] = limits::compare_and_write(traits);
    let mut put = |at: usize, bytes: &[u8]| {
        page[at - 4..at - 4 + bytes.len()].copy_from_slice(bytes);
    };
    put(6, &(1u16 << traits.physical_exponent.min(15)).to_be_bytes());
    put(8, &limits::transfer(traits).to_be_bytes());
    put(12, &limits::optimal_transfer(traits).to_be_bytes());
    put(16, &limits::prefetch(traits).to_be_bytes());
    if let Some(granularity) = traits.unmap_granularity {
        put(20, &limits::unmap(traits).to_be_bytes());
        put(24, &limits::UNMAP_DESCRIPTORS.to_be_bytes());
        put(28, &granularity.to_be_bytes());
        put(32, &UGAVALID.to_be_bytes());
    }
    put(36, &u64::from(limits::write_same(traits)).to_be_bytes());
    if let Some(atomic) = traits.atomic {
        put(44, &limits::atomic(traits).to_be_bytes());
        put(48, &atomic.alignment.to_be_bytes());
        put(52, &atomic.granularity.to_be_bytes());
    }
    page
}

const WSNZ: u8 = 0x01;

/// The unmap granules begin at block 0.
const UGAVALID: u32 = 0x8000_0000;

fn block_device_characteristics(unit: &UnitState) -> Vec<u8> {
    let mut page = vec![0; 60];
    page[1] = u8::from(unit.traits.solid_state);
    if unit.traits.sanitize.contains(&SanitizeKind::BlockErase) {
        page[3] = WABEREQ_READABLE;
    }
    page
}

/// WABEREQ: blocks can be read after a block erase without being written before.
const WABEREQ_READABLE: u8 = 0b01 << 6;

/// A unit that cannot unmap is fully provisioned: no bit is set.
fn logical_block_provisioning(unit: &UnitState) -> Vec<u8> {
    let traits = &unit.traits;
    if traits.unmap_granularity.is_none() {
        return vec![0; 4];
    }
    let anchor = if traits.anchor { ANC_SUP } else { 0 };
    let flags = LBPU | LBPWS | LBPWS10 | LBPRZ | anchor;
    let exponent = match unit.statistics.usage() {
        Some(_) => limits::threshold_exponent(traits),
        None => 0,
    };
    vec![exponent, flags, THIN, 0]
}

const LBPU: u8 = 0x80;
const LBPWS: u8 = 0x40;
const LBPWS10: u8 = 0x20;
const LBPRZ: u8 = 0x04;
const ANC_SUP: u8 = 0x02;
const THIN: u8 = 0x02;
