//! What waits to be sent.

use std::collections::VecDeque;

use super::{Fip, FipConfig};
use crate::frames::FrameSink;
use crate::wire::ethernet::{self, Mac, VlanTag};
use crate::wire::fip::FipOperation;

/// A message on its way out.
#[derive(Debug)]
pub(super) struct PendingMessage {
    pub(super) dst: Mac,
    pub(super) src: Mac,
    pub(super) bytes: Vec<u8>,
    /// Bytes after the Ethernet header, at the least.
    pub(super) least: usize,
}

/// Messages on their way out, oldest first.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessages(VecDeque<PendingMessage>);

impl OutgoingMessages {
    /// What does not fit is lost, as it could be on the Ethernet.
    pub(super) fn push(&mut self, message: PendingMessage) {
        if self.0.len() < QUEUE {
            self.0.push_back(message);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops what has not been sent.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Writes as many as there is room for, and tells how many.
    pub(super) fn write(&mut self, tag: Option<VlanTag>, out: &mut impl FrameSink) -> u64 {
        let mut written = 0;
        while let Some(next) = self.0.front() {
            if !next.write(tag, out) {
                break;
            }
            self.0.pop_front();
            written += 1;
        }
        written
    }
}

impl PendingMessage {
    /// Whether there was room.
    fn write(&self, tag: Option<VlanTag>, out: &mut impl FrameSink) -> bool {
        let header = ethernet::EthernetHeader {
            vlan: tag,
            ..ethernet::EthernetHeader::new(self.src, self.dst, ethernet::FIP)
        };
        let len = header.len() + self.bytes.len().max(self.least);
        let len = len.max(ethernet::MIN_LEN);
        let Some(slot) = out.slot(len) else {
            return false;
        };
        let (bytes, padding) = header.put(&mut slot[..len]).split_at_mut(self.bytes.len());
        bytes.copy_from_slice(&self.bytes);
        padding.fill(0);
        out.commit(len);
        true
    }
}

impl Fip {
    /// Sends a message of VN2VN. A Beacon has the address of the VN_Port, so that bridges learn it;
    /// all else comes from the ENode.
    pub(super) fn send(&mut self, operation: FipOperation, dst: Mac) {
        self.send_padded(operation, dst, 0);
    }

    /// So that it has `least` bytes after the Ethernet header.
    pub(super) fn send_padded(&mut self, operation: FipOperation, dst: Mac, least: usize) {
        let src = match operation {
            FipOperation::Beacon => super::vn_mac(self.fc_id),
            _ => self.config.mac,
        };
        let bytes = self.present(operation);
        self.outgoing.push(PendingMessage {
            dst,
            src,
            bytes,
            least,
        });
    }

    /// Sends an ELS, or its reply.
    pub(super) fn send_els(&mut self, dst: Mac, bytes: Vec<u8>) {
        let FipConfig { mac: src, .. } = self.config;
        self.outgoing.push(PendingMessage {
            dst,
            src,
            bytes,
            least: 0,
        });
    }
}

/// As many as come of the claim of one port when all others answer, and some.
const QUEUE: usize = 256;
