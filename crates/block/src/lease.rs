//! What volumes hand out.

use ::io::memory::Buffer;

/// A claim on memory, as [`scsi::medium::Lease`] has it: of a RAM volume, of a pool, or on the
/// heap.
#[derive(Clone, Debug)]
pub struct BlockLease(Buffer);

impl BlockLease {
    /// The memory itself, for sending and receiving.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.0
    }
}

impl From<Buffer> for BlockLease {
    fn from(buffer: Buffer) -> Self {
        Self(buffer)
    }
}

impl From<BlockLease> for Buffer {
    fn from(lease: BlockLease) -> Self {
        lease.0
    }
}

impl scsi::medium::Lease for BlockLease {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(Buffer::from_vec(bytes))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        Self(self.0.slice(offset, len))
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) {
        self.0.copy_in(offset, bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }

    fn difference(&self, other: &Self) -> Option<usize> {
        self.0.difference(&other.0)
    }

    fn or_with(&mut self, other: &Self) {
        self.0.or_with(&other.0);
    }
}
