//! Two switches of the same names, of which one is active.

use std::time::Duration;

use scsi::medium::Now;

use super::super::{LogoutReason, SwitchEvent};
use super::{Fcf, silence};
use crate::wire::ethernet::Mac;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Active,
    Standby {
        /// The first port of the active one, once it is known.
        active: Option<Mac>,
        /// When it has been silent for too long.
        until: Now,
    },
    Ended,
}

impl Role {
    pub(super) fn new(standby: bool, now: Now, period: Duration) -> Self {
        if !standby {
            return Self::Active;
        }
        Self::Standby {
            active: None,
            until: now.saturating_add(silence(period)),
        }
    }

    /// When a standby takes over.
    pub(super) const fn deadline(&self) -> Option<Now> {
        match self {
            Self::Standby { until, .. } => Some(*until),
            Self::Active | Self::Ended => None,
        }
    }
}

impl Fcf {
    /// The other one says whether it accepts logins. It is silent after so long.
    pub(super) fn hear_pair(&mut self, first: Mac, is_available: bool, silence: Duration) {
        match (self.role, is_available) {
            (Role::Active, true) if first < self.identity.first => self.stand_down(first, silence),
            (Role::Standby { .. }, true) => self.role = self.behind(first, silence),
            (Role::Standby { active, .. }, false) if active == Some(first) => self.take_over(),
            _ => {}
        }
    }

    fn behind(&self, first: Mac, silence: Duration) -> Role {
        Role::Standby {
            active: Some(first),
            until: self.now.saturating_add(silence.min(LONGEST)),
        }
    }

    /// What it knows of N_Port_IDs is what it was told at the start; its own logins begin anew.
    pub(super) fn take_over(&mut self) {
        self.role = Role::Active;
        self.events.push_back(SwitchEvent::Takeover);
        self.advertise_everywhere();
    }

    fn stand_down(&mut self, other: Mac, silence: Duration) {
        self.role = self.behind(other, silence);
        self.events.push_back(SwitchEvent::StoodDown { other });
        self.advertise_everywhere();
        self.clear_all(LogoutReason::StoodDown);
    }

    /// Ends it for good. A standby hears that it is wanted before the ENodes look for it.
    pub(in crate::fabric) fn shut_down(&mut self, now: Now) {
        self.tick(now);
        if self.is_active() {
            // No standby of any, but not active any more: the Advertisements are to say so.
            self.role = self.behind(Mac::default(), LONGEST);
            self.advertise_everywhere();
            self.clear_all(LogoutReason::ShutDown);
        }
        self.role = Role::Ended;
        for port in self.ports.values_mut() {
            port.next = None;
        }
    }
}

/// Two and a half of the longest periods.
const LONGEST: Duration = silence(super::PERIODS.1);
