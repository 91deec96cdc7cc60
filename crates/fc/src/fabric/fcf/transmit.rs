//! FIP messages on their way out of a port.

use std::collections::VecDeque;

use super::super::PortNumber;
use super::Fcf;
use crate::frames::FrameSink;
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessages(VecDeque<OutgoingMessage>);

/// A message, from the FCF-MAC.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    pub(super) dst: Mac,
    pub(super) bytes: Vec<u8>,
    /// Bytes after the Ethernet header, at the least.
    pub(super) least: usize,
    /// Whether it carries the tag of the port.
    pub(super) is_tagged: bool,
    src: Mac,
}

impl OutgoingMessages {
    /// Writes as many as there is room for, and tells how many.
    pub(super) fn write(&mut self, tag: Option<VlanTag>, out: &mut impl FrameSink) -> u64 {
        let mut written = 0;
        while let Some(next) = self.0.front()
            && next.write(tag, out)
        {
            self.0.pop_front();
            written += 1;
        }
        written
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn records(&self) -> usize {
        self.0.len()
    }
}

impl OutgoingMessage {
    /// Whether there was room.
    fn write(&self, tag: Option<VlanTag>, out: &mut impl FrameSink) -> bool {
        let header = EthernetHeader {
            vlan: tag.filter(|_| self.is_tagged),
            ..EthernetHeader::new(self.src, self.dst, ethernet::FIP)
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

impl Fcf {
    /// Sends a message from the FCF-MAC of a port.
    pub(super) fn send(&mut self, number: PortNumber, dst: Mac, bytes: Vec<u8>) {
        self.send_as(number, dst, bytes, (0, true));
    }

    /// The same, of so many bytes after the Ethernet header at the least, with the port's tag or
    /// without. What does not fit is lost, as it could be on the Ethernet.
    pub(super) fn send_as(
        &mut self,
        number: PortNumber,
        dst: Mac,
        bytes: Vec<u8>,
        (least, is_tagged): (usize, bool),
    ) {
        let port = self.ports.get_mut(&number).filter(|port| port.is_up);
        let Some(port) = port.filter(|port| port.outgoing.0.len() < QUEUE) else {
            return;
        };
        let src = port.config.mac;
        port.outgoing.0.push_back(OutgoingMessage {
            dst,
            bytes,
            least,
            is_tagged,
            src,
        });
    }
}

/// Messages that wait at a port: a Clear Virtual Links for each of its ENodes, and some.
const QUEUE: usize = 4096 + 256;
