//! Commands that do one thing to many blocks without moving data for each: WRITE SAME, UNMAP
//! (SBC-4 §5.54, §5.35), and the work of FORMAT UNIT and SANITIZE.

use super::begin::too_long;
use super::pieces::WRONG_DATA_LENGTH;
use super::tasks::{TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceServer, TaskJob};
use crate::commands::CommandRow;
use crate::limits;
use crate::medium::{Extent, Lease, MediumOp, Sanitize, Traits};
use crate::unit::{UnitId, UnitState};
use crate::wire::asc;
use crate::wire::cdb::{be16, be32, be64, bit};
use crate::wire::sense::{Sense, SenseKey};

/// One thing to be done to extents, chunk by chunk, so that it can be aborted in between.
#[derive(Debug)]
pub(super) struct BlockScan<L> {
    act: ScanAction<L>,
    /// What is left, the next last.
    todo: Vec<Extent>,
    /// The blocks of the operation in flight. Other tasks are kept out of these only.
    at: Extent,
    block_size: u64,
    /// Something was done that may be in a volatile cache still.
    volatile: bool,
}

/// What is done.
#[derive(Debug)]
pub(super) enum ScanAction<L> {
    /// Every block gets these contents; `None`: zeros.
    Fill(Option<L>),
    /// Every block is deallocated, or anchored.
    Unmap {
        /// See [`MediumOp::Unmap`].
        anchor: bool,
    },
    /// Every block is made irrecoverable.
    Sanitize(Sanitize<L>),
}

/// How much is done by one operation of a sweep: a slow medium needs some tenths of a second for
/// it, which is what an abort may have to wait.
const CHUNK_BYTES: u64 = 16 << 20;

/// The same where nothing is written.
const UNMAP_CHUNK_BYTES: u64 = 16 << 30;

impl<L> BlockScan<L> {
    /// Whether the operation in flight overlaps these blocks.
    pub(super) const fn is_at(&self, extent: Extent) -> bool {
        self.at.overlaps(extent)
    }
}

impl<L: Lease> BlockScan<L> {
    pub(super) fn new(act: ScanAction<L>, mut extents: Vec<Extent>, traits: &Traits) -> Self {
        extents.reverse();
        let volatile = !extents.is_empty();
        Self {
            act,
            todo: extents,
            at: Extent::new(0, 0),
            block_size: traits.block_size.into(),
            volatile,
        }
    }

    /// The next operation.
    pub(super) fn next(&mut self) -> Option<MediumOp<L>> {
        let ahead = self.ahead()?;
        Some(self.take(ahead.blocks))
    }

    /// The blocks that the next operation may be about.
    fn ahead(&self) -> Option<Extent> {
        let last = self.todo.last()?;
        let chunk = match self.act {
            ScanAction::Unmap { .. } => UNMAP_CHUNK_BYTES,
            ScanAction::Fill(_) | ScanAction::Sanitize(_) => CHUNK_BYTES,
        };
        let blocks = last.blocks.min(chunk / self.block_size);
        Some(Extent::new(last.lba, blocks))
    }

    /// The medium could not deallocate the blocks of the last operation. They and the rest are
    /// written with zeros then, as that is how deallocated blocks read (LBPRZ); returns whether
    /// that will do.
    pub(super) fn fill_instead(&mut self) -> bool {
        if !matches!(self.act, ScanAction::Unmap { anchor: false }) {
            return false;
        }
        self.act = ScanAction::Fill(None);
        self.todo.push(self.at);
        true
    }

    /// The next operation, about the first `blocks` of those.
    fn take(&mut self, blocks: u64) -> MediumOp<L> {
        let extent = self.ahead().unwrap_or(Extent::new(0, 0));
        let extent = Extent::new(extent.lba, extent.blocks.min(blocks));
        if let Some(last) = self.todo.last_mut() {
            last.lba += extent.blocks;
            last.blocks -= extent.blocks;
        }
        self.todo.pop_if(|last| last.blocks == 0);
        self.at = extent;
        match &self.act {
            ScanAction::Fill(pattern) => MediumOp::WriteSame {
                extent,
                pattern: pattern.clone(),
            },
            ScanAction::Unmap { anchor } => MediumOp::Unmap {
                extent,
                anchor: *anchor,
            },
            ScanAction::Sanitize(method) => MediumOp::Sanitize {
                extent,
                method: method.clone(),
            },
        }
    }

