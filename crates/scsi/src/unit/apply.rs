//! What each change does.

use std::sync::Arc;

use super::{EffectScope, UnitState};
use crate::medium::Traits;
use crate::nexus::NexusIdentity;
use crate::owner::{Effect, OwnerRequest, UnitChange};
use crate::reserve;
use crate::task::CommandFailure;
use crate::unit_settings;
use crate::wire::asc;
use crate::wire::sense::{Sense, SenseKey};

impl UnitState {
    /// Makes a change. Locks, and whom they are told, are the owner's business, and nothing happens
    /// for them here.
    ///
    /// # Errors
    /// Why the change is refused; the state must be thrown away then.
    pub fn apply(&mut self, request: &OwnerRequest) -> Result<Vec<Effect>, CommandFailure> {
        let nexus = request.nexus.as_ref();
        match &request.change {
            UnitChange::Lock(_)
            | UnitChange::Unlock(_)
            | UnitChange::Subscribe
            | UnitChange::Unsubscribe => {}
            UnitChange::Medium(traits) => return Ok(self.follow(traits)),
            UnitChange::Volume { traits, is_absent } => {
                return Ok(self.replace(traits, *is_absent));
            }
            UnitChange::Reset => return Ok(self.reset()),
            UnitChange::Operation(step) => self.operation = self.operation.after(*step)?,
            UnitChange::NexusLoss => self.lose(nexus),
            UnitChange::PersistentReserve(action) => {
                return reserve::apply::persistent(self, needed(nexus)?, action);
            }
            UnitChange::Reserve => reserve::apply::reserve(self, needed(nexus)?)?,
            UnitChange::Release => reserve::apply::release(self, needed(nexus)?)?,
            UnitChange::Setting(setting) => {
                return unit_settings::apply(self, needed(nexus)?, setting);
            }
            UnitChange::AccessState(state) if *state == self.access_state => {}
            UnitChange::AccessState(state) => {
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
            unit_settings::follow_cache(self);
        }
        let resized = (was.blocks != now.blocks).then_some(asc::CAPACITY_CHANGED);
        let modes = caches || before != self.writable().is_ok();
        let modes = modes.then_some(asc::MODE_PARAMETERS_CHANGED);
        let told = [resized, modes].into_iter().flatten();
        told.map(|code| Effect::Attention(EffectScope::All, code))
            .collect()
    }

    /// Another volume: hosts are told what is different (SBC-4 §4.10), and that a medium that was
    /// missing is there (NOT READY TO READY CHANGE).
    fn replace(&mut self, now: &Traits, is_absent: bool) -> Vec<Effect> {
        let was_absent = std::mem::replace(&mut self.is_absent, is_absent);
        let mut effects = self.follow(now);
        self.traits = now.clone();
        if was_absent && !is_absent {
            let code = asc::MEDIUM_MAY_HAVE_CHANGED;
            effects.push(Effect::Attention(EffectScope::All, code));
        }
        effects
    }

    /// SAM-5 §6.3.3. The attention meets the nexus that asked for the reset too: its other tasks
    /// are gone like everybody's.
    fn reset(&mut self) -> Vec<Effect> {
        reserve::apply::reset(self);
        let modes = unit_settings::reset(self);
        let mut effects = vec![
            Effect::Abort(EffectScope::All),
            Effect::Reset,
            Effect::Attention(EffectScope::All, asc::BUS_DEVICE_RESET),
        ];
        if modes {
            let code = asc::MODE_PARAMETERS_CHANGED;
            effects.push(Effect::Attention(EffectScope::All, code));
        }
        effects
    }

    fn lose(&mut self, nexus: Option<&Arc<NexusIdentity>>) {
        if let Some(nexus) = nexus {
            reserve::apply::nexus_loss(self, nexus);
            unit_settings::nexus_loss(self, nexus);
        }
    }
}

fn others(nexus: Option<&Arc<NexusIdentity>>) -> EffectScope {
    nexus.map_or(EffectScope::All, |nexus| EffectScope::AllBut(nexus.clone()))
}

/// A core that asks for a reservation and does not say for whom is in error.
fn needed(nexus: Option<&Arc<NexusIdentity>>) -> Result<&Arc<NexusIdentity>, CommandFailure> {
    let failure = Sense::new(SenseKey::HardwareError, asc::INTERNAL_TARGET_FAILURE);
    nexus.ok_or(CommandFailure::Check(failure))
}

#[cfg(test)]
mod tests;
