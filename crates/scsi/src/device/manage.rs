//! Task management (SAM-5 §7) and the loss of a nexus (SAM-5 §6.3.4).
//!
//! ABORT TASK, ABORT TASK SET, CLEAR TASK SET and I_T NEXUS RESET concern the tasks of the nexus
//! that asks, and so this core alone. CLEAR TASK SET does, as there is a task set for each nexus
//! (TST = 001b, SAM-5 §7.5): others' commands are not in the set that is cleared. Resets meet
//! others' tasks too and go through the owners of the units, whose publications abort them on every
//! core. Each function ends when every task that it aborted here has ended at the medium.

use super::ask::RequestOrigin;
use super::nexus::{NexusLoss, NexusSlot, sees};
use super::tasks::{DeviceTask, TaskEnd};
use super::{DeviceOutput, DeviceServer};
use crate::medium::Lease;
use crate::nexus::NexusId;
use crate::owner::UnitChange;
use crate::task::{CommandFailure, Function, FunctionResult, Tag};
use crate::unit::UnitId;
use crate::wire::asc;
use crate::wire::lun::Lun;
use crate::wire::sense::SenseKey;

/// A function that has not ended.
#[derive(Debug)]
pub(super) struct ActiveFunction {
    nexus: NexusId,
    id: u32,
    /// The last task of the core that came before it.
    since: u64,
    scope: FunctionScope,
    /// Owners that have not answered.
    owners: usize,
    result: FunctionResult,
}

/// Whose tasks a function aborts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionScope {
    /// This one of the nexus.
    Task(Tag),
    /// The nexus', on the unit that stands there.
    TaskSet(u32),
    /// The nexus', on every unit.
    Nexus,
    /// Everybody's on the unit.
    Unit(UnitId),
    /// Everybody's on every unit of the target device.
    Target,
}

impl<L: Lease> DeviceServer<L> {
    pub(super) fn function(&mut self, nexus: NexusId, id: u32, lun: Lun, function: Function) {
        let Some(slot) = self.nexus(nexus) else {
            return;
        };
        let at = slot.position(lun);
        let per_target = matches!(function, Function::TargetReset | Function::NexusReset);
        let Some(at) = at.or(per_target.then_some(0)) else {
            return self.managed(nexus, id, FunctionResult::IncorrectLun);
        };
        match function {
            Function::AbortTask(tag) => self.abort_task(nexus, id, at, tag),
            Function::AbortTaskSet | Function::ClearTaskSet => {
                self.abort_here(nexus, id, FunctionScope::TaskSet(at as u32));
            }
            Function::NexusReset => self.reset_nexus(nexus, id),
            Function::LogicalUnitReset => self.reset_unit(nexus, id, at),
            Function::TargetReset => self.reset_target(nexus, id),
            Function::ClearAca => self.managed(nexus, id, FunctionResult::Rejected),
            Function::QueryTask(tag) => {
                let found = self.find(nexus, at, tag);
                self.managed(nexus, id, existence(found.is_some()));
            }
            Function::QueryTaskSet => {
                let found = slot.units.get(at).is_some_and(|view| view.set.tasks > 0);
                self.managed(nexus, id, existence(found));
            }
            Function::QueryAsynchronousEvent => {
                let result = pending_event(slot, at);
                self.managed(nexus, id, result);
            }
        }
    }

    fn managed(&mut self, nexus: NexusId, id: u32, result: FunctionResult) {
        self.outputs
            .push_back(DeviceOutput::Managed { nexus, id, result });
    }

    fn find(&self, nexus: NexusId, at: usize, tag: Tag) -> Option<u32> {
        let slot = self.nexus(nexus)?.task(tag)?;
        (self.tasks[slot as usize].at as usize == at).then_some(slot)
    }