    /// When all is done, and nothing may stay volatile: what makes it stable, once.
    fn flush(&mut self) -> Option<MediumOp<L>> {
        let extent = Extent::new(0, 0);
        self.at = extent;
        std::mem::take(&mut self.volatile).then_some(MediumOp::Flush { extent })
    }

    /// Blocks that are left.
    pub(super) fn left(&self) -> u64 {
        self.todo.iter().map(|extent| extent.blocks).sum()
    }
}

/// In byte 1 of WRITE SAME.
const UNMAP: u8 = 0x08;
const ANCHOR: u8 = 0x10;
const NDOB: u8 = 0x01;

/// ANCHOR, in byte 1 of UNMAP.
const UNMAP_ANCHOR: u8 = 0x01;

impl<L: Lease> DeviceServer<L> {
    /// WRITE SAME.
    pub(super) fn write_same(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let traits = &self.state(task.unit).traits;
        let limit = limits::write_same(traits);
        let block_size = traits.block_size;
        if let Err(sense) = check_write_same(traits, &task.cdb) {
            return self.fail(slot, sense);
        }
        let extent = match write_same_extent(traits, task.row, &task.cdb) {
            Ok(extent) => extent,
            Err(sense) => return self.fail(slot, sense),
        };
        if self.check(slot, extent, limit).is_none() {
            return;
        }
        let task = &mut self.tasks[slot as usize];
        if bit(&task.cdb, 1, NDOB) {
            return self.fill(slot, None);
        }
        task.length_out = u64::from(block_size);
        if task.expected_out != block_size {
            return self.fail(slot, WRONG_DATA_LENGTH);
        }
        task.job = TaskJob::Pattern;
        self.operate(slot, 0, MediumOp::Buffer { bytes: block_size });
    }

    /// Does what WRITE SAME asks for with the block that came, if any.
    pub(super) fn fill(&mut self, slot: TaskSlot, block: Option<L>) {
        let task = &self.tasks[slot as usize];
        let pattern = block.filter(|block| !is_zero(block));
        let act = match pattern {
            // Deallocated blocks read zeros, so nothing else can be told by them.
            None if bit(&task.cdb, 1, UNMAP) => ScanAction::Unmap {
                anchor: bit(&task.cdb, 1, ANCHOR),
            },
            pattern => ScanAction::Fill(pattern),
        };
        let traits = &self.state(task.unit).traits;
        let sweep = BlockScan::new(act, vec![task.extent], traits);
        self.tasks[slot as usize].job = TaskJob::Sweep(Box::new(sweep));
        self.sweep_on(slot);
    }

    /// Starts the next operation of a sweep, of the blocks before the first that another task has
    /// locked. Locks wait for one operation only, and a sweep for those of the block it is at: a
    /// COMPARE AND WRITE somewhere in its range neither waits for all of it nor holds it up for
    /// good.
    pub(super) fn sweep_on(&mut self, slot: TaskSlot) {
        self.look_at_pending(slot);
        let unit = self.tasks[slot as usize].unit;
        let TaskJob::Sweep(sweep) = &self.tasks[slot as usize].job else {
            return;
        };
        let free = sweep.ahead().map(|ahead| self.free_blocks(unit, ahead));
        let task = &mut self.tasks[slot as usize];
        let TaskJob::Sweep(sweep) = &mut task.job else {
            return;
        };
        match free {
            None => self.sweep_done(slot),
            Some(0) => self.block(slot, unit),
            Some(blocks) => {
                let op = sweep.take(blocks);
                task.phase = TaskPhase::Running;
                self.operate(slot, 0, op);
            }
        }
    }

    /// These commands have no FUA: with the cache switched off it is a flush that makes them as
    /// lasting as writes.
    fn sweep_done(&mut self, slot: TaskSlot) {
        let through = self.state(self.tasks[slot as usize].unit).writes_through();
        let TaskJob::Sweep(sweep) = &mut self.tasks[slot as usize].job else {
            return;
        };
        match through.then(|| sweep.flush()).flatten() {
            Some(op) => self.operate(slot, 0, op),
            None => self.finish(slot, TaskEnd::Good),
        }
    }

