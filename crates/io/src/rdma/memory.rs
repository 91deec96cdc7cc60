//! The memory that a core's connections move data from and to.
//!
//! | where data lies | what happens |
//! |---|---|
//! | in a region that is registered for good (`super::locked`) | it goes without a copy |
//! | the same, to be filled by a part of a block | it is copied, as that is staged |
//! | in a pool of buffers | its 2 MiB of the pool are registered at the first use, then it goes without a copy |
//! | elsewhere, or the limit is reached | it is copied by way of pieces of 16 KiB, which are registered 2 MiB at a time |
//!
//! All of it, but for what is registered for good, is bounded for a core by one limit.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use super::domain::RdmaDomain;
use super::locked::RdmaCopies;
use super::registration::{KeyRange, MemoryRegion, OwnRegion};
use super::requests::RequestArrays;
use crate::memory::{Buffer, PoolPart};

/// Memory for RDMA of one core. Clones share it.
#[derive(Clone)]
pub struct RdmaMemory {
    core: Rc<CoreMemory>,
}

struct CoreMemory {
    budget: Rc<Budget>,
    /// Parts of pools are registered; else what is in them is copied.
    takes_pools: bool,
    domains: RefCell<Vec<Rc<DomainMemory>>>,
    arrays: Rc<RefCell<RequestArrays>>,
}

/// How much more may be registered, in bytes.
pub(super) struct Budget(Cell<usize>);

/// The same within one domain.
pub(super) struct DomainMemory {
    domain: Arc<RdmaDomain>,
    budget: Rc<Budget>,
    takes_pools: bool,
    /// Of the domain's memory for all cores, when it was looked at last.
    generation: Cell<u64>,
    locked: RefCell<Vec<KeyRange>>,
    /// Sorted by where they begin.
    parts: RefCell<Vec<RegisteredPart>>,
    pieces: RefCell<BounceTable>,
    /// What was copied, and not told to the domain yet.
    copies: Cell<RdmaCopies>,
    /// Shared by all that post on this core, as they do so one after the other.
    pub(super) arrays: Rc<RefCell<RequestArrays>>,
}

/// A part of a pool that the device knows.
struct RegisteredPart {
    region: MemoryRegion,
    part: PoolPart,
}

impl Drop for RegisteredPart {
    fn drop(&mut self) {
        self.part.unpin();
    }
}

/// Pieces of memory that data is copied to or from, and those of them that are free.
#[derive(Default)]
struct BounceTable {
    regions: Vec<OwnRegion>,
    free: Vec<u16>,
}

/// Bytes of a piece: long enough that few make up a segment, short enough for those of small I/O to
/// stay in the cache.
pub(super) const PIECE: usize = 16 << 10;

/// Bytes that are registered at a time.
const PART: usize = PoolPart::BYTES;

/// Pieces in such a part.
const PIECES: usize = PART / PIECE;

/// Parts for pieces at the most: 16 MiB, so that pools are not left without.
const BOUNCE_PARTS: usize = 8;

/// For what a session sends: as many pieces as it may have messages under way.
const SESSION_BYTES: usize = 2 * PART;

/// Of memory that others were given, and one's own, at the most, where nothing else is said.
pub(super) const CORE_BYTES: usize = 64 << 20;

impl RdmaMemory {
    /// Memory of a core: 64 MiB at the most. None is taken before it is used.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(CORE_BYTES)
    }

    /// The same with another limit, in bytes.
    #[must_use]
    pub fn with_limit(bytes: usize) -> Self {
        Self::limited(bytes, true)
    }

    /// Memory of one initiator's session, which sends no more than commands with short data: that
    /// is copied, as a session is not to pin pools that all sessions share.
    pub(super) fn of_session() -> Self {
        Self::limited(SESSION_BYTES, false)
    }

    fn limited(bytes: usize, takes_pools: bool) -> Self {
        Self {
            core: Rc::new(CoreMemory {
                budget: Rc::new(Budget::new(bytes)),
                takes_pools,
                domains: RefCell::default(),
                arrays: Rc::default(),
            }),
        }
    }

    /// That of a domain.
    pub(super) fn of(&self, domain: &Arc<RdmaDomain>) -> Rc<DomainMemory> {
        let mut domains = self.core.domains.borrow_mut();
        // Of a device that was taken away, once its last connection is over.
        domains.retain(|one| Rc::strong_count(one) > 1 || Arc::ptr_eq(&one.domain, domain));
        if let Some(known) = domains.iter().find(|one| Arc::ptr_eq(&one.domain, domain)) {
            return Rc::clone(known);
        }
        let memory = Rc::new(DomainMemory {
            domain: Arc::clone(domain),
            budget: Rc::clone(&self.core.budget),
            takes_pools: self.core.takes_pools,
            generation: Cell::new(0),
            locked: RefCell::default(),
            parts: RefCell::default(),
            pieces: RefCell::default(),
            copies: Cell::default(),
            arrays: Rc::clone(&self.core.arrays),
        });
        domains.push(Rc::clone(&memory));
        memory
    }

    /// Bytes that may still be registered.
    #[must_use]
    pub fn left(&self) -> usize {
        self.core.budget.0.get()
    }
}

impl Default for RdmaMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RdmaMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaMemory({} bytes left)", self.left())
    }
}

