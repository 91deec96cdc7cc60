//! Sequences that are longer than usual.

use scsi::medium::{HeapLease, Lease};

use crate::exchange::data::DataSequence;
use crate::frames::FrameSink;
use crate::remote::{Fcp, FcpPeer};
use crate::tests::pair::{decode, peer};
use crate::wire::fcoe::Sof;
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};

/// Notes how frames begin.
#[derive(Default)]
struct Starts {
    bytes: Vec<u8>,
    starts: Vec<(Sof, u16)>,
}

impl FrameSink for Starts {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.bytes.resize(len, 0);
        Some(&mut self.bytes)
    }

    fn commit(&mut self, len: usize) {
        let frame = decode(&self.bytes[..len]);
        self.starts.push((frame.sof, frame.header.seq_cnt));
    }
}

#[test]
fn a_sequence_begins_once_though_its_count_wraps() {
    let peer = FcpPeer {
        payload_max: 256,
        ..peer(1, 2, Fcp::default())
    };
    let header = peer.header(RCtl::SOLICITED_DATA, FrameType::FCP, OxId(1), RxId(1));
    let len = 256 * ((1 << 16) + 2);
    let mut sequence = DataSequence::new(HeapLease::from_bytes(vec![0; len]), 0, 0);
    let mut out = Starts::default();
    assert!(sequence.send(&mut out, &peer, &header, FCtl::END_SEQUENCE));
    assert_eq!(out.starts.len(), (1 << 16) + 2);
    assert_eq!(out.starts[0], (Sof::I3, 0));
    assert_eq!(out.starts[1 << 16], (Sof::N3, 0));
    let begins = out.starts.iter().filter(|start| start.0 == Sof::I3);
    assert_eq!(begins.count(), 1);
}
