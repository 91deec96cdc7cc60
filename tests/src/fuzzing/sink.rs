//! Where machines put what they send.

use iscsi::pdu_sink::PduSink;
use scsi::medium::{HeapLease, Lease};

/// Octets in the order in which they would leave, up to a limit a batch.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) octets: Vec<u8>,
    copy: Vec<u8>,
    /// After so many octets the batch is full; 0: never.
    pub(super) limit: usize,
}

impl PduSink<HeapLease> for Sink {
    fn octets(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy.resize(data.len(), 0);
        data.copy_out(0, &mut self.copy);
        self.octets.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        self.limit > 0 && self.octets.len() >= self.limit
    }
}
