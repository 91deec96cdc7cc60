//! The FCF of a fabric (FC-BB-6, FIP): what it tells ENodes, and what they ask of it.
//!
//! | what comes | from an ENode without a login | from one with logins |
//! |---|---|---|
//! | VLAN Request | Notification | Notification |
//! | Solicitation | Advertisement, as long as the longest frame that both take | the same |
//! | FLOGI | LS_ACC, logged in | its logins end; LS_ACC, logged in |
//! | FLOGI or FDISC of a WWPN that is logged in from elsewhere | LS_RJT 09/0D | LS_RJT 09/0D |
//! | FLOGI or FDISC for an address of its own alone (SPMA) | LS_RJT 20/60 | LS_RJT 20/60 |
//! | FLOGI, FDISC or LOGO that ends logins, of which too many end at the port | | LS_RJT 05/29 |
//! | FDISC | LS_RJT 09/1E | LS_ACC, logged in |
//! | LOGO | LS_ACC | LS_ACC, logged out |
//! | ENode keep alive | Clear Virtual Links, unless it is about to log in | it is there |
//! | VN_Port keep alive | Clear Virtual Links of that port | that port is there |
//!
//! A request that comes twice is answered twice, and logs in once. An ENode that asks for both
//! kinds of address gets one that the fabric provides (FPMA); the Advertisements offer no other.
//!
//! | role | Advertisements | logins | leaves |
//! |---|---|---|---|
//! | active | with A | yes | it is one of a pair, and hears that the other is active and goes first: standby |
//! | standby | without A | LS_RJT 05/00 | no active one for 2.5 periods, or it has taken back its A: active |
//! | ended | none | no | |
//!
//! Advertisements go to all ENodes and, with what a partner has to know, to all FCFs. By the
//! address of the first port in it two switches of the same names, on however many Ethernets, agree
//! on which is which.
//!
//! A port that comes up first clears the virtual links of all ENodes there: an ENode whose login an
//! earlier switch of this name had would not notice otherwise that it is gone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;

use super::config::SwitchPortConfig;
use super::ids::Ids;
use super::login::{EnodeKey, Logins};
use super::{LogoutReason, PortNumber, SwitchConfig, SwitchEvent, SwitchLogin};
use crate::fip::budget::{Budget, OverBudget, TokenBucket};
use crate::fip::{FLOOD, max_fcoe};
use crate::frames::FrameSink;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{FKA_PERIODS, FipMessage, FipOperation};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

mod advertisement;
mod els;
mod keep_alive;
mod received;
mod standby;
mod transmit;

use advertisement::OtherFcfs;
pub(super) use els::{E_D_TOV_MS, R_A_TOV_MS};
use keep_alive::{PAUSE, RecentSet, RecentlyCleared, SOLICITING};
use standby::Role;
use transmit::OutgoingMessages;

/// What a switch is called, and what it tells of itself.
#[derive(Clone, Debug)]
struct Identity {
    switch_name: Wwn,
    fabric_name: Wwn,
    fc_map: [u8; 3],
    priority: u8,
    period: Duration,
    vlan: Option<u16>,
    /// The address of the first port.
    first: Mac,
}

/// An FCF-MAC.
#[derive(Debug)]
struct FcfPort {
    config: SwitchPortConfig,
    max_fcoe: u16,
    f_port_name: Wwn,
    is_up: bool,
    /// When the next Advertisement is due.
    next: Option<Now>,
    budget: Budget,
    others: OtherFcfs,
    /// Times that its link went down.
    link_downs: u32,
    /// Virtual links that ended by silence.
    silences: u32,
    /// Advertisements of the partner that are heard whatever else comes.
    of_partner: TokenBucket,
    /// Rejected logins that are told.
    rejections: TokenBucket,
    /// Logins that an ENode may end.
    endings: TokenBucket,
    /// Whether it has been up before.
    was_up: bool,
    /// ENodes that have solicited lately, and may be about to log in.
    soliciting: RecentSet<Mac>,
    /// Those that were told lately that they are not logged in.
    cleared: RecentSet<RecentlyCleared>,
    outgoing: OutgoingMessages,
}

