//! Reservations (SPC-5 §5.14): which nexuses may use a unit.
//!
//! [`Reservations`] is a value: registrations, and what the unit is reserved by. It knows neither
//! CDBs nor parameter lists, so that another command set can have the same. [`check`] is what every
//! command passes; the handlers below it answer the SCSI commands.
//!
//! How PREEMPT AND ABORT fences a host: `reserve/commands.rs` parses it, and `device/query.rs` asks
//! the unit's owner ([`crate::owner`]) for the change. There `reserve/persistent.rs` removes the
//! registrations and names whose tasks are to be aborted, and `reserve/apply.rs` makes that an
//! effect of the new state. The owner has the registrations saved if they are to persist, and
//! publishes state and effect to every core, and each core aborts the tasks (`device/publish.rs`)
//! before it acknowledges. Only then does the command end with GOOD, so that no write of the host
//! reaches the medium later. What the host sends from then on [`check`] refuses, while there is a
//! reservation.

mod access;
pub(crate) mod apply;
mod commands;
mod persistent;
mod store;

use std::cmp::Ordering;
use std::sync::Arc;

pub use access::check;
pub use commands::{persistent_reserve_in, persistent_reserve_out, release, reserve};
pub use persistent::{
    Action, ActionOutcome, Register, RegisterAndMove, ReservationNotice, ReservationRefusal,
};
pub use store::StoreError;

use crate::nexus::NexusIdentity;

/// How many registrations a unit keeps: room for 256 hosts by 8 paths, and READ FULL STATUS stays
/// below 600 KiB.
pub const MAX_REGISTRATIONS: usize = 2048;

/// Everything about the reservations of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    generation: u32,
    aptpl: bool,
    /// Sorted by nexus, none twice.
    registrations: Vec<Registration>,
    hold: Holding,
}

/// A registered I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The registered nexus.
    pub nexus: Arc<NexusIdentity>,
    /// Its reservation key; not 0.
    pub key: u64,
}

/// What a unit is reserved by. The two methods exclude each other (SPC-2 §5.5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Holding {
    /// Nothing.
    #[default]
    Free,
    /// RESERVE(6) or (10), by this nexus.
    Reserved(Arc<NexusIdentity>),
    /// A persistent reservation.
    Persistent(Reservation),
}

/// A persistent reservation of the whole unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its type.
    pub kind: ReservationType,
    /// The holder, always registered; `None` for the types that every registrant holds.
    pub holder: Option<Arc<NexusIdentity>>,
}

/// Persistent reservation types, with the codes of SPC-5 §6.16.3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReservationType {
    /// Only the holder writes.
    WriteExclusive = 0x1,
    /// Only the holder reads and writes.
    ExclusiveAccess = 0x3,
    /// Only registrants write.
    WriteExclusiveRegistrantsOnly = 0x5,
    /// Only registrants read and write.
    ExclusiveAccessRegistrantsOnly = 0x6,
    /// Only registrants write, and each is a holder.
    WriteExclusiveAllRegistrants = 0x7,
    /// Only registrants read and write, and each is a holder.
    ExclusiveAccessAllRegistrants = 0x8,
}

impl ReservationType {
    /// Every type.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrantsOnly,
        Self::ExclusiveAccessRegistrantsOnly,
        Self::WriteExclusiveAllRegistrants,
        Self::ExclusiveAccessAllRegistrants,
    ];

    /// The type with this code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What SPC-5 calls it, in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteExclusive => "write-exclusive",
            Self::ExclusiveAccess => "exclusive-access",
            Self::WriteExclusiveRegistrantsOnly => "write-exclusive-registrants-only",
            Self::ExclusiveAccessRegistrantsOnly => "exclusive-access-registrants-only",
            Self::WriteExclusiveAllRegistrants => "write-exclusive-all-registrants",
            Self::ExclusiveAccessAllRegistrants => "exclusive-access-all-registrants",
        }
    }

    /// Whether every registrant is a holder.
    #[must_use]
    pub const fn all_registrants(self) -> bool {
        matches!(
            self,
            Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants
        )
    }

    /// Whether every registrant has access, be it as a holder or not.
    #[must_use]
    pub const fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    /// Whether everybody may read.
    #[must_use]
    pub const fn admits_readers(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive
                | Self::WriteExclusiveRegistrantsOnly
                | Self::WriteExclusiveAllRegistrants
        )
    }
}

impl Reservations {
    /// PRGENERATION: counts registrations and their removal since power on.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether all this is kept over a power loss, as the last registration to say so wished.
    #[must_use]
    pub fn aptpl(&self) -> bool {
        self.aptpl
    }

    /// Every registration, sorted by nexus.
    #[must_use]
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// What the unit is reserved by.
    #[must_use]
    pub fn hold(&self) -> &Holding {
        &self.hold
    }

    /// The persistent reservation, if there is one.
    #[must_use]
    pub fn reservation(&self) -> Option<&Reservation> {
        match &self.hold {
            Holding::Persistent(reservation) => Some(reservation),
            Holding::Free | Holding::Reserved(_) => None,
        }
    }

    /// The key that a nexus is registered with.
    #[must_use]
    pub fn key(&self, nexus: &NexusIdentity) -> Option<u64> {
        let at = self.position(nexus).ok()?;
        self.registrations
            .get(at)
            .map(|registration| registration.key)
    }

    /// Whether a nexus is registered.
    #[must_use]
    pub fn is_registered(&self, nexus: &NexusIdentity) -> bool {
        self.position(nexus).is_ok()
    }

    /// Whether a nexus holds the persistent reservation, alone or with every other registrant.
    #[must_use]
    pub fn is_holder(&self, nexus: &NexusIdentity) -> bool {
        match self.reservation() {
            None => false,
            Some(Reservation { holder: None, .. }) => self.is_registered(nexus),
            Some(Reservation {
                holder: Some(holder),
                ..
            }) => **holder == *nexus,
        }
    }

    fn position(&self, nexus: &NexusIdentity) -> Result<usize, usize> {
        self.registrations
            .binary_search_by(|registration| order(&registration.nexus, nexus))
    }
}

fn order(a: &NexusIdentity, b: &NexusIdentity) -> Ordering {
    let ports = a.port.cmp(&b.port);
    ports.then_with(|| a.initiator.cmp(&b.initiator))
}

#[cfg(test)]
mod tests;
