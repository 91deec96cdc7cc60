//! The device server of one core: commands in, SAM's protocol services and medium operations out.
//!
//! Each core has one, with its own nexuses and task sets (TST = 001b: a task set per I_T nexus),
//! so that ORDERED and HEAD OF QUEUE never cross cores.
//!
//! # Where each duty is
//!
//! | duty | module |
//! |---|---|
//! | checks before a command enters its task set | `admit` |
//! | checks against the unit's state when its turn has come, locks | `begin` |
//! | READ, WRITE; VERIFY, ORWRITE, COMPARE AND WRITE; WRITE SAME, UNMAP | `transfer`, `pieces`, `block_scan` |
//! | SYNCHRONIZE CACHE, PRE-FETCH, GET LBA STATUS; FORMAT, SANITIZE; EXTENDED COPY | `cache`, `format`, `copy` |
//! | commands that need no medium, and parameter lists | `query` |
//! | status, sense data, waking those that waited | `finish` |
//! | backpressure: how much a nexus may have read, or be asked to send | `flow` |
//! | task management and nexus loss | `manage` |
//! | units and LUNs that come and go | `inventory` |
//! | requests to unit owners, and states that owners publish | `ask`, `publish` |
//! | whether owners tell of locks too | `subscribe` |
//! | tables: tasks; nexuses and their unit attentions | `tasks`, `nexus`, `attention` |
//!
//! # The life of a task
//!
//! [`tasks::TaskPhase`], and once its outcome is known `DeviceTask::ending`:
//!
//! | event | dormant | blocked | preparing | running | outcome known |
//! |---|---|---|---|---|---|
//! | last task that holds it back ends | preparing | | | | |
//! | lock is released | | as before the lock | | | |
//! | owner agrees | | | next step, or GOOD | next step | one wait less |
//! | owner refuses | | | outcome: its sense | outcome: its sense | one wait less |
//! | Data-Out has come | | | next step | to the medium | one wait less |
//! | blocks are to be accessed | | | running, or blocked by a lock | running, or blocked | |
//! | medium operation succeeds | | | next step | next step, or GOOD | one wait less |
//! | medium operation fails | | | outcome: its sense | outcome: its sense | one wait less |
//! | ABORT TASK, reset, PREEMPT AND ABORT, nexus loss | outcome: aborted | outcome: aborted | outcome: aborted | outcome: aborted, operations cancelled | aborted instead |
//!
//! A task whose outcome is known leaves the table once no medium operation, no request to an owner
//! and, unless it was aborted, no lent memory is outstanding (`quiesce`). Only then are its status
//! sent and its tag free.

mod admit;
mod ask;
mod attention;
mod begin;
mod block_scan;
mod cache;
mod copy;
mod finish;
mod flow;
mod format;
mod inventory;
mod manage;
mod nexus;
mod pieces;
mod publish;
mod query;
mod subscribe;
mod tasks;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use slab::Slab;

use self::ask::OwnerRequests;
use self::block_scan::BlockScan;
use self::cache::Statuses;
use self::copy::CopyJob;
use self::format::LongOperation;
use self::manage::ActiveFunction;
pub use self::nexus::NexusCounts;
use self::nexus::NexusSlot;
use self::pieces::Pieces;
use self::publish::UnitSlot;
use self::tasks::{DeviceTask, TaskEnd};
use self::transfer::Stream;
use crate::medium::{Lease, MediumOp, MediumResult, Now};
use crate::nexus::NexusId;
use crate::owner::{OwnerRequest, Publication};
use crate::statistics::ClockTicks;
use crate::task::{Command, CommandFailure, Completed, Function, FunctionResult, Tag};
use crate::unit::{CoreId, UnitId, UnitState};
use crate::wire::lun::Lun;

