//! Which active zones each member is in.

use std::collections::BTreeMap;

use super::{MemberIdentifier, ZoneMember};

/// For each member of an active zone, the numbers of these zones, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Index {
    zones: BTreeMap<MemberIdentifier, Vec<u32>>,
    entries: usize,
}

/// There are more memberships than the index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexFull;

impl Index {
    /// A member is in a zone. Zones come in the order of their numbers.
    pub(super) fn add(&mut self, member: &MemberIdentifier, zone: u32) -> Result<(), IndexFull> {
        if self.entries == MEMBERSHIPS_MAX {
            return Err(IndexFull);
        }
        let zones = self.zones.entry(member.clone()).or_default();
        if zones.last() != Some(&zone) {
            zones.push(zone);
            self.entries += 1;
        }
        Ok(())
    }

    pub(super) const fn len(&self) -> usize {
        self.entries
    }

    /// The zones of a port, however it is identified.
    pub(super) fn zones_of(&self, port: &ZoneMember<'_>) -> Vec<u32> {
        let identifiers = [
            MemberIdentifier::Port(port.wwpn),
            MemberIdentifier::Node(port.wwnn),
            MemberIdentifier::Id(port.fc_id),
            MemberIdentifier::Place(port.place.into()),
        ];
        let lists = identifiers.iter().filter_map(|id| self.zones.get(id));
        let mut zones: Vec<_> = lists.flatten().copied().collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &MemberIdentifier> {
        self.zones.keys()
    }
}

/// The most pairs of a member and an active zone, with aliases replaced by their members. Large
/// fabrics have some ten thousand; without a limit 1 MiB of text could ask for a thousand million.
pub(super) const MEMBERSHIPS_MAX: usize = 1 << 18;
