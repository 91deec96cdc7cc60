//! Zoning (FC-GS): two ports see each other and exchange frames if a zone of the active zone set
//! has both as members.
//!
//! Ports that no active zone has are in the default zone, which either permits all that is between
//! them or denies it. Zones are a value that never changes: those of a fabric are exchanged as a
//! whole.
//!
//! A port's zones are looked up once, as a [`Membership`]; whether two ports share one is then
//! found from two short lists of numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::wire::names::{FcId, Wwn};

mod fault;
mod index;
mod parse;
mod words;

#[cfg(test)]
mod tests;

pub use self::fault::{ZoneError, ZoneFault};
use self::index::Index;

/// The most bytes of a zone file.
pub const TEXT_MAX: usize = 1 << 20;

/// How the members of zones are identified.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemberIdentifier {
    /// By WWPN.
    Port(Wwn),
    /// By WWNN: all ports of a node.
    Node(Wwn),
    /// By N_Port_ID.
    Id(FcId),
    /// By the port of the switch: all that log in there.
    Place(Arc<str>),
}

/// As it is written in a zone file.
impl fmt::Display for MemberIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(name) => write!(f, "{name}"),
            Self::Node(name) => write!(f, "node:{name}"),
            Self::Id(id) => write!(f, "id:{:06x}", id.0),
            Self::Place(place) => write!(f, "port:{place}"),
        }
    }
}

/// What a zone lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneEntry {
    /// A member.
    Member(MemberIdentifier),
    /// The members of the alias of this name.
    Alias(Arc<str>),
}

impl fmt::Display for ZoneEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => write!(f, "{member}"),
            Self::Alias(name) => f.write_str(name),
        }
    }
}

/// What a name stands for: members of an alias, entries of a zone, names of the zones of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<T> {
    /// The name.
    pub name: Arc<str>,
    /// At least one.
    pub list: Vec<T>,
}

/// A port, by all that may identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMember<'a> {
    /// Its port name.
    pub wwpn: Wwn,
    /// Its node name.
    pub wwnn: Wwn,
    /// Its N_Port_ID.
    pub fc_id: FcId,
    /// The port of the switch that it is logged in at.
    pub place: &'a str,
}

/// The active zones that a port is in: their numbers, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Membership(Vec<u32>);

impl Membership {
    /// Each zone; `None` is the default zone.
    fn zones(&self) -> impl Iterator<Item = Option<u32>> {
        let in_default = self.0.is_empty().then_some(None);
        self.0.iter().copied().map(Some).chain(in_default)
    }
}

/// How many of some ports are in each zone; `None` is the default zone.
#[derive(Debug, Default)]
pub(super) struct ZoneCounts(BTreeMap<Option<u32>, usize>);

impl ZoneCounts {
    /// Counts one more port.
    pub(super) fn add(&mut self, port: &Membership) {
        for zone in port.zones() {
            *self.0.entry(zone).or_default() += 1;
        }
    }
}

/// The zones of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Zones {
    aliases: Vec<Definition<MemberIdentifier>>,
    zones: Vec<Definition<ZoneEntry>>,
    sets: Vec<Definition<Arc<str>>>,
    active: Option<Arc<str>>,
    permits: bool,
    index: Index,
}

impl Zones {
    /// None, so that no port sees another.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    /// None, and all ports see each other.
    #[must_use]
    pub fn open() -> Self {
        Self {
            permits: true,
            ..Self::default()
        }
    }

    /// Reads a zone file: a statement a line, words between blanks, `#` before a comment, `\` at
    /// the end of a line that goes on. Names may be used before they are defined.
    ///
    /// | statement | |
    /// |---|---|
    /// | `alias NAME = MEMBER …` | a name for members |
    /// | `zone NAME = MEMBER …` | a zone; a member may be an alias |
    /// | `zoneset NAME = ZONE …` | zones that are active together |
    /// | `active NAME` | the zone set that holds; without this line, none |
    /// | `default permit`, `default deny` | for ports in no active zone; without this line, deny |
    ///
    /// A member is a WWPN, `node:WWNN`, `id:DDAAPP` or `port:PLACE`.
    ///
    /// # Errors
    /// Where the first mistake is, and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        parse::parse(text)
    }

    /// Whether two ports see each other.
    #[must_use]
    pub fn share(&self, a: &ZoneMember<'_>, b: &ZoneMember<'_>) -> bool {
        self.join(&self.membership(a), &self.membership(b))
    }

    /// The zones of a port, for [`Self::join`].
    #[must_use]
    pub fn membership(&self, port: &ZoneMember<'_>) -> Membership {
        Membership(self.index.zones_of(port))
    }

    /// Whether ports of these zones see each other: as many steps as the shorter list has zones,
    /// each one search in the longer one.
    #[must_use]
    pub fn join(&self, a: &Membership, b: &Membership) -> bool {
        let (few, many) = if a.0.len() <= b.0.len() {
            (a, b)
        } else {
            (b, a)
        };
        let are_in_default = many.0.is_empty();
        let is_shared = |zone: &u32| many.0.binary_search(zone).is_ok();
        self.permits && are_in_default || few.0.iter().any(is_shared)
    }

    /// Whether a port of these zones sees one that was counted, besides itself if it was.
    pub(super) fn meet(&self, counts: &ZoneCounts, port: &Membership, is_counted: bool) -> bool {
        let own = usize::from(is_counted);
        let mut zones = port.zones().filter(|zone| zone.is_some() || self.permits);
        zones.any(|zone| counts.0.get(&zone).is_some_and(|count| *count > own))
    }

    /// Aliases, in the order of the file.
    #[must_use]
    pub fn aliases(&self) -> &[Definition<MemberIdentifier>] {
        &self.aliases
    }

    /// Zones, in the order of the file, active or not.
    #[must_use]
    pub fn zones(&self) -> &[Definition<ZoneEntry>] {
        &self.zones
    }

    /// Zone sets with the names of their zones, in the order of the file.
    #[must_use]
    pub fn sets(&self) -> &[Definition<Arc<str>>] {
        &self.sets
    }

    /// The name of the active zone set.
    #[must_use]
    pub fn active(&self) -> Option<&str> {
        self.active.as_deref()
    }

    /// Whether ports that are in no active zone see each other.
    #[must_use]
    pub const fn permits(&self) -> bool {
        self.permits
    }

    /// All members of active zones, each once, in order.
    pub fn members(&self) -> impl Iterator<Item = &MemberIdentifier> {
        self.index.members()
    }

    /// Pairs of a member and an active zone, with aliases replaced by their members: what is kept
    /// to look up the zones of a port.
    #[must_use]
    pub const fn memberships(&self) -> usize {
        self.index.len()
    }

    /// The names of the zones of a port.
    pub fn names_of(&self, membership: &Membership) -> impl Iterator<Item = &str> {
        let zone = |number: &u32| self.zones.get(*number as usize);
        let zones = membership.0.iter().filter_map(zone);
        zones
            .map(|zone| &*zone.name)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// Names with what they stand for.
type ByName<'a, T> = BTreeMap<&'a str, &'a Definition<T>>;

fn by_name<T>(definitions: &[Definition<T>]) -> ByName<'_, T> {
    let named = definitions.iter();
    named.map(|known| (&*known.name, known)).collect()
}