    fn abort_task(&mut self, nexus: NexusId, id: u32, at: usize, tag: Tag) {
        match self.find(nexus, at, tag) {
            Some(_) => self.abort_here(nexus, id, FunctionScope::Task(tag)),
            None => self.managed(nexus, id, FunctionResult::NoTask),
        }
    }

    /// Aborts tasks of the nexus that asks.
    fn abort_here(&mut self, nexus: NexusId, id: u32, scope: FunctionScope) {
        self.open_function(nexus, id, scope);
        self.progressed = true;
        self.abort_own(nexus, scope);
    }

    fn open_function(&mut self, nexus: NexusId, id: u32, scope: FunctionScope) {
        self.managements.push(ActiveFunction {
            nexus,
            id,
            since: self.arrivals,
            scope,
            owners: 0,
            result: FunctionResult::Complete,
        });
    }

    /// The last task of the core that came before a function.
    pub(super) fn last_before(&self, nexus: NexusId, id: u32) -> Option<u64> {
        let mut open = self.managements.iter();
        let open = open.find(|open| open.nexus == nexus && open.id == id);
        open.map(|open| open.since)
    }

    fn abort_own(&mut self, nexus: NexusId, scope: FunctionScope) {
        let met =
            |task: &DeviceTask<L>| !task.detached && task.nexus == nexus && scope.of_nexus(task);
        for slot in self.slots(met) {
            self.abort(slot, TaskEnd::Aborted);
        }
    }

    /// I_T NEXUS RESET (SAM-5 §7.6): like the loss of the nexus, but it stays.
    fn reset_nexus(&mut self, nexus: NexusId, id: u32) {
        let Some(slot) = self.nexus_mut(nexus) else {
            return;
        };
        for (_, view) in &mut slot.units {
            view.attentions.establish(asc::NEXUS_LOSS);
        }
        let units = slot.distinct_units();
        self.abort_here(nexus, id, FunctionScope::Nexus);
        self.ask_owners(nexus, id, units, &UnitChange::NexusLoss);
    }

    fn reset_unit(&mut self, nexus: NexusId, id: u32, at: usize) {
        let Some(slot) = self.nexus(nexus) else {
            return;
        };
        let unit = slot.units[at].unit;
        self.open_function(nexus, id, FunctionScope::Unit(unit));
        self.ask_owners(nexus, id, vec![unit], &UnitChange::Reset);
    }

    fn reset_target(&mut self, nexus: NexusId, id: u32) {
        let Some(slot) = self.nexus(nexus) else {
            return;
        };
        let units = slot.distinct_units();
        self.open_function(nexus, id, FunctionScope::Target);
        self.progressed = true;
        self.ask_owners(nexus, id, units, &UnitChange::Reset);
    }

    fn ask_owners(&mut self, nexus: NexusId, id: u32, units: Vec<UnitId>, change: &UnitChange) {
        if let Some(management) = self.managements.last_mut() {
            management.owners = units.len();
        }
        for unit in units {
            self.ask(
                unit,
                nexus,
                RequestOrigin::Function(nexus, id),
                change.clone(),
            );
        }
    }

    pub(super) fn function_answered(
        &mut self,
        nexus: NexusId,
        id: u32,
        result: Result<(), CommandFailure>,
    ) {
        let mut open = self.managements.iter_mut();
        let Some(management) = open.find(|open| open.nexus == nexus && open.id == id) else {
            return;
        };
        management.owners = management.owners.saturating_sub(1);
        if result.is_err() {
            management.result = FunctionResult::Rejected;
        }
        self.progressed = true;
    }

    /// Answers the functions of which everything has ended.
    pub(super) fn conclude_functions(&mut self) {
        let mut at = 0;
        while let Some(management) = self.managements.get(at) {
            if management.owners > 0 || self.is_ending(management) {
                at += 1;
                continue;
            }
            let done = self.managements.remove(at);
            self.managed(done.nexus, done.id, done.result);
        }
    }

