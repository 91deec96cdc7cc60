//! A command ends: when nothing of it is in flight any more, its status is sent, what it held is
//! given back, and those that waited for it go on.

use std::ops::Range;

use super::ask::RequestOrigin;
use super::copy::copy_failure;
use super::nexus::NexusLoss;
use super::tasks::{DeviceTask, TaskEnd, TaskPhase, TaskSlot, TaskSummary};
use super::{DeviceOutput, DeviceServer, OpId, TaskJob};
use crate::medium::{Lease, MediumError, MediumOutcome};
use crate::nexus::NexusId;
use crate::order::EarlierTasks;
use crate::owner::UnitChange;
use crate::statistics::CommandTime;
use crate::task::{Attribute, CommandFailure, Completed, SenseBytes};
use crate::unit::UnitId;
use crate::wire::asc;
use crate::wire::sense::{Format, Sense, SenseKey, Status};

impl OpId {
    /// Those of one task.
    pub(super) const fn of(slot: TaskSlot) -> Range<u64> {
        Self::new(slot, 0).0..Self::new(slot + 1, 0).0
    }

    pub(super) const fn new(slot: TaskSlot, piece: u32) -> Self {
        Self((slot as u64) << 32 | piece as u64)
    }

    pub(super) const fn parts(self) -> (TaskSlot, u32) {
        ((self.0 >> 32) as TaskSlot, self.0 as u32)
    }
}

impl<L: Lease> DeviceServer<L> {
    /// Something of a task went well at the medium.
    pub(super) fn progressed(&mut self, slot: TaskSlot, piece: u32, outcome: MediumOutcome<L>) {
        match &self.tasks[slot as usize].job {
            TaskJob::Read => self.read_done(slot, outcome),
            TaskJob::Settled => self.begin(slot),
            TaskJob::Write => self.write_progressed(slot, outcome),
            TaskJob::Stream(_) => self.stream_progressed(slot, piece, outcome),
            TaskJob::Change { .. } => self.finish(slot, TaskEnd::Good),
            TaskJob::Pieces(_) => self.pieces_progressed(slot, outcome),
            TaskJob::Pattern => {
                if let MediumOutcome::Lease(into) = outcome {
                    self.receive(slot, 0, into);
                }
            }
            TaskJob::Sweep(_) => self.sweep_on(slot),
            TaskJob::Cache(ending) => self.finish(slot, *ending),
            TaskJob::Statuses(_) => self.status_found(slot, &outcome),
            TaskJob::Long(_) => self.long_progressed(slot),
            TaskJob::Copy(_) => self.copy_progressed(slot, outcome),
            TaskJob::Idle | TaskJob::Parameters => {}
        }
    }

    /// Data-Out came for a task.
    pub(super) fn received(&mut self, slot: TaskSlot, offset: u32, data: L) {
        match &self.tasks[slot as usize].job {
            TaskJob::Write => self.write_received(slot, data),
            TaskJob::Stream(_) => self.stream_received(slot, offset, data),
            TaskJob::Parameters => self.parameters_received(slot, &data),
            TaskJob::Pieces(_) => self.pieces_received(slot, data),
            TaskJob::Pattern => self.fill(slot, Some(data)),
            _ => {}
        }
    }

    /// A task ends with what is wrong with it.
    pub(super) fn fail(&mut self, slot: TaskSlot, failure: impl Into<CommandFailure>) {
        self.finish(slot, TaskEnd::Failed(failure.into()));
    }

    /// Goes on by writing where a volume cannot discard. Returns whether it can.
    #[cold]
    fn fills_instead(&mut self, slot: TaskSlot) -> bool {
        let (fills, go_on): (_, fn(&mut Self, _)) = match &mut self.tasks[slot as usize].job {
            TaskJob::Sweep(sweep) => (sweep.fill_instead(), Self::sweep_on),
            TaskJob::Long(long) => (long.fill_instead(), Self::long_progressed),
            _ => return false,
        };
        if fills {
            go_on(self, slot);
        }
        fills
    }

    /// Something of a task went wrong at the medium.
    pub(super) fn failed(&mut self, slot: TaskSlot, error: MediumError) {
        if error == MediumError::Unsupported && self.fills_instead(slot) {
            return;
        }
        let failure = match &self.tasks[slot as usize].job {
            TaskJob::Copy(_) => copy_failure(error),
            _ => failure(error),
        };
        self.fail(slot, failure);
    }

    /// The owner answered a task.
    pub(super) fn task_answered(
        &mut self,
        slot: TaskSlot,
        id: u64,
        result: Result<(), CommandFailure>,
    ) {
        let Some(task) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        task.ask = None;
        if task.lock == Some(id) && result.is_err() {
            task.lock = None;
        }
        match (task.ending, result) {
            (Some(_), _) => self.quiesce(slot),
            (None, Err(failure)) => self.fail(slot, failure),
            (None, Ok(())) => self.granted(slot),
        }
    }

