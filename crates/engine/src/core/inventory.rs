//! What a core does when core 0 changes what is served: [`crate::change`].

use std::collections::VecDeque;
use std::sync::Arc;

use ::io::ring::Ring;
use block::volumes::Volumes;
use scsi::medium::Now;
use scsi::nexus::NexusId;
use scsi::unit::{CoreId, UnitId};

use super::Core;
use super::connection::ConnectionPhase;
use super::nexus_table::NexusOwner;
use super::timers::Timer;
use crate::change::{ChangeError, Preparation, Retirement, Switch};
use crate::mailbox::{CoreMessage, Mailer};

/// How many volumes a core attaches in one turn, so that a thousand do not hold up I/O.
const STEPS: usize = 8;

/// How long volumes that go have to end what they have with others, before the change is told to
/// be over. They go on ending.
const LEAVE_TIME: Now = Now::from_secs(2);

/// The units of a core, with their volumes.
#[derive(Default)]
pub(super) struct CoreUnits {
    /// By slot.
    units: Vec<Option<CoreUnit>>,
    /// Volumes that are no longer used, and end what they have with others.
    leaving: Vec<u32>,
    /// What is being attached, and how much of it is done.
    preparing: VecDeque<(Arc<Preparation>, usize)>,
    /// A retirement whose fence does not stand yet.
    retiring: Option<Arc<Retirement>>,
    /// A retirement that waits for volumes, until then.
    closing: Option<(u64, Now)>,
}

/// A unit, and the keys of its handles.
struct CoreUnit {
    id: UnitId,
    volume: u32,
    /// Another volume, which is to take the place of the first.
    spare: Option<u32>,
}

impl CoreUnits {
    /// Units whose volumes have been attached already, in their order.
    pub(super) fn of(volumes: &Volumes) -> Self {
        let unit = |volume| CoreUnit {
            id: UnitId::first(volume),
            volume,
            spare: None,
        };
        Self {
            units: volumes.keys().into_iter().map(unit).map(Some).collect(),
            ..Self::default()
        }
    }

    /// The key of the volume of a unit that is attached here. The device server asks for no other,
    /// so its generation is not compared.
    #[inline]
    pub(super) fn volume(&self, unit: UnitId) -> Option<u32> {
        Some(self.units.get(unit.index())?.as_ref()?.volume)
    }

    /// Every unit, with the key of its volume.
    pub(super) fn all(&self) -> Vec<(UnitId, u32)> {
        let units = self.units.iter().flatten();
        units.map(|unit| (unit.id, unit.volume)).collect()
    }

    fn unit_mut(&mut self, unit: UnitId) -> Option<&mut CoreUnit> {
        let slot = self.units.get_mut(unit.index())?.as_mut();
        slot.filter(|slot| slot.id == unit)
    }

