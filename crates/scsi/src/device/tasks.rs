//! A command on its way, and how it ends.

use super::TaskJob;
use super::flow::ReadTurn;
use crate::commands::CommandRow;
use crate::medium::Extent;
use crate::nexus::NexusId;
use crate::order::OrderKey;
use crate::statistics::ClockTicks;
use crate::task::{Attribute, Command, CommandFailure, Tag};
use crate::unit::UnitId;

/// A task's place in the slab. It stays taken until every operation and request of the task was
/// answered, so it can be part of their names.
pub(super) type TaskSlot = u32;

/// A command that has not ended.
#[derive(Debug)]
pub(super) struct DeviceTask<L> {
    pub(super) nexus: NexusId,
    pub(super) tag: Tag,
    /// Its place in [`super::nexus::NexusSlot::units`].
    pub(super) at: u32,
    pub(super) unit: UnitId,
    pub(super) row: &'static CommandRow,
    pub(super) attribute: Attribute,
    /// Older tasks of the core have lesser ones.
    pub(super) arrival: u64,
    /// When it came.
    pub(super) begun: ClockTicks,
    pub(super) phase: TaskPhase,
    /// It has been answered and goes on by itself (IMMED).
    pub(super) detached: bool,
    /// Its LUN or unit is gone: a fence waits for its end.
    pub(super) is_cut_off: bool,
    /// Medium operations in flight.
    pub(super) operations: u32,
    /// Since when there are any, ...
    medium_since: ClockTicks,
    /// ... and how long there were some before.
    pub(super) at_medium: ClockTicks,
    /// Bytes that the medium was asked for and that were not sent.
    pub(super) reading: usize,
    /// Bytes of memory that are set aside for its Data-Out.
    pub(super) writing: usize,
    /// How it stands in the line of those that wait to read, or to take Data-Out.
    pub(super) turn: ReadTurn,
    /// Leases that the transport is filling.
    pub(super) lent: u32,
    /// The request to the unit's owner that is to be answered.
    pub(super) ask: Option<u64>,
    /// The request by which it holds a lock.
    pub(super) lock: Option<u64>,
    /// The blocks that it names; none for commands that touch none.
    pub(super) extent: Extent,
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    /// Bytes that the CDB asks to move to the initiator.
    pub(super) length_in: u64,
    /// Bytes that the CDB asks to move from the initiator.
    pub(super) length_out: u64,
    pub(super) cdb: [u8; 32],
    /// How it is to end as soon as nothing of it is in flight any more.
    pub(super) ending: Option<TaskEnd>,
    pub(super) job: TaskJob<L>,
}

/// Whether a task has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskPhase {
    /// Waits for others of its task set.
    Dormant,
    /// Waits until a lock of another task on the unit in this slot is gone.
    Blocked(u32),
    /// Touches no block (yet): takes in its parameters, or waits for the unit's owner.
    Preparing,
    /// May be at the blocks of its extent.
    Running,
}

/// How a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskEnd {
    /// GOOD.
    Good,
    /// CONDITION MET.
    ConditionMet,
    /// Anything else.
    Failed(CommandFailure),
    /// Without a status.
    Aborted,
    /// With TASK ABORTED, as another nexus aborted it and TAS = 1.
    TaskAborted,
}

impl TaskEnd {
    pub(super) const fn is_abort(self) -> bool {
        matches!(self, Self::Aborted | Self::TaskAborted)
    }
}

impl<L> DeviceTask<L> {
    pub(super) fn new(
        command: &Command,
        at: usize,
        unit: UnitId,
        row: &'static CommandRow,
        begun: ClockTicks,
    ) -> Self {
        Self {
            nexus: command.nexus,
            tag: command.tag,
            at: at as u32,
            unit,
            row,
            attribute: command.attribute,
            arrival: 0,
            begun,
            phase: TaskPhase::Preparing,
            detached: false,
            is_cut_off: false,
            operations: 0,
            medium_since: ClockTicks::default(),
            at_medium: ClockTicks::default(),
            reading: 0,
            writing: 0,
            turn: ReadTurn::None,
            lent: 0,
            ask: None,
            lock: None,
            extent: Extent::new(0, 0),
            expected_in: command.expected_in,
            expected_out: command.expected_out,
            length_in: 0,
            length_out: 0,
            cdb: command.cdb,
            ending: None,
            job: TaskJob::Idle,
        }
    }

