//! N_Port_IDs: domain, and a number that is counted up. The same WWPN has the same one for ever, as
//! far as that can be remembered. A switch that remembers none begins somewhere else each time:
//! ports may still mean others by the N_Port_IDs that were given before.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use crate::wire::names::{FcId, Wwn};

/// N_Port_IDs by WWPN.
#[derive(Debug)]
pub(super) struct Ids {
    domain: u8,
    /// The lower half that is given first.
    first: u16,
    known: BTreeMap<Wwn, Known>,
    owners: BTreeMap<FcId, Wwn>,
    /// Ports that are not logged in, the one that has been out longest first.
    idle: BTreeMap<u64, Wwn>,
    /// Counts logouts, for the order of them.
    logouts: u64,
    /// Lower halves that no port has: those never given first, then those taken back.
    free: VecDeque<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    fc_id: FcId,
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

    pub(super) const fn first(&self) -> u16 {
        self.first
    }

    pub(super) const fn domain(&self) -> u8 {
        self.domain
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
        self.known.insert(wwpn, Known { fc_id, idle: None });
        self.owners.insert(fc_id, wwpn);
    }

    /// A port logs in. `None` if all N_Port_IDs are of ports that are logged in.
    pub(super) fn take(&mut self, wwpn: Wwn) -> Option<Given> {
        if let Some(known) = self.known.get_mut(&wwpn) {
            if let Some(place) = known.idle.take() {
                self.idle.remove(&place);
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

    /// The port that has been out longest is forgotten. Its N_Port_ID is the last to be given
    /// again: other ports may still mean the old one by it.
    fn forget_one(&mut self) -> Option<()> {
        let (_, wwpn) = self.idle.pop_first()?;
        let known = self.known.remove(&wwpn)?;
        self.owners.remove(&known.fc_id);
        self.free.push_back((known.fc_id.0 & 0xffff) as u16);
        Some(())
    }

    /// A port is not logged in any more.
    pub(super) fn release(&mut self, wwpn: Wwn) {
        if let Some(known) = self.known.get_mut(&wwpn)
            && known.idle.is_none()
        {
            self.logouts += 1;
            known.idle = Some(self.logouts);
            self.idle.insert(self.logouts, wwpn);
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
