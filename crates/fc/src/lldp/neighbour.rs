//! LLDP neighbours and the last LLDPDU of each.

use std::fmt;
use std::time::Duration;

use scsi::medium::Now;

use super::NEIGHBOURS_MAX;
use crate::wire::ethernet::Mac;
use crate::wire::lldp::cee::{CeeDcb, FeatureFlags};
use crate::wire::lldp::ieee::IeeeDcb;
use crate::wire::lldp::{Identifier, Lldpdu, tlv};

/// A Chassis ID or Port ID that is kept, see [`Identifier`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnedIdentifier {
    /// What `id` is.
    pub subtype: u8,
    /// 1 to 255 bytes.
    pub id: Box<[u8]>,
}

impl OwnedIdentifier {
    fn is(&self, other: Identifier<'_>) -> bool {
        self.subtype == other.subtype && *self.id == *other.id
    }

    fn of(identifier: Identifier<'_>) -> Self {
        Self {
            subtype: identifier.subtype,
            id: identifier.id.into(),
        }
    }

    fn borrowed(&self) -> Identifier<'_> {
        Identifier {
            subtype: self.subtype,
            id: &self.id,
        }
    }
}

impl fmt::Display for OwnedIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.borrowed().fmt(f)
    }
}

impl fmt::Debug for OwnedIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.borrowed(), f)
    }
}

/// A port that sends LLDPDUs, and what it told last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpNeighbour {
    /// The address that its LLDPDUs come from.
    pub mac: Mac,
    /// Which system it belongs to.
    pub chassis: OwnedIdentifier,
    /// Which port of it this is.
    pub port: OwnedIdentifier,
    /// For how many seconds it told to be there.
    pub ttl_s: u16,
    /// Its description, without control characters; empty if it told none.
    pub port_description: String,
    /// The name of its system, likewise.
    pub system_name: String,
    /// The description of its system, likewise.
    pub system_description: String,
    /// What it says in the dialect of IEEE, if anything.
    pub ieee: Option<IeeeDcb>,
    /// What it says in that of CEE, if anything.
    pub cee: Option<CeeDcb>,
}

/// `leaf1 Ethernet1/5 (02:00:00:00:00:01)`; the Chassis ID for a system without a name.
impl fmt::Display for LldpNeighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.system_name {
            "" => write!(f, "{} {}", self.chassis, self.port),
            name => write!(f, "{name} {} ({})", self.port, self.chassis),
        }
    }
}

/// Neighbours in words, the first two of them by their names.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourNames<'a>(pub &'a [LldpNeighbour]);

impl fmt::Display for NeighbourNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(neighbours) = self;
        let Some((first, others)) = neighbours.split_first() else {
            return f.write_str("no neighbor");
        };
        write!(f, "{first}")?;
        let mut named = others.iter().take(NAMED - 1);
        named.try_for_each(|other| write!(f, " and {other}"))?;
        match neighbours.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Neighbours that are named.
const NAMED: usize = 2;

impl LldpNeighbour {
    fn read(mac: Mac, message: &Lldpdu<'_>) -> Self {
        let mut told = Self {
            mac,
            chassis: OwnedIdentifier::of(message.chassis),
            port: OwnedIdentifier::of(message.port),
            ttl_s: message.ttl_s,
            port_description: text(message, tlv::PORT_DESCRIPTION),
            system_name: text(message, tlv::SYSTEM_NAME),
            system_description: text(message, tlv::SYSTEM_DESCRIPTION),
            ieee: None,
            cee: None,
        };
        let mut ieee = IeeeDcb::default();
        for tlv in message.tlvs().filter_map(|tlv| tlv.organizational()) {
            if ieee.take(&tlv) {
                continue;
            }
            told.cee = told.cee.or_else(|| CeeDcb::parse(&tlv));
        }
        told.ieee = (ieee != IeeeDcb::default()).then_some(ieee);
        told
    }

