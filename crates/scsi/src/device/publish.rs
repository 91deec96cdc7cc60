//! A new state of a unit is put into effect: first new commands are checked against it, then what
//! it does to nexuses and tasks is done, and when all of that has taken place at the medium, it is
//! acknowledged.

use std::sync::Arc;

use super::ask::RequestOrigin;
use super::subscribe::LockSubscription;
use super::tasks::{DeviceTask, TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceOutput, DeviceServer, OpId, TaskJob};
use crate::medium::{Extent, Lease};
use crate::nexus::{NexusId, NexusIdentity};
use crate::owner::{Effect, Publication, UnitChange};
use crate::unit::{CoreId, EffectScope, UnitId, UnitState};
use crate::wire::asc;

/// A unit as this core knows it.
#[derive(Debug)]
pub(super) struct UnitSlot {
    /// The unit, or the last that was here.
    pub(super) id: UnitId,
    pub(super) state: Arc<UnitState>,
    /// What was published and is not yet in effect.
    pub(super) pending: Vec<PendingPublication>,
    /// Tasks that wait until a lock is gone.
    pub(super) blocked: u32,
    /// What was lent for reading and has not come back, so often: no lock is acknowledged.
    pub(super) recalls: u32,
    /// Whether the core is told of locks, of which the state lacks some otherwise.
    pub(super) subscription: LockSubscription,
}

/// A publication that waits to be acknowledged.
#[derive(Debug)]
pub(super) struct PendingPublication {
    version: u64,
    /// It aborted tasks, which have to end at the medium.
    aborts: bool,
    /// Locks that came with it: extents that others have to be done with.
    locks: Vec<Extent>,
}

impl UnitSlot {
    pub(super) fn new(id: UnitId, state: Arc<UnitState>) -> Self {
        Self {
            id,
            state,
            pending: Vec::new(),
            blocked: 0,
            recalls: 0,
            subscription: LockSubscription::default(),
        }
    }
}

impl PendingPublication {
    fn waits_for<L>(&self, unit: UnitId, task: &DeviceTask<L>) -> bool {
        self.aborts && task.is_aborted() && task.operations > 0 && task.concerns(unit)
            || self.locks.iter().any(|lock| match *lock {
                Extent::ALL => task.is_at_medium(unit),
                extent => task.touches(unit, extent),
            })
    }
}

/// The nexus whose task or function a publication comes from; nothing of it is cut off with TASK
/// ABORTED.
#[derive(Clone, Copy, Debug, Default)]
struct PublicationOrigin {
    task: Option<TaskSlot>,
    nexus: Option<NexusId>,
    /// Later tasks of the nexus came behind the function, and know of it.
    since: Option<u64>,
}

impl PublicationOrigin {
    /// Whether a task of its nexus came later.
    fn is_before<L>(&self, task: &DeviceTask<L>) -> bool {
        self.since.is_some_and(|since| since < task.arrival)
    }
}

impl<L: Lease> DeviceServer<L> {
    pub(super) fn unit(&self, unit: UnitId) -> Option<&UnitSlot> {
        self.units.get(unit.index()).filter(|slot| slot.id == unit)
    }

    pub(super) fn unit_mut(&mut self, unit: UnitId) -> Option<&mut UnitSlot> {
        let slot = self.units.get_mut(unit.index());
        slot.filter(|slot| slot.id == unit)
    }

    /// The state of a unit that a task belongs to.
    pub(super) fn state(&self, unit: UnitId) -> &UnitState {
        &self.units[unit.index()].state
    }

