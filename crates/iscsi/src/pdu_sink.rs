//! The boundary of RFC 5047: what is above it speaks of data in leases, below it are bytes.

/// Where a machine puts what is to be sent, in order.
pub trait PduSink<L> {
    /// Bytes to copy.
    fn bytes(&mut self, bytes: &[u8]);

    /// Data to send from where it lies.
    fn lease(&mut self, data: L);

    /// Data to copy, so that it cannot change any more: returns the copy, for a digest.
    fn copied(&mut self, data: &L) -> &[u8];

    /// Whether more should wait for the next batch.
    fn is_full(&self) -> bool;
}