    /// How many blocks there are from the beginning of an extent to the first that is locked.
    fn free_blocks(&self, unit: UnitId, extent: Extent) -> u64 {
        let known = &self.units[unit.index()];
        if known.has_locked(|lock| lock == Extent::ALL) {
            return 0;
        }
        let locks = known.state.locks.iter().map(|lock| lock.extent);
        let locked = locks.filter(|lock| lock.overlaps(extent));
        let first = locked.map(|lock| lock.lba).min();
        first.map_or(extent.blocks, |first| first.saturating_sub(extent.lba))
    }

    /// UNMAP, its parameter list received.
    pub(super) fn unmap(&mut self, slot: TaskSlot, parameters: &[u8]) {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let anchor = bit(&task.cdb, 1, UNMAP_ANCHOR);
        let extents = match check_anchor(&state.traits, anchor)
            .and_then(|()| unmap_extents(state, parameters))
        {
            Ok(extents) => extents,
            Err(sense) => return self.fail(slot, sense),
        };
        let sweep = BlockScan::new(ScanAction::Unmap { anchor }, extents, &state.traits);
        self.tasks[slot as usize].job = TaskJob::Sweep(Box::new(sweep));
        self.sweep_on(slot);
    }
}

fn is_zero<L: Lease>(block: &L) -> bool {
    let mut bytes = vec![0; block.len()];
    block.copy_out(0, &mut bytes);
    bytes.iter().all(|byte| *byte == 0)
}

/// What WRITE SAME is to write on. NUMBER OF LOGICAL BLOCKS = 0 means all up to the last block,
/// from one that is there, or is refused (SBC-4 §5.54.2).
fn write_same_extent(traits: &Traits, row: &CommandRow, cdb: &[u8]) -> Result<Extent, Sense> {
    let extent = row.extent(cdb);
    match extent.blocks {
        0 if !traits.write_same_to_end => Err(too_long(row)),
        0 => Ok(Extent::new(
            extent.lba,
            traits.blocks.saturating_sub(extent.lba).max(1),
        )),
        _ => Ok(extent),
    }
}

fn check_write_same(traits: &Traits, cdb: &[u8]) -> Result<(), Sense> {
    let unmap = bit(cdb, 1, UNMAP);
    if unmap && traits.unmap_granularity.is_none() {
        return Err(Sense::cdb_field(1, Some(3)));
    }
    if bit(cdb, 1, ANCHOR) && !(unmap && traits.anchor) {
        return Err(Sense::cdb_field(1, Some(4)));
    }
    Ok(())
}

fn check_anchor(traits: &Traits, anchor: bool) -> Result<(), Sense> {
    if anchor && !traits.anchor {
        Err(Sense::cdb_field(1, Some(0)))
    } else {
        Ok(())
    }
}

/// The extents of an UNMAP parameter list. A list that names no blocks is not an error, nor is
/// an incomplete last descriptor (SBC-4 §5.35.2).
fn unmap_extents(state: &UnitState, list: &[u8]) -> Result<Vec<Extent>, Sense> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    if list.len() < 8 {
        return Err(Sense::parameter_length());
    }
    let length = usize::from(be16(list, 2));
    let descriptors = list
        .get(8..8 + length)
        .ok_or(Sense::parameter_length())?
        .chunks_exact(16);
    if descriptors.len() > limits::UNMAP_DESCRIPTORS as usize {
        return Err(Sense::parameter_field(2, None));
    }
    let mut total = 0;
    let mut extents = Vec::with_capacity(descriptors.len());
    for (number, descriptor) in descriptors.enumerate() {
        let extent = Extent::new(be64(descriptor, 0), u64::from(be32(descriptor, 8)));
        check_inside(state, extent)?;
        total += extent.blocks;
        if total > u64::from(limits::unmap(&state.traits)) {
            return Err(Sense::parameter_field(8 + 16 * number as u16 + 8, None));
        }
        if extent.blocks > 0 {
            extents.push(extent);
        }
    }
    Ok(extents)
}

/// LOGICAL BLOCK ADDRESS OUT OF RANGE, naming the first block that is not there.
pub(super) fn check_inside(state: &UnitState, extent: Extent) -> Result<(), Sense> {
    let capacity = state.traits.blocks;
    if extent.lba <= capacity && extent.blocks <= capacity - extent.lba {
        return Ok(());
    }
    Err(Sense {
        information: Some(extent.lba.max(capacity)),
        ..Sense::new(SenseKey::IllegalRequest, asc::LBA_OUT_OF_RANGE)
    })
}
