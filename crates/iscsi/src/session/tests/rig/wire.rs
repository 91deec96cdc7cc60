//! The connection of a rig.

use scsi::medium::HeapLease;

use super::bytes_of;
use crate::pdu_sink::PduSink;

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
