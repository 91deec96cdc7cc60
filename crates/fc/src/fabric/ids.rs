//! N_Port_IDs: domain, and a number that is counted up. The same WWPN has the same one for ever, as
//! far as that can be remembered. A switch that remembers none begins somewhere else each time:
//! ports may still mean others by the N_Port_IDs that were given before.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use super::PortNumber;
use crate::wire::names::{FcId, Wwn};

/// N_Port_IDs by WWPN.
#[derive(Debug)]
pub(super) struct Ids {
    domain: u8,
    /// The lower half that is given first.
    first: u16,
    known: BTreeMap<Wwn, Known>,
    owners: BTreeMap<FcId, Wwn>,
    /// Ports that are not logged in, by where they got their N_Port_ID, the one that has been out
    /// longest first.
    idle: BTreeMap<(Origin, u64), Wwn>,
    /// How many got theirs where.
    counts: BTreeMap<Origin, usize>,
    /// Counts logouts, for the order of them.
    logouts: u64,
    /// Lower halves that no port has: those never given first, then those taken back.
    free: VecDeque<u16>,
}

/// The port of the switch where an N_Port_ID was given first; none, if it is remembered from
/// before.
type Origin = Option<PortNumber>;

#[derive(Clone, Copy, Debug)]
struct Known {
    fc_id: FcId,
    origin: Origin,
    /// Its place in the order, if it is not logged in.
    idle: Option<u64>,
}

/// What a port is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) fc_id: FcId,
    /// It did not have it before.
    pub(super) is_new: bool,
}

impl Ids {
    /// With those that were given before. Under another domain a port keeps the lower half.
    pub(super) fn new(domain: u8, first: u16, remembered: &[(Wwn, FcId)]) -> Self {
        let mut ids = Self {
            domain,
            first,
            known: BTreeMap::new(),
            owners: BTreeMap::new(),
            idle: BTreeMap::new(),
            counts: BTreeMap::new(),
            logouts: 0,
            free: VecDeque::new(),
        };
        for (wwpn, fc_id) in remembered.iter().take(LIMIT) {
            ids.remember(*wwpn, (fc_id.0 & 0xffff) as u16);
        }
        ids.free = ids.between_owners().into();
        let before = ids.free.partition_point(|low| *low < first);
        ids.free.rotate_left(before);
        ids
    }

    /// Lower halves that no port has, in order.
    fn between_owners(&self) -> Vec<u16> {
        let (mut free, mut next) = (Vec::new(), *NUMBERS.start());
        for owned in self.owners.keys() {
            let low = (owned.0 & 0xffff) as u16;
            free.extend(next..low);
            next = low + 1;
        }
        free.extend(next..=*NUMBERS.end());
        free
    }

    /// Remembers these in place of what was known, but for the ports that are logged in: they keep
    /// what they have, and the others get what the list says where it does not collide with that.
    pub(super) fn restore(&mut self, remembered: &[(Wwn, FcId)]) {
        let known = self.known.iter();
        let in_use = known.filter(|(_, known)| known.idle.is_none());
        let in_use: Vec<_> = in_use.map(|(wwpn, known)| (*wwpn, *known)).collect();
        // Of two that want the same, the first has it.
        let own = in_use.iter().map(|(wwpn, known)| (*wwpn, known.fc_id));
        let list: Vec<_> = own.chain(remembered.iter().copied()).collect();
        *self = Self::new(self.domain, self.first, &list);
        for (wwpn, known) in in_use {
            self.take(wwpn);
            self.set_origin(wwpn, known.origin);
        }
    }

    /// Of two that want the same, the first has it.
    fn remember(&mut self, wwpn: Wwn, low: u16) {
        let fc_id = self.id(low);
        let is_taken = self.owners.contains_key(&fc_id) || self.known.contains_key(&wwpn);
        if is_taken || !NUMBERS.contains(&low) {
            return;
        }
        self.put(wwpn, fc_id);
        self.release(wwpn);
    }