/// Names a medium operation until its result is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// What the device server wants done.
#[derive(Debug)]
pub enum DeviceOutput<L> {
    /// Carry this out on the unit's volume and tell [`DeviceServer::medium_done`].
    Medium {
        /// The number of the operation.
        id: OpId,
        /// The unit whose medium is accessed.
        unit: UnitId,
        /// The operation.
        op: MediumOp<L>,
    },
    /// A task was aborted: of these operations give up those that have not reached the medium yet.
    /// The results of all are told by [`DeviceServer::medium_done`] as ever.
    Cancel {
        /// The unit whose volume has them.
        unit: UnitId,
        /// The numbers of [`OpId`] that may be in flight.
        ids: Range<u64>,
    },
    /// *Send Data-In*: the transport may slice and send it, in the order given.
    SendDataIn {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command.
        tag: Tag,
        /// Where in the data of the command it belongs; consecutive.
        offset: u32,
        /// The data.
        data: L,
    },
    /// *Receive Data-Out*: fill `into` with that part of the data of the command, then call
    /// [`DeviceServer::data_out`]. Never more than `expected_out` in all.
    ReceiveDataOut {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command.
        tag: Tag,
        /// Where in the data of the command it begins.
        offset: u32,
        /// What to fill, whole.
        into: L,
    },
    /// *Send Command Complete*. Data has been sent and received before, unless the status is TASK
    /// ABORTED: then it is as with [`DeviceOutput::Aborted`].
    Complete {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command; the tag may be used again.
        tag: Tag,
        /// With what.
        completed: Completed,
    },
    /// The task was aborted: nothing is sent for it, what was lent to receive into is let go, and
    /// data that still comes is dropped.
    Aborted {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command; the tag may be used again.
        tag: Tag,
    },
    /// A task management function has ended.
    Managed {
        /// The nexus that asked for the function.
        nexus: NexusId,
        /// As given to [`DeviceServer::manage`].
        id: u32,
        /// The outcome of the function.
        result: FunctionResult,
    },
    /// Everything of a lost nexus has ended at the medium; its number may be used again.
    NexusGone(NexusId),
    /// A unit attention became pending (for QUERY ASYNCHRONOUS EVENT and SCSI async messages).
    Attention {
        /// For whom.
        nexus: NexusId,
        /// On which LUN.
        lun: Lun,
        /// 0xAAQQ.
        code: u16,
    },
    /// Hand this to the unit's owner; the answer comes by [`DeviceServer::replied`].
    Ask {
        /// Which unit's.
        unit: UnitId,
        /// The request to the owner.
        request: OwnerRequest,
    },
    /// Blocks are locked that never were: what the unit's volume has lent for reading until now
    /// must have come back before a task changes them as a whole. Tell
    /// [`DeviceServer::recalled`] when it has.
    Recall {
        /// Which unit.
        unit: UnitId,
    },
    /// Whatever was cut off before [`DeviceServer::fence`] has ended at the medium.
    Fenced(u64),
    /// Tell the unit's owner that this core works by the version.
    Acknowledge {
        /// Which unit's.
        unit: UnitId,
        /// Which version.
        version: u64,
    },
}

/// The device server of one core.
#[derive(Debug)]
pub struct DeviceServer<L> {
    core: CoreId,
    now: Now,
    /// The same, for latencies.
    clock: ClockTicks,
    /// By the slot of [`UnitId`].
    units: Vec<UnitSlot>,
    /// Indexed by [`NexusId`].
    nexuses: Vec<Option<NexusSlot>>,
    tasks: Slab<DeviceTask<L>>,
    asks: OwnerRequests,
    managements: Vec<ActiveFunction>,
    outputs: VecDeque<DeviceOutput<L>>,
    /// Task sets in which a task ended that others wait for.
    wakes: Vec<(NexusId, u32)>,
    /// Nexuses of which reads that waited for room can go on.
    drained_nexuses: Vec<NexusId>,
    /// Something ended that an acknowledgement, a function or the loss of a nexus may wait for.
    progressed: bool,
    /// Nexuses that are being lost.
    losses: Vec<NexusId>,
    /// Fences that wait until no task is cut off.
    fences: Vec<u64>,
    /// Tasks that were cut off and have not ended at the medium.
    cut_off: usize,
    /// Commands that have come so far.
    arrivals: u64,
}

/// What is being done for a task.
#[derive(Debug)]
enum TaskJob<L> {
    /// Nothing yet.
    Idle,
    /// What a cache has of the blocks to be read is made stable first, or has been.
    Settled,
    /// A read of one segment.
    Read,
    /// A write of one segment.
    Write,
    /// A read or write of several segments.
    Stream(Box<Stream<L>>),
    /// Takes in a parameter list.
    Parameters,
    /// Waits for the owner, and flushes then if so told.
    Change {
        /// See [`crate::commands::QueryResult::ChangeAndFlush`].
        flush: bool,
    },
    /// VERIFY and other commands of several steps.
    Pieces(Box<Pieces<L>>),
    /// WRITE SAME takes in its block.
    Pattern,
    /// One thing done to many blocks.
    Sweep(Box<BlockScan<L>>),
    /// SYNCHRONIZE CACHE and PRE-FETCH, and how they end.
    Cache(TaskEnd),
    /// GET LBA STATUS.
    Statuses(Box<Statuses>),
    /// FORMAT UNIT and SANITIZE.
    Long(Box<LongOperation<L>>),
    /// EXTENDED COPY.
    Copy(Box<CopyJob>),
}

impl<L: Lease> DeviceServer<L> {
    /// A device server with these units, all of the process, each the first in its slot.
    #[must_use]
    pub fn new(core: CoreId, units: Vec<Arc<UnitState>>) -> Self {
        let slot = |(id, state)| UnitSlot::new(id, state);
        Self {
            core,
            now: Now::ZERO,
            clock: ClockTicks::default(),
            units: (0..).map(UnitId::first).zip(units).map(slot).collect(),
            nexuses: Vec::new(),
            tasks: Slab::new(),
            asks: OwnerRequests::default(),
            managements: Vec::new(),
            outputs: VecDeque::new(),
            wakes: Vec::new(),
            drained_nexuses: Vec::new(),
            progressed: false,
            losses: Vec::new(),
            fences: Vec::new(),
            cut_off: 0,
            arrivals: 0,
        }
    }

