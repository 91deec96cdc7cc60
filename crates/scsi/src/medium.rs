//! The vocabulary of what SBC-4 asks of storage.
//!
//! The device server emits a [`MediumOp`]; the volume behind the logical unit answers it, now or
//! later, with a [`MediumOutcome`]. Data never passes through the device server: it travels in a
//! [`Lease`], a counted claim on memory that belongs to the volume or to a pool.

use std::time::Duration;

/// A claim on memory that holds data on its way between a transport and a medium.
///
/// The memory may be the volume's own (a RAM disk), so its bytes can change under a reader; that
/// is why there is no way to borrow them as a slice. Cloning and slicing share the memory; it goes
/// back to its owner when the last claim is dropped.
pub trait Lease: Clone + Sized {
    /// A lease over bytes on the heap, for parameter data and for tests.
    fn from_bytes(bytes: Vec<u8>) -> Self;

    /// Length in bytes.
    fn len(&self) -> usize;

    /// Whether the lease covers nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of `len` bytes from `offset`. The range must lie inside the lease.
    #[must_use]
    fn slice(&self, offset: usize, len: usize) -> Self;

    /// Stores `bytes` at `offset`. The range must lie inside the lease.
    fn copy_in(&mut self, offset: usize, bytes: &[u8]);

    /// Fills `bytes` from `offset`. The range must lie inside the lease.
    fn copy_out(&self, offset: usize, bytes: &mut [u8]);

    /// The offset of the first byte that differs from `other`, which must be as long.
    fn difference(&self, other: &Self) -> Option<usize>;

    /// Sets each byte to itself OR that of `other`, which must be as long (ORWRITE).
    fn or_with(&mut self, other: &Self);
}

/// Consecutive logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block.
    pub lba: u64,
    /// How many blocks.
    pub blocks: u64,
}

impl Extent {
    /// Every block that a medium can have. A lock of these holds back all that goes to the medium,
    /// for the time in which another volume takes the place of a unit's.
    pub const ALL: Self = Self::new(0, u64::MAX);

    /// `blocks` blocks from `lba`.
    #[must_use]
    pub const fn new(lba: u64, blocks: u64) -> Self {
        Self { lba, blocks }
    }

    /// The first block after the extent.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.lba.saturating_add(self.blocks)
    }

    /// Whether the two have a block in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.lba < other.end() && other.lba < self.end()
    }
}

/// The memory in which a volume hands out what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMemory {
    /// Not the volume's storage, so that the data stays what it was when the outcome is told.
    Private,
    /// The volume's storage where that is memory (a RAM disk), else private. Later writes are seen.
    Lent,
    /// As `Lent`, for data that only the kernel looks at, as it sends it. A file in memory lends
    /// its pages then: when the file loses them, the send fails, but this process would be ended if
    /// it looked at them.
    Sent,
}

