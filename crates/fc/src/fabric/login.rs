//! The VN_Ports that are logged in to the fabric, by N_Port_ID, by WWPN and by ENode.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use scsi::medium::Now;

use super::{LogoutReason, PortNumber, SwitchLogin};
use crate::fip::budget::FillRate;
use crate::wire::ethernet::Mac;
use crate::wire::frame::OxId;
use crate::wire::names::{FcId, Wwn};

/// An ENode: its address, and the port of the switch that it is heard at.
pub(super) type EnodeKey = (PortNumber, Mac);

/// All logins.
#[derive(Debug, Default)]
pub(super) struct Logins {
    by_id: BTreeMap<FcId, LoginEntry>,
    by_name: BTreeMap<Wwn, FcId>,
    enodes: BTreeMap<EnodeKey, Enode>,
    /// Requests that were rejected, or have made logins which are over, the last ones: a copy of
    /// one that comes late is no new one.
    before: VecDeque<(EnodeKey, Answered, RequestFate)>,
    /// How many there are at a port of the switch.
    at_port: BTreeMap<PortNumber, usize>,
    /// Not later than when the first of them has been silent for too long.
    wake: Option<Now>,
}

#[derive(Debug)]
struct LoginEntry {
    login: SwitchLogin,
    /// When a keep alive of the VN_Port came last.
    heard: Now,
    /// The request that made it.
    answered: Answered,
}

/// A request by its number, and until when another one of that number is the same one again.
#[derive(Clone, Copy, Debug)]
struct Answered {
    ox_id: OxId,
    until: Now,
}

impl Answered {
    const fn now(now: Now, ox_id: OxId) -> Self {
        let until = now.saturating_add(REPEATED);
        Self { ox_id, until }
    }

    fn is(self, now: Now, ox_id: OxId) -> bool {
        self.ox_id == ox_id && now < self.until
    }
}

/// What has become of a request that made no login which lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestFate {
    Rejected,
    /// The login that it made is over.
    Over,
}

/// An ENode with at least one login.
#[derive(Debug)]
struct Enode {
    /// When a keep alive of the ENode came last.
    heard: Now,
    ports: BTreeSet<FcId>,
}

