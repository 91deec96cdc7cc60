//! How a connection begins.

mod frames;
mod negotiation;

use super::{EnhancedData, FrameKind, RtrKinds, StartupConfig, StartupFrame};

/// An initiator that takes 128 reads and wants one, as Linux's does.
fn request() -> StartupFrame {
    StartupFrame {
        kind: FrameKind::Request,
        revision: 2,
        markers: false,
        crc: false,
        rejected: false,
        long_fpdus: false,
        enhanced: Some(EnhancedData {
            ird: 128,
            ord: 1,
            peer_to_peer: None,
        }),
        private: vec![0x80, 0, 0, 0],
    }
}

const CONFIG: StartupConfig = StartupConfig {
    crc: false,
    long_fpdus: false,
    ird: 16,
    ord: 32,
};

/// Peer to peer, with these depths.
fn peer_to_peer(ird: u16, ord: u16, rtr: RtrKinds) -> Option<EnhancedData> {
    Some(EnhancedData {
        ird,
        ord,
        peer_to_peer: Some(rtr),
    })
}