/// What the device server asks of a volume. Every extent has been checked against the capacity.
#[derive(Debug)]
pub enum MediumOp<L> {
    /// Hand out the data of `extent` → [`MediumOutcome::Lease`]. At most [`SEGMENT_BYTES`] long.
    Read {
        /// Where from.
        extent: Extent,
        /// In which memory.
        memory: ReadMemory,
    },
    /// Hand out memory to receive the data of a coming `Write` of `extent` into →
    /// [`MediumOutcome::Lease`]. A RAM disk lends its own memory, so a block is stored when all of
    /// it was received; other volumes lend a buffer. At most [`SEGMENT_BYTES`] long.
    PrepareWrite {
        /// Where the data is to go.
        extent: Extent,
    },
    /// Hand out memory that is not the volume's storage → [`MediumOutcome::Lease`]. For data that
    /// is to be compared and not stored (VERIFY, COMPARE AND WRITE), or that must not be stored
    /// before all of it is there and known to be right (ORWRITE, WRITE ATOMIC, a data digest): a
    /// RAM disk lends its own memory only by `PrepareWrite`.
    Buffer {
        /// In bytes; at most [`SEGMENT_BYTES`].
        bytes: u32,
    },
    /// Store what a lease (of `PrepareWrite`, or any other) holds → [`MediumOutcome::Done`].
    Write {
        /// Where to.
        extent: Extent,
        /// What, exactly as long as the extent.
        data: L,
        /// Whether it must be on stable storage before the outcome is told.
        fua: bool,
        /// Whether, over a power cut, all of it or nothing may be found
        /// (within [`Traits::atomic`]).
        atomic: bool,
    },
    /// Store one block's worth of data in every block → [`MediumOutcome::Done`].
    WriteSame {
        /// Where to; not limited to [`SEGMENT_BYTES`].
        extent: Extent,
        /// One logical block; `None` means zeros.
        pattern: Option<L>,
    },
    /// Make stable what was written to `extent` (`blocks` = 0: everything) →
    /// [`MediumOutcome::Done`].
    Flush {
        /// The blocks concerned.
        extent: Extent,
    },
    /// Deallocate; reads give zeros afterwards → [`MediumOutcome::Done`]. A volume that finds that
    /// it would have to write the zeros answers [`MediumError::Unsupported`], and has deallocated
    /// the beginning at most: a `WriteSame` of zeros can be done in pieces that others get past.
    Unmap {
        /// What; not limited in length.
        extent: Extent,
        /// Keep the space reserved (ANCHOR).
        anchor: bool,
    },
    /// How the blocks from `extent.lba` on are provisioned → [`MediumOutcome::Provisioning`].
    Status {
        /// Where to look; the answer may be shorter.
        extent: Extent,
    },
    /// Bring into the cache what a later read will want → [`MediumOutcome::Done`].
    Prefetch {
        /// The blocks concerned.
        extent: Extent,
    },
    /// Make the data of every block of `extent` irrecoverable by the given method →
    /// [`MediumOutcome::Done`]. The device server sanitizes the whole unit piece by piece, so that
    /// it can tell how far it got.
    Sanitize {
        /// Which blocks; not limited in length.
        extent: Extent,
        /// By what means; only one that [`Traits::sanitize`] lists.
        method: Sanitize<L>,
    },
}

/// How the data of one provisioning extent is kept (SBC-4, GET LBA STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Has storage.
    Mapped,
    /// Has none; reads zeros.
    Deallocated,
    /// Reads zeros, storage is reserved.
    Anchored,
}

/// The ways of SANITIZE that a volume may offer.
#[derive(Clone, Debug)]
pub enum Sanitize<L> {
    /// One pass of OVERWRITE.
    Overwrite {
        /// What every block is to hold: one logical block.
        pattern: L,
    },
    /// BLOCK ERASE: the storage itself is discarded.
    BlockErase,
}

/// What a volume answers to a [`MediumOp`] that went well.
#[derive(Debug)]
pub enum MediumOutcome<L> {
    /// Done.
    Done,
    /// The memory asked for, exactly as long as the extent.
    Lease(L),
    /// The first `blocks` blocks asked about are all kept in this way.
    Provisioning {
        /// At least one.
        blocks: u64,
        /// In which way.
        state: Provisioning,
    },
}

/// What a volume answers to a [`MediumOp`] that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediumError {
    /// The medium could not read.
    #[error("unrecovered read error")]
    Read,
    /// The medium could not write, or a failed write-back is latched.
    #[error("write error")]
    Write,
    /// No room: memory limit, full file system.
    #[error("space allocation failed")]
    NoSpace,
    /// The volume may not be written.
    #[error("write protected")]
    ReadOnly,
    /// The volume went away, and has not done it.
    #[error("not ready")]
    Gone,
    /// The volume went away after it was told to write or unmap: that may have been done, in part
    /// too, or may still be.
    #[error("outcome unknown")]
    Unknown,
    /// No buffer is to be had now; the command ends with TASK SET FULL.
    #[error("out of buffers")]
    Busy,
    /// It was given up before it reached the medium, as its requester said.
    #[error("given up before it began")]
    Cancelled,
    /// The volume cannot do this (the device server did not look at its traits).
    #[error("unsupported")]
    Unsupported,
}

