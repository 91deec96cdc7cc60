//! A disk that takes its time, ends operations in any order, and fails when told to.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use ::io::memory::{Buffer, LocalRegion, MemoryLimit, Pages, Pool, Recall, Region};
use ::io::ring::FileOp;
use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};
use scsi::medium::{
    Extent, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning, ReadMemory,
    SEGMENT_BYTES, Traits,
};
use slab::Slab;

/// A disk; clones share it.
#[derive(Clone)]
pub struct Disk {
    medium: Rc<SimMedium>,
}

/// How a disk keeps its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// Bytes travel in buffers, and reach the medium or leave it when the operation ends.
    Apart,
    /// Its medium is memory, which it lends, and nothing takes time: what a transport receives for
    /// a write is stored at once.
    Memory,
}

struct SimMedium {
    kind: DiskKind,
    block_size: u32,
    blocks: u64,
    bytes: Buffer,
    /// Of a disk that is memory, what `bytes` was lent of.
    region: Option<Arc<Region>>,
    /// Likewise, what is lent to be written: a claim for each write.
    written: Option<LocalRegion>,
    mapped: RefCell<Vec<bool>>,
    /// What was changed since the last look; not of memory.
    changed: RefCell<Vec<Extent>>,
    /// Changes so far, and how many of them a flush has made stable.
    changes: Cell<u64>,
    stable: Cell<u64>,
}

/// One core's handle on a disk.
pub(super) struct DiskHandle {
    node: HandleId,
    disk: Disk,
    /// Of a disk that is memory, what it lends of for reading.
    region: Option<LocalRegion>,
    pool: Pool,
    in_flight: Slab<SlowOperation>,
    /// The next operation that is cancelled is given up.
    yields: bool,
}

/// An operation that takes its time. What has several blocks takes it twice, so that others come
/// in between.
struct SlowOperation {
    id: u64,
    op: MediumOp<BlockLease>,
    /// How many changes there were before.
    before: u64,
    /// Blocks that are done.
    done: u64,
    /// What is being read.
    data: Option<Buffer>,
    given_up: bool,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new(kind: DiskKind, block_size: u32, blocks: u64) -> Self {
        let len = block_size as usize * blocks as usize;
        let region = (kind == DiskKind::Memory).then(|| region(len as u64));
        let attach = |region: &Arc<Region>| region.attach_in_blocks(block_size);
        let written = region.as_ref().map(attach);
        let bytes = match &written {
            Some(written) => lent(written, 0..len as u64),
            None => Buffer::from_vec(vec![0; len]),
        };
        let medium = SimMedium {
            kind,
            block_size,
            blocks,
            bytes,
            region,
            written,
            mapped: RefCell::new(vec![false; blocks as usize]),
            changed: RefCell::default(),
            changes: Cell::new(0),
            stable: Cell::new(0),
        };
        Self {
            medium: Rc::new(medium),
        }
    }

    /// The disk as a server opens it. It is attached in the thread that made it.
    #[must_use]
    pub fn volume(&self) -> Arc<dyn Volume> {
        let number = DISKS.with_borrow_mut(|disks| disks.insert(Rc::downgrade(&self.medium)));
        Arc::new(SimVolume {
            number,
            traits: self.traits(),
        })
    }

    /// What it can do.
    #[must_use]
    pub fn traits(&self) -> Traits {
        Traits {
            block_size: self.medium.block_size,
            blocks: self.medium.blocks,
            physical_exponent: 0,
            read_only: false,
            write_cache: true,
            unmap_granularity: Some(1),
            anchor: false,
            atomic: None,
            sanitize: &[],
            solid_state: true,
            write_same_to_end: false,
            shared: false,
        }
    }

    /// How it keeps its bytes.
    #[must_use]
    pub fn kind(&self) -> DiskKind {
        self.medium.kind
    }

    /// Puts bytes into a block, before it is served.
    pub fn fill(&self, lba: u64, bytes: &[u8]) {
        let at = lba as usize * self.medium.block_size as usize;
        self.medium.bytes.copy_in(at, bytes);
    }

    /// What a block holds now.
    #[must_use]
    pub fn block(&self, lba: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.medium.block_size as usize];
        let at = lba as usize * bytes.len();
        self.medium.bytes.copy_out(at, &mut bytes);
        bytes
    }

    /// The extents that were changed since the last call; of memory, which changes without anybody
    /// telling, all of it.
    #[must_use]
    pub fn take_changes(&self) -> Vec<Extent> {
        match self.medium.kind {
            DiskKind::Apart => self.medium.changed.take(),
            DiskKind::Memory => vec![Extent::new(0, self.medium.blocks)],
        }
    }

    /// Whether everything that was written has been made stable since.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.medium.stable.get() == self.medium.changes.get()
    }

    pub(super) fn handle(&self, core: &CoreContext) -> DiskHandle {
        DiskHandle {
            node: core.node(),
            disk: self.clone(),
            region: self.medium.region.as_ref().map(Region::attach),
            pool: core.pool.clone(),
            in_flight: Slab::new(),
            yields: true,
        }
    }
}

