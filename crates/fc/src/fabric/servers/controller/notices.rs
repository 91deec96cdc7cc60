//! What one port is told of others.

use std::collections::BTreeSet;
use std::time::Duration;

use scsi::medium::Now;

use super::GATHERED;
use crate::wire::els::Rscn;
use crate::wire::frame::OxId;
use crate::wire::names::FcId;

/// Kinds of events that a port may register for: the registration functions of SCR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct EventKinds(u8);

impl EventKinds {
    /// Events that the fabric has seen.
    pub(super) const FABRIC: Self = Self(1);
    /// Events that a port told.
    pub(super) const N_PORT: Self = Self(2);

    /// Of a registration function; `None` if there is no such function.
    pub(super) const fn of(function: u8) -> Option<Self> {
        match function {
            1..=3 => Some(Self(function)),
            CLEAR => Some(Self(0)),
            _ => None,
        }
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The registration function that ends a registration.
const CLEAR: u8 = 255;

/// Ports that changed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Pages {
    ports: BTreeSet<FcId>,
    /// More than are named.
    whole_fabric: bool,
}

impl Pages {
    pub(super) const WHOLE_FABRIC: Self = Self {
        ports: BTreeSet::new(),
        whole_fabric: true,
    };

    pub(super) fn of(id: FcId) -> Self {
        let ports = BTreeSet::from([id]);
        Self {
            ports,
            whole_fabric: false,
        }
    }

    pub(super) fn add(&mut self, id: FcId) {
        if !self.whole_fabric {
            self.ports.insert(id);
        }
        if self.ports.len() > PAGES_MAX {
            *self = Self::WHOLE_FABRIC;
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.whole_fabric {
            *self = Self::WHOLE_FABRIC;
        }
        other.ports.iter().for_each(|id| self.add(*id));
    }

    pub(super) const fn is_whole_fabric(&self) -> bool {
        self.whole_fabric
    }

    fn is_empty(&self) -> bool {
        self.ports.is_empty() && !self.whole_fabric
    }

    /// As they are written, in a frame of up to `frame_max` bytes.
    fn rscn(&self, frame_max: usize) -> Rscn {
        let room = frame_max / PAGE_LEN - 1;
        if self.whole_fabric || self.ports.len() > room {
            return Rscn(vec![(FABRIC_FORMAT, FcId::UNIDENTIFIED)]);
        }
        let pages = self.ports.iter().map(|id| (PORT_FORMAT, *id));
        Rscn(pages.collect())
    }
}

/// What a port is told, and what others are told of it.
#[derive(Debug, Default)]
pub(in crate::fabric::servers) struct Notices {
    /// What it has registered for.
    kinds: EventKinds,
    /// When others are told that it is there, if they are not yet.
    pub(super) announced_at: Option<Now>,
    /// What it is to be told.
    pending: Pages,
    /// When it may be told.
    due: Option<Now>,
    /// What it was told and has not answered.
    in_flight: Option<InFlight>,
    /// RSCNs that it did not answer, one after the other.
    unanswered: u8,
    /// When the last one was sent.
    sent: Option<Now>,
    /// When it is looked at next.
    pub(super) armed: Option<Now>,
}

#[derive(Debug)]
struct InFlight {
    pages: Pages,
    ox_id: OxId,
    deadline: Now,
}

impl Notices {
    /// It registers, or ends its registration.
    pub(super) fn register(&mut self, kinds: EventKinds) {
        self.kinds = kinds;
        if kinds == EventKinds::default() {
            self.pending = Pages::default();
            self.due = None;
            self.in_flight = None;
            self.unanswered = 0;
        }
    }

    /// Whether it has registered for one of these kinds of events.
    pub(super) const fn wants(&self, kinds: EventKinds) -> bool {
        self.kinds.0 & kinds.0 != 0
    }

    /// Adds to what it is to be told as soon as it may be.
    pub(super) fn add(&mut self, now: Now, pages: &Pages) {
        self.pending.merge(pages);
        if !self.pending.is_empty() {
            let earliest = self.sent.map_or(now, |sent| sent + GATHERED);
            self.due = Some(now.max(earliest));
        }
    }

    /// What it is to be told now. [`Self::sent`] follows.
    pub(super) fn take_due(&mut self, now: Now, frame_max: usize) -> Option<Rscn> {
        if let Some(late) = self.in_flight.take_if(|sent| sent.deadline <= now) {
            self.unanswered = self.unanswered.saturating_add(1);
            self.add(now, &late.pages);
            if self.unanswered >= TRIES {
                // Whoever has registered relies on being told, however much was lost.
                self.due = Some(now + SELDOM);
            }
        }
        let is_due = self.due.is_some_and(|due| due <= now);
        if !is_due || self.in_flight.is_some() {
            return None;
        }
        Some(self.pending.rscn(frame_max))
    }

    pub(super) fn sent(&mut self, ox_id: OxId, now: Now, e_d_tov: Duration) {
        self.in_flight = Some(InFlight {
            pages: std::mem::take(&mut self.pending),
            ox_id,
            deadline: now + e_d_tov,
        });
        self.due = None;
        self.sent = Some(now);
    }

    /// Any answer is good: one that rejects would reject again.
    pub(super) fn answered(&mut self, ox_id: OxId) {
        let answered = self.in_flight.take_if(|sent| sent.ox_id == ox_id);
        if answered.is_some() {
            self.unanswered = 0;
        }
    }

    /// When something is to be done.
    pub(super) fn deadline(&self) -> Option<Now> {
        let in_flight = self.in_flight.as_ref().map(|sent| sent.deadline);
        in_flight.or(self.due)
    }
}

/// The most ports that are named in one RSCN: a port that is told of more asks for all.
const PAGES_MAX: usize = 64;

/// How often an RSCN is sent that is not answered, before it is sent seldom.
const TRIES: u8 = 3;

/// After this time an RSCN is sent again that was not answered often: R_A_TOV.
const SELDOM: Duration = Duration::from_secs(10);

/// Bytes of a page, and of what stands before the first.
const PAGE_LEN: usize = 4;

/// The first byte of a page: the port of an address.
const PORT_FORMAT: u8 = 0;

/// All ports of the fabric.
const FABRIC_FORMAT: u8 = 3;