    const fn id(&self, low: u16) -> FcId {
        FcId((self.domain as u32) << 16 | low as u32)
    }

    fn put(&mut self, wwpn: Wwn, fc_id: FcId) {
        let known = Known {
            fc_id,
            origin: None,
            idle: None,
        };
        self.known.insert(wwpn, known);
        self.owners.insert(fc_id, wwpn);
        *self.counts.entry(None).or_default() += 1;
    }

    /// A port logs in at this port of the switch. `None` if all N_Port_IDs are of ports that are
    /// logged in.
    pub(super) fn take_at(&mut self, number: PortNumber, wwpn: Wwn) -> Option<Given> {
        let given = self.take(wwpn)?;
        if given.is_new {
            self.set_origin(wwpn, Some(number));
        }
        Some(given)
    }

    fn set_origin(&mut self, wwpn: Wwn, origin: Origin) {
        if let Some(known) = self.known.get_mut(&wwpn) {
            let before = std::mem::replace(&mut known.origin, origin);
            *self.counts.entry(before).or_default() -= 1;
            *self.counts.entry(origin).or_default() += 1;
        }
    }

    /// The same, wherever that is.
    pub(super) fn take(&mut self, wwpn: Wwn) -> Option<Given> {
        if let Some(known) = self.known.get_mut(&wwpn) {
            if let Some(order) = known.idle.take() {
                self.idle.remove(&(known.origin, order));
            }
            return Some(Given {
                fc_id: known.fc_id,
                is_new: false,
            });
        }
        if self.known.len() >= LIMIT {
            self.forget_one()?;
        }
        let low = self.free.pop_front()?;
        let fc_id = self.id(low);
        self.put(wwpn, fc_id);
        Some(Given {
            fc_id,
            is_new: true,
        })
    }

    /// Of the ports that got their N_Port_IDs where most did, the one that has been out longest is
    /// forgotten: a host that logs in under ever other names costs only those at its port of the
    /// switch. Its N_Port_ID is the last to be given again: other ports may still mean the old one
    /// by it.
    fn forget_one(&mut self) -> Option<()> {
        let (place, wwpn) = self.oldest_of_most()?;
        self.idle.remove(&place);
        let known = self.known.remove(&wwpn)?;
        self.owners.remove(&known.fc_id);
        self.free.push_back((known.fc_id.0 & 0xffff) as u16);
        if let Some(count) = self.counts.get_mut(&known.origin) {
            *count -= 1;
        }
        Some(())
    }

    /// There are as many origins as the switch has ports, and one more.
    fn oldest_of_most(&self) -> Option<((Origin, u64), Wwn)> {
        let idle_of = |origin: Origin| self.idle.range((origin, 0)..=(origin, u64::MAX)).next();
        let counts = self.counts.iter();
        let oldest = counts.filter_map(|(origin, count)| Some((count, idle_of(*origin)?)));
        let (_, (place, wwpn)) = oldest.max_by_key(|(count, _)| **count)?;
        Some((*place, *wwpn))
    }

    /// A port is not logged in any more.
    pub(super) fn release(&mut self, wwpn: Wwn) {
        if let Some(known) = self.known.get_mut(&wwpn)
            && known.idle.is_none()
        {
            self.logouts += 1;
            known.idle = Some(self.logouts);
            self.idle.insert((known.origin, self.logouts), wwpn);
        }
    }

    /// Which port an N_Port_ID was given to.
    pub(super) fn owner(&self, fc_id: FcId) -> Option<Wwn> {
        self.owners.get(&fc_id).copied()
    }

    /// All that are remembered, by WWPN.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Wwn, FcId)> {
        self.known.iter().map(|(wwpn, known)| (*wwpn, known.fc_id))
    }
}

/// Lower halves that are given. What lies below is left for hand-made addresses.
const NUMBERS: RangeInclusive<u16> = 0x0100..=0xfeff;

/// Ports that are remembered.
const LIMIT: usize = 16_384;
