//! Where machines put what they send.

use iscsi::pdu_sink::PduSink;
use scsi::medium::{HeapLease, Lease};

/// Bytes in the order in which they would leave, up to a limit a batch.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) bytes: Vec<u8>,
    copy: Vec<u8>,
    /// After so many bytes the batch is full; 0: never.
    pub(super) limit: usize,
}

impl PduSink<HeapLease> for Sink {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        self.copy.resize(data.len(), 0);
        data.copy_out(0, &mut self.copy);
        self.bytes.extend_from_slice(&self.copy);
        &self.copy
    }

    fn is_full(&self) -> bool {
        self.limit > 0 && self.bytes.len() >= self.limit
    }
}
