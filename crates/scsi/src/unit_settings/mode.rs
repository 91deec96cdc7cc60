//! The bits of mode pages that MODE SELECT changes.

use crate::medium::Traits;

/// A bit of a mode page that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeParameter {
    /// D_SENSE of the control mode page: sense data in descriptor format.
    DSense,
    /// SWP of the control mode page: software write protect.
    Swp,
    /// TAS of the control mode page: task aborted status.
    Tas,
    /// WCE of the caching mode page: write cache enable.
    Wce,
}

impl ModeParameter {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::DSense, Self::Swp, Self::Tas, Self::Wce];

    /// Whether MODE SELECT may change it on such a volume: a cache cannot be switched on where
    /// there is none.
    #[must_use]
    pub fn is_changeable(self, traits: &Traits) -> bool {
        self != Self::Wce || traits.write_cache
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The current values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeParameters(u8);

impl ModeParameters {
    /// The default values: TAS, and WCE where the volume has a cache. Without TAS, hosts whose
    /// commands another initiator's reset aborted learn it by their own timeouts, and reset in
    /// turn.
    #[must_use]
    pub fn new(traits: &Traits) -> Self {
        if traits.write_cache {
            Self(ModeParameter::Tas.bit() | ModeParameter::Wce.bit())
        } else {
            Self(ModeParameter::Tas.bit())
        }
    }

    /// Whether the bit is one.
    #[must_use]
    pub const fn is_set(self, parameter: ModeParameter) -> bool {
        self.0 & parameter.bit() != 0
    }

    /// The values after a change.
    #[must_use]
    pub const fn with(self, change: ModeChange) -> Self {
        Self(self.0 & !change.mask | change.values)
    }
}

/// New values for some of the parameters: those whose pages were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeChange {
    mask: u8,
    values: u8,
}

impl ModeChange {
    /// Gives the parameter this value.
    pub fn set(&mut self, parameter: ModeParameter, value: bool) {
        self.mask |= parameter.bit();
        self.values &= !parameter.bit();
        if value {
            self.values |= parameter.bit();
        }
    }

    /// The value that it gives to the parameter, if any.
    #[must_use]
    pub fn value(self, parameter: ModeParameter) -> Option<bool> {
        let bit = parameter.bit();
        (self.mask & bit != 0).then_some(self.values & bit != 0)
    }
}
