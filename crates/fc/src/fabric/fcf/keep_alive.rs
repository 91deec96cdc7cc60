//! FIP Keep Alive and Clear Virtual Links (FC-BB-6): ends logins of silent ENodes and VN_Ports, and
//! tells senders that have no login.
//!
//! A standby tells it too: it may have been active before, and what it said when it stood down may
//! have been lost.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use scsi::medium::Now;

use super::super::login::EnodeKey;
use super::super::{LogoutReason, PortNumber, SwitchLogin};
use super::Fcf;
use super::received::{OTHER_SENDER, Received};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// What was noted within a certain time at a port, the last [`RECENT`] of it: senders that make up
/// addresses take the places of others at that port only, and of the oldest first.
#[derive(Debug)]
pub(super) struct RecentSet<T> {
    time: Duration,
    /// Until when each one counts.
    noted: BTreeMap<T, Now>,
    order: VecDeque<(Now, T)>,
}

/// What a Clear Virtual Links was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecentlyCleared {
    Enode(Mac),
    VnPort(FcId),
}

impl<T: Copy + Ord> RecentSet<T> {
    pub(super) const fn new(time: Duration) -> Self {
        Self {
            time,
            noted: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Notes it, in the place of the oldest if too many are. `false` if it is noted already.
    pub(super) fn note(&mut self, now: Now, one: T) -> bool {
        self.forget(now);
        let is_new = !self.noted.contains_key(&one);
        if is_new {
            while self.noted.len() >= RECENT && self.forget_oldest() {}
            self.put(now, one);
        }
        is_new
    }

    /// Notes it, for longer if it is noted already. That is done in the second half of its time
    /// only, so that no one is in the order more than three times.
    pub(super) fn renew(&mut self, now: Now, one: T) {
        if !self.note(now, one)
            && let Some(until) = self.noted.get(&one)
            && *until < now.saturating_add(self.time / 2)
        {
            self.put(now, one);
        }
    }

    /// What is noted, and what is in the order.
    pub(super) fn records(&self) -> usize {
        self.noted.len() + self.order.len()
    }

    fn put(&mut self, now: Now, one: T) {
        let until = now.saturating_add(self.time);
        self.noted.insert(one, until);
        self.order.push_back((until, one));
    }

    fn has(&mut self, now: Now, one: T) -> bool {
        self.forget(now);
        self.noted.contains_key(&one)
    }

    /// Forgets what was noted too long ago.
    fn forget(&mut self, now: Now) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    /// Takes the first out of the order, and forgets it unless it was renewed. `false` if there is
    /// none.
    fn forget_oldest(&mut self) -> bool {
        let Some((until, oldest)) = self.order.pop_front() else {
            return false;
        };
        if self.noted.get(&oldest) == Some(&until) {
            self.noted.remove(&oldest);
        }
        true
    }

    /// Whether another would take the place of one that is noted.
    fn is_full(&mut self, now: Now) -> bool {
        self.forget(now);
        self.noted.len() >= RECENT
    }
}

impl Fcf {
    pub(super) fn keep_alive(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let received = Received::read(message)?;
        let Some(vx_port) = received.vx_port else {
            let enode = received.enode(ethernet.src)?;
            self.enode_keep_alive((number, enode));
            return Ok(());
        };
        let (mac, fc_id, _) = vx_port;
        let enode = received.enode(received.mac.unwrap_or_default())?;
        if ethernet.src != mac || mac != Mac::of_port(self.identity.fc_map, fc_id) {
            return Err(OTHER_SENDER);
        }
        self.port_keep_alive((number, enode), vx_port);
        Ok(())
    }

    fn enode_keep_alive(&mut self, enode: EnodeKey) {
        let now = self.now;
        let is_known = self.logins.hear_enode(now, enode);
        let Some(port) = self.ports.get_mut(&enode.0).filter(|_| !is_known) else {
            return;
        };
        // Linux begins keep alives when it has selected an FCF, and sends its FLOGI up to 2 s
        // later. With a shorter FKA_ADV_PERIOD it would be told to begin anew each time, for ever.
        if !port.soliciting.has(now, enode.1)
            && port.cleared.note(now, RecentlyCleared::Enode(enode.1))
        {
            self.clear(enode.0, enode.1, None);
        }
    }

    fn port_keep_alive(&mut self, enode: EnodeKey, (mac, fc_id, wwpn): (Mac, FcId, Wwn)) {
        let now = self.now;
        let is_known = self.logins.hear_port(now, fc_id, wwpn, enode);
        let port = self.ports.get_mut(&enode.0).filter(|_| !is_known);
        if port.is_some_and(|port| port.cleared.note(now, RecentlyCleared::VnPort(fc_id))) {
            self.clear(enode.0, enode.1, Some((mac, fc_id, wwpn)));
        }
    }

    /// A frame came from a VN_Port that is not logged in: we have begun anew. Its ENode is not
    /// known, so all are told; only those that have such a port listen. Without its WWPN it would
    /// not believe us: if that is not remembered, the next keep alive of its ENode tells us. So it
    /// does if many were told lately: no budget bounds such frames, and all ENodes get the answers.
    pub(in crate::fabric) fn stray(&mut self, now: Now, number: PortNumber, src: Mac, fc_id: FcId) {
        self.tick(now);
        let Some(wwpn) = self.ids.owner(fc_id) else {
            return;
        };
        let is_granted = src == Mac::of_port(self.identity.fc_map, fc_id);
        let is_out = self.logins.get(fc_id).is_none();
        if !is_granted || !is_out || self.has_ended() {
            return;
        }
        let now = self.now;
        let cleared = RecentlyCleared::VnPort(fc_id);
        let port = self.ports.get_mut(&number);
        if port.is_some_and(|port| !port.cleared.is_full(now) && port.cleared.note(now, cleared)) {
            self.clear(number, Mac::ALL_ENODE, Some((src, fc_id, wwpn)));
        }
    }

    /// A login ends by silence. If its sender is there all the same, it is told.
    pub(super) fn silence(&mut self, fc_id: FcId, why: LogoutReason) {
        if let Some(login) = self.end(fc_id, why) {
            self.statistics.silent += 1;
            if let Some(port) = self.ports.get_mut(&login.port) {
                port.silences = port.silences.saturating_add(1);
            }
            self.clear_login(&login);
        }
    }

    fn clear_login(&mut self, login: &SwitchLogin) {
        let vx_port = (login.mac, login.fc_id, login.wwpn);
        self.clear(login.port, login.enode, Some(vx_port));
    }

    /// Ends all logins, and tells their ENodes.
    pub(super) fn clear_all(&mut self, why: LogoutReason) {
        self.clear_where(|_| true, why);
    }

    /// Ends the logins of some ENodes, and tells these.
    pub(super) fn clear_where(&mut self, is_meant: impl Fn(&EnodeKey) -> bool, why: LogoutReason) {
        let enodes: Vec<_> = self.logins.enodes().filter(is_meant).collect();
        for enode in enodes {
            self.clear(enode.0, enode.1, None);
            self.end_enode(enode, why);
        }
    }

    /// Clear Virtual Links: of one VN_Port, or of all of an ENode.
    pub(super) fn clear(
        &mut self,
        number: PortNumber,
        dst: Mac,
        vx_port: Option<(Mac, FcId, Wwn)>,
    ) {
        let Some(port) = self.ports.get(&number) else {
            return;
        };
        let mut descriptors = vec![
            Descriptor::Mac(port.config.mac),
            Descriptor::Name(self.identity.switch_name),
        ];
        if let Some((mac, fc_id, wwpn)) = vx_port {
            descriptors.push(Descriptor::VxPort { mac, fc_id, wwpn });
        }
        let bytes = fip::encode(FipOperation::ClearVirtualLinks, Flags::F_PORT, &descriptors);
        self.send(number, dst, bytes);
    }
}

/// The pause between two Clear Virtual Links for one VN_Port or ENode that is not logged in.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// How long an ENode may take from its Solicitation to its login, twice as long as it may need:
/// with Linux 6.1 4 s were seen, and its FLOGI is repeated twice, each 2 s.
pub(super) const SOLICITING: Duration = Duration::from_secs(16);

/// How many are noted at a port: Clear Virtual Links of the last second, and ENodes that solicited.
const RECENT: usize = 1024;