    pub(super) fn put_into_effect(&mut self, unit: UnitId, publication: Publication) {
        let cause = self.cause(publication.cause);
        let version = publication.state.version;
        let slot = self.units.get_mut(unit.index());
        let Some(slot) = slot.filter(|slot| slot.id == unit) else {
            // It was detached here. A task on another core may wait for all of them.
            if publication.is_awaited {
                let gone = DeviceOutput::Acknowledge { unit, version };
                self.outputs.push_back(gone);
            }
            return;
        };
        let Publication {
            state,
            effects,
            is_awaited,
            ..
        } = publication;
        let before = std::mem::replace(&mut slot.state, state);
        // A reset sets TAS back, but what it aborts was begun before.
        let tells = before.tells_aborted();
        let locks = slot.state.locks.iter();
        let locks = locks
            .filter(|lock| !before.locks.contains(lock))
            .map(|lock| lock.extent);
        if is_awaited {
            slot.pending.push(PendingPublication {
                version,
                aborts: effects
                    .iter()
                    .any(|effect| matches!(effect, Effect::Abort(_))),
                locks: locks.collect(),
            });
        }
        self.progressed = true;
        if slot.state.shared != before.shared {
            slot.recalls += 1;
            self.outputs.push_back(DeviceOutput::Recall { unit });
        }
        for effect in effects.iter() {
            match effect {
                Effect::Attention(who, code) => self.attention(unit, who, *code),
                Effect::Abort(who) => self.abort_tasks(unit, who, (cause, tells), &effects),
                Effect::Reset => {}
            }
        }
        self.unblock(unit);
        self.unsubscribe_unless_used(unit);
    }

    fn cause(&self, cause: Option<(CoreId, u64)>) -> PublicationOrigin {
        let Some((core, id)) = cause else {
            return PublicationOrigin::default();
        };
        if core != self.core {
            return PublicationOrigin::default();
        }
        match self.asks.asker(id) {
            Some(RequestOrigin::Task(slot)) => PublicationOrigin {
                task: Some(slot),
                nexus: Some(self.tasks[slot as usize].nexus),
                since: None,
            },
            Some(RequestOrigin::Function(nexus, id)) => PublicationOrigin {
                task: None,
                nexus: Some(nexus),
                since: self.last_before(nexus, id),
            },
            Some(RequestOrigin::Loss(nexus)) => PublicationOrigin {
                nexus: Some(nexus),
                ..PublicationOrigin::default()
            },
            Some(RequestOrigin::NotAwaited | RequestOrigin::Subscription(_)) | None => {
                PublicationOrigin::default()
            }
        }
    }

    /// Establishes a unit attention for some nexuses of a unit.
    fn attention(&mut self, unit: UnitId, who: &EffectScope, code: u16) {
        for (number, nexus) in self.nexuses.iter_mut().enumerate() {
            let Some(nexus) = nexus else { continue };
            if !who.includes(&nexus.nexus.identity) {
                continue;
            }
            for (_, view) in &mut nexus.units {
                if view.unit == unit && view.is_mapped && view.attentions.establish(code) {
                    self.outputs.push_back(DeviceOutput::Attention {
                        nexus: NexusId(number as u32),
                        lun: view.lun,
                        code,
                    });
                }
            }
        }
    }

    /// Aborts the tasks of some nexuses on a unit; with TAS, those of others than the cause end
    /// with TASK ABORTED.
    fn abort_tasks(
        &mut self,
        unit: UnitId,
        who: &EffectScope,
        (cause, tells): (PublicationOrigin, bool),
        effects: &[Effect],
    ) {
        let silent = !tells;
        let reset = effects.contains(&Effect::Reset);
        let mut cleared = Vec::new();
        let victims = self.slots(|task| task.concerns(unit) && !task.detached);
        for slot in victims {
            let nexus = self.tasks[slot as usize].nexus;
            let identity = self.nexus(nexus).map(|nexus| nexus.nexus.identity.clone());
            let met = identity.is_some_and(|identity| who.includes(&identity));
            if !met || cause.task == Some(slot) {
                continue;
            }
            let own = cause.nexus == Some(nexus);
            if own && cause.is_before(&self.tasks[slot as usize]) {
                continue;
            }
            let ending = if own || silent {
                TaskEnd::Aborted
            } else {
                TaskEnd::TaskAborted
            };
            if !own && silent && !reset && !cleared.contains(&nexus) {
                cleared.push(nexus);
            }
            self.abort(slot, ending);
        }
        for nexus in cleared {
            self.tell_cleared(unit, nexus);
        }
    }

