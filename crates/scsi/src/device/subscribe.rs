//! Whether this core is told of the locks of a unit: while it has a nexus or a task there.
//!
//! Without a subscription the core takes all blocks for locked: [`UnitSlot::has_locked`] then
//! has [`Extent::ALL`] beside the locks of the state, which all cores share. So the check that each
//! command passes is the same either way. The first task that it blocks subscribes.
//! `owner/locks.rs` has the sequence and its races.
//!
//! | event | none | requested | active |
//! |---|---|---|---|
//! | a task would go to the medium | blocked; Subscribe: requested | blocked | blocked by locks |
//! | a publication | all blocks stay locked | all blocks stay locked | by its locks; if neither nexus nor task is left, Unsubscribe: none |
//! | the owner has answered | | active; what was blocked goes on | |
//!
//! Whether the unit is still used is looked at when something is published, and at no other time: a
//! nexus that goes has nothing to do for it, and a unit without locks costs nothing.

use super::DeviceServer;
use super::ask::RequestOrigin;
use super::publish::UnitSlot;
use super::tasks::TaskSlot;
use crate::medium::{Extent, Lease};
use crate::nexus::NexusId;
use crate::owner::UnitChange;
use crate::unit::UnitId;

/// The state of this core's subscription to the locks of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LockSubscription {
    /// There is none.
    #[default]
    None,
    /// The owner was asked for it.
    Requested,
    /// The core knows all locks. A nexus that has seen the unit, and the place where.
    Active(NexusId, u32),
}

impl LockSubscription {
    pub(super) const fn is_active(self) -> bool {
        matches!(self, Self::Active(..))
    }
}

impl UnitSlot {
    /// Whether this is so of any extent that no task of this core may touch.
    #[inline]
    pub(super) fn has_locked(&self, is_so: impl Fn(Extent) -> bool) -> bool {
        let is_told = self.subscription.is_active();
        !is_told && is_so(Extent::ALL) || self.state.locks.iter().any(|lock| is_so(lock.extent))
    }
}

impl<L: Lease> DeviceServer<L> {
    /// A task is blocked: if only because the core does not know the locks, it asks for them.
    pub(super) fn subscribe(&mut self, slot: TaskSlot, unit: UnitId) {
        let nexus = self.tasks[slot as usize].nexus;
        if let Some(known) = self.unit_mut(unit)
            && known.subscription == LockSubscription::None
        {
            known.subscription = LockSubscription::Requested;
            let asker = RequestOrigin::Subscription(unit);
            self.ask(unit, nexus, asker, UnitChange::Subscribe);
        }
    }

    /// The owner tells of all locks from now on, and has told of those that there are.
    pub(super) fn subscribed(&mut self, unit: UnitId) {
        let Some(known) = self.unit_mut(unit) else {
            return;
        };
        known.subscription = LockSubscription::Active(NexusId(0), 0);
        self.unblock(unit);
    }

    /// Ends the subscription if this core can do without.
    pub(super) fn unsubscribe_unless_used(&mut self, unit: UnitId) {
        let Some(known) = self.unit(unit) else {
            return;
        };
        let LockSubscription::Active(nexus, at) = known.subscription else {
            return;
        };
        if self.is_seen_at(unit, nexus, at) {
            return;
        }
        let seen = self.find_nexus_with(unit);
        let is_used = seen.is_some() || self.tasks.iter().any(|(_, task)| task.concerns(unit));
        let Some(known) = self.unit_mut(unit) else {
            return;
        };
        if let Some((nexus, at)) = seen {
            known.subscription = LockSubscription::Active(nexus, at);
        }
        if !is_used {
            known.subscription = LockSubscription::None;
            self.ask(
                unit,
                nexus,
                RequestOrigin::NotAwaited,
                UnitChange::Unsubscribe,
            );
        }
    }

    fn is_seen_at(&self, unit: UnitId, nexus: NexusId, at: u32) -> bool {
        let nexus = self.nexus(nexus);
        let view = nexus.and_then(|nexus| nexus.units.get(at as usize));
        view.is_some_and(|view| view.unit == unit && view.is_mapped)
    }

    fn find_nexus_with(&self, unit: UnitId) -> Option<(NexusId, u32)> {
        let mut nexuses = (0..).zip(&self.nexuses);
        nexuses.find_map(|(number, nexus)| {
            let mut views = nexus.as_ref()?.units.iter();
            let (at, _) = views.find(|(_, view)| view.unit == unit && view.is_mapped)?;
            Some((NexusId(number), at as u32))
        })
    }
}