    fn insert(&mut self, id: UnitId, volume: u32) {
        if self.units.len() <= id.index() {
            self.units.resize_with(id.index() + 1, || None);
        }
        self.units[id.index()] = Some(CoreUnit {
            id,
            volume,
            spare: None,
        });
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// The first step of a change.
    pub(super) fn prepare(&mut self, now: Now, preparation: Arc<Preparation>) {
        self.units.preparing.push_back((preparation, 0));
        self.prepare_later(now);
    }

    /// Attaches some of what is to be attached; the rest in the next turns.
    pub(super) fn prepare_on(&mut self, now: Now) {
        for _ in 0..STEPS {
            let Some((preparation, done)) = self.units.preparing.front_mut() else {
                return;
            };
            let preparation = Arc::clone(preparation);
            let step = *done;
            *done += 1;
            if step == preparation.arrivals.len() + preparation.spares.len() {
                self.prepared(preparation.number, Ok(()));
            } else if let Err(error) = self.attach(&preparation, step) {
                self.prepared(preparation.number, Err(error));
            }
        }
        if !self.units.preparing.is_empty() {
            self.prepare_later(now);
        }
    }

    fn prepare_later(&mut self, now: Now) {
        self.timers.set(now + Now::from_nanos(1), Timer::Prepare);
    }

    fn prepared(&mut self, number: u64, result: Result<(), ChangeError>) {
        self.units.preparing.pop_front();
        self.stepped(number, result);
    }

    fn stepped(&mut self, number: u64, result: Result<(), ChangeError>) {
        self.post(CoreId(0), CoreMessage::Stepped(self.id, number, result));
    }

    fn attach(&mut self, preparation: &Preparation, step: usize) -> Result<(), ChangeError> {
        let arrival = preparation.arrivals.get(step);
        let spare = || &preparation.spares[step - preparation.arrivals.len()];
        let (volume, name) = match arrival {
            Some(arrival) => (&arrival.volume, &arrival.name),
            None => (&spare().volume, &spare().name),
        };
        let handle = volume.attach(&self.context);
        let handle = handle.map_err(|cause| ChangeError::Attach {
            volume: name.clone(),
            cause: cause.to_string(),
        })?;
        let key = self.volumes.add(handle, &self.context);
        match arrival {
            Some(arrival) => {
                self.units.insert(arrival.id, key);
                self.device.attach(arrival.id, &arrival.state);
            }
            None => match self.units.unit_mut(spare().unit) {
                Some(unit) => unit.spare = Some(key),
                None => self.volumes.remove(key),
            },
        }
        Ok(())
    }

    /// The second step. All blocks of the units that get another volume are locked. What a nexus
    /// has on LUNs that it no longer sees is cut off, and waited for by the last step.
    pub(super) fn switch(&mut self, now: Now, switch: &Switch) {
        for unit in &switch.swaps {
            let Some(unit) = self.units.unit_mut(*unit) else {
                continue;
            };
            if let Some(spare) = unit.spare.take() {
                let old = std::mem::replace(&mut unit.volume, spare);
                self.let_go(now, old);
            }
        }
        self.views = Arc::clone(&switch.views);
        self.remap();
        for (wwpn, partners) in &switch.partners {
            self.set_fc_partners(now, *wwpn, partners);
        }
        self.stepped(switch.number, Ok(()));
    }

    /// Gives every nexus the LUNs that are now its own.
    fn remap(&mut self) {
        for slot in self.connections.slots() {
            let Some((nexus, target)) = self.view_of(slot) else {
                continue;
            };
            self.device.remap(nexus, target);
        }
    }

    fn view_of(&mut self, slot: u32) -> Option<(NexusId, Arc<scsi::nexus::TargetDevice>)> {
        let nexus = NexusId(slot);
        let found = match self.connections.place(slot)? {
            NexusOwner::Connection(connection) => {
                let ConnectionPhase::Session { session, .. } = &connection.phase else {
                    return None;
                };
                let session = session.parameters();
                let (name, level) = (&session.node()?.name, session.keys.protocol_level);
                self.views.device(name, &session.initiator.name, level)
            }
            &mut NexusOwner::Remote(remote) => {
                let port = self.fc_ports.get(remote.fc_port as usize)?;
                let (own, other) = port.names(remote.id)?;
                self.views.device(&own, &other, 0)
            }
            &mut NexusOwner::Branched(remote) => {
                let (own, other) = self.branched_names(remote)?;
                self.views.device(&own, &other, 0)
            }
        };
        // A target that is gone shows nothing to those who have not left yet.
        Some((nexus, found.cloned().unwrap_or_default()))
    }

    /// The last step.
    pub(super) fn retire(&mut self, retirement: Arc<Retirement>) {
        for unit in &retirement.units {
            self.device.detach(*unit);
        }
        let number = retirement.number;
        self.units.retiring = Some(retirement);
        self.device.fence(number);
    }

    /// Nothing of what was cut off is at its medium any more.
    pub(super) fn fenced(&mut self, now: Now, number: u64) {
        let is_it = |one: &mut Arc<Retirement>| one.number == number;
        let Some(retirement) = self.units.retiring.take_if(is_it) else {
            return;
        };
        for unit in &retirement.spares {
            let spare = self
                .units
                .unit_mut(*unit)
                .and_then(|unit| unit.spare.take());
            spare.into_iter().for_each(|key| self.let_go(now, key));
        }
        for unit in &retirement.units {
            if let Some(volume) = self.units.volume(*unit) {
                self.units.units[unit.index()] = None;
                self.let_go(now, volume);
            }
        }
        self.units.closing = Some((number, now + LEAVE_TIME));
        self.close_volumes(now);
        if self.units.closing.is_some() {
            self.timers.set(now + LEAVE_TIME, Timer::Retire);
        }
    }

    /// Lets a volume end what it has with others, and go then.
    fn let_go(&mut self, now: Now, volume: u32) {
        self.submit(now, volume, |handle, cx| handle.leave(cx));
        self.units.leaving.push(volume);
    }

    /// Drops the volumes that have left. The retirement is over when all have, or had their time.
    pub(super) fn close_volumes(&mut self, now: Now) {
        let volumes = &mut self.volumes;
        self.units.leaving.retain(|volume| {
            let has_left = volumes.has_left(*volume);
            if has_left {
                volumes.remove(*volume);
            }
            !has_left
        });
        let all = self.units.leaving.is_empty();
        let over = |(_, until): &mut (u64, Now)| all || now >= *until;
        if let Some((number, _)) = self.units.closing.take_if(over) {
            self.stepped(number, Ok(()));
        }
    }

    /// Whether volumes are to be looked at by [`Self::close_volumes`].
    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        self.units.closing.is_some() || !self.units.leaving.is_empty()
    }
}
