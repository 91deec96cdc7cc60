//! The steps of a change, on core 0: [`crate::change`].

use std::collections::VecDeque;
use std::sync::Arc;

use ::io::ring::Ring;
use scsi::medium::{Extent, Now, Traits};
use scsi::owner::{Input, OwnerRequest, UnitChange};
use scsi::unit::{CoreId, UnitId};

use super::control_core::{ControlUnit, RESERVED};
use super::timers::Timer;
use super::{Core, accept_token};
use crate::change::{Arrival, Change, ChangeError, NewUnit, Preparation, Retirement, Switch};
use crate::mailbox::{CoreMessage, Mailer};

/// How long all blocks of a unit are waited for, while new commands wait for them. A host that owes
/// data could else hold up all others for as long as `--nop-timeout`.
const HOLD: Now = Now::from_millis(500);

/// How long a unit is left alone after that, and how often it is tried.
const PAUSE: Now = Now::from_millis(250);
const TRIES: u32 = 5;

/// The changes that core 0 has to make, one after the other.
#[derive(Default)]
pub(super) struct Changes {
    waiting: VecDeque<Box<Change>>,
    current: Option<InProgress>,
    /// Steps and lock requests so far.
    count: u64,
}

struct InProgress {
    change: Box<Change>,
    step: Step,
}

/// What a change waits for.
enum Step {
    /// Cores that have not acknowledged the first step; the first error.
    Preparing(Acknowledgements, Option<ChangeError>),
    /// Locks of all blocks.
    Locking(Locking),
    /// Cores that have not acknowledged the second step.
    Switching(Acknowledgements),
    /// Sessions that may no longer be, and have not ended.
    Ending(Vec<u16>),
    /// Cores that have not acknowledged the last step. What the change comes to.
    Retiring(Acknowledgements, Result<(), ChangeError>),
}

struct Acknowledgements {
    number: u64,
    missing: u16,
}

impl Acknowledgements {
    fn take(&mut self, number: u64) -> bool {
        let is_it = self.number == number;
        self.missing -= u16::from(is_it);
        is_it && self.missing == 0
    }
}

struct Locking {
    /// The requests, by unit, and whether they were granted.
    requests: Vec<(UnitId, u64, bool)>,
    tries: u32,
    /// When they are given back, or asked for again.
    until: Now,
    pauses: bool,
}

impl Changes {
    /// Whether a change is being made, or waits.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Somebody wants something changed.
    pub(super) fn change(&mut self, change: Box<Change>) {
        let is_stopping = self.stop.is_stopping();
        let Some(control) = &mut self.control else {
            return;
        };
        if is_stopping {
            return (change.done)(Err(ChangeError::Stopping));
        }
        control.changes.waiting.push_back(change);
        self.begin_change();
    }

    fn begin_change(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        if control.changes.current.is_some() {
            return;
        }
        let Some(mut change) = control.changes.waiting.pop_front() else {
            return;
        };
        let number = control.changes.next();
        let arrivals = std::mem::take(&mut change.arrivals);
        let arrival = |new: NewUnit| control.admit_unit(new);
        let preparation = Arc::new(Preparation {
            number,
            arrivals: arrivals.into_iter().map(arrival).collect(),
            spares: change.swaps.clone(),
        });
        let step = Step::Preparing(self.acknowledgements(number), None);
        self.set_step(Some(InProgress { change, step }));
        self.broadcast(|| CoreMessage::Prepare(Arc::clone(&preparation)));
    }

    fn acknowledgements(&self, number: u64) -> Acknowledgements {
        Acknowledgements {
            number,
            missing: self.post.cores(),
        }
    }

    fn broadcast(&mut self, message: impl Fn() -> CoreMessage) {
        for core in 0..self.post.cores() {
            self.post(CoreId(core), message());
        }
    }

    fn set_step(&mut self, step: Option<InProgress>) {
        if let Some(control) = &mut self.control {
            control.changes.current = step;
        }
    }

    fn take_step(&mut self) -> Option<InProgress> {
        self.control.as_mut()?.changes.current.take()
    }

    fn next_number(&mut self) -> u64 {
        let control = self.control.as_mut();
        control.map_or(0, |control| control.changes.next())
    }

    /// A core has taken a step.
    pub(super) fn step_taken(&mut self, now: Now, number: u64, result: Result<(), ChangeError>) {
        let Some(mut current) = self.take_step() else {
            return;
        };
        match &mut current.step {
            Step::Preparing(cores, error) => {
                if let Err(cause) = result {
                    error.get_or_insert(cause);
                }
                if cores.take(number) {
                    return match error.take() {
                        Some(error) => self.give_up(current, error),
                        None => self.lock_all(now, current, 1),
                    };
                }
            }
            Step::Switching(cores) => {
                if cores.take(number) {
                    return self.switched(current);
                }
            }
            Step::Retiring(cores, _) => {
                if cores.take(number) {
                    return self.retired(now, current);
                }
            }
            Step::Locking(_) | Step::Ending(_) => {}
        }
        self.set_step(Some(current));
    }