    fn granted(&mut self, slot: TaskSlot) {
        match &self.tasks[slot as usize].job {
            TaskJob::Change { flush } => self.changed(slot, *flush),
            TaskJob::Pieces(_) => self.pieces_granted(slot),
            TaskJob::Long(_) => self.long_granted(slot),
            _ => {}
        }
    }

    /// The outcome of a task is known: it ends as soon as nothing of it is in flight.
    pub(super) fn finish(&mut self, slot: TaskSlot, ending: TaskEnd) {
        self.tasks[slot as usize].ending = Some(ending);
        self.quiesce(slot);
    }

    /// Ends a task whose outcome is known, if nothing of it is in flight. An aborted one does not
    /// wait for data that the transport may be receiving: that is dropped.
    pub(super) fn quiesce(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let Some(ending) = task.ending else {
            return;
        };
        if task.operations > 0 {
            return;
        }
        self.progressed |= ending.is_abort();
        if task.ask.is_some() || task.lent > 0 && !ending.is_abort() {
            return;
        }
        self.close(slot, ending);
    }

    fn close(&mut self, slot: TaskSlot, ending: TaskEnd) {
        let Some(task) = self.tasks.try_remove(slot as usize) else {
            return;
        };
        let card = task.card();
        self.leave_set(slot, card);
        self.leave_flow(slot, &task);
        if !task.detached {
            self.count(&task, ending);
        }
        if task.is_cut_off {
            self.cut_off -= 1;
        }
        match &task.job {
            TaskJob::Copy(_) => self.remember_copy(&task, ending),
            TaskJob::Long(_) => self.abandon_long(&task),
            _ => {}
        }
        if let Some(lock) = task.lock {
            self.ask(
                task.unit,
                task.nexus,
                RequestOrigin::NotAwaited,
                UnitChange::Unlock(lock),
            );
        }
        if !task.detached {
            self.report(card, ending);
        }
        let unit = self.units.get(task.unit.index());
        let waited_for = unit.is_some_and(|unit| !unit.pending.is_empty());
        self.progressed |= waited_for || !self.managements.is_empty();
    }

    /// Counts a task that ends with a status.
    pub(super) fn count(&self, task: &DeviceTask<L>, ending: TaskEnd) {
        let statistics = &self.state(task.unit).statistics;
        let took = CommandTime {
            front: self.clock.since(task.begun),
            medium: task.at_medium,
        };
        match ending {
            TaskEnd::Good | TaskEnd::ConditionMet => {
                statistics.count(self.core, task.row.class, task.extent.blocks, took);
            }
            TaskEnd::Failed(_) => statistics.count_error(self.core, task.row.class, took),
            TaskEnd::Aborted | TaskEnd::TaskAborted => {}
        }
    }

