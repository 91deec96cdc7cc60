//! A rig over TCP: bytes both ways.

use scsi::medium::HeapLease;

use super::trace::{line, numbers};
use super::{Carrier, Rig, bytes_of};
use crate::datamover::tcp::TcpMover;
use crate::pdu_sink::PduSink;
use crate::wire::bhs::Bhs;
use crate::wire::framer::{PduPiece, crc32c, crc32c_padded};

/// The connection: bytes in one order, however they were given.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) bytes: Vec<u8>,
    copy: Vec<u8>,
}

impl PduSink<HeapLease> for Wire {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.bytes.extend(bytes_of(&data));
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy = bytes_of(data);
        self.bytes.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        false
    }
}

impl Carrier for TcpMover<HeapLease> {
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
    pub(in crate::session::tests) fn bytes(
        &self,
        mut bhs: Bhs,
        ahs: &[u8],
        data: &[u8],
    ) -> Vec<u8> {
        bhs.set_ahs_len(ahs.len());
        bhs.set_data_len(data.len() as u32);
        let mut bytes = [&bhs.0[..], ahs].concat();
        if self.keys.header_digest {
            bytes.extend(crc32c(&bytes));
        }
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        if self.keys.data_digest && !data.is_empty() {
            bytes.extend(crc32c_padded(data));
        }
        bytes
    }

    pub(in crate::session::tests) fn send_with(&mut self, bhs: Bhs, ahs: &[u8], data: &[u8]) {
        let bytes = self.bytes(bhs, ahs, data);
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
        let mut pdus: Vec<(Bhs, Vec<u8>)> = Vec::new();
        let mut rest = &bytes[..];
        while let Some(piece) = self.framer.next(&mut rest).unwrap() {
            match piece {
                PduPiece::Header(bhs) => pdus.push((bhs, Vec::new())),
                PduPiece::Data { bytes, .. } => {
                    pdus.last_mut().unwrap().1.extend_from_slice(bytes);
                }
                PduPiece::BadData => panic!("a data digest that is wrong"),
            }
        }
        for (bhs, _) in &pdus {
            let (stamps, counts) = numbers(bhs);
            self.check(stamps, counts);
        }
        pdus
    }
}