    /// SAM-5 §5.9.2: whose commands vanish without TASK ABORTED is told so afterwards.
    fn tell_cleared(&mut self, unit: UnitId, nexus: NexusId) {
        let identity = self.nexus(nexus).map(|nexus| nexus.nexus.identity.clone());
        if let Some(identity) = identity {
            let who = EffectScope::Only(vec![identity]);
            self.attention(unit, &who, asc::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR);
        }
    }

    /// The tasks of which something is true, in the order of the slab.
    pub(super) fn slots(&self, wanted: impl Fn(&DeviceTask<L>) -> bool) -> Vec<TaskSlot> {
        let tasks = self.tasks.iter();
        tasks
            .filter(|(_, task)| wanted(task))
            .map(|(slot, _)| slot as TaskSlot)
            .collect()
    }

    /// Aborts a task: it ends when it has ended at the medium.
    pub(super) fn abort(&mut self, slot: TaskSlot, ending: TaskEnd) {
        // Others may have ended along with one aborted before.
        let Some(task) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        if let TaskJob::Long(long) = &task.job
            && long.outlives_task()
        {
            return self.go_on_in_background(slot, ending);
        }
        self.end_by_force(slot, ending);
    }

    /// Ends a task even if it could outlive its command.
    pub(super) fn end_by_force(&mut self, slot: TaskSlot, ending: TaskEnd) {
        let task = &mut self.tasks[slot as usize];
        if !task.is_aborted() {
            task.ending = Some(ending);
        }
        self.withdraw_lock(slot);
        self.cancel_operations(slot);
        self.quiesce(slot);
    }

    /// What a volume has not begun is not waited for: it may be let through only in an hour.
    fn cancel_operations(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        if task.operations == 0 {
            return;
        }
        let sides = match &task.job {
            TaskJob::Copy(copy) => copy.sides(),
            _ => None,
        };
        let (unit, other) = sides.unwrap_or((task.unit, task.unit));
        let cancel = |unit| DeviceOutput::Cancel {
            unit,
            ids: OpId::of(slot),
        };
        self.outputs.push_back(cancel(unit));
        if other != unit {
            self.outputs.push_back(cancel(other));
        }
    }

    /// A lock that is asked for is not waited for: others may hold it for long.
    fn withdraw_lock(&mut self, slot: TaskSlot) {
        let task = &mut self.tasks[slot as usize];
        let (unit, nexus) = (task.unit, task.nexus);
        if task.ask.is_some()
            && task.ask == task.lock
            && let Some(lock) = task.lock.take()
        {
            self.ask(
                unit,
                nexus,
                RequestOrigin::NotAwaited,
                UnitChange::Unlock(lock),
            );
        }
    }

    /// Lets those go on that waited for a lock to go, the oldest first.
    pub(super) fn unblock(&mut self, unit: UnitId) {
        let Some(slot) = self.unit_mut(unit) else {
            return;
        };
        if slot.blocked == 0 {
            return;
        }
        slot.blocked = 0;
        let mut blocked = self.slots(|task| task.phase == TaskPhase::Blocked(unit.slot));
        blocked.sort_by_key(|slot| self.tasks[*slot as usize].arrival);
        for &slot in &blocked {
            self.tasks[slot as usize].phase = TaskPhase::Preparing;
        }
        for slot in blocked {
            self.resume(slot);
        }
    }

    /// Acknowledges what is in effect.
    pub(super) fn acknowledge(&mut self) {
        for unit in &mut self.units {
            let id = unit.id;
            let tasks = &self.tasks;
            let outputs = &mut self.outputs;
            let lent = unit.recalls > 0;
            unit.pending.retain(|pending| {
                let waits = lent && !pending.locks.is_empty()
                    || tasks.iter().any(|(_, task)| pending.waits_for(id, task));
                if !waits {
                    outputs.push_back(DeviceOutput::Acknowledge {
                        unit: id,
                        version: pending.version,
                    });
                }
                waits
            });
        }
    }
}

impl EffectScope {
    fn includes(&self, identity: &Arc<NexusIdentity>) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(other) => other != identity,
            Self::Only(some) => some.contains(identity),
        }
    }
}