    /// Whether a task that the function aborted is still ending here.
    fn is_ending(&self, management: &ActiveFunction) -> bool {
        let target = self
            .nexus(management.nexus)
            .map(|nexus| &nexus.nexus.target);
        self.tasks.iter().any(|(_, task)| {
            task.is_aborted()
                && match management.scope {
                    FunctionScope::Unit(unit) => task.concerns(unit),
                    FunctionScope::Target => target.is_some_and(|target| sees(target, task.unit)),
                    own => task.nexus == management.nexus && own.of_nexus(task),
                }
        })
    }

    pub(super) fn lose(&mut self, id: NexusId) {
        let Some(nexus) = self.nexus_mut(id) else {
            return;
        };
        if nexus.leaving != NexusLoss::No {
            return;
        }
        nexus.leaving = NexusLoss::Tasks;
        self.losses.push(id);
        self.managements.retain(|management| management.nexus != id);
        self.progressed = true;
        self.abort_own(id, FunctionScope::Nexus);
    }

    /// Advances the cleanup of lost nexuses: first their tasks end, then the owners of their units
    /// record the loss, then the nexus is forgotten. The order matters where the initiator logs in
    /// again at once on another core: its commands must come after the loss.
    pub(super) fn conclude_losses(&mut self) {
        for id in self.losses.clone() {
            let Some(nexus) = self.nexus(id) else {
                continue;
            };
            match nexus.leaving {
                NexusLoss::Tasks if nexus.tasks.is_empty() => self.tell_owners(id),
                NexusLoss::Owners(0) => self.forget(id),
                _ => {}
            }
        }
    }
}

impl<L: Lease> DeviceServer<L> {
    fn tell_owners(&mut self, id: NexusId) {
        let Some(nexus) = self.nexus_mut(id) else {
            return;
        };
        let units = nexus.distinct_units();
        nexus.leaving = NexusLoss::Owners(units.len());
        for unit in units {
            self.ask(unit, id, RequestOrigin::Loss(id), UnitChange::NexusLoss);
        }
        self.progressed = true;
    }

    pub(super) fn loss_answered(&mut self, id: NexusId) {
        if let Some(nexus) = self.nexus_mut(id)
            && let NexusLoss::Owners(left) = &mut nexus.leaving
        {
            *left = left.saturating_sub(1);
            self.progressed = true;
        }
    }

    fn forget(&mut self, id: NexusId) {
        if let Some(slot) = self.nexuses.get_mut(id.0 as usize) {
            *slot = None;
        }
        self.losses.retain(|lost| *lost != id);
        self.outputs.push_back(DeviceOutput::NexusGone(id));
    }
}

impl FunctionScope {
    fn of_nexus<L>(self, task: &DeviceTask<L>) -> bool {
        match self {
            Self::Task(tag) => task.tag == tag,
            Self::TaskSet(at) => task.at == at,
            Self::Nexus => true,
            Self::Unit(_) | Self::Target => false,
        }
    }
}

/// What QUERY TASK and QUERY TASK SET answer.
const fn existence(found: bool) -> FunctionResult {
    if found {
        FunctionResult::Succeeded([0; 3])
    } else {
        FunctionResult::Complete
    }
}

/// What QUERY ASYNCHRONOUS EVENT answers (SAM-5 §7.9): whether more than one unit attention is
/// pending, with sense key and additional sense code of the first.
fn pending_event(nexus: &NexusSlot, at: usize) -> FunctionResult {
    let Some(view) = nexus.units.get(at) else {
        return FunctionResult::Complete;
    };
    let Some(code) = view.attentions.first() else {
        return FunctionResult::Complete;
    };
    let depth = if view.attentions.len() > 1 {
        0b10
    } else {
        0b01
    };
    let [asc, ascq] = code.to_be_bytes();
    FunctionResult::Succeeded([depth << 4 | SenseKey::UnitAttention as u8, asc, ascq])
}