    /// An operation of it goes to the medium.
    pub(super) const fn enter_medium(&mut self, now: ClockTicks) {
        if self.operations == 0 {
            self.medium_since = now;
        }
        self.operations += 1;
    }

    /// One has come back.
    pub(super) const fn leave_medium(&mut self, now: ClockTicks) {
        self.operations -= 1;
        if self.operations == 0 {
            self.at_medium.0 += now.since(self.medium_since).0;
        }
    }

    pub(super) const fn rank(&self) -> OrderKey {
        OrderKey {
            attribute: self.attribute,
            class: self.row.ordering,
        }
    }

    /// The CDB, as long as its row says.
    pub(super) fn cdb(&self) -> &[u8] {
        self.cdb.get(..self.row.usage.len()).unwrap_or(&self.cdb)
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.ending.is_some_and(TaskEnd::is_abort)
    }

    /// Whether it is at these blocks, or data for them is being received.
    pub(super) fn touches(&self, unit: UnitId, extent: Extent) -> bool {
        match &self.job {
            TaskJob::Stream(stream) if self.is_at_rest() => {
                self.unit == unit && stream.is_cut_by(extent)
            }
            _ if self.phase != TaskPhase::Running => false,
            TaskJob::Copy(copy) => copy.touches(unit, extent),
            TaskJob::Sweep(sweep) => self.unit == unit && sweep.is_at(extent),
            TaskJob::Pieces(pieces) if pieces.goes_by_pieces() => {
                self.unit == unit && pieces.piece().overlaps(extent)
            }
            _ => self.unit == unit && self.extent.overlaps(extent),
        }
    }

    /// Whether anything of it is at the medium of a unit, or will be without looking at locks
    /// again. A long read that rests is half way: its other half must come from the same volume.
    pub(super) fn is_at_medium(&self, unit: UnitId) -> bool {
        let waits_for_lock = self.ask.is_some() && self.ask == self.lock;
        self.concerns(unit)
            && match self.phase {
                TaskPhase::Dormant | TaskPhase::Blocked(_) => false,
                _ if self.is_at_rest() => matches!(self.job, TaskJob::Stream(_)),
                _ => !waits_for_lock,
            }
    }

    /// Whether it waits for its turn to read, with nothing in flight at the medium.
    pub(super) fn is_at_rest(&self) -> bool {
        self.operations == 0 && self.turn != ReadTurn::None
    }

    /// Whether it was sent to this unit, or copies from or to it.
    pub(super) fn concerns(&self, unit: UnitId) -> bool {
        self.unit == unit || matches!(&self.job, TaskJob::Copy(copy) if copy.concerns(unit))
    }

    /// What remains to be known of it when it leaves its task set or is answered.
    pub(super) const fn card(&self) -> TaskSummary {
        TaskSummary {
            nexus: self.nexus,
            tag: self.tag,
            at: self.at,
            unit: self.unit,
            begun: self.begun,
            phase: self.phase,
            rank: self.rank(),
            detached: self.detached,
            lengths: (self.length_in, self.length_out),
        }
    }
}

/// What says where a task belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskSummary {
    pub(super) nexus: NexusId,
    pub(super) tag: Tag,
    pub(super) at: u32,
    pub(super) unit: UnitId,
    pub(super) begun: ClockTicks,
    pub(super) phase: TaskPhase,
    pub(super) rank: OrderKey,
    pub(super) detached: bool,
    pub(super) lengths: (u64, u64),
}