    /// Takes a task out of its task set, and from among those that a lock blocks.
    pub(super) fn leave_set(&mut self, slot: TaskSlot, card: TaskSummary) {
        if let TaskPhase::Blocked(unit) = card.phase
            && let Some(unit) = self.units.get_mut(unit as usize)
        {
            unit.blocked = unit.blocked.saturating_sub(1);
        }
        let Some(nexus) = self
            .nexuses
            .get_mut(card.nexus.0 as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        if !card.detached {
            nexus.counts.latency.count(self.clock.since(card.begun));
            nexus.counts.bytes_in += card.lengths.0;
            nexus.counts.bytes_out += card.lengths.1;
            nexus.remove(slot);
            let view = &mut nexus.units[card.at as usize];
            let set = &mut view.set;
            set.tasks -= 1;
            set.barriers -= u32::from(card.rank.is_barrier());
            set.dormant -= u32::from(card.phase == TaskPhase::Dormant);
            if set.dormant > 0 {
                self.wakes.push((card.nexus, card.at));
            }
            if !view.is_mapped {
                nexus.vacate(card.at);
            }
        }
        self.progressed |= nexus.leaving != NexusLoss::No;
    }

    /// Tells the transport how a task ended.
    pub(super) fn report(&mut self, card: TaskSummary, ending: TaskEnd) {
        let (nexus, tag) = (card.nexus, card.tag);
        self.outputs.push_back(match ending {
            TaskEnd::Aborted => DeviceOutput::Aborted { nexus, tag },
            _ => {
                let format = match ending {
                    TaskEnd::Failed(_) => self.sense_format(card.unit),
                    _ => Format::Fixed,
                };
                let completed = completed(ending, format, card.lengths);
                DeviceOutput::Complete {
                    nexus,
                    tag,
                    completed,
                }
            }
        });
    }

    /// Lets go on what waited for others to end, until nothing more ends by that. It is a loop,
    /// not a recursion, as an initiator decides how long such a chain is.
    pub(super) fn wake_waiters(&mut self) {
        while self.progressed || !self.wakes.is_empty() || !self.drained_nexuses.is_empty() {
            self.wake_one();
        }
    }

    fn wake_one(&mut self) {
        if let Some((nexus, at)) = self.wakes.pop() {
            self.wake(nexus, at);
        } else if let Some(nexus) = self.drained_nexuses.pop() {
            self.give_turns(nexus);
        } else {
            self.progressed = false;
            self.acknowledge();
            self.conclude_functions();
            self.conclude_losses();
            self.conclude_fences();
        }
    }

    /// Begins what nothing holds back any more in a task set.
    fn wake(&mut self, nexus: NexusId, at: u32) {
        for slot in self.enabled(nexus, at) {
            if let Some(nexus) = self.nexus_mut(nexus) {
                nexus.units[at as usize].set.dormant -= 1;
            }
            self.tasks[slot as usize].phase = TaskPhase::Preparing;
            self.begin(slot);
        }
    }

    /// The dormant tasks of a set that nothing holds back, oldest first.
    fn enabled(&self, nexus: NexusId, at: u32) -> Vec<TaskSlot> {
        let Some(nexus) = self.nexus(nexus) else {
            return Vec::new();
        };
        let tasks = nexus.tasks.iter();
        let tasks = tasks.map(|entry| (entry.slot, &self.tasks[entry.slot as usize]));
        let set = tasks.filter(|(_, task)| task.at == at);
        if set
            .clone()
            .any(|(_, task)| task.attribute == Attribute::HeadOfQueue)
        {
            return Vec::new();
        }
        let mut older = EarlierTasks::default();
        set.filter(|(_, task)| {
            let held = older.holds_back(task.rank());
            older.add(task.rank());
            task.phase == TaskPhase::Dormant && !held
        })
        .map(|(slot, _)| slot)
        .collect()
    }

    /// The format in which sense data of a unit is told.
    pub(super) fn sense_format(&self, unit: UnitId) -> Format {
        self.unit(unit)
            .map_or(Format::Fixed, |unit| unit.state.sense_format())
    }
}

/// *Send Command Complete*.
pub(super) fn completed(ending: TaskEnd, format: Format, lengths: (u64, u64)) -> Completed {
    let (status, sense) = match ending {
        TaskEnd::Good | TaskEnd::Aborted => (Status::Good, SenseBytes::EMPTY),
        TaskEnd::ConditionMet => (Status::ConditionMet, SenseBytes::EMPTY),
        TaskEnd::TaskAborted => (Status::TaskAborted, SenseBytes::EMPTY),
        TaskEnd::Failed(CommandFailure::Status(status)) => (status, SenseBytes::EMPTY),
        TaskEnd::Failed(CommandFailure::Check(sense)) => {
            (Status::CheckCondition, sense.encode(format))
        }
    };
    Completed {
        status,
        sense,
        qualifier: 0,
        length_in: lengths.0,
        length_out: lengths.1,
    }
}

/// What an initiator is told of an error of the medium.
pub(super) const fn failure(error: MediumError) -> CommandFailure {
    let (key, code) = match error {
        MediumError::Read => (SenseKey::MediumError, asc::UNRECOVERED_READ_ERROR),
        MediumError::Write => (SenseKey::MediumError, asc::WRITE_ERROR),
        MediumError::NoSpace => (SenseKey::DataProtect, asc::SPACE_ALLOCATION_FAILED),
        MediumError::ReadOnly => (SenseKey::DataProtect, asc::WRITE_PROTECTED),
        MediumError::Gone => (SenseKey::NotReady, asc::NOT_READY_CAUSE_NOT_REPORTABLE),
        // NOT READY would say that nothing was done, 08h/01h that it was only a matter of time, and
        // 2Eh/02h that a limit of the command's own had passed: this tells what failed, and leaves
        // open what came of the command, as ABORTED COMMAND does.
        MediumError::Unknown => (
            SenseKey::AbortedCommand,
            asc::LOGICAL_UNIT_COMMUNICATION_FAILURE,
        ),
        MediumError::Busy => return CommandFailure::Status(Status::TaskSetFull),
        // Only what was aborted is given up, and its status is never told.
        MediumError::Cancelled => return CommandFailure::Status(Status::TaskAborted),
        MediumError::Unsupported => (SenseKey::HardwareError, asc::INTERNAL_TARGET_FAILURE),
    };
    CommandFailure::Check(Sense::new(key, code))
}
