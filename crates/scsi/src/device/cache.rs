//! SYNCHRONIZE CACHE, PRE-FETCH and GET LBA STATUS (SBC-4 §5.33, §5.10, §5.6).

use super::block_scan::check_inside;
use super::tasks::{TaskEnd, TaskSlot};
use super::{DeviceServer, TaskJob};
use crate::limits;
use crate::medium::{Extent, Lease, MediumOp, MediumOutcome, Provisioning};
use crate::wire::asc;
use crate::wire::cdb::bit;
use crate::wire::sense::{Sense, SenseKey};

/// IMMED.
const IMMEDIATE: u8 = 0x02;

/// How many answered commands may go on in the background of a core. Beyond that IMMED makes no
/// difference, or an initiator could start any number of them.
const DETACHED_LIMIT: usize = 64;

/// The most descriptors that GET LBA STATUS gathers; the rest is to be asked for again.
const STATUS_DESCRIPTORS: usize = 256;

/// GET LBA STATUS on its way.
#[derive(Debug)]
pub(super) struct Statuses {
    /// What was not looked at yet.
    rest: Extent,
    /// What was found, in the order of the blocks.
    found: Vec<(Extent, Provisioning)>,
    /// How many descriptors are wanted at most.
    room: usize,
}

impl<L: Lease> DeviceServer<L> {
    /// SYNCHRONIZE CACHE.
    pub(super) fn synchronize_cache(&mut self, slot: TaskSlot) {
        let Some(extent) = self.extent_to_end(slot) else {
            return;
        };
        let whole = extent == Extent::new(0, self.capacity(slot));
        let extent = if whole { Extent::new(0, 0) } else { extent };
        self.start_in_cache(slot, MediumOp::Flush { extent }, TaskEnd::Good);
    }

    /// PRE-FETCH: CONDITION MET tells that all of it is in the cache or will be.
    pub(super) fn prefetch(&mut self, slot: TaskSlot) {
        let Some(mut extent) = self.extent_to_end(slot) else {
            return;
        };
        let traits = &self.state(self.tasks[slot as usize].unit).traits;
        let room = u64::from(limits::prefetch(traits));
        let ending = if extent.blocks <= room {
            TaskEnd::ConditionMet
        } else {
            TaskEnd::Good
        };
        extent.blocks = extent.blocks.min(room);
        self.start_in_cache(slot, MediumOp::Prefetch { extent }, ending);
    }

    fn start_in_cache(&mut self, slot: TaskSlot, op: MediumOp<L>, ending: TaskEnd) {
        self.tasks[slot as usize].job = TaskJob::Cache(ending);
        let detached = self.tasks.iter().filter(|(_, task)| task.detached);
        if bit(&self.tasks[slot as usize].cdb, 1, IMMEDIATE) && detached.count() < DETACHED_LIMIT {
            self.go_on_in_background(slot, ending);
        }
        self.operate(slot, 0, op);
    }

    /// Answers a task that goes on in the background.
    pub(super) fn go_on_in_background(&mut self, slot: TaskSlot, ending: TaskEnd) {
        let task = &mut self.tasks[slot as usize];
        let card = task.card();
        task.detached = true;
        task.ending = None;
        self.count(&self.tasks[slot as usize], ending);
        self.give_memory_back(slot);
        self.leave_set(slot, card);
        self.report(card, ending);
    }

    fn capacity(&self, slot: TaskSlot) -> u64 {
        self.state(self.tasks[slot as usize].unit).traits.blocks
    }

    /// The blocks that the CDB names, where 0 stands for all up to the last. Nothing of the
    /// medium is changed, so no lock is looked at.
    fn extent_to_end(&mut self, slot: TaskSlot) -> Option<Extent> {
        let task = &self.tasks[slot as usize];
        let extent = task.row.extent(&task.cdb);
        let state = self.state(task.unit);
        if let Err(sense) = check_inside(state, extent) {
            self.fail(slot, sense);
            return None;
        }
        Some(match extent.blocks {
            0 => Extent::new(extent.lba, state.traits.blocks - extent.lba),
            _ => extent,
        })
    }

    /// GET LBA STATUS.
    pub(super) fn lba_status(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let lba = task.row.lba(&task.cdb);
        let capacity = self.capacity(slot);
        if lba >= capacity {
            let sense = Sense {
                information: Some(lba),
                ..Sense::new(SenseKey::IllegalRequest, asc::LBA_OUT_OF_RANGE)
            };
            return self.fail(slot, sense);
        }
        let allocated = task.row.allocation_length(&task.cdb) as usize;
        let statuses = Statuses {
            rest: Extent::new(lba, capacity - lba),
            found: Vec::new(),
            room: (allocated.saturating_sub(8) / 16).clamp(1, STATUS_DESCRIPTORS),
        };
        self.tasks[slot as usize].job = TaskJob::Statuses(Box::new(statuses));
        self.ask_status(slot);
    }

    fn ask_status(&mut self, slot: TaskSlot) {
        let TaskJob::Statuses(statuses) = &self.tasks[slot as usize].job else {
            return;
        };
        let extent = statuses.rest;
        if extent.blocks > 0 && statuses.found.len() <= statuses.room {
            return self.operate(slot, 0, MediumOp::Status { extent });
        }
        let data = statuses.parameter_data();
        self.answer_data(slot, data);
    }

    pub(super) fn status_found(&mut self, slot: TaskSlot, outcome: &MediumOutcome<L>) {
        if let TaskJob::Statuses(statuses) = &mut self.tasks[slot as usize].job
            && let MediumOutcome::Provisioning { blocks, state } = *outcome
        {
            statuses.add(blocks.max(1), state);
        }
        self.ask_status(slot);
    }
}

impl Statuses {
    fn add(&mut self, blocks: u64, state: Provisioning) {
        let blocks = blocks.min(self.rest.blocks);
        let lba = self.rest.lba;
        self.rest = Extent::new(lba + blocks, self.rest.blocks - blocks);
        match self.found.last_mut() {
            Some((extent, last)) if *last == state => extent.blocks += blocks,
            _ => self.found.push((Extent::new(lba, blocks), state)),
        }
    }

    /// SBC-4 §5.6.2. An extent too long for its field ends the list: the next question begins
    /// after it.
    fn parameter_data(&self) -> Vec<u8> {
        let mut data = vec![0; 8];
        for (extent, state) in self.found.iter().take(self.room) {
            data.extend(extent.lba.to_be_bytes());
            let blocks = u32::try_from(extent.blocks);
            data.extend(blocks.unwrap_or(u32::MAX).to_be_bytes());
            data.extend([provisioning_status(*state), 0, 0, 0]);
            if blocks.is_err() {
                break;
            }
        }
        let length = data.len() as u32 - 4;
        data[..4].copy_from_slice(&length.to_be_bytes());
        data
    }
}

/// PROVISIONING STATUS.
const fn provisioning_status(state: Provisioning) -> u8 {
    match state {
        Provisioning::Mapped => 0,
        Provisioning::Deallocated => 1,
        Provisioning::Anchored => 2,
    }
}
