//! Two switches of the same names, of which one is active.
//!
//! What another switch says is not proof of who sent it. So a switch heeds it only if it was told
//! that it is one of a pair, and only where it says what the partner would say: to all FCFs, as an
//! FCF, of the same fabric, FC-MAP and period, at a port at which a partner may be.
//!
//! Either of a pair listens before it becomes active, so that one that is started again does not
//! take the place of the other. If both are active all the same, as they were apart, the one with
//! logins stays, or the one that has been active longer, or the one of the lower address.

use std::time::Duration;

use scsi::medium::Now;

use super::super::{LogoutReason, PortNumber, SwitchEvent};
use super::received::Received;
use super::{Fcf, silence};
use crate::fip::budget::FillRate;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{FipMessage, FipOperation, Flags};
use scsi::violation::Violation;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Active {
        since: Now,
        /// Periods in which it has heard another active one.
        disputes: u8,
        /// When the last one began.
        disputed: Option<Now>,
    },
    Standby {
        /// The first port of the active one, once it is known.
        active: Option<Mac>,
        /// When it has been silent for too long. While no port is up nothing could be heard.
        until: Option<Now>,
    },
    Ended,
}

impl Role {
    pub(super) const fn new(standby: bool, now: Now) -> Self {
        if !standby {
            return Self::Active {
                since: now,
                disputes: 0,
                disputed: None,
            };
        }
        Self::Standby {
            active: None,
            until: None,
        }
    }

    /// When a standby takes over.
    pub(super) const fn deadline(&self) -> Option<Now> {
        match self {
            Self::Standby { until, .. } => *until,
            Self::Active { .. } | Self::Ended => None,
        }
    }

    /// Whether Advertisements are sent.
    pub(super) const fn advertises(&self) -> bool {
        !matches!(self, Self::Ended)
    }
}

/// What the other switch of a pair says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partner {
    /// The address of its first port.
    pub(super) first: Mac,
    pub(super) has_logins: bool,
    /// For how long it has been active.
    pub(super) active_for: Duration,
}

impl Partner {
    /// The first port, whether there are logins, and for how many milliseconds it is active.
    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..6].copy_from_slice(&self.first.0);
        bytes[6] = self.has_logins.into();
        let ms = u32::try_from(self.active_for.as_millis()).unwrap_or(u32::MAX);
        bytes[10..].copy_from_slice(&ms.to_be_bytes());
        bytes
    }

    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let [a, b, c, d, e, f, logins, _, _, _, ms @ ..]: [u8; Self::LEN] = body.try_into().ok()?;
        Some(Self {
            first: Mac([a, b, c, d, e, f]),
            has_logins: logins != 0,
            active_for: Duration::from_millis(u32::from_be_bytes(ms).into()),
        })
    }

    /// Four reserved bytes lie between the logins and the time.
    const LEN: usize = 14;
}

impl Fcf {
    /// What it tells a partner.
    pub(super) fn as_partner(&self) -> Partner {
        let active_for = match self.role {
            Role::Active { since, .. } => self.now.saturating_sub(since),
            Role::Standby { .. } | Role::Ended => Duration::ZERO,
        };
        Partner {
            first: self.identity.first,
            has_logins: self.logins.iter().next().is_some(),
            active_for,
        }
    }

    /// What the other one of the pair says of itself, if an Advertisement is from there.
    fn partner(
        &self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        (flags, received): (Flags, &Received),
    ) -> Option<Partner> {
        let port = self.ports.get(&number)?;
        let identity = &self.identity;
        let says = (received.name, received.fabric, received.period);
        let fabric = identity.fabric();
        let ours = (
            Some(identity.switch_name),
            Some(fabric),
            Some(identity.period),
        );
        let is_to_fcfs = flags.has(Flags::FCF) && ethernet.dst == Mac::ALL_FCF;
        let is_heeded = self.is_paired && port.config.hears_partner;
        let partner = received.partner.filter(|_| is_heeded && is_to_fcfs);
        partner.filter(|_| says == ours)
    }

    /// An Advertisement has our Switch_Name. What comes to ENodes is not meant for us.
    pub(super) fn namesake(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        (flags, received): (Flags, &Received),
    ) -> Result<(), Violation> {
        if let Some(partner) = self.partner(number, ethernet, (flags, received)) {
            let is_available = flags.has(Flags::AVAILABLE);
            self.hear_partner((number, ethernet.src), &partner, is_available);
            return Ok(());
        }
        if ethernet.dst != Mac::ALL_FCF {
            return Ok(());
        }
        let now = self.now;
        let port = self.ports.get_mut(&number);
        let is_news = port.is_some_and(|port| port.others.hear(now, ethernet.src));
        if is_news { Err(NAMESAKE) } else { Ok(()) }
    }