    /// Priorities for which it says that PFC is on, a bit each; `None` where it says nothing of
    /// DCBX. In the dialect of CEE none is on if the feature is off or in error.
    #[must_use]
    pub fn pfc(&self) -> Option<u8> {
        let ieee = self.ieee.as_ref();
        let ieee = ieee.map(|told| told.pfc.map_or(0, |pfc| pfc.enabled));
        let is_on = |flags: FeatureFlags| flags.enabled && !flags.error;
        let cee = self.cee.as_ref();
        let cee = cee.map(|told| told.pfc.filter(|pfc| is_on(pfc.flags)));
        ieee.or_else(|| cee.map(|pfc| pfc.map_or(0, |pfc| pfc.enabled)))
    }

    /// Itself, and the applications that it lists.
    pub(super) fn records(&self) -> usize {
        let ieee = self.ieee.as_ref().and_then(|told| told.apps.as_ref());
        let cee = self.cee.as_ref().and_then(|told| told.apps.as_ref());
        1 + ieee.map_or(0, Vec::len) + cee.map_or(0, |apps| apps.entries.len())
    }

    fn is_of(&self, message: &Lldpdu<'_>) -> bool {
        self.chassis.is(message.chassis) && self.port.is(message.port)
    }
}

/// Text of a TLV that does nothing to a terminal.
fn text(message: &Lldpdu<'_>, kind: u8) -> String {
    let bytes = message.text(kind).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(TEXT_MAX)];
    let text = String::from_utf8_lossy(bytes);
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.trim_end_matches('\0').chars().map(printable).collect()
}

/// Bytes of such a text (IEEE 802.1AB §8.5).
const TEXT_MAX: usize = 255;

/// What a message has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableChange {
    /// Nothing but how long a neighbour is there.
    Same,
    /// A neighbour told something else, or that it is gone.
    Other,
    /// A neighbour is new; another one was forgotten for it, or not.
    New { crowded_out: bool },
}

/// Neighbours, up to [`NEIGHBOURS_MAX`], in the order in which they were heard first. They are
/// looked for one by one, so what a message costs is bounded by that.
#[derive(Debug, Default)]
pub(super) struct NeighbourTable {
    all: Vec<LldpNeighbour>,
    /// Of each when it was heard last, and until when it is there.
    times: Vec<HeardTimes>,
}

#[derive(Clone, Copy, Debug)]
struct HeardTimes {
    heard: Now,
    until: Now,
}

impl NeighbourTable {
    pub(super) fn all(&self) -> &[LldpNeighbour] {
        &self.all
    }

    /// Takes what a message says of its sender.
    pub(super) fn take(&mut self, now: Now, src: Mac, message: &Lldpdu<'_>) -> TableChange {
        let known = self.all.iter().position(|known| known.is_of(message));
        if message.ttl_s == 0 {
            return known.map_or(TableChange::Same, |at| {
                self.remove(at);
                TableChange::Other
            });
        }
        let told = LldpNeighbour::read(src, message);
        let times = HeardTimes {
            heard: now,
            until: now.saturating_add(Duration::from_secs(message.ttl_s.into())),
        };
        match known {
            None => self.insert(told, times),
            Some(at) => {
                self.times[at] = times;
                let before = std::mem::replace(&mut self.all[at], told);
                if before == self.all[at] {
                    TableChange::Same
                } else {
                    TableChange::Other
                }
            }
        }
    }

    fn insert(&mut self, told: LldpNeighbour, times: HeardTimes) -> TableChange {
        let crowded_out = self.all.len() >= NEIGHBOURS_MAX;
        if crowded_out {
            // A neighbour that is still there repeats its LLDPDU within 30 s.
            let mut places = 0..self.times.len();
            let oldest = places.by_ref().min_by_key(|at| self.times[*at].heard);
            self.remove(oldest.unwrap_or_default());
        }
        self.all.push(told);
        self.times.push(times);
        TableChange::New { crowded_out }
    }

    fn remove(&mut self, at: usize) {
        self.all.remove(at);
        self.times.remove(at);
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.times.iter().map(|times| times.until).min()
    }

    /// Forgets those whose time is over, and returns how many they were.
    pub(super) fn expire(&mut self, now: Now) -> u64 {
        let before = self.all.len();
        for at in (0..before).rev() {
            if self.times[at].until <= now {
                self.remove(at);
            }
        }
        (before - self.all.len()) as u64
    }
}