/// What was counted since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FcfStatistics {
    /// FIP messages sent.
    pub sent: u64,
    /// FIP messages received.
    pub received: u64,
    /// Messages among them that broke a rule.
    pub refused: u64,
    /// Messages among them that were not looked at, as their sender sent too many.
    pub dropped: u64,
    /// Logins that were rejected.
    pub rejected: u64,
    /// Logins that ended by silence.
    pub silent: u64,
}

/// The FIP side of a switch, at all its ports.
#[derive(Debug)]
pub(super) struct Fcf {
    identity: Identity,
    role: Role,
    /// Whether it is one of two switches of the same names.
    is_paired: bool,
    now: Now,
    random: fastrand::Rng,
    ports: BTreeMap<PortNumber, FcfPort>,
    logins: Logins,
    ids: Ids,
    events: VecDeque<SwitchEvent>,
    statistics: FcfStatistics,
}

impl Fcf {
    pub(super) fn new(config: &SwitchConfig, now: Now, random: [u8; 8]) -> Self {
        // As it is told, in milliseconds.
        let period = config
            .fka_adv_period
            .clamp(*FKA_PERIODS.start(), *FKA_PERIODS.end());
        let period = Duration::from_millis(period.as_millis() as u64);
        let identity = Identity {
            switch_name: config.switch_name.unwrap_or_default(),
            fabric_name: config.fabric_name.unwrap_or_default(),
            fc_map: config.fc_map,
            priority: config.priority,
            period,
            vlan: config.vlan,
            first: Mac::default(),
        };
        Self {
            role: Role::new(config.standby, now),
            is_paired: config.standby,
            identity,
            now,
            random: fastrand::Rng::with_seed(u64::from_be_bytes(random)),
            ports: BTreeMap::new(),
            logins: Logins::default(),
            ids: Ids::new(config.domain.clamp(1, 239), config.first_low, &config.ids),
            events: VecDeque::new(),
            statistics: FcfStatistics::default(),
        }
    }

    /// Adds a port, whose link is down. The first one names the switch and the fabric.
    pub(super) fn add_port(&mut self, number: PortNumber, config: SwitchPortConfig) {
        if self.identity.first == Mac::default() {
            self.identity.name_by(config.mac, config.vid());
        }
        let port = FcfPort {
            max_fcoe: max_fcoe(config.mtu),
            f_port_name: f_port_name(number, config.mac),
            config,
            is_up: false,
            next: None,
            budget: Budget::new(self.random.u64(..)).reserving(self.identity.period / 4),
            others: OtherFcfs::default(),
            link_downs: 0,
            silences: 0,
            of_partner: TokenBucket::default(),
            rejections: TokenBucket::default(),
            endings: TokenBucket::default(),
            was_up: false,
            soliciting: RecentSet::new(SOLICITING),
            cleared: RecentSet::new(PAUSE),
            outgoing: OutgoingMessages::default(),
        };
        self.ports.insert(number, port);
    }

    /// Takes a port away. Its logins end.
    pub(super) fn remove_port(&mut self, now: Now, number: PortNumber) {
        self.link(now, number, false);
        self.ports.remove(&number);
    }

    /// The MTU of a port is another one. Where it is smaller, those who are logged in there have to
    /// log in anew: they were told of a frame size that does not fit any more.
    pub(super) fn resize(&mut self, now: Now, number: PortNumber, mtu: usize) {
        self.tick(now);
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        let is_smaller = max_fcoe(mtu) < port.max_fcoe;
        port.max_fcoe = max_fcoe(mtu);
        port.config.mtu = mtu;
        if is_smaller {
            self.clear_where(|enode| enode.0 == number, LogoutReason::SmallerMtu);
        }
    }