    /// Whether a message that is over the budget is looked at all the same, as it is an
    /// Advertisement of the partner: a flood would make it fall silent. Such messages have a budget
    /// of their own.
    pub(super) fn is_from_partner(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> bool {
        if !self.is_paired || ethernet.dst != Mac::ALL_FCF {
            return false;
        }
        let Ok(message) = FipMessage::parse(payload) else {
            return false;
        };
        let is_advertisement = message.operation == FipOperation::Advertisement;
        let Some(Ok(received)) = is_advertisement.then(|| Received::read(&message)) else {
            return false;
        };
        let partner = self.partner(number, ethernet, (message.flags, &received));
        let rate = FillRate {
            cost: self.identity.period / 4,
            burst: 8,
        };
        let now = self.now;
        let port = self.ports.get_mut(&number).filter(|_| partner.is_some());
        port.is_some_and(|port| port.of_partner.take(now, &rate))
    }

    /// The other one says whether it accepts logins.
    fn hear_partner(&mut self, at: (PortNumber, Mac), partner: &Partner, is_available: bool) {
        match (self.role, is_available) {
            (Role::Active { .. }, true) if self.yields_to(partner) => {
                self.stand_down(at, partner.first);
            }
            (Role::Standby { .. }, true) => self.role = self.behind(partner.first),
            (Role::Standby { active, .. }, false) if active == Some(partner.first) => {
                self.take_over();
            }
            _ => {}
        }
    }

    /// Whether the other one, which is active too, is the one to stay. Both have to see it alike,
    /// so a period more or less makes no difference; and if they do not, as one has changed
    /// meanwhile, the addresses decide in the end.
    fn yields_to(&mut self, partner: &Partner) -> bool {
        let ours = self.as_partner();
        if self.count_disputes() <= DISPUTES {
            if ours.has_logins != partner.has_logins {
                return partner.has_logins;
            }
            if ours.active_for.abs_diff(partner.active_for) > self.identity.period {
                return partner.active_for > ours.active_for;
            }
        }
        partner.first < ours.first
    }

    /// Another active one is heard. It is heard at each Ethernet that both are on, which is one
    /// dispute all the same.
    fn count_disputes(&mut self) -> u8 {
        let (now, period) = (self.now, self.identity.period);
        let Role::Active {
            disputes, disputed, ..
        } = &mut self.role
        else {
            return 0;
        };
        if disputed.is_none_or(|at| now >= at.saturating_add(period)) {
            *disputes = disputes.saturating_add(1);
            *disputed = Some(now);
        }
        *disputes
    }

    fn behind(&self, first: Mac) -> Role {
        let until = self.now.saturating_add(silence(self.identity.period));
        Role::Standby {
            active: Some(first),
            until: Some(until),
        }
    }

    /// The silence of the active one counts only while it could be heard: a switch that was cut off
    /// listens again as long as one that has begun.
    pub(super) fn listen(&mut self) {
        let all = || self.ports.values();
        let is_told = all().any(|port| port.config.hears_partner);
        let hears = all().any(|port| port.is_up && (port.config.hears_partner || !is_told));
        if let Role::Standby { until, .. } = &mut self.role {
            let begins = self.now.saturating_add(silence(self.identity.period));
            *until = hears.then(|| until.unwrap_or(begins));
        }
    }

    /// What it knows of N_Port_IDs is what it was told at the start; its own logins begin anew.
    pub(super) fn take_over(&mut self) {
        let other = match self.role {
            Role::Standby { active, .. } => active,
            Role::Active { .. } | Role::Ended => None,
        };
        self.role = Role::new(false, self.now);
        self.events.push_back(SwitchEvent::Takeover { other });
        self.advertise_everywhere();
    }

    fn stand_down(&mut self, (number, from): (PortNumber, Mac), other: Mac) {
        self.role = self.behind(other);
        let place = self.place(number);
        self.events
            .push_back(SwitchEvent::StoodDown { other, place, from });
        self.advertise_everywhere();
        self.clear_all(LogoutReason::StoodDown);
    }

    /// Ends it for good. A standby hears that it is wanted before the ENodes look for it.
    pub(in crate::fabric) fn shut_down(&mut self, now: Now) {
        self.tick(now);
        if self.is_active() {
            // No standby of any, but not active any more: the Advertisements are to say so.
            self.role = self.behind(Mac::default());
            self.advertise_everywhere();
            self.clear_all(LogoutReason::ShutDown);
        }
        self.role = Role::Ended;
        for port in self.ports.values_mut() {
            port.next = None;
        }
    }
}

/// Periods in which another active switch was heard, after which only the addresses count.
const DISPUTES: u8 = 8;

const NAMESAKE: Violation = Violation {
    rule: "another FCF has the Switch_Name of this one and is not its partner: this one has no \
           --standby, or the other's Fabric_Name, FC-MAP or period differs, or it is on a cable",
    clause: "a limit of Lunar",
};
