//! Persistent reservations as such: what each action does to a [`Reservations`].

use std::sync::Arc;

use super::{Holding, MAX_REGISTRATIONS, Registration, Reservation, ReservationType, Reservations};
use crate::nexus::NexusIdentity;

/// A change of registrations or of the reservation. `key` is what the nexus proves its own
/// registration by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Register, change the key, or unregister.
    Register(Register),
    /// Reserve the unit.
    Reserve {
        /// The key of the nexus.
        key: u64,
        /// The type wanted.
        kind: ReservationType,
    },
    /// Release the unit.
    Release {
        /// The key of the nexus.
        key: u64,
        /// The type held.
        kind: ReservationType,
    },
    /// Take away the reservation and all registrations.
    Clear {
        /// The key of the nexus.
        key: u64,
    },
    /// Take away the registrations with a key, and their reservation over.
    Preempt {
        /// The key of the nexus.
        key: u64,
        /// The key that goes; 0 means everybody else's, where all registrants are holders.
        victim: u64,
        /// The type to reserve with; looked at only where a reservation is taken over.
        kind: Option<ReservationType>,
        /// Abort the tasks of each nexus that loses its registration.
        abort: bool,
    },
    /// Hand the reservation to another nexus.
    Move(RegisterAndMove),
}

/// REGISTER, and REGISTER AND IGNORE EXISTING KEY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The key that the nexus has now, 0 if it is not registered; `None`: whatever it is.
    pub key: Option<u64>,
    /// The key to have; 0: unregister.
    pub new_key: u64,
    /// The same initiator port by the other target ports (ALL_TG_PT).
    pub siblings: Vec<Arc<NexusIdentity>>,
    /// Other nexuses to be registered along with it (SPEC_I_PT); `None` where it is not asked for.
    pub specified: Option<Vec<Arc<NexusIdentity>>>,
    /// Keep everything over a power loss.
    pub aptpl: bool,
}

/// REGISTER AND MOVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterAndMove {
    /// The key of the nexus.
    pub key: u64,
    /// The key that the new holder gets; not 0.
    pub new_key: u64,
    /// The new holder.
    pub to: Arc<NexusIdentity>,
    /// Unregister the nexus that asks.
    pub unregister: bool,
    /// Keep everything over a power loss.
    pub aptpl: bool,
}

/// What an action did, beyond the change itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionOutcome {
    /// Unit attentions for other nexuses.
    pub notices: Vec<(ReservationNotice, Vec<Arc<NexusIdentity>>)>,
    /// Whose tasks are to be aborted.
    pub abort: Vec<Arc<NexusIdentity>>,
}

/// What the other nexuses are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationNotice {
    /// Reservation and registrations were cleared.
    ReservationsPreempted,
    /// The reservation that admitted them is gone, or of another type.
    ReservationsReleased,
    /// Their registration was taken away.
    RegistrationsPreempted,
}

/// Why an action was refused; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationRefusal {
    /// Not registered, a wrong key, or not the holder.
    #[error("reservation conflict")]
    Conflict,
    /// The holder named another type than it holds.
    #[error("the reservation held is of another type")]
    InvalidRelease,
    /// There is no room for another registration.
    #[error("no room for more than {MAX_REGISTRATIONS} registrations")]
    NoResources,
    /// A key of zero where one must be named.
    #[error("the key to act upon is zero")]
    ZeroKey,
    /// A reservation was to be made, of a type that does not exist.
    #[error("no such reservation type")]
    NoType,
    /// SPEC_I_PT from a nexus that is registered already.
    #[error("only an unregistered nexus may specify others")]
    SpecifiedByRegistrant,
    /// The reservation was to be moved to where it is.
    #[error("a reservation cannot be moved to its own holder")]
    MovedToItself,
}

