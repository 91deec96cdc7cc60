//! FC-FS-3: basic link services. ABTS has no payload; these are the payloads of its answers.

use super::frame::{OxId, RxId};
use super::reader::{ByteReader, Truncated};

/// BA_ACC: the abort is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaAcc {
    /// The last sequence that was received whole, if that is told.
    pub seq_id: Option<u8>,
    /// The originator's name for the exchange.
    pub ox_id: OxId,
    /// The responder's name for it.
    pub rx_id: RxId,
    /// The frames that are aborted begin at this SEQ_CNT.
    pub low_seq_cnt: u16,
    /// And end at this.
    pub high_seq_cnt: u16,
}

impl BaAcc {
    /// The whole exchange is aborted.
    #[must_use]
    pub const fn exchange(ox_id: OxId, rx_id: RxId) -> Self {
        Self {
            seq_id: None,
            ox_id,
            rx_id,
            low_seq_cnt: 0,
            high_seq_cnt: 0xffff,
        }
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short.
    pub fn parse(payload: &[u8]) -> Result<Self, Truncated> {
        let mut reader = ByteReader(payload);
        let [valid, seq_id, _, _] = reader.array()?;
        Ok(Self {
            seq_id: (valid == SEQ_ID_VALID).then_some(seq_id),
            ox_id: OxId(reader.u16()?),
            rx_id: RxId(reader.u16()?),
            low_seq_cnt: reader.u16()?,
            high_seq_cnt: reader.u16()?,
        })
    }

    /// Writes the payload.
    #[must_use]
    pub fn encode(&self) -> [u8; 12] {
        let valid = self.seq_id.map_or(0, |_| SEQ_ID_VALID);
        let [o0, o1] = self.ox_id.0.to_be_bytes();
        let [r0, r1] = self.rx_id.0.to_be_bytes();
        let [l0, l1] = self.low_seq_cnt.to_be_bytes();
        let [h0, h1] = self.high_seq_cnt.to_be_bytes();
        let seq_id = self.seq_id.unwrap_or(0);
        [valid, seq_id, 0, 0, o0, o1, r0, r1, l0, l1, h0, h1]
    }
}

/// BA_RJT: why a basic link service was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaRjt {
    /// [`Self::LOGICAL_ERROR`] and others, as LS_RJT has them.
    pub reason: u8,
    /// [`Self::INVALID_OX_RX_ID`] and others.
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}

impl BaRjt {
    /// Reason: logical error.
    pub const LOGICAL_ERROR: u8 = 0x03;
    /// Reason: unable to perform the command.
    pub const UNABLE: u8 = 0x09;
    /// Explanation: no such combination of OX_ID and RX_ID.
    pub const INVALID_OX_RX_ID: u8 = 0x03;

    /// There is no exchange of these names.
    pub const UNKNOWN: Self = Self {
        reason: Self::LOGICAL_ERROR,
        explanation: Self::INVALID_OX_RX_ID,
        vendor: 0,
    };

    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short.
    pub fn parse(payload: &[u8]) -> Result<Self, Truncated> {
        let [_, reason, explanation, vendor] = ByteReader(payload).array()?;
        Ok(Self {
            reason,
            explanation,
            vendor,
        })
    }

    /// Writes the payload.
    #[must_use]
    pub const fn encode(&self) -> [u8; 4] {
        [0, self.reason, self.explanation, self.vendor]
    }
}

/// SEQ_ID validity.
const SEQ_ID_VALID: u8 = 0x80;