thread_local! {
    /// The disks that volumes of this thread are made of.
    static DISKS: RefCell<Slab<Weak<SimMedium>>> = RefCell::default();
}

/// A disk, for who has to name it in a message between cores.
#[derive(Debug)]
struct SimVolume {
    /// Its place in [`DISKS`].
    number: usize,
    traits: Traits,
}

impl Drop for SimVolume {
    fn drop(&mut self) {
        // At the end of a thread there may be no disks any more.
        let _ = DISKS.try_with(|disks| disks.borrow_mut().try_remove(self.number));
    }
}

impl Volume for SimVolume {
    fn traits(&self) -> Traits {
        self.traits.clone()
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let medium = DISKS.with_borrow(|disks| disks.get(self.number).and_then(Weak::upgrade));
        let medium = medium.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Disk { medium }.handle(core)))
    }
}

impl SimMedium {
    fn len(&self, extent: Extent) -> usize {
        extent.blocks as usize * self.block_size as usize
    }

    fn offset(&self, extent: Extent) -> usize {
        extent.lba as usize * self.block_size as usize
    }

    fn slice(&self, extent: Extent) -> Buffer {
        self.bytes.slice(self.offset(extent), self.len(extent))
    }

    fn change(&self, extent: Extent, mapped: bool, put: impl Fn(&Buffer)) {
        put(&self.slice(extent));
        self.mapped.borrow_mut()[extent.lba as usize..extent.end() as usize].fill(mapped);
        self.changes.set(self.changes.get() + 1);
        if self.kind == DiskKind::Apart {
            self.changed.borrow_mut().push(extent);
        }
    }

    fn status(&self, extent: Extent) -> MediumOutcome<BlockLease> {
        let state = if self.mapped.borrow()[extent.lba as usize] {
            Provisioning::Mapped
        } else {
            Provisioning::Deallocated
        };
        MediumOutcome::Provisioning { blocks: 1, state }
    }

    /// Carries out that part of an operation on the medium that concerns `part` of its blocks.
    fn store(&self, op: &MediumOp<BlockLease>, part: Extent) {
        match op {
            MediumOp::Write { extent, data, .. } => {
                let skipped = self.len(Extent::new(extent.lba, part.lba - extent.lba));
                self.write(part, &data.buffer().slice(skipped, self.len(part)));
            }
            MediumOp::WriteSame {
                pattern: Some(pattern),
                ..
            } => self.repeat(part, pattern.buffer()),
            MediumOp::WriteSame { pattern: None, .. } | MediumOp::Unmap { .. } => self.zero(part),
            _ => {}
        }
    }

    fn write(&self, extent: Extent, data: &Buffer) {
        self.change(extent, true, |place| {
            // Its own memory was filled by the transport.
            if !place.is_same_memory(data) {
                place.copy_from(0, data);
            }
        });
    }

    fn repeat(&self, extent: Extent, pattern: &Buffer) {
        let size = self.block_size as usize;
        self.change(extent, true, |place| {
            for block in 0..extent.blocks as usize {
                place.copy_from(block * size, pattern);
            }
        });
    }

    fn zero(&self, extent: Extent) {
        let len = self.len(extent);
        self.change(extent, false, |place| place.zero(0, len));
    }
}

impl DiskHandle {
    fn buffer(&self, len: usize) -> MediumResult<BlockLease> {
        let buffer = self.pool.buffer(len).ok_or(MediumError::Busy)?;
        Ok(MediumOutcome::Lease(buffer.into()))
    }

    /// What a disk that is memory does at once, which is everything.
    fn act(&self, op: &MediumOp<BlockLease>) -> MediumResult<BlockLease> {
        let medium = &self.disk.medium;
        match *op {
            MediumOp::Read { extent, memory } => {
                let start = medium.offset(extent) as u64;
                let range = start..start + medium.len(extent) as u64;
                let own = self.region.as_ref().map(|region| region.buffer(range));
                match own {
                    Some(own) if memory != ReadMemory::Private => {
                        Ok(MediumOutcome::Lease(own.into()))
                    }
                    _ => {
                        let copy = self.pool.buffer(medium.len(extent));
                        let copy = copy.ok_or(MediumError::Busy)?;
                        copy.copy_from(0, &medium.slice(extent));
                        Ok(MediumOutcome::Lease(copy.into()))
                    }
                }
            }
            MediumOp::PrepareWrite { extent } => {
                let start = medium.offset(extent) as u64;
                let range = start..start + medium.len(extent) as u64;
                let own = medium.written.as_ref();
                let own = own.map_or_else(|| medium.slice(extent), |written| lent(written, range));
                Ok(MediumOutcome::Lease(own.into()))
            }
            MediumOp::Buffer { bytes } => self.buffer(bytes as usize),
            _ => {
                medium.store(op, extent(op));
                self.end(op, medium.changes.get(), None)
            }
        }
    }