    /// Takes over what was remembered elsewhere, as far as it concerns no port that is logged in.
    pub(super) fn restore_ids(&mut self, remembered: &[(Wwn, FcId)]) {
        self.ids.restore(remembered);
    }

    /// What people call a port.
    fn place(&self, number: PortNumber) -> Arc<str> {
        let port = self.ports.get(&number);
        port.map_or_else(|| Arc::from(""), |port| Arc::clone(&port.config.place))
    }

    pub(super) const fn switch_name(&self) -> Wwn {
        self.identity.switch_name
    }

    pub(super) const fn fabric_name(&self) -> Wwn {
        self.identity.fabric_name
    }

    pub(super) const fn now(&self) -> Now {
        self.now
    }

    pub(super) fn f_port_name(&self, number: PortNumber) -> Wwn {
        let port = self.ports.get(&number);
        port.map_or(Wwn(0), |port| port.f_port_name)
    }

    /// What FIP has to tell of the errors of a port's link: times that it went down, and virtual
    /// links that ended by missed keep alives.
    pub(super) fn link_errors(&self, number: PortNumber) -> (u32, u32) {
        let port = self.ports.get(&number);
        port.map_or((0, 0), |port| (port.link_downs, port.silences))
    }

    pub(super) const fn statistics(&self) -> FcfStatistics {
        self.statistics
    }

    pub(super) const fn logins(&self) -> &Logins {
        &self.logins
    }

    pub(super) const fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Records of all kinds of ENodes, their VN_Ports, and other FCFs.
    pub(super) fn records(&self) -> usize {
        let of_port = |port: &FcfPort| {
            let noted = port.soliciting.records() + port.cleared.records();
            noted + port.budget.records() + port.others.records() + port.outgoing.records()
        };
        let known = self.logins.records() + self.ids.iter().count();
        known + self.ports.values().map(of_port).sum::<usize>()
    }

    pub(super) const fn is_active(&self) -> bool {
        matches!(self.role, Role::Active { .. })
    }

