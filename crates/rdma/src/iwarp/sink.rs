//! Where a stream puts what is to be sent.

/// Takes what is to be sent, in order.
pub trait FpduSink<L> {
    /// Bytes to copy.
    fn bytes(&mut self, bytes: &[u8]);

    /// Data to send from where it lies.
    fn lease(&mut self, data: L);

    /// Data to copy, so that it cannot change any more: returns the copy, for a CRC.
    fn copied(&mut self, data: &L) -> &[u8];

    /// Whether more should wait for the next batch.
    fn is_full(&self) -> bool;
}
