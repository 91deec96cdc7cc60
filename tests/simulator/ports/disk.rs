//! A disk of a few blocks: memory that it lends, or apart from what travels and slow.

use std::collections::BTreeMap;
use std::time::Duration;

use fc::tests::bytes;
use scsi::device::OpId;
use scsi::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Now, ReadMemory,
    Traits,
};
use sim::{DiskKind, Rng};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;

/// How many blocks there are.
pub(crate) const BLOCKS: u64 = 32;

/// A disk, and what it has to do.
#[derive(Debug)]
pub(crate) struct Disk {
    kind: DiskKind,
    memory: HeapLease,
    /// By when they are done.
    in_flight: BTreeMap<(Now, u64), (OpId, MediumOp<HeapLease>)>,
    taken: u64,
}

impl Disk {
    pub(crate) fn new(kind: DiskKind) -> Self {
        Self {
            kind,
            memory: HeapLease::from_bytes(vec![0; BLOCK * BLOCKS as usize]),
            in_flight: BTreeMap::new(),
            taken: 0,
        }
    }

    pub(crate) const fn traits() -> Traits {
        Traits {
            block_size: BLOCK as u32,
            blocks: BLOCKS,
            physical_exponent: 0,
            read_only: false,
            write_cache: false,
            unmap_granularity: None,
            anchor: false,
            atomic: None,
            sanitize: &[],
            solid_state: true,
            write_same_to_end: false,
            shared: false,
        }
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        bytes(&self.memory)
    }

    /// Takes an operation.
    pub(crate) fn begin(&mut self, now: Now, id: OpId, op: MediumOp<HeapLease>, rng: &mut Rng) {
        let takes = match self.kind {
            DiskKind::Memory => 0,
            DiskKind::Apart => rng.below(2000),
        };
        self.taken += 1;
        let at = now + Duration::from_micros(takes as u64);
        self.in_flight.insert((at, self.taken), (id, op));
    }

    /// When the next operation is done.
    pub(crate) fn next(&self) -> Option<Now> {
        self.in_flight.keys().next().map(|(at, _)| *at)
    }

    /// The next operation that is done by now.
    pub(crate) fn done(&mut self, now: Now) -> Option<(OpId, MediumResult<HeapLease>)> {
        let first = self.in_flight.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let (id, op) = first.remove();
        Some((id, self.carry_out(op)))
    }

    /// The power fails: what is under way is not done.
    pub(crate) fn cut(&mut self) {
        self.in_flight.clear();
        // What was lent is memory of the process, of which nothing is left.
        self.memory = HeapLease::from_bytes(self.bytes());
    }

    fn carry_out(&mut self, op: MediumOp<HeapLease>) -> MediumResult<HeapLease> {
        let lends = self.kind == DiskKind::Memory;
        let buffer = |len: usize| MediumOutcome::Lease(HeapLease::from_bytes(vec![0xee; len]));
        Ok(match op {
            MediumOp::Read { extent, memory } if lends && memory != ReadMemory::Private => {
                MediumOutcome::Lease(self.part(extent))
            }
            MediumOp::Read { extent, .. } => {
                MediumOutcome::Lease(HeapLease::from_bytes(bytes(&self.part(extent))))
            }
            MediumOp::PrepareWrite { extent } if lends => MediumOutcome::Lease(self.part(extent)),
            MediumOp::PrepareWrite { extent } => buffer(self.part(extent).len()),
            MediumOp::Buffer { bytes } => buffer(bytes as usize),
            MediumOp::Write { extent, data, .. } => {
                self.part(extent).copy_in(0, &bytes(&data));
                MediumOutcome::Done
            }
            MediumOp::Flush { .. } => MediumOutcome::Done,
            _ => return Err(MediumError::Unsupported),
        })
    }

    fn part(&self, extent: Extent) -> HeapLease {
        let (at, len) = (extent.lba as usize, extent.blocks as usize);
        self.memory.slice(at * BLOCK, len * BLOCK)
    }
}
