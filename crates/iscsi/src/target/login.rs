//! The login keys of one target node, where they differ from the server's own choice.

use super::TargetLimits;
use crate::keys::LoginKey;
use crate::parameters::Operational;

#[cfg(test)]
mod tests;

/// The values that a node chooses in negotiation (RFC 7143 §13); `None`: the server's own. They
/// hold for normal sessions. A login that would leave a key at another value than the node allows,
/// because the initiator did not negotiate it, is asked for it, and fails if it does not agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLogin {
    /// HeaderDigest: CRC32C only, or None only; `None`: the initiator chooses.
    pub header_digest: Option<bool>,
    /// DataDigest, in the same way.
    pub data_digest: Option<bool>,
    /// InitialR2T.
    pub initial_r2t: Option<bool>,
    /// ImmediateData.
    pub immediate_data: Option<bool>,
    /// MaxRecvDataSegmentLength that is declared, in bytes.
    pub data_segment: Option<u32>,
    /// MaxBurstLength, in bytes.
    pub max_burst: Option<u32>,
    /// FirstBurstLength, in bytes.
    pub first_burst: Option<u32>,
    /// DefaultTime2Wait, in seconds.
    pub time2wait: Option<u16>,
    /// MaxOutstandingR2T.
    pub outstanding_r2t: Option<u16>,
    /// DataPDUInOrder.
    pub pdu_in_order: Option<bool>,
    /// DataSequenceInOrder.
    pub sequence_in_order: Option<bool>,
    /// Sessions with the node, at once.
    pub sessions: Option<u32>,
}

impl NodeLogin {
    /// The longest MaxRecvDataSegmentLength. A data segment that is not a command's is held as a
    /// whole, and so is one that has a digest.
    pub const MOST_DATA_SEGMENT: u32 = 1 << 20;

    /// The most R2Ts of one command at once. After an abort the session remembers each until its
    /// data has come: 512 KiB for a whole window.
    pub const MOST_OUTSTANDING_R2T: u16 = 256;

    /// [`TargetLimits::preferences`] with the values of the node in their place.
    #[must_use]
    pub fn preferences(&self, limits: &TargetLimits) -> Operational {
        let ours = TargetLimits {
            data_segment: self.data_segment.unwrap_or(limits.data_segment),
            first_burst: self.first_burst.unwrap_or(limits.first_burst),
            max_burst: self.max_burst.unwrap_or(limits.max_burst),
            outstanding_r2t: self.outstanding_r2t.unwrap_or(limits.outstanding_r2t),
            ..*limits
        }
        .preferences();
        Operational {
            header_digest: self.header_digest.unwrap_or(ours.header_digest),
            data_digest: self.data_digest.unwrap_or(ours.data_digest),
            initial_r2t: self.initial_r2t.unwrap_or(ours.initial_r2t),
            immediate_data: self.immediate_data.unwrap_or(ours.immediate_data),
            time2wait: self.time2wait.unwrap_or(ours.time2wait),
            pdu_in_order: self.pdu_in_order.unwrap_or(ours.pdu_in_order),
            sequence_in_order: self.sequence_in_order.unwrap_or(ours.sequence_in_order),
            ..ours
        }
    }

    /// Whether the node has a value of its own for a negotiated key.
    #[must_use]
    pub const fn sets(&self, key: LoginKey) -> bool {
        match key {
            LoginKey::HeaderDigest => self.header_digest.is_some(),
            LoginKey::DataDigest => self.data_digest.is_some(),
            LoginKey::InitialR2T => self.initial_r2t.is_some(),
            LoginKey::ImmediateData => self.immediate_data.is_some(),
            LoginKey::MaxBurstLength => self.max_burst.is_some(),
            LoginKey::FirstBurstLength => self.first_burst.is_some(),
            LoginKey::DefaultTime2Wait => self.time2wait.is_some(),
            LoginKey::MaxOutstandingR2T => self.outstanding_r2t.is_some(),
            LoginKey::DataPduInOrder => self.pdu_in_order.is_some(),
            LoginKey::DataSequenceInOrder => self.sequence_in_order.is_some(),
            _ => false,
        }
    }
}
