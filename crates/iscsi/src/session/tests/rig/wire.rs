//! The connection of a rig.

use scsi::medium::HeapLease;

use super::octets_of;
use crate::pdu_sink::PduSink;

/// The connection: octets in one order, however they were given.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) octets: Vec<u8>,
    copy: Vec<u8>,
}

impl PduSink<HeapLease> for Wire {
    fn octets(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    fn lease(&mut self, data: HeapLease) {
        self.octets.extend(octets_of(&data));
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy = octets_of(data);
        self.octets.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        false
    }
}