impl Reservations {
    /// Carries out an action for `nexus`.
    ///
    /// # Errors
    /// A [`ReservationRefusal`]; the value must be thrown away then, as it may have changed in
    /// part.
    pub fn act(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        action: &Action,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        if matches!(self.hold, Holding::Reserved(_)) {
            return Err(ReservationRefusal::Conflict);
        }
        match action {
            Action::Register(register) => self.register(nexus, register),
            Action::Reserve { key, kind } => self.reserve(nexus, *key, *kind),
            Action::Release { key, kind } => self.release(nexus, *key, *kind),
            Action::Clear { key } => self.clear(nexus, *key),
            Action::Preempt {
                key,
                victim,
                kind,
                abort,
            } => {
                self.authenticate(nexus, *key)?;
                self.preempt(nexus, *victim, *kind, *abort)
            }
            Action::Move(r#move) => self.r#move(nexus, r#move),
        }
    }

    fn authenticate(&self, nexus: &NexusIdentity, key: u64) -> Result<(), ReservationRefusal> {
        if self.key(nexus) == Some(key) {
            Ok(())
        } else {
            Err(ReservationRefusal::Conflict)
        }
    }

    fn register(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        register: &Register,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        let existing = self.key(nexus);
        if register.key.is_some_and(|key| key != existing.unwrap_or(0)) {
            return Err(ReservationRefusal::Conflict);
        }
        if register.specified.is_some() && existing.is_some() {
            return Err(ReservationRefusal::SpecifiedByRegistrant);
        }
        self.check_siblings(register)?;
        self.generation = self.generation.wrapping_add(1);
        let mut all = register.siblings.clone();
        all.push(nexus.clone());
        if register.new_key == 0 {
            if all.iter().any(|one| self.is_registered(one)) {
                self.aptpl = register.aptpl;
            }
            return Ok(self.unregister(&all));
        }
        let specified = register.specified.iter().flatten();
        all.extend(specified.filter(|one| !self.is_registered(one)).cloned());
        for one in &all {
            self.set(one, register.new_key)?;
        }
        self.aptpl = register.aptpl;
        Ok(ActionOutcome::default())
    }

    /// ALL_TG_PT acts as if each target port had got the command. One that already has the key to
    /// be set is no obstacle: a host that registers path by path and then by all of them means the
    /// same thing.
    fn check_siblings(&self, register: &Register) -> Result<(), ReservationRefusal> {
        let Some(expected) = register.key else {
            return Ok(());
        };
        let fits = |sibling: &Arc<NexusIdentity>| {
            let key = self.key(sibling).unwrap_or(0);
            key == expected || key == register.new_key
        };
        if register.siblings.iter().all(fits) {
            Ok(())
        } else {
            Err(ReservationRefusal::Conflict)
        }
    }

    pub(super) fn set(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        key: u64,
    ) -> Result<(), ReservationRefusal> {
        match self.position(nexus) {
            Ok(at) => self.registrations[at].key = key,
            Err(_) if self.registrations.len() >= MAX_REGISTRATIONS => {
                return Err(ReservationRefusal::NoResources);
            }
            Err(at) => {
                let nexus = nexus.clone();
                self.registrations.insert(at, Registration { nexus, key });
            }
        }
        Ok(())
    }

    /// SPC-5 §5.14.11.3: a holder that goes takes its reservation along, and where that admitted
    /// all registrants, those that remain are told.
    fn unregister(&mut self, gone: &[Arc<NexusIdentity>]) -> ActionOutcome {
        self.registrations.retain(|one| !gone.contains(&one.nexus));
        match self.release_if_unheld() {
            Some(kind) if kind.admits_registrants() => {
                self.tell_all_but(None, ReservationNotice::ReservationsReleased)
            }
            _ => ActionOutcome::default(),
        }
    }

    fn release_if_unheld(&mut self) -> Option<ReservationType> {
        let reservation = self.reservation()?;
        let held = match &reservation.holder {
            Some(holder) => self.is_registered(holder),
            None => !self.registrations.is_empty(),
        };
        if held {
            return None;
        }
        let kind = reservation.kind;
        self.hold = Holding::Free;
        Some(kind)
    }

    fn reserve(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        key: u64,
        kind: ReservationType,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        self.authenticate(nexus, key)?;
        match self.reservation() {
            None => self.establish(nexus, kind),
            Some(held) if held.kind == kind && self.is_holder(nexus) => {}
            Some(_) => return Err(ReservationRefusal::Conflict),
        }
        Ok(ActionOutcome::default())
    }

    fn establish(&mut self, nexus: &Arc<NexusIdentity>, kind: ReservationType) {
        let holder = (!kind.all_registrants()).then(|| nexus.clone());
        self.hold = Holding::Persistent(Reservation { kind, holder });
    }

    fn release(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        key: u64,
        kind: ReservationType,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        self.authenticate(nexus, key)?;
        let Some(held) = self.reservation().map(|reservation| reservation.kind) else {
            return Ok(ActionOutcome::default());
        };
        if !self.is_holder(nexus) {
            return Ok(ActionOutcome::default());
        }
        if held != kind {
            return Err(ReservationRefusal::InvalidRelease);
        }
        self.hold = Holding::Free;
        if !kind.admits_registrants() {
            return Ok(ActionOutcome::default());
        }
        Ok(self.tell_all_but(Some(nexus), ReservationNotice::ReservationsReleased))
    }

    fn clear(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        key: u64,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        self.authenticate(nexus, key)?;
        let outcome = self.tell_all_but(Some(nexus), ReservationNotice::ReservationsPreempted);
        self.generation = self.generation.wrapping_add(1);
        self.registrations.clear();
        self.hold = Holding::Free;
        Ok(outcome)
    }

    /// SPC-5 §5.14.11.4. The reservation is taken over where its holder has the key, or where all
    /// are holders and the key is 0; else only registrations go.
    fn preempt(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        victim: u64,
        kind: Option<ReservationType>,
        abort: bool,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        let takes_over = self.takes_over(victim);
        if victim == 0 && !takes_over {
            return Err(ReservationRefusal::ZeroKey);
        }
        let before = self.reservation().map(|reservation| reservation.kind);
        let gone = self.remove(|one| {
            let named = victim == 0 || one.key == victim;
            named && !(takes_over && one.nexus == *nexus)
        });
        if takes_over {
            self.establish(nexus, kind.ok_or(ReservationRefusal::NoType)?);
        } else if gone.is_empty() {
            return Err(ReservationRefusal::Conflict);
        } else {
            self.release_if_unheld();
        }
        self.generation = self.generation.wrapping_add(1);
        let mut outcome = ActionOutcome::default();
        if takes_over && before != kind {
            outcome = self.tell_all_but(Some(nexus), ReservationNotice::ReservationsReleased);
        }
        let others: Vec<_> = gone.into_iter().filter(|one| one != nexus).collect();
        outcome.tell(ReservationNotice::RegistrationsPreempted, others.clone());
        if abort {
            outcome.abort = others;
        }
        Ok(outcome)
    }

    fn remove(&mut self, hit: impl Fn(&Registration) -> bool) -> Vec<Arc<NexusIdentity>> {
        let gone = self.registrations.extract_if(.., |one| hit(one));
        gone.map(|one| one.nexus).collect()
    }

    fn takes_over(&self, victim: u64) -> bool {
        match self.reservation() {
            None => false,
            Some(Reservation { holder: None, .. }) => victim == 0,
            Some(Reservation {
                holder: Some(holder),
                ..
            }) => self.key(holder) == Some(victim),
        }
    }

    fn r#move(
        &mut self,
        nexus: &Arc<NexusIdentity>,
        r#move: &RegisterAndMove,
    ) -> Result<ActionOutcome, ReservationRefusal> {
        self.authenticate(nexus, r#move.key)?;
        let kind = match self.reservation() {
            Some(held) if held.holder.as_ref() == Some(nexus) => held.kind,
            _ => return Err(ReservationRefusal::Conflict),
        };
        if r#move.new_key == 0 {
            return Err(ReservationRefusal::ZeroKey);
        }
        if r#move.to == *nexus {
            return Err(ReservationRefusal::MovedToItself);
        }
        self.generation = self.generation.wrapping_add(1);
        if r#move.unregister {
            self.registrations.retain(|one| one.nexus != *nexus);
        }
        self.set(&r#move.to, r#move.new_key)?;
        self.establish(&r#move.to, kind);
        self.aptpl = r#move.aptpl;
        Ok(ActionOutcome::default())
    }

    fn tell_all_but(
        &self,
        nexus: Option<&Arc<NexusIdentity>>,
        notice: ReservationNotice,
    ) -> ActionOutcome {
        let others = self.registrations.iter().map(|one| one.nexus.clone());
        let mut outcome = ActionOutcome::default();
        outcome.tell(notice, others.filter(|one| Some(one) != nexus).collect());
        outcome
    }
}

impl ActionOutcome {
    fn tell(&mut self, notice: ReservationNotice, whom: Vec<Arc<NexusIdentity>>) {
        if !whom.is_empty() {
            self.notices.push((notice, whom));
        }
    }
}