impl Logins {
    pub(super) fn get(&self, fc_id: FcId) -> Option<&SwitchLogin> {
        self.by_id.get(&fc_id).map(|entry| &entry.login)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SwitchLogin> {
        self.by_id.values().map(|entry| &entry.login)
    }

    pub(super) fn enodes(&self) -> impl Iterator<Item = EnodeKey> {
        self.enodes.keys().copied()
    }

    pub(super) fn named(&self, wwpn: Wwn) -> Option<&SwitchLogin> {
        self.get(*self.by_name.get(&wwpn)?)
    }

    /// The N_Port_IDs of an ENode.
    pub(super) fn of_enode(&self, enode: EnodeKey) -> Vec<FcId> {
        let enode = self.enodes.get(&enode);
        enode.map_or_else(Vec::new, |enode| enode.ports.iter().copied().collect())
    }

    /// Logins, their ENodes, and requests that have made none which lasts.
    pub(super) fn records(&self) -> usize {
        self.by_id.len() + self.by_name.len() + self.enodes.len() + self.before.len()
    }

    pub(super) fn has_enode(&self, enode: EnodeKey) -> bool {
        self.enodes.contains_key(&enode)
    }

    /// The N_Port_IDs at a port of the switch.
    pub(super) fn at(&self, port: PortNumber) -> Vec<FcId> {
        let all = self.enodes.iter();
        let at = all.filter(|((number, _), _)| *number == port);
        at.flat_map(|(_, enode)| enode.ports.iter().copied())
            .collect()
    }

    /// Whether another login of an ENode finds room. Each port of the switch has a few places of
    /// its own, so that the peers of one cannot take all.
    pub(super) fn has_room(&self, enode: EnodeKey) -> bool {
        let at_port = self.at_port.get(&enode.0).copied().unwrap_or_default();
        let of_enode = self.enodes.get(&enode).map_or(0, |one| one.ports.len());
        of_enode < ENODE_LIMIT && (at_port < OWN_PLACES || self.by_id.len() < LIMIT)
    }

    /// A VN_Port has logged in by a request of this number.
    pub(super) fn insert(&mut self, now: Now, login: SwitchLogin, ox_id: OxId) {
        let (fc_id, key) = (login.fc_id, (login.port, login.enode));
        self.by_name.insert(login.wwpn, fc_id);
        *self.at_port.entry(login.port).or_default() += 1;
        let enode = self.enodes.entry(key).or_insert_with(|| Enode {
            heard: now,
            ports: BTreeSet::new(),
        });
        enode.heard = now;
        enode.ports.insert(fc_id);
        let entry = LoginEntry {
            login,
            heard: now,
            answered: Answered::now(now, ox_id),
        };
        self.by_id.insert(fc_id, entry);
        self.wake.get_or_insert(now);
    }

    pub(super) fn remove(&mut self, fc_id: FcId) -> Option<SwitchLogin> {
        let LoginEntry {
            login, answered, ..
        } = self.by_id.remove(&fc_id)?;
        self.by_name.remove(&login.wwpn);
        if let Some(count) = self.at_port.get_mut(&login.port) {
            *count -= 1;
        }
        let key = (login.port, login.enode);
        self.remember(key, answered, RequestFate::Over);
        if let Some(enode) = self.enodes.get_mut(&key) {
            enode.ports.remove(&fc_id);
            if enode.ports.is_empty() {
                self.enodes.remove(&key);
            }
        }
        Some(login)
    }

    /// A request of this number was rejected.
    pub(super) fn rejected(&mut self, now: Now, enode: EnodeKey, ox_id: OxId) {
        self.remember(enode, Answered::now(now, ox_id), RequestFate::Rejected);
    }

    fn remember(&mut self, enode: EnodeKey, answered: Answered, fate: RequestFate) {
        if self.before.len() >= BEFORE_MAX {
            self.before.pop_front();
        }
        self.before.push_back((enode, answered, fate));
    }

    /// Whether a request of this number has made a login of an ENode, a moment ago, that is over:
    /// it is a copy that comes late.
    pub(super) fn is_over(&self, now: Now, enode: EnodeKey, ox_id: OxId) -> bool {
        let mut before = self.before.iter();
        before.any(|(key, answered, fate)| {
            *key == enode && *fate == RequestFate::Over && answered.is(now, ox_id)
        })
    }

    /// Whether a request of this number made the login, or was rejected before it, a moment ago: it
    /// came twice.
    pub(super) fn is_repeated(&self, now: Now, fc_id: FcId, ox_id: OxId) -> bool {
        let Some(entry) = self.by_id.get(&fc_id) else {
            return false;
        };
        let key = (entry.login.port, entry.login.enode);
        let mut before = self.before.iter().filter(|(enode, ..)| *enode == key);
        entry.answered.is(now, ox_id) || before.any(|(_, answered, _)| answered.is(now, ox_id))
    }

    /// A keep alive of an ENode. `false` if it has no login.
    pub(super) fn hear_enode(&mut self, now: Now, enode: EnodeKey) -> bool {
        let enode = self.enodes.get_mut(&enode);
        enode.map(|enode| enode.heard = now).is_some()
    }

    /// A keep alive of a VN_Port that its ENode sent. `false` if it is not logged in there.
    pub(super) fn hear_port(&mut self, now: Now, fc_id: FcId, wwpn: Wwn, enode: EnodeKey) -> bool {
        let entry = self.by_id.get_mut(&fc_id).filter(|entry| {
            (entry.login.wwpn, entry.login.port, entry.login.enode) == (wwpn, enode.0, enode.1)
        });
        entry.map(|entry| entry.heard = now).is_some()
    }

    pub(super) const fn next_deadline(&self) -> Option<Now> {
        self.wake
    }

    /// Those that have been silent for too long, where ENodes may be for `silence`. Keep alives
    /// move most deadlines before they come, so all are looked at once in a while.
    pub(super) fn expire(&mut self, now: Now, silence: Duration) -> Vec<(FcId, LogoutReason)> {
        if self.wake.is_none_or(|wake| wake > now) {
            return Vec::new();
        }
        let (mut silent, mut next) = (Vec::new(), None::<Now>);
        let mut look = |fc_id: FcId, heard: Now, silence: Duration, why| {
            let deadline = heard.saturating_add(silence);
            if deadline <= now {
                silent.push((fc_id, why));
            } else {
                next = Some(next.map_or(deadline, |next| next.min(deadline)));
            }
        };
        for enode in self.enodes.values() {
            for fc_id in &enode.ports {
                look(*fc_id, enode.heard, silence, LogoutReason::EnodeSilent);
            }
        }
        for (fc_id, entry) in &self.by_id {
            look(*fc_id, entry.heard, PORT_SILENCE, LogoutReason::Silent);
        }
        let earliest = now.saturating_add(ROUND);
        self.wake = next.map(|next| next.max(earliest));
        silent
    }
}

/// For so long a request of the same number is the same one again: E_D_TOV.
const REPEATED: Duration = Duration::from_secs(2);

/// Requests that have made no login which lasts: a few for each of some ENodes that begin anew at a
/// time.
const BEFORE_MAX: usize = 64;

/// Two periods and a half of the keep alives of VN_Ports, which are 90 s.
const PORT_SILENCE: Duration = Duration::from_secs(225);

/// All logins are looked at no more often than this.
const ROUND: Duration = Duration::from_millis(10);

/// Logins in all, but for those in places that ports of the switch have for themselves.
const LIMIT: usize = 4096;

/// Logins at a port of the switch that ENodes end. Each costs a look at all others, so a peer that
/// logs in again without end would hold a core. All that there are may end at once, as their hosts
/// may all begin anew; then 64 a second, which are some 1 % of a core.
pub(super) const ENDINGS: FillRate = FillRate {
    cost: Duration::from_micros(1_000_000 / 64),
    burst: LIMIT as u32,
};

/// Logins that each port of the switch has room for, whatever comes in at the others.
const OWN_PLACES: usize = 16;

/// Logins of one ENode: NPIV ports of a hypervisor.
const ENODE_LIMIT: usize = 256;
