//! FCoE frames of the services on their way out of a port.

use std::collections::VecDeque;

use super::SwitchPortConfig;
use super::servers::ServerFrame;
use crate::frames::{self, FrameSink};
use crate::wire::ethernet::{self, EthernetHeader, Mac};

/// Oldest first, each with the header that it goes out with.
#[derive(Debug, Default)]
pub(super) struct OutgoingFrames(VecDeque<(EthernetHeader, ServerFrame)>);

impl OutgoingFrames {
    /// One more to this VN_Port. What does not fit is lost, as it could be on the Ethernet.
    pub(super) fn push(&mut self, port: &SwitchPortConfig, dst: Mac, frame: ServerFrame) {
        let header = EthernetHeader {
            vlan: port.tag,
            ..EthernetHeader::new(port.mac, dst, ethernet::FCOE)
        };
        if self.0.len() < QUEUE {
            self.0.push_back((header, frame));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes as many as there is room for.
    pub(super) fn write(&mut self, out: &mut impl FrameSink) {
        while let Some((header, frame)) = self.0.front() {
            let copy = |bytes: &mut [u8]| bytes.copy_from_slice(&frame.payload);
            let delimiters = (frame.sof, frame.eof);
            let len = frame.payload.len();
            if !frames::put(out, header, delimiters, &frame.header, len, copy) {
                return;
            }
            self.0.pop_front();
        }
    }
}

/// Frames that wait at a port: the answers to a hundred hosts that ask for all ports at once.
const QUEUE: usize = 4096;