/// The answer to a [`MediumOp`].
pub type MediumResult<L> = Result<MediumOutcome<L>, MediumError>;

/// The longest piece that the device server reads or writes by one operation. Longer transfers are
/// done piece by piece, which bounds the memory that one command can hold.
pub const SEGMENT_BYTES: u64 = 256 << 10;

/// What a volume is and can do. VPD pages, mode pages and REPORT SUPPORTED OPERATION CODES follow
/// from it: nothing is promised that the volume cannot keep over a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Bytes in a logical block: 512 or 4096.
    pub block_size: u32,
    /// Capacity in logical blocks; more than 0.
    pub blocks: u64,
    /// Logical blocks in a physical block, as a power of two.
    pub physical_exponent: u8,
    /// The volume cannot be written.
    pub read_only: bool,
    /// Writes are volatile until flushed (WCE = 1).
    pub write_cache: bool,
    /// UNMAP gives storage back; blocks in the granule, `None` where it cannot.
    pub unmap_granularity: Option<u32>,
    /// Blocks can be allocated without being written (ANCHOR).
    pub anchor: bool,
    /// The longest write, in blocks, that is whole or absent after a power cut, and the alignment
    /// that it needs; `None` where none is.
    pub atomic: Option<Atomic>,
    /// SANITIZE methods after which the data is really gone.
    pub sanitize: &'static [SanitizeKind],
    /// A solid-state medium (VPD B1: rotation rate 1).
    pub solid_state: bool,
    /// WRITE SAME of 0 blocks means all up to the last one (WSNZ = 0). Only where nothing can be
    /// lost by it: what was meant for nothing would write on everything.
    pub write_same_to_end: bool,
    /// Others may use the medium past this server, as a unit of another target. What is locked and
    /// reserved here means nothing to them, so no command is offered that promises it.
    pub shared: bool,
}

/// The limits of atomic writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atomic {
    /// The longest, in blocks.
    pub max_blocks: u32,
    /// The first block must be a multiple of this.
    pub alignment: u32,
    /// The length must be a multiple of this.
    pub granularity: u32,
}

/// A SANITIZE method without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SanitizeKind {
    /// OVERWRITE.
    Overwrite,
    /// BLOCK ERASE.
    BlockErase,
}

/// A heap lease for tests of the machines, and for parameter data in simulations.
#[derive(Clone, Debug)]
pub struct HeapLease {
    bytes: std::rc::Rc<std::cell::RefCell<Vec<u8>>>,
    start: usize,
    len: usize,
}

impl Lease for HeapLease {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self {
            bytes: std::rc::Rc::new(std::cell::RefCell::new(bytes)),
            start: 0,
            len,
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        assert!(
            offset + len <= self.len,
            "slice {offset}+{len} of a lease of {}",
            self.len
        );
        Self {
            bytes: self.bytes.clone(),
            start: self.start + offset,
            len,
        }
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) {
        let own = &mut self.bytes.borrow_mut()[self.start..][..self.len];
        own[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let own = &self.bytes.borrow()[self.start..][..self.len];
        bytes.copy_from_slice(&own[offset..][..bytes.len()]);
    }

    fn difference(&self, other: &Self) -> Option<usize> {
        let (mut a, mut b) = (vec![0; self.len], vec![0; other.len]);
        self.copy_out(0, &mut a);
        other.copy_out(0, &mut b);
        // As a whole first: byte by byte, a fuzzer that counts comparisons takes seconds.
        if a == b {
            return None;
        }
        a.iter().zip(&b).position(|(x, y)| x != y)
    }

    fn or_with(&mut self, other: &Self) {
        let (mut a, mut b) = (vec![0; self.len], vec![0; other.len]);
        self.copy_out(0, &mut a);
        other.copy_out(0, &mut b);
        a.iter_mut().zip(&b).for_each(|(x, y)| *x |= y);
        self.copy_in(0, &a);
    }
}

/// Time since an arbitrary start, the same for all machines of a process. It comes in as an
/// argument; nothing here reads a clock.
pub type Now = Duration;
