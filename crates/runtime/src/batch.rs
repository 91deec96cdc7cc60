//! Batches that iSCSI sessions of either side fill.

use ::io::ring::SendBatch;
use block::lease::BlockLease;
use iscsi::pdu_sink::PduSink;
use rdma::iwarp::sink::FpduSink;
use scsi::medium::Lease as _;

/// A batch as a session fills it.
pub struct BatchSink<'a>(pub &'a mut SendBatch);

/// Data shorter than this is copied behind its header: one piece fewer for the kernel costs more
/// than the copy saves only above it.
const COPY_BELOW: usize = 1024;

impl PduSink<BlockLease> for BatchSink<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    // Both transports call it for each run of data.
    #[inline(always)]
    fn lease(&mut self, data: BlockLease) {
        if data.len() < COPY_BELOW && !data.buffer().is_of_file() {
            PduSink::copied(self, &data);
        } else {
            self.0.buffer(data.into());
        }
    }

    fn copied(&mut self, data: &BlockLease) -> &[u8] {
        self.0.buffer_copied(data.buffer())
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}

impl FpduSink<BlockLease> for BatchSink<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        PduSink::bytes(self, bytes);
    }

    fn lease(&mut self, data: BlockLease) {
        PduSink::lease(self, data);
    }

    fn copied(&mut self, data: &BlockLease) -> &[u8] {
        PduSink::copied(self, data)
    }

    fn is_full(&self) -> bool {
        PduSink::<BlockLease>::is_full(self)
    }
}
