//! What the tests of this crate and the fuzz targets have in common: PDUs as bytes, both ways.

use std::sync::Arc;

use scsi::medium::{HeapLease, Lease as _};

use crate::parameters::{Operational, Parameters, SessionProof, SessionPurpose};
use crate::pdu_sink::PduSink;
use crate::target::{
    Endpoints, InitiatorPort, IserPortals, NodeAccess, TargetConfig, TargetLimits, TargetNode,
};
use crate::wire::bhs::Bhs;
#[cfg(test)]
use crate::wire::bhs::Ttt;
use crate::wire::framer::{Framer, PduPiece, crc32c, crc32c_padded};

/// Bytes in the order in which they would leave, up to a limit a batch.
#[derive(Debug, Default)]
pub struct Sink {
    /// What was sent since it was last taken.
    pub bytes: Vec<u8>,
    copy: Vec<u8>,
    /// After so many bytes the batch is full; 0: never.
    pub limit: usize,
}

impl PduSink<HeapLease> for Sink {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy.resize(data.len(), 0);
        data.copy_out(0, &mut self.copy);
        self.bytes.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        self.limit > 0 && self.bytes.len() >= self.limit
    }
}

/// The bytes of a PDU, with the digests that were agreed upon for its header and its data.
pub fn pdu(mut bhs: Bhs, ahs: &[u8], data: &[u8], digests: (bool, bool)) -> Vec<u8> {
    bhs.set_ahs_len(ahs.len());
    bhs.set_data_len(data.len() as u32);
    let mut bytes = [&bhs.0[..], ahs].concat();
    if digests.0 {
        bytes.extend(crc32c(&bytes));
    }
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    if digests.1 && !data.is_empty() {
        bytes.extend(crc32c_padded(data));
    }
    bytes
}

/// Header and data of each PDU in a stream that nothing is wrong with.
pub fn pdus(framer: &mut Framer, bytes: &[u8]) -> Vec<(Bhs, Vec<u8>)> {
    let mut pdus: Vec<(Bhs, Vec<u8>)> = Vec::new();
    let mut rest = bytes;
    while let Some(piece) = framer.next(&mut rest).expect("PDUs that can be read") {
        match piece {
            PduPiece::Header(bhs) => pdus.push((bhs, Vec::new())),
            PduPiece::Data { bytes, .. } => {
                let (_, data) = pdus.last_mut().expect("data has a header");
                data.extend_from_slice(bytes);
            }
            PduPiece::BadData => panic!("a data digest that is wrong"),
        }
    }
    assert!(framer.is_between(), "a part of a PDU leaves");
    pdus
}

/// The bytes of a text that has blanks in place of nulls.
pub fn nulls(text: &str) -> Vec<u8> {
    text.replace(' ', "\0").into_bytes()
}

/// The bytes of a lease.
pub fn bytes_of(lease: &HeapLease) -> Vec<u8> {
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

/// Bytes that tell their place.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + at) as u8).collect()
}

/// The target that sessions are with.
pub const TARGET: &str = "iqn.2026-11.org.lunar:test";

/// A target that is open to everybody.
pub fn node() -> Arc<TargetNode> {
    Arc::new(TargetNode::new(TARGET.into(), NodeAccess::default()))
}

/// A portal with nothing but [`node`].
pub fn config(limits: TargetLimits) -> Arc<TargetConfig> {
    Arc::new(TargetConfig {
        nodes: vec![node()],
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits,
    })
}

/// What a login ended with, and the StatSN and CmdSN that come next.
pub fn parameters(
    keys: Operational,
    purpose: SessionPurpose,
    (stat_sn, exp_cmd_sn): (u32, u32),
) -> Parameters {
    let local = ([192, 0, 2, 1], 3260).into();
    Parameters {
        initiator: InitiatorPort {
            name: "iqn.2026-11.org.lunar:initiator".into(),
            isid: [0x80, 0, 0, 0, 0, 1],
        },
        initiator_alias: None,
        user: None,
        proof: SessionProof::None,
        purpose,
        portal_group: 1,
        tsih: 1,
        cid: 7,
        endpoints: Endpoints { local, peer: local },
        stat_sn,
        exp_cmd_sn,
        keys,
    }
}

/// Limits that are the default, written out.
pub fn limits() -> TargetLimits {
    TargetLimits {
        first_burst: 65_536,
        max_burst: 262_144,
        outstanding_r2t: 4,
        window: 128,
        held_bytes: 65_536,
        ..TargetLimits::default()
    }
}

/// A flag in a trace.
#[cfg(test)]
pub(crate) fn flag(set: bool, text: &'static str) -> &'static str {
    if set { text } else { "" }
}

/// A Target Transfer Tag in a trace.
#[cfg(test)]
pub(crate) fn ttt(ttt: Ttt) -> String {
    if ttt == Ttt::NONE {
        String::new()
    } else {
        format!(" ttt={:x}", ttt.0)
    }
}