    /// A session has ended.
    pub(super) fn change_ends_session(&mut self, tsih: u16) {
        let Some(mut current) = self.take_step() else {
            return;
        };
        if let Step::Ending(sessions) = &mut current.step {
            sessions.retain(|one| *one != tsih);
            if sessions.is_empty() {
                return self.retire_departures(current);
            }
        }
        self.set_step(Some(current));
    }

    /// Locks all blocks of the units that get another volume, or leave theirs to others.
    fn lock_all(&mut self, now: Now, mut current: InProgress, tries: u32) {
        let swapped = current.change.swaps.iter().map(|swap| swap.unit);
        let units = swapped.chain(current.change.inherited.iter().copied());
        let units: Vec<_> = units.collect();
        let mut requests = Vec::new();
        for unit in units {
            requests.push((unit, RESERVED | self.next_number(), false));
        }
        if requests.is_empty() {
            return self.switch_all(current);
        }
        let asked: Vec<_> = requests.iter().map(|(unit, id, _)| (*unit, *id)).collect();
        current.step = Step::Locking(Locking {
            requests,
            tries,
            until: now + HOLD,
            pauses: false,
        });
        self.set_step(Some(current));
        self.timers.set(now + HOLD, Timer::Change);
        for (unit, id) in asked {
            self.ask_owner(unit, id, UnitChange::Lock(Extent::ALL));
        }
    }

    fn ask_owner(&mut self, unit: UnitId, id: u64, change: UnitChange) {
        let request = OwnerRequest {
            core: self.id,
            id,
            nexus: None,
            change,
        };
        self.owner(unit, Input::Request(request));
    }

    /// An owner has answered a request of core 0 itself.
    pub(super) fn owner_answered(&mut self, id: u64, granted: bool) {
        let Some(mut current) = self.take_step() else {
            return;
        };
        if let Step::Locking(locking) = &mut current.step
            && let Some(request) = locking.requests.iter_mut().find(|one| one.1 == id)
        {
            request.2 = granted;
            let is_locked = !locking.pauses && locking.requests.iter().all(|one| one.2);
            let control = self.control.as_mut();
            // Else the locks are given back when their time is over, and asked for again.
            if is_locked && control.is_none_or(|control| control.hand_over(&current.change)) {
                return self.switch_all(current);
            }
        }
        self.set_step(Some(current));
    }

    /// Locks were waited for long enough, or left alone long enough.
    pub(super) fn change_expired(&mut self, now: Now) {
        let Some(mut current) = self.take_step() else {
            return;
        };
        let Step::Locking(locking) = &mut current.step else {
            return self.set_step(Some(current));
        };
        if now < locking.until {
            self.set_step(Some(current));
        } else if locking.pauses {
            let tries = locking.tries + 1;
            self.lock_all(now, current, tries);
        } else {
            self.give_locks_back(now, current);
        }
    }

    fn give_locks_back(&mut self, now: Now, mut current: InProgress) {
        let Step::Locking(locking) = &mut current.step else {
            return;
        };
        locking.pauses = true;
        locking.until = now + PAUSE;
        let requests = locking.requests.clone();
        if locking.tries < TRIES {
            self.set_step(Some(current));
            self.timers.set(now + PAUSE, Timer::Change);
            return self.unlock(&requests);
        }
        let busy = requests.iter().find(|one| !one.2).or(requests.first());
        let busy = busy.map(|one| one.0);
        let control = self.control.as_ref();
        let name = busy.and_then(|unit| Some(control?.unit(unit)?.name.clone()));
        self.give_up(current, ChangeError::Busy(name.unwrap_or_default()));
        self.unlock(&requests);
    }

    fn unlock(&mut self, requests: &[(UnitId, u64, bool)]) {
        for (unit, id, _) in requests {
            let own = RESERVED | self.next_number();
            self.ask_owner(*unit, own, UnitChange::Unlock(*id));
        }
    }

    /// From here on nothing fails.
    fn switch_all(&mut self, mut current: InProgress) {
        let number = self.next_number();
        let swaps = current.change.swaps.iter().map(|swap| swap.unit);
        let switch = Arc::new(Switch {
            number,
            swaps: swaps.collect(),
            views: Arc::clone(&current.change.views),
            partners: std::mem::take(&mut current.change.partners),
        });
        self.listen_as(&mut current.change);
        if let Some(control) = &mut self.control {
            control.views = Arc::clone(&current.change.views);
            control.config = Arc::clone(&current.change.config);
        }
        // The requests stand in the step until the volumes have been exchanged.
        let locks = match current.step {
            Step::Locking(locking) => locking.requests,
            _ => Vec::new(),
        };
        current.step = Step::Switching(self.acknowledgements(number));
        if let Some(control) = &mut self.control {
            control.locks = locks;
        }
        self.set_step(Some(current));
        self.broadcast(|| CoreMessage::Switch(Arc::clone(&switch)));
    }

