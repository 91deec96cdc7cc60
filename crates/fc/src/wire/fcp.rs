//! FCP-4 clause 9: information units. FCP_DATA is nothing but data, and FCP_CONF is nothing at all.

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::reader::{ByteReader, Truncated};

/// FCP_CMND: a command, or a task management function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cmnd<'a> {
    /// Logical unit.
    pub lun: Lun,
    /// Command reference number; 0 is none.
    pub crn: u8,
    /// Command priority, 4 bits; 0 is none.
    pub priority: u8,
    /// Task attribute: [`SIMPLE`], [`HEAD_OF_QUEUE`], [`ORDERED`], [`ACA`].
    pub attribute: u8,
    /// Task management functions, at most one bit; with one there is no command.
    pub management: ManagementFlags,
    /// Data to the initiator.
    pub read: bool,
    /// Data from the initiator.
    pub write: bool,
    /// The CDB and what pads it: 16 bytes or more, up to 268, always a multiple of 4.
    pub cdb: &'a [u8],
    /// FCP_DL: bytes to be moved; of a bidirectional command, from the initiator.
    pub data_len: u32,
    /// Bytes to be moved to the initiator by a bidirectional command.
    pub read_len: Option<u32>,
}

impl<'a> Cmnd<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short for its CDB.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Truncated> {
        let mut reader = ByteReader(payload);
        let lun = Lun(reader.array()?);
        let [crn, task, management, lengths] = reader.array()?;
        let (read, write) = (lengths & READ != 0, lengths & WRITE != 0);
        let cdb = reader.take(CDB_LEN + usize::from(lengths & !(READ | WRITE)))?;
        let data_len = reader.u32()?;
        let read_len = if read && write {
            Some(reader.u32()?)
        } else {
            None
        };
        Ok(Self {
            lun,
            crn,
            priority: task >> 3 & 0x0f,
            attribute: task & 0x07,
            management: ManagementFlags(management),
            read,
            write,
            cdb,
            data_len,
            read_len,
        })
    }

    /// Bytes of the payload.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> usize {
        let read_len = if self.read_len.is_some() { 4 } else { 0 };
        FIXED_LEN + self.cdb.len() + 4 + read_len
    }

    /// Writes the payload, which has [`Self::len`] bytes.
    pub fn put(&self, payload: &mut [u8]) {
        debug_assert!(self.cdb.len() >= CDB_LEN && self.cdb.len().is_multiple_of(4));
        let (fixed, rest) = payload.split_at_mut(FIXED_LEN);
        let directions = bit(READ, self.read) | bit(WRITE, self.write);
        fixed[..8].copy_from_slice(&self.lun.0);
        fixed[8] = self.crn;
        fixed[9] = (self.priority & 0x0f) << 3 | self.attribute & 0x07;
        fixed[10] = self.management.0;
        fixed[11] = (self.cdb.len() - CDB_LEN) as u8 | directions;
        let (cdb, lengths) = rest.split_at_mut(self.cdb.len());
        cdb.copy_from_slice(self.cdb);
        lengths[..4].copy_from_slice(&self.data_len.to_be_bytes());
        if let Some(read_len) = self.read_len {
            lengths[4..].copy_from_slice(&read_len.to_be_bytes());
        }
    }
}

/// Task attribute: SIMPLE.
pub const SIMPLE: u8 = 0;
/// Task attribute: HEAD OF QUEUE.
pub const HEAD_OF_QUEUE: u8 = 1;
/// Task attribute: ORDERED.
pub const ORDERED: u8 = 2;
/// Task attribute: ACA.
pub const ACA: u8 = 4;

/// Task management flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagementFlags(pub u8);

impl ManagementFlags {
    /// A command, no task management.
    pub const NONE: Self = Self(0);
    /// ABORT TASK SET.
    pub const ABORT_TASK_SET: Self = Self(0x02);
    /// QUERY TASK SET.
    pub const QUERY_TASK_SET: Self = Self(0x01);
    /// QUERY ASYNCHRONOUS EVENT.
    pub const QUERY_ASYNCHRONOUS_EVENT: Self = Self(0x08);
    /// CLEAR TASK SET.
    pub const CLEAR_TASK_SET: Self = Self(0x04);
    /// LOGICAL UNIT RESET.
    pub const LOGICAL_UNIT_RESET: Self = Self(0x10);
    /// TARGET RESET, obsolete.
    pub const TARGET_RESET: Self = Self(0x20);
    /// CLEAR ACA.
    pub const CLEAR_ACA: Self = Self(0x40);
}

/// FCP_XFER_RDY: data from the initiator is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XferRdy {
    /// FCP_DATA_RO: where it begins in the data of the command, in bytes.
    pub offset: u32,
    /// FCP_BURST_LEN: how many bytes.
    pub burst: u32,
}

impl XferRdy {
    /// Bytes of the payload.
    pub const LEN: usize = 12;

    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short.
    pub fn parse(payload: &[u8]) -> Result<Self, Truncated> {
        let mut reader = ByteReader(payload);
        let (offset, burst) = (reader.u32()?, reader.u32()?);
        reader.skip(4)?;
        Ok(Self { offset, burst })
    }

