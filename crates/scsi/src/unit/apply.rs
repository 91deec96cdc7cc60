//! What each change does.

use std::sync::Arc;

use super::{UnitState, Who};
use crate::medium::Traits;
use crate::nexus::Identity;
use crate::owner::{Change, Effect, Request};
use crate::reserve::apply as reservations;
use crate::setting;
use crate::task::Failure;
use crate::wire::asc;
use crate::wire::sense::{Key, Sense};

impl UnitState {
    /// Makes a change. Locks are the owner's business, and nothing happens for them here.
    ///
    /// # Errors
    /// Why the change is refused; the state must be thrown away then.
    pub fn apply(&mut self, request: &Request) -> Result<Vec<Effect>, Failure> {
        let nexus = request.nexus.as_ref();
        match &request.change {
            Change::Lock(_) | Change::Unlock(_) => {}
            Change::Medium(traits) => return Ok(self.follow(traits)),
            Change::Reset => return Ok(self.reset()),
            Change::Operation(step) => self.operation = self.operation.after(*step)?,
            Change::NexusLoss => self.lose(nexus),
            Change::PersistentReserve(action) => {
                return reservations::persistent(self, needed(nexus)?, action);
            }
            Change::Reserve => reservations::reserve(self, needed(nexus)?)?,
            Change::Release => reservations::release(self, needed(nexus)?)?,
            Change::Setting(setting) => return setting::apply(self, needed(nexus)?, setting),
            Change::AccessState(state) if *state == self.access_state => {}
            Change::AccessState(state) => {
                self.access_state = *state;
                let code = asc::ASYMMETRIC_ACCESS_STATE_CHANGED;
                return Ok(vec![Effect::Attention(others(nexus), code)]);
            }
        }
        Ok(Vec::new())
    }

    /// WCE and WP stand in mode pages and their header (SBC-4 §6.5.1, §6.5.6).
    fn follow(&mut self, now: &Traits) -> Vec<Effect> {
        let (was, before) = (self.traits.clone(), self.writable().is_ok());
        self.traits.blocks = now.blocks;
        self.traits.read_only = now.read_only;
        self.traits.write_cache = now.write_cache;
        let caches = was.write_cache != now.write_cache;
        if caches {
            setting::follow_cache(self);
        }
        let resized = (was.blocks != now.blocks).then_some(asc::CAPACITY_CHANGED);
        let modes = caches || before != self.writable().is_ok();
        let modes = modes.then_some(asc::MODE_PARAMETERS_CHANGED);
        let told = [resized, modes].into_iter().flatten();
        told.map(|code| Effect::Attention(Who::All, code)).collect()
    }

    /// SAM-5 §6.3.3. The attention meets the nexus that asked for the reset too: its other tasks
    /// are gone like everybody's.
    fn reset(&mut self) -> Vec<Effect> {
        reservations::reset(self);
        let modes = setting::reset(self);
        let mut effects = vec![
            Effect::Abort(Who::All),
            Effect::Reset,
            Effect::Attention(Who::All, asc::BUS_DEVICE_RESET),
        ];
        if modes {
            let code = asc::MODE_PARAMETERS_CHANGED;
            effects.push(Effect::Attention(Who::All, code));
        }
        effects
    }

    fn lose(&mut self, nexus: Option<&Arc<Identity>>) {
        if let Some(nexus) = nexus {
            reservations::nexus_loss(self, nexus);
            setting::nexus_loss(self, nexus);
        }
    }
}

fn others(nexus: Option<&Arc<Identity>>) -> Who {
    nexus.map_or(Who::All, |nexus| Who::AllBut(nexus.clone()))
}

/// A core that asks for a reservation and does not say for whom is in error.
fn needed(nexus: Option<&Arc<Identity>>) -> Result<&Arc<Identity>, Failure> {
    let failure = Sense::new(Key::HardwareError, asc::INTERNAL_TARGET_FAILURE);
    nexus.ok_or(Failure::Check(failure))
}

#[cfg(test)]
mod tests;