    fn listen_as(&mut self, change: &mut Change) {
        let open = std::mem::take(&mut change.listen_by_devices);
        self.listen_by_devices(open, &change.close_devices);
        for number in &change.close {
            self.ring.stop_listening_to(accept_token(*number));
        }
        for (number, listener) in std::mem::take(&mut change.listen) {
            if let Err(cause) = self.ring.listen(listener, accept_token(number)) {
                tracing::error!("cannot listen at portal {number}: {cause}");
            }
        }
    }

    /// Every core has exchanged volumes and LUN maps.
    fn switched(&mut self, mut current: InProgress) {
        for swap in std::mem::take(&mut current.change.swaps) {
            let traits = swap.volume.traits();
            let absent = swap.is_absent;
            if let Some(unit) = self
                .control
                .as_mut()
                .and_then(|control| control.unit_mut(swap.unit))
            {
                unit.volume = swap.volume;
                unit.name = swap.name;
            }
            if let Some(control) = &mut self.control {
                control.looks.forget(swap.unit);
            }
            self.tell_volume_changed(swap.unit, traits, absent);
        }
        let locks = self
            .control
            .as_mut()
            .map(|control| std::mem::take(&mut control.locks));
        let mut locks = locks.unwrap_or_default();
        // What goes stays locked until nothing is left of it.
        locks.retain(|(unit, ..)| !current.change.departures.contains(unit));
        self.unlock(&locks);
        let ending = self.sessions_not_allowed();
        if ending.is_empty() {
            return self.retire_departures(current);
        }
        current.step = Step::Ending(ending.clone());
        self.set_step(Some(current));
        ending.into_iter().for_each(|tsih| self.end_anywhere(tsih));
    }

    fn retire_departures(&mut self, mut current: InProgress) {
        let units = std::mem::take(&mut current.change.departures);
        self.retire_all(current, units, Vec::new(), Ok(()));
    }

    fn tell_volume_changed(&mut self, unit: UnitId, traits: Traits, is_absent: bool) {
        let id = RESERVED | self.next_number();
        self.ask_owner(unit, id, UnitChange::Volume { traits, is_absent });
    }

    /// Takes back what the first step has done.
    fn give_up(&mut self, current: InProgress, error: ChangeError) {
        let control = self.control.as_mut();
        let units = control.map(|control| std::mem::take(&mut control.arriving));
        let spares = current.change.swaps.iter().map(|swap| swap.unit).collect();
        self.retire_all(current, units.unwrap_or_default(), spares, Err(error));
    }

    fn retire_all(
        &mut self,
        mut current: InProgress,
        units: Vec<UnitId>,
        spares: Vec<UnitId>,
        result: Result<(), ChangeError>,
    ) {
        let number = self.next_number();
        current.change.departures.clone_from(&units);
        current.step = Step::Retiring(self.acknowledgements(number), result);
        self.set_step(Some(current));
        let retirement = Arc::new(Retirement {
            number,
            units,
            spares,
        });
        self.broadcast(|| CoreMessage::Retire(Arc::clone(&retirement)));
    }

    /// Nothing is left of what goes.
    fn retired(&mut self, now: Now, current: InProgress) {
        if let Some(control) = &mut self.control {
            for unit in &current.change.departures {
                control.dismiss_unit(*unit);
            }
            control.arriving.clear();
        }
        if let Step::Retiring(_, result) = current.step {
            (current.change.done)(result);
        }
        self.watch(now);
        self.begin_change();
    }
}

impl super::ControlCore {
    /// Hands the reservations of units that go over to those that come. Returns whether it has:
    /// what storage holds has to be what those that come were prepared with, and no host may be
    /// about to change it.
    fn hand_over(&mut self, change: &Change) -> bool {
        let is_settled = change.inherited.iter().all(|unit| self.is_settled(*unit));
        if is_settled {
            for unit in &change.inherited {
                if let Some(unit) = self.unit_mut(*unit) {
                    unit.owner.close();
                }
            }
        }
        is_settled
    }

    fn is_settled(&self, unit: UnitId) -> bool {
        let Some(old) = self.unit(unit) else {
            return true;
        };
        let heirs = self.arriving.iter().filter_map(|unit| self.unit(*unit));
        let stored = old.owner.settled();
        let has_all = |heir: &ControlUnit| heir.owner.settled() == stored;
        stored.is_some() && heirs.filter(|heir| heir.key == old.key).all(has_all)
    }

    /// A unit comes: it has an owner from now on.
    fn admit_unit(&mut self, new: NewUnit) -> Arrival {
        self.arriving.push(new.id);
        let unit = ControlUnit::new(new, self.balancer.cores());
        let arrival = Arrival {
            id: unit.id,
            state: Arc::clone(unit.owner.state()),
            volume: Arc::clone(&unit.volume),
            name: unit.name.clone(),
        };
        self.insert_unit(unit);
        arrival
    }
}