    /// Does half of an operation, or the rest of it; whether there is a rest.
    fn advance(&self, in_flight: &mut SlowOperation) -> bool {
        let medium = &self.disk.medium;
        let extent = extent(&in_flight.op);
        let rest = extent.blocks - in_flight.done;
        let blocks = match in_flight.done {
            0 => rest.div_ceil(2),
            _ => rest,
        };
        let part = Extent::new(extent.lba + in_flight.done, blocks);
        if let Some(data) = &in_flight.data {
            let at = medium.len(Extent::new(extent.lba, in_flight.done));
            data.copy_from(at, &medium.slice(part));
        }
        medium.store(&in_flight.op, part);
        in_flight.done += blocks;
        in_flight.done < extent.blocks
    }

    /// The end of an operation that went well.
    fn end(
        &self,
        op: &MediumOp<BlockLease>,
        before: u64,
        data: Option<Buffer>,
    ) -> MediumResult<BlockLease> {
        let medium = &self.disk.medium;
        Ok(match (op, data) {
            (MediumOp::Status { extent }, _) => medium.status(*extent),
            (MediumOp::Sanitize { .. }, _) => return Err(MediumError::Unsupported),
            (MediumOp::Flush { .. }, _) => {
                medium.stable.set(medium.stable.get().max(before));
                MediumOutcome::Done
            }
            (_, Some(data)) => MediumOutcome::Lease(data.into()),
            (_, None) => MediumOutcome::Done,
        })
    }

    fn start(&mut self, cx: &mut Context<'_>, in_flight: SlowOperation) {
        let slot = self.in_flight.insert(in_flight);
        cx.file(self.node, slot as u32, FileOp::Blocking(Box::new(|| Ok(0))));
    }
}

/// # Panics
///
/// When there is no address space for it.
fn region(len: u64) -> Arc<Region> {
    let region = Region::reserve(
        len,
        Pages::Small,
        &MemoryLimit::new(len.next_multiple_of(4096)),
    );
    region.expect("address space for a simulated disk")
}

/// Memory of a region, to be written.
fn lent(region: &LocalRegion, range: Range<u64>) -> Buffer {
    region.lend(range).expect("the limit is as large")
}

/// The blocks whose data an operation moves or changes.
fn extent(op: &MediumOp<BlockLease>) -> Extent {
    match *op {
        MediumOp::Read { extent, .. }
        | MediumOp::Write { extent, .. }
        | MediumOp::WriteSame { extent, .. }
        | MediumOp::Unmap { extent, .. } => extent,
        _ => Extent::new(0, 0),
    }
}

impl Handle for DiskHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let medium = &self.disk.medium;
        if medium.kind == DiskKind::Memory {
            return cx.done(id, self.act(&op));
        }
        let data = match op {
            MediumOp::PrepareWrite { extent } => {
                return cx.done(id, self.buffer(medium.len(extent)));
            }
            MediumOp::Buffer { bytes } => return cx.done(id, self.buffer(bytes as usize)),
            MediumOp::Read { extent, .. } => match self.pool.buffer(medium.len(extent)) {
                None => return cx.done(id, Err(MediumError::Busy)),
                data => data,
            },
            _ => None,
        };
        let in_flight = SlowOperation {
            id,
            op,
            before: medium.changes.get(),
            done: 0,
            data,
            given_up: false,
        };
        self.start(cx, in_flight);
    }

    /// Gives up every other operation that has not touched a block. Its place is taken until the
    /// ring has told of it.
    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        let yields = &mut self.yields;
        for (_, in_flight) in &mut self.in_flight {
            let waits = in_flight.done == 0 && !in_flight.given_up;
            if waits && ids.contains(&in_flight.id) {
                in_flight.given_up = *yields;
                *yields = !*yields;
            }
            if waits && in_flight.given_up {
                in_flight.data = None;
                cx.done(in_flight.id, Err(MediumError::Cancelled));
            }
        }
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        let HandleEvent::File { result, .. } = event else {
            return;
        };
        let Some(mut in_flight) = self.in_flight.try_remove(slot as usize) else {
            return;
        };
        if in_flight.given_up {
            return;
        }
        if result.is_err() {
            let error = match in_flight.op {
                MediumOp::Read { .. } | MediumOp::Prefetch { .. } => MediumError::Read,
                _ => MediumError::Write,
            };
            return cx.done(in_flight.id, Err(error));
        }
        if self.advance(&mut in_flight) {
            return self.start(cx, in_flight);
        }
        let SlowOperation {
            id,
            op,
            before,
            data,
            ..
        } = in_flight;
        cx.done(id, self.end(&op, before, data));
    }

    fn recall(&mut self) -> Option<Recall> {
        self.region.as_mut().map(LocalRegion::recall)
    }
}

/// Bytes of buffers that a core may use by default: some segments.
pub const POOL_BYTES: usize = 32 * SEGMENT_BYTES as usize;
