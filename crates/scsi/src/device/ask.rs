//! Requests to the owners of units, and what waits for the answers.

use slab::Slab;

use super::tasks::TaskSlot;
use super::{DeviceOutput, DeviceServer};
use crate::medium::Lease;
use crate::nexus::NexusId;
use crate::owner::{OwnerRequest, UnitChange};
use crate::task::CommandFailure;
use crate::unit::UnitId;

/// What waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// No task waits for the answer.
    NotAwaited,
    /// A task.
    Task(TaskSlot),
    /// The task management function of this nexus with this number.
    Function(NexusId, u32),
    /// The loss of a nexus.
    Loss(NexusId),
    /// The tasks that wait until the core is told of the locks of a unit.
    Subscription(UnitId),
}

/// The requests that have not been answered. The low half of a number is the place in the slab,
/// the high half makes it unique.
#[derive(Debug, Default)]
pub(super) struct OwnerRequests {
    open: Slab<(u64, RequestOrigin)>,
    count: u32,
}

impl OwnerRequests {
    fn open(&mut self, asker: RequestOrigin) -> u64 {
        // The highest bit marks requests that are no device server's.
        self.count = (self.count + 1) & (u32::MAX >> 1);
        let entry = self.open.vacant_entry();
        let id = u64::from(self.count) << 32 | entry.key() as u64;
        entry.insert((id, asker));
        id
    }

    fn close(&mut self, id: u64) -> Option<RequestOrigin> {
        self.asker(id)?;
        Some(self.open.remove(Self::place(id)).1)
    }

    /// What waits for the answer to this request.
    pub(super) fn asker(&self, id: u64) -> Option<RequestOrigin> {
        let &(open, asker) = self.open.get(Self::place(id))?;
        (open == id).then_some(asker)
    }

    /// Whether everything was answered.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many have not been answered.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    const fn place(id: u64) -> usize {
        (id & 0xffff_ffff) as usize
    }
}

impl<L: Lease> DeviceServer<L> {
    /// Asks the owner of a unit for a change on behalf of a nexus.
    pub(super) fn ask(
        &mut self,
        unit: UnitId,
        nexus: NexusId,
        asker: RequestOrigin,
        change: UnitChange,
    ) -> u64 {
        let id = self.asks.open(asker);
        let request = OwnerRequest {
            core: self.core,
            id,
            nexus: self.nexus(nexus).map(|slot| slot.nexus.identity.clone()),
            change,
        };
        self.outputs.push_back(DeviceOutput::Ask { unit, request });
        id
    }

    /// Has a task ask its unit's owner, and wait for the answer.
    pub(super) fn ask_for_task(&mut self, slot: TaskSlot, change: UnitChange) {
        let task = &self.tasks[slot as usize];
        let id = self.ask(task.unit, task.nexus, RequestOrigin::Task(slot), change);
        self.tasks[slot as usize].ask = Some(id);
    }

    pub(super) fn answered_by_owner(&mut self, id: u64, result: Result<(), CommandFailure>) {
        match self.asks.close(id) {
            Some(RequestOrigin::Task(slot)) => self.task_answered(slot, id, result),
            Some(RequestOrigin::Function(nexus, function)) => {
                self.function_answered(nexus, function, result);
            }
            Some(RequestOrigin::Loss(nexus)) => self.loss_answered(nexus),
            Some(RequestOrigin::Subscription(unit)) => self.subscribed(unit),
            Some(RequestOrigin::NotAwaited) | None => {}
        }
    }
}
