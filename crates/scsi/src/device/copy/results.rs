//! RECEIVE COPY RESULTS (SPC-4 §6.24 ff.).

use super::list;
use crate::limits;
use crate::wire::sense::Sense;

/// What became of an EXTENDED COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) struct CopyRecord {
    pub(super) id: u8,
    pub(super) state: CopyState,
    /// Segments that were looked at.
    pub(super) segments: u16,
    pub(super) bytes: u64,
}

/// COPY MANAGER STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyState {
    InProgress = 0x00,
    Done = 0x01,
    Failed = 0x02,
}

/// How many copies of a nexus are remembered.
pub(super) const RECORDS: usize = 8;

const COPY_STATUS: u8 = 0x00;
const OPERATING_PARAMETERS: u8 = 0x03;
const FAILED_SEGMENT_DETAILS: u8 = 0x04;

/// Answers RECEIVE COPY RESULTS from what is known of the copies of the nexus.
pub(super) fn answer(
    action: u8,
    id: u8,
    record: impl Fn(u8) -> Option<CopyRecord>,
) -> Result<Vec<u8>, Sense> {
    let unknown = Sense::cdb_field(2, None);
    match action {
        OPERATING_PARAMETERS => Ok(operating_parameters()),
        COPY_STATUS => record(id).map(|record| copy_status(&record)).ok_or(unknown),
        // What failed was told with the status; no details are held.
        FAILED_SEGMENT_DETAILS => record(id).map(|_| vec![0; 4]).ok_or(unknown),
        // No segment type holds data.
        _ => Err(unknown),
    }
}

fn copy_status(record: &CopyRecord) -> Vec<u8> {
    let mut data = vec![0; 12];
    data[3] = 8;
    data[4] = record.state as u8;
    data[5..7].copy_from_slice(&record.segments.to_be_bytes());
    // TRANSFER COUNT UNITS 1: KiB.
    data[7] = 1;
    data[8..].copy_from_slice(&((record.bytes >> 10) as u32).to_be_bytes());
    data
}

fn operating_parameters() -> Vec<u8> {
    let mut data = vec![0; 44];
    // SNLID: a copy need not have a list identifier.
    data[4] = 0x01;
    data[8..10].copy_from_slice(&limits::COPY_CSCDS.to_be_bytes());
    data[10..12].copy_from_slice(&limits::COPY_SEGMENTS.to_be_bytes());
    data[12..16].copy_from_slice(&limits::COPY_LIST_BYTES.to_be_bytes());
    data[16..20].copy_from_slice(&limits::COPY_SEGMENT_BYTES.to_be_bytes());
    // TOTAL CONCURRENT COPIES and MAXIMUM CONCURRENT COPIES are what the task set lets in; their
    // fields hold less.
    data[34..36].copy_from_slice(&u16::from(u8::MAX).to_be_bytes());
    data[36] = u8::MAX;
    // DATA SEGMENT GRANULARITY: a block of 512 bytes, as a power of two.
    data[37] = 9;
    data[43] = 2;
    data.extend([list::BLOCK_TO_BLOCK, list::IDENTIFICATION]);
    let available = data.len() as u32 - 4;
    data[..4].copy_from_slice(&available.to_be_bytes());
    data
}