    /// Writes the payload.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.offset.to_be_bytes();
        let [e, f, g, h] = self.burst.to_be_bytes();
        [a, b, c, d, e, f, g, h, 0, 0, 0, 0]
    }
}

/// FCP_RSP: the end of a command or task management function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rsp<'a> {
    /// Status qualifier, or retry delay timer; 0 is none.
    pub qualifier: u16,
    /// FCP_CONF is asked for.
    pub confirm: bool,
    /// SCSI status.
    pub status: u8,
    /// What was moved, against what was announced.
    pub residual: Residual,
    /// RSP_CODE, if there is response information: what became of task management, or what was
    /// wrong with the command as an information unit. See [`response`].
    pub response: Option<u8>,
    /// ADDITIONAL RESPONSE INFORMATION of a function that succeeded, which goes with RSP_CODE; of
    /// all but QUERY ASYNCHRONOUS EVENT zeros.
    pub information: [u8; 3],
    /// Sense data.
    pub sense: &'a [u8],
}

impl<'a> Rsp<'a> {
    /// Reads a payload. One that ends before its lengths is taken as one without residual, sense
    /// data and response information, as early targets send it (FCP-3 clause 9.5).
    ///
    /// # Errors
    /// It is too short for its lengths, or its response information is of no length that there is.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Truncated> {
        let mut reader = ByteReader(payload);
        reader.skip(8)?;
        let qualifier = reader.u16()?;
        let [flags, status] = reader.array()?;
        let mut rsp = Self {
            qualifier,
            confirm: flags & CONFIRM != 0,
            status,
            residual: Residual::Exact,
            response: None,
            information: [0; 3],
            sense: &[],
        };
        if reader.0.is_empty() && flags & (OVER | UNDER | SENSE | RESPONSE) == 0 {
            return Ok(rsp);
        }
        let (count, sense_len, response_len) = (reader.u32()?, reader.u32()?, reader.u32()?);
        rsp.residual = Residual::from_flags(flags & OVER != 0, flags & UNDER != 0, count);
        if flags & RESPONSE != 0 {
            match reader.take(response_len as usize)? {
                [] => {}
                [a, b, c, code] | [a, b, c, code, _, _, _, _] => {
                    (rsp.response, rsp.information) = (Some(*code), [*a, *b, *c]);
                }
                _ => return Err(Truncated),
            }
        }
        if flags & SENSE != 0 {
            rsp.sense = reader.take(sense_len as usize)?;
        }
        Ok(rsp)
    }

    /// Bytes of the payload.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> usize {
        let response = if self.response.is_some() {
            RESPONSE_LEN
        } else {
            0
        };
        RSP_LEN + response + self.sense.len()
    }

    /// Writes the payload, which has [`Self::len`] bytes.
    pub fn put(&self, payload: &mut [u8]) {
        payload.fill(0);
        let (flag, count) = (self.residual.flag(OVER, UNDER), self.residual.count());
        let (sensed, informed) = (!self.sense.is_empty(), self.response.is_some());
        payload[8..10].copy_from_slice(&self.qualifier.to_be_bytes());
        payload[10] =
            flag | bit(CONFIRM, self.confirm) | bit(SENSE, sensed) | bit(RESPONSE, informed);
        payload[11] = self.status;
        payload[12..16].copy_from_slice(&count.to_be_bytes());
        payload[16..20].copy_from_slice(&(self.sense.len() as u32).to_be_bytes());
        let mut rest = &mut payload[20..];
        if let Some(code) = self.response {
            rest[3] = RESPONSE_LEN as u8;
            rest[4..7].copy_from_slice(&self.information);
            rest[7] = code;
            rest = &mut rest[RESPONSE_LEN..];
        }
        rest[4..].copy_from_slice(self.sense);
    }
}

/// RSP_CODE.
pub mod response {
    /// Task management function complete.
    pub const COMPLETE: u8 = 0x00;
    /// FCP_CMND fields invalid.
    pub const FIELDS_INVALID: u8 = 0x02;
    /// Task management function rejected.
    pub const REJECTED: u8 = 0x04;
    /// Task management function failed.
    pub const FAILED: u8 = 0x05;
    /// Task management function succeeded.
    pub const SUCCEEDED: u8 = 0x08;
    /// Incorrect logical unit number.
    pub const INCORRECT_LUN: u8 = 0x09;
}

/// `mask`, if it is to be set.
const fn bit(mask: u8, set: bool) -> u8 {
    if set { mask } else { 0 }
}

/// Bytes of FCP_CMND before the CDB.
const FIXED_LEN: usize = 12;
/// Bytes of the shortest CDB.
const CDB_LEN: usize = 16;
/// RDDATA.
const READ: u8 = 0x02;
/// WRDATA.
const WRITE: u8 = 0x01;
/// Bytes of FCP_RSP without response information and sense data.
const RSP_LEN: usize = 24;
/// Bytes of response information.
const RESPONSE_LEN: usize = 8;
/// FCP_CONF_REQ.
const CONFIRM: u8 = 0x10;
/// FCP_RESID_UNDER.
const UNDER: u8 = 0x08;
/// FCP_RESID_OVER.
const OVER: u8 = 0x04;
/// FCP_SNS_LEN_VALID.
const SENSE: u8 = 0x02;
/// FCP_RSP_LEN_VALID.
const RESPONSE: u8 = 0x01;