    /// Whether it was shut down.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.role, Role::Ended)
    }

    /// The link of a port came up or went down.
    pub(super) fn link(&mut self, now: Now, number: PortNumber, up: bool) {
        self.tick(now);
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        if port.is_up == up {
            return;
        }
        port.is_up = up;
        port.others = OtherFcfs::default();
        port.next = (up && self.role.advertises()).then_some(self.now);
        let is_first = up && !std::mem::replace(&mut port.was_up, true);
        if !up {
            port.link_downs = port.link_downs.saturating_add(1);
            port.outgoing.clear();
            for fc_id in self.logins.at(number) {
                self.end(fc_id, LogoutReason::LinkDown);
            }
        }
        if is_first && self.role.advertises() {
            self.clear(number, Mac::ALL_ENODE, None);
        }
        self.listen();
    }

    /// Takes a FIP frame: its Ethernet header, and what follows that.
    pub(super) fn receive(
        &mut self,
        now: Now,
        number: PortNumber,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        self.tick(now);
        let has_ended = self.has_ended();
        let Some(port) = self.ports.get_mut(&number) else {
            return Ok(());
        };
        if !port.is_up || has_ended || !port.hears(ethernet.dst) {
            return Ok(());
        }
        self.statistics.received += 1;
        if let Err(OverBudget { is_first }) = port.budget.take(self.now, ethernet.src)
            && !self.is_from_partner(number, ethernet, payload)
        {
            self.statistics.dropped += 1;
            return if is_first { Err(FLOOD) } else { Ok(()) };
        }
        let taken = self.take(number, ethernet, payload);
        self.statistics.refused += u64::from(taken.is_err());
        taken
    }

    fn take(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let message = FipMessage::parse(payload)?;
        let vlan = super::forward::vid(ethernet.vlan);
        if message.operation == FipOperation::VlanRequest {
            return self.vlan_request(number, ethernet, &message);
        }
        if self
            .ports
            .get(&number)
            .is_none_or(|port| port.config.vid() != vlan)
        {
            return Ok(());
        }
        match message.operation {
            FipOperation::Solicitation => self.solicitation(number, ethernet, &message),
            FipOperation::Advertisement => self.advertisement(number, ethernet, &message),
            FipOperation::ElsRequest => self.els_request(number, ethernet, &message),
            FipOperation::KeepAlive => self.keep_alive(number, ethernet, &message),
            // What an FCF sends, and VN2VN.
            _ => Ok(()),
        }
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let adverts = self.ports.values().filter_map(|port| port.next);
        let takeover = self.role.deadline();
        let others = takeover.into_iter().chain(self.logins.next_deadline());
        adverts.chain(others).min()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Now) {
        self.tick(now);
        if self.role.deadline().is_some_and(|at| at <= self.now) {
            self.take_over();
        }
        self.advertise_due();
        let silence = silence(self.identity.period);
        for (fc_id, why) in self.logins.expire(self.now, silence) {
            self.silence(fc_id, why);
        }
    }

    pub(super) fn poll(&mut self) -> Option<SwitchEvent> {
        self.events.pop_front()
    }

    /// Writes what is to be sent at a port, as far as there is room. `false` if there is no more.
    pub(super) fn transmit(&mut self, number: PortNumber, out: &mut impl FrameSink) -> bool {
        let Some(port) = self.ports.get_mut(&number) else {
            return true;
        };
        self.statistics.sent += port.outgoing.write(port.config.tag, out);
        port.outgoing.is_empty()
    }

    /// Time never goes back, whatever the clock says.
    pub(super) fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    /// Ends a login.
    pub(super) fn end(&mut self, fc_id: FcId, why: LogoutReason) -> Option<SwitchLogin> {
        let login = self.logins.remove(fc_id)?;
        self.ids.release(login.wwpn);
        if let Some(port) = self.ports.get_mut(&login.port) {
            port.budget.release([login.enode, login.mac]);
        }
        let event = SwitchEvent::LoggedOut(login.clone(), why);
        self.events.push_back(event);
        Some(login)
    }

    /// Ends the logins of an ENode.
    fn end_enode(&mut self, enode: EnodeKey, why: LogoutReason) {
        for fc_id in self.logins.of_enode(enode) {
            self.end(fc_id, why);
        }
    }

    /// Tells that a peer at a port broke a rule.
    pub(super) fn remark(&mut self, number: PortNumber, from: Mac, violation: Violation) {
        if let Some(port) = self.ports.get(&number) {
            self.events.push_back(SwitchEvent::Remark {
                place: Arc::clone(&port.config.place),
                from,
                violation,
            });
        }
    }
}

impl FcfPort {
    /// Whether a frame to this address is looked at.
    fn hears(&self, dst: Mac) -> bool {
        [self.config.mac, Mac::ALL_FCF, Mac::ALL_ENODE].contains(&dst)
    }
}

impl Identity {
    fn name_by(&mut self, first: Mac, vid: u16) {
        self.first = first;
        let vlan = self.vlan.unwrap_or(vid);
        if self.switch_name == Wwn(0) {
            self.switch_name = Wwn(0x1000 << 48 | first.number());
        }
        if self.fabric_name == Wwn(0) {
            self.fabric_name = Wwn((0x2000 | u64::from(vlan & 0xfff)) << 48 | first.number());
        }
    }
}

/// NAA 3, whose names are made up locally, so that it is no other port's: 3h, the port in 12 bits,
/// and its address.
fn f_port_name(port: PortNumber, mac: Mac) -> Wwn {
    Wwn((0x3000 | u64::from(port.0 & 0xfff)) << 48 | mac.number())
}

/// Two periods and a half.
const fn silence(period: Duration) -> Duration {
    Duration::from_millis(period.as_millis() as u64 * 5 / 2)
}
