//! What volumes hand out.

/// A claim on memory, as [`scsi::medium::Lease`] has it: of a RAM volume, of a pool, or on the
/// heap.
#[derive(Clone, Debug)]
pub struct Lease(io::memory::Buffer);