impl Budget {
    /// Of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Cell::new(bytes))
    }

    /// Takes `bytes`, if there are so many.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        left.inspect(|left| self.0.set(*left)).is_some()
    }

    /// Gives `bytes` back.
    pub(super) fn give_back(&self, bytes: usize) {
        self.0.set(self.0.get() + bytes);
    }
}

impl DomainMemory {
    /// The key that reaches all of a buffer; `None` if its data has to be copied.
    pub(super) fn key_of(&self, buffer: &Buffer) -> Option<u32> {
        let (start, len) = (buffer.address().addr().get(), buffer.len());
        let is_in = |range: &KeyRange| {
            start >= range.start && start - range.start <= range.len.saturating_sub(len)
        };
        self.refresh();
        if let Some(range) = self.locked.borrow().iter().find(|range| is_in(range)) {
            return Some(range.lkey);
        }
        let part = buffer.pool_part().filter(|_| self.takes_pools)?;
        let at = self.place_of(start);
        let known = self.parts.borrow().get(at).map(|one| one.region.range());
        if let Some(range) = known.filter(is_in) {
            return Some(range.lkey);
        }
        self.register(part).filter(is_in).map(|range| range.lkey)
    }

    /// The same of a buffer that a read is to fill.
    pub(super) fn key_to_fill(&self, buffer: &Buffer) -> Option<u32> {
        buffer
            .may_be_filled_by_device()
            .then(|| self.key_of(buffer))?
    }

    /// Looks at what is registered for all cores, if that has changed.
    fn refresh(&self) {
        let locked = self.domain.locked();
        let generation = locked.generation();
        if self.generation.replace(generation) != generation {
            *self.locked.borrow_mut() = locked.ranges();
        }
    }

    /// Counts bytes that were copied.
    pub(super) fn have_copied(&self, copied: RdmaCopies) {
        let before = self.copies.get();
        self.copies.set(RdmaCopies {
            sent: before.sent + copied.sent,
            received: before.received + copied.received,
        });
    }

    /// Tells the domain what was copied: once a turn, as all cores count in one place there.
    pub(super) fn tell_copies(&self) {
        let copies = self.copies.take();
        if copies != RdmaCopies::default() {
            self.domain.locked().count(copies);
        }
    }

    /// Where the part stands that an address is in, if it is registered.
    fn place_of(&self, address: usize) -> usize {
        let parts = self.parts.borrow();
        let behind = parts.partition_point(|one| one.region.range().start <= address);
        behind.saturating_sub(1)
    }

    /// Registers a part of a pool, within the limit. What the kernel refuses to pin is copied.
    fn register(&self, part: PoolPart) -> Option<KeyRange> {
        if !self.budget.take(PART) {
            return None;
        }
        let (start, len) = part.span();
        let region = part.pin().ok().and_then(|()| {
            let region = MemoryRegion::new(&self.domain, start, len);
            region.inspect_err(|_| part.unpin()).ok()
        });
        let Some(region) = region else {
            self.budget.give_back(PART);
            return None;
        };
        let range = region.range();
        let mut parts = self.parts.borrow_mut();
        let at = parts.partition_point(|one| one.region.range().start < range.start);
        parts.insert(at, RegisteredPart { region, part });
        Some(range)
    }

    /// Takes pieces to copy through, `wanted` of them or as many as there are; returns how many.
    pub(super) fn take_pieces(&self, wanted: usize, into: &mut [u16]) -> usize {
        let mut table = self.pieces.borrow_mut();
        let wanted = wanted.min(into.len());
        while table.free.len() < wanted && self.add_pieces(&mut table) {}
        let from = table.free.len().saturating_sub(wanted);
        let taken = table.free.drain(from..).rev();
        taken.zip(into).map(|(piece, place)| *place = piece).count()
    }

    /// Registers memory for more pieces, within the limit.
    fn add_pieces(&self, table: &mut BounceTable) -> bool {
        if table.regions.len() == BOUNCE_PARTS || !self.budget.take(PART) {
            return false;
        }
        let Ok(region) = OwnRegion::new(&self.domain, PART, 0) else {
            self.budget.give_back(PART);
            return false;
        };
        let first = table.regions.len() * PIECES;
        let pieces = first..first + PIECES;
        table
            .free
            .extend(pieces.rev().filter_map(|piece| u16::try_from(piece).ok()));
        table.regions.push(region);
        true
    }

    /// Gives a piece back.
    pub(super) fn free_piece(&self, piece: u16) {
        self.pieces.borrow_mut().free.push(piece);
    }

    /// Where a piece lies, and the key that reaches it.
    pub(super) fn piece(&self, piece: u16) -> Piece {
        let table = self.pieces.borrow();
        let at = usize::from(piece);
        let region = &table.regions[at / PIECES];
        Piece {
            address: region.at(at % PIECES * PIECE),
            lkey: region.lkey(),
        }
    }
}

impl Drop for DomainMemory {
    fn drop(&mut self) {
        let held = self.parts.get_mut().len() + self.pieces.get_mut().regions.len();
        self.budget.give_back(held * PART);
        self.tell_copies();
    }
}

/// [`PIECE`] bytes to copy through.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) address: NonNull<u8>,
    pub(super) lkey: u32,
}