    /// The core it serves.
    #[must_use]
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// *Nexus Loss* (SAM-5 §6.3.4): every task of it is aborted; [`DeviceOutput::NexusGone`]
    /// follows.
    pub fn nexus_lost(&mut self, id: NexusId) {
        self.lose(id);
        self.wake_waiters();
    }

    /// What time it is, for all that follows: to be told once for each turn of the loop around it,
    /// as exact as latencies are to be.
    pub fn set_time(&mut self, now: Now) {
        self.now = now;
        self.clock = now.into();
    }

    /// *Execute Command*. What is wrong with it comes back as its status.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the transport is done with it"
    )]
    pub fn execute(&mut self, command: Command) {
        self.admit(&command);
        self.wake_waiters();
    }

    /// Data-Out that [`DeviceOutput::ReceiveDataOut`] asked for is there.
    pub fn data_out(&mut self, nexus: NexusId, tag: Tag, offset: u32, data: L) {
        let Some(slot) = self.nexus(nexus).and_then(|nexus| nexus.task(tag)) else {
            return;
        };
        let Some(task) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if task.lent == 0 {
            return;
        }
        task.lent -= 1;
        match task.ending {
            None => self.received(slot, offset, data),
            Some(_) => self.quiesce(slot),
        }
        self.wake_waiters();
    }

    /// The transport holds this many bytes of Data-In of a nexus that it could not send yet. To be
    /// told after it has sent some or dropped some; what [`DeviceOutput::SendDataIn`] adds is
    /// counted here. While much is held, no more is read from media for the nexus, so that a peer
    /// that does not read stops its own commands and holds no memory that others need. Data that
    /// has been handed to a kernel need not be told as long as that is bounded.
    pub fn data_in_queued(&mut self, nexus: NexusId, bytes: usize) {
        if self.set_queued(nexus, bytes) {
            self.wake_waiters();
        }
    }

    /// A task management function; [`DeviceOutput::Managed`] follows with the same `id`.
    pub fn manage(&mut self, nexus: NexusId, id: u32, lun: Lun, function: Function) {
        self.function(nexus, id, lun, function);
        self.wake_waiters();
    }

    /// The result of a medium operation.
    pub fn medium_done(&mut self, id: OpId, result: MediumResult<L>) {
        let (slot, piece) = id.parts();
        let Some(task) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if task.operations == 0 {
            return;
        }
        task.leave_medium(self.clock);
        match (task.ending, result) {
            (None, Ok(outcome)) => self.progressed(slot, piece, outcome),
            (None, Err(error)) => self.failed(slot, error),
            (Some(_), _) => self.quiesce(slot),
        }
        self.wake_waiters();
    }

    /// The owner of a unit published a new state.
    pub fn publish(&mut self, unit: UnitId, publication: Publication) {
        self.put_into_effect(unit, publication);
        self.wake_waiters();
    }

    /// What a volume had lent for reading before an [`DeviceOutput::Recall`] has come back.
    pub fn recalled(&mut self, unit: UnitId) {
        if let Some(slot) = self.unit_mut(unit) {
            slot.recalls = slot.recalls.saturating_sub(1);
            self.progressed = true;
        }
        self.wake_waiters();
    }

    /// The owner of a unit answered [`DeviceOutput::Ask`].
    pub fn replied(&mut self, _unit: UnitId, id: u64, result: Result<(), CommandFailure>) {
        self.answered_by_owner(id, result);
        self.wake_waiters();
    }

    /// What to do next; call until `None` after each call of another function.
    pub fn poll(&mut self) -> Option<DeviceOutput<L>> {
        self.outputs.pop_front()
    }

    fn nexus(&self, id: NexusId) -> Option<&NexusSlot> {
        self.nexuses.get(id.0 as usize)?.as_ref()
    }

    fn nexus_mut(&mut self, id: NexusId) -> Option<&mut NexusSlot> {
        self.nexuses.get_mut(id.0 as usize)?.as_mut()
    }
}

/// How many of everything that comes and goes a device server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Nexuses, those that are being lost among them.
    pub nexuses: usize,
    /// Commands that have not ended.
    pub tasks: usize,
    /// Requests that owners have not answered.
    pub requests: usize,
    /// Task management functions that have not ended.
    pub functions: usize,
    /// Publications that are not acknowledged.
    pub publications: usize,
}

impl<L> DeviceServer<L> {
    /// What it holds now.
    #[must_use]
    pub fn counts(&self) -> DeviceCounts {
        DeviceCounts {
            nexuses: self.nexuses.iter().flatten().count(),
            tasks: self.tasks.len(),
            requests: self.asks.len(),
            functions: self.managements.len(),
            publications: self.units.iter().map(|unit| unit.pending.len()).sum(),
        }
    }
}
