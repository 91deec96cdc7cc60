//! A rig over TCP: bytes both ways.

use scsi::medium::HeapLease;

use super::trace::{line, numbers};
use super::{Carrier, Rig};
use crate::datamover::tcp::TcpMover;
use crate::parameters::Operational;
use crate::test_support;
use crate::wire::bhs::Bhs;

impl Carrier for TcpMover<HeapLease> {
    type Peer = ();

    fn connect(_: &mut Operational) {}

    fn give(rig: &mut Rig, bhs: Bhs, data: &[u8]) {
        rig.send_with(bhs, &[], data);
    }

    fn sent(rig: &mut Rig) -> Vec<String> {
        rig.pdus()
            .iter()
            .map(|(bhs, data)| line(bhs, data))
            .collect()
    }
}

impl Rig {
    /// The bytes of a PDU, with digests as agreed upon.
    pub(in crate::session::tests) fn bytes(&self, bhs: Bhs, ahs: &[u8], data: &[u8]) -> Vec<u8> {
        let digests = (self.keys.header_digest, self.keys.data_digest);
        test_support::pdu(bhs, ahs, data, digests)
    }

    pub(in crate::session::tests) fn send_with(&mut self, bhs: Bhs, ahs: &[u8], data: &[u8]) {
        let bytes = self.bytes(bhs, ahs, data);
        self.give(&bytes);
    }

    /// A PDU of which one bit of this byte was turned on the way.
    pub(in crate::session::tests) fn send_spoilt(&mut self, bhs: Bhs, data: &[u8], at: usize) {
        let mut bytes = self.bytes(bhs, &[], data);
        bytes[at] ^= 1;
        self.give(&bytes);
    }

    /// Gives bytes to the session until it has taken them all, collecting events.
    pub(in crate::session::tests) fn give(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let used = self.session.receive(self.now, rest);
            rest = &rest[used..];
            let mut any = false;
            while let Some(event) = self.session.poll() {
                any = true;
                self.events.push_back(event);
            }
            if rest.is_empty() || (used == 0 && !any) {
                break;
            }
        }
    }

    /// Gives only the header, so that the device server can act before the data comes.
    pub(in crate::session::tests) fn send_header(&mut self, mut bhs: Bhs, data_len: u32) {
        bhs.set_data_len(data_len);
        self.give(&bhs.0);
    }

    /// Lets the session send once; what it sends is not taken before the next time.
    pub(in crate::session::tests) fn put_out(&mut self) -> bool {
        self.session.transmit(&mut self.wire)
    }

    /// What the session sends now, as bytes.
    pub(in crate::session::tests) fn transmitted(&mut self) -> Vec<u8> {
        while self.session.transmit(&mut self.wire) {}
        std::mem::take(&mut self.wire.bytes)
    }

    /// What the session sends now: header and data of each PDU.
    pub(in crate::session::tests) fn pdus(&mut self) -> Vec<(Bhs, Vec<u8>)> {
        let bytes = self.transmitted();
        let pdus = test_support::pdus(&mut self.framer, &bytes);
        for (bhs, _) in &pdus {
            let (stamps, counts) = numbers(bhs);
            self.check(stamps, counts);
        }
        pdus
    }
}
