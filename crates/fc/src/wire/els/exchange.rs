//! RRQ, REC and SRR: what is said about an exchange.

use crate::wire::frame::{OxId, RCtl, RxId};
use crate::wire::names::FcId;
use crate::wire::reader::{ByteReader, Truncated};

/// Which exchange RRQ or REC is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeName {
    /// Its originator.
    pub originator: FcId,
    /// The originator's name for it.
    pub ox_id: OxId,
    /// The responder's name for it, or [`RxId::UNASSIGNED`].
    pub rx_id: RxId,
}

record!(ExchangeName: originator, ox_id, rx_id);

/// What is known about an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecAccept {
    /// The originator's name for it.
    pub ox_id: OxId,
    /// The responder's name for it.
    pub rx_id: RxId,
    /// Its originator.
    pub originator: FcId,
    /// Its responder.
    pub responder: FcId,
    /// FC4VALUE; of FCP: bytes of data that the answering port received, or sent.
    pub transferred: u32,
    /// Exchange status.
    pub status: ExchangeStatus,
}

/// Exchange status, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExchangeStatus(pub u32);

impl ExchangeStatus {
    /// The sender of the answer is the responder of the exchange.
    pub const RESPONDER: Self = Self(1 << 31);
    /// The sender of the answer holds sequence initiative.
    pub const INITIATIVE: Self = Self(1 << 30);
    /// The exchange is complete.
    pub const COMPLETE: Self = Self(1 << 29);
}

bit_set!(ExchangeStatus);

record!(RecAccept: ox_id, rx_id, originator, responder, transferred, status);

/// FCP-4: which information unit is to be sent again, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Srr {
    /// The originator's name for the exchange.
    pub ox_id: OxId,
    /// The responder's name for it.
    pub rx_id: RxId,
    /// From which byte of the data on.
    pub offset: u32,
    /// What kind of information unit: data, FCP_XFER_RDY or FCP_RSP.
    pub unit: RCtl,
}

impl Srr {
    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        let srr = Self {
            ox_id: OxId(reader.u16()?),
            rx_id: RxId(reader.u16()?),
            offset: reader.u32()?,
            unit: RCtl(reader.u8()?),
        };
        reader.skip(3)?;
        Ok(srr)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ox_id.0.to_be_bytes());
        out.extend_from_slice(&self.rx_id.0.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&[self.unit.0, 0, 0, 0]);
    }
}
