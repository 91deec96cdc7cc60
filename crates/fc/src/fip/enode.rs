//! FIP in an ENode of a fabric (FC-BB-6): how an N_Port finds an FCF, logs in to its fabric, and
//! learns that it has lost it.
//!
//! | state | under way | leaves |
//! |---|---|---|
//! | down | | when the link comes up |
//! | vlan, if VLANs are discovered | VLAN Request each 500 ms, untagged | 500 ms after the first VLAN Notification, to the VLANs in its order; after 5 s, to no VLAN |
//! | soliciting | Solicitation at 0, 1, 2, 4 and 8 s, then each 8 s | 500 ms after the first FCF that can be used; if VLANs are discovered, after 4 s to the next VLAN |
//! | login | FLOGI inside FIP, 2 s, 3 times | to up by LS_ACC; by LS_RJT or silence to the next FCF, if all were tried to the next VLAN, if those were too to resting |
//! | resting | | after 10 s, to soliciting, or to vlan |
//! | up | keep alives | by Clear Virtual Links, LOGO, an FCF that is silent for 2.5 periods: to login at another FCF of the same fabric, if one is heard that can be used, else to soliciting; the third time within 10 s of the login, to resting first |
//!
//! Where another FCF of the fabric that was lost is heard, but takes no logins yet (a standby), the
//! choice follows the first Advertisement by which it does, without the 500 ms. Those are for the
//! answers of FCFs that are not known, so they stay where all FCFs were lost.
//!
//! A login is of use when the name server has taken what is registered ([`Enode::served`]); only
//! then are FCFs that were of no use tried again.
//!
//! An FCF that advertises without having been solicited is solicited, in each state but down and
//! vlan. Which FCF is chosen is in [`fcf`]. The link that goes down ends every state.
//!
//! The FCF of a login is told as a [`Neighbour`](super::Neighbour) with the address FFFFFEh; which
//! N_Ports there are is asked of the name server, not of FIP.

use std::collections::VecDeque;
use std::time::Duration;

use scsi::medium::Now;

use super::budget::{Budget, FillRate, OverBudget, TokenBucket};
use super::transmit::{OutgoingMessages, PendingMessage};
use super::{FLOOD, FipEvent, FipStatistics, UnlinkReason};
use crate::frames::FrameSink;
use crate::wire::ethernet::{EthernetHeader, Mac, VlanTag};
use crate::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::frame::OxId;
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

mod advertisement;
mod backoff;
pub mod fcf;
pub mod further;
mod keep_alive;
mod login;
pub mod notice;
mod soliciting;
mod state;
#[cfg(test)]
mod tests;
mod told;
mod vlan;

use backoff::LoginBackoff;
use fcf::Fcfs;
pub use fcf::{FabricSeen, FcfPin};
pub use login::FabricLogin;
pub use notice::FabricNotice;
use state::EnodeState;
use told::Notices;

/// Which fabric an N_Port logs in to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricConfig {
    /// Whether the VLAN of the fabric is asked for. Otherwise it is the one whose tag was given, or
    /// none.
    pub discovers_vlan: bool,
    /// The FCF; `None`: any, see [`fcf`].
    pub fcf: Option<FcfPin>,
    /// Fabric_Name; `None`: any, as long as there is one alone.
    pub fabric: Option<Wwn>,
}

/// What an ENode is by itself.
#[derive(Clone, Copy, Debug)]
pub struct EnodeConfig {
    /// Its address, which FIP is sent from.
    pub mac: Mac,
    /// WWPN of its N_Port.
    pub wwpn: Wwn,
    /// WWNN.
    pub wwnn: Wwn,
    /// The longest FCoE frame that can be received, see [`super::max_fcoe`].
    pub max_fcoe: u16,
    /// Which fabric it wants.
    pub fabric: FabricConfig,
}

/// The FIP machine of one ENode, and its one VN_Port, in a fabric.
#[derive(Debug)]
pub struct Enode {
    config: EnodeConfig,
    /// The tag that was given.
    given_tag: Option<VlanTag>,
    /// The tag that frames carry now.
    tag: Option<VlanTag>,
    now: Now,
    state: EnodeState,
    /// VLANs that are to be tried, in order; 0 is none.
    vlans: VecDeque<u16>,
    /// FCFs of one of the VLANs that were tried have refused.
    has_refusal: bool,
    fcfs: Fcfs,
    backoff: LoginBackoff,
    budget: Budget,
    /// Messages of the FCF of the login, which may be under way.
    fcf_bucket: TokenBucket,
    /// Its number among the further N_Ports of an ENode, which log in by FDISC.
    further: Option<u16>,
    /// The FLOGI of the ENode that was accepted last.
    flogi: Option<OxId>,
    /// The last FLOGI or FDISC of this one, if it was not answered, and the one before it.
    unanswered: [Option<OxId>; 2],
    /// Neither solicits nor logs in again.
    is_leaving: bool,
    /// Begins anywhere: a switch takes a FLOGI that is numbered as the last one for a copy of that,
    /// but after a crash it is a new one, of which other ports have to hear.
    next_ox_id: u16,
    outgoing: OutgoingMessages,
    /// The LOGO, to be sent after all that the N_Port has to say.
    pending_logo: OutgoingMessages,
    events: VecDeque<FipEvent>,
    notices: Notices,
    statistics: FipStatistics,
}

impl Enode {
    /// An ENode whose link is down. `random` are fresh random bytes. `tag` is that of the VLAN, if
    /// frames carry one and it is not to be discovered.
    #[must_use]
    pub fn new(config: EnodeConfig, tag: Option<VlanTag>, now: Now, random: [u8; 8]) -> Self {
        let [.., high, low] = random;
        Self {
            config,
            given_tag: tag,
            tag,
            now,
            state: EnodeState::Down,
            vlans: VecDeque::new(),
            has_refusal: false,
            fcfs: Fcfs::default(),
            backoff: LoginBackoff::default(),
            budget: Budget::new(u64::from_le_bytes(random)),
            fcf_bucket: TokenBucket::default(),
            further: None,
            flogi: None,
            unanswered: [None; 2],
            is_leaving: false,
            next_ox_id: u16::from_be_bytes([high, low]),
            outgoing: OutgoingMessages::default(),
            pending_logo: OutgoingMessages::default(),
            events: VecDeque::new(),
            notices: Notices::default(),
            statistics: FipStatistics::default(),
        }
    }

    /// The same as a further N_Port of an ENode, see [`further`].
    #[must_use]
    pub fn further(self, number: Option<u16>) -> Self {
        Self {
            further: number,
            ..self
        }
    }

    /// The groups that the Ethernet port has to receive.
    #[must_use]
    pub const fn groups() -> [Mac; 1] {
        [Mac::ALL_ENODE]
    }

    /// What the fabric has granted, while there is a login.
    #[must_use]
    pub const fn login(&self) -> Option<&FabricLogin> {
        match &self.state {
            EnodeState::Up { login, .. } => Some(login),
            _ => None,
        }
    }

    /// Whether it is on its way to a login.
    #[must_use]
    pub const fn is_looking(&self) -> bool {
        !matches!(
            self.state,
            EnodeState::Down | EnodeState::Up { .. } | EnodeState::Left { .. }
        )
    }

    /// Whether an FCF may have a login of it: it is granted, or asked for.
    #[must_use]
    pub const fn may_be_logged_in(&self) -> bool {
        self.login().is_some() || self.state.asked().is_some()
    }

    /// Our N_Port_ID, while there is a login.
    #[must_use]
    pub fn fc_id(&self) -> Option<FcId> {
        self.login().map(|login| login.fc_id)
    }

    /// The address that our FCoE frames have, while there is a login.
    #[must_use]
    pub fn mac(&self) -> Option<Mac> {
        self.login().map(|login| login.mac)
    }

    /// The tag that frames carry now, and must have come with.
    #[must_use]
    pub const fn tag(&self) -> Option<VlanTag> {
        self.tag
    }

    /// Why there is no login, as far as it was told.
    #[must_use]
    pub fn problem(&self) -> Option<&FabricNotice> {
        self.notices.problem()
    }

    /// The FCFs that are known, in no order.
    #[must_use]
    pub fn fcfs(&self) -> &[fcf::Fcf] {
        self.fcfs.all()
    }

    /// How many records are kept of FCFs and VLANs, and what waits to be told and sent: what a
    /// message costs depends on this, not on how many came before it.
    #[must_use]
    pub fn records(&self) -> usize {
        let known = self.fcfs.all().len() + self.vlans.len() + self.budget.records();
        let waiting = self.outgoing.len() + self.pending_logo.len() + self.events.len();
        known + waiting + self.notices.records()
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> FipStatistics {
        self.statistics
    }

    /// So long may FCoE frames be, as soon as the link, which is down, is up again.
    pub const fn resize(&mut self, max_fcoe: u16) {
        self.config.max_fcoe = max_fcoe;
    }

    /// The link came up or went down.
    pub fn link(&mut self, now: Now, up: bool) {
        self.tick(now);
        if up == (self.state != EnodeState::Down) {
            return;
        }
        self.statistics.link_downs += u64::from(!up);
        self.release(UnlinkReason::LinkDown);
        self.fcfs = Fcfs::default();
        self.flogi = None;
        self.outgoing.clear();
        self.pending_logo.clear();
        self.vlans.clear();
        self.has_refusal = false;
        self.backoff = LoginBackoff::default();
        self.notices.forget();
        self.is_leaving = false;
        self.state = EnodeState::Down;
        if up {
            self.look_for_fabric();
        }
    }

    /// Takes the payload of an Ethernet frame of EtherType FIP that came by the VLAN of
    /// [`Self::tag`].
    ///
    /// # Errors
    /// The rule that it broke. It has been ignored, and all goes on.
    pub fn receive(
        &mut self,
        now: Now,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        self.tick(now);
        let is_for_us = ethernet.dst == self.config.mac || ethernet.dst == Mac::ALL_ENODE;
        let is_silent = matches!(
            self.state,
            EnodeState::Down | EnodeState::Left { asked: None }
        );
        if is_silent || !is_for_us {
            return Ok(());
        }
        self.statistics.received += 1;
        if let Err(OverBudget { is_first }) = self.spend(ethernet.src) {
            self.statistics.dropped += 1;
            return if is_first { Err(FLOOD) } else { Ok(()) };
        }
        let taken = self.take(ethernet, payload);
        self.statistics.refused += u64::from(taken.is_err());
        taken
    }

    /// Takes what a message costs. The FCF of the login, as soon as that is asked for, has a budget
    /// of its own, so that a sender that exhausts the shared one cannot make the FCF seem silent.
    fn spend(&mut self, from: Mac) -> Result<(), OverBudget> {
        if self.state.fcf() == Some(from) && self.fcf_bucket.take(self.now, &OF_FCF) {
            return Ok(());
        }
        self.budget.take(self.now, from)
    }

    fn take(&mut self, ethernet: &EthernetHeader, payload: &[u8]) -> Result<(), Violation> {
        let message = FipMessage::parse(payload)?;
        match message.operation {
            FipOperation::VlanNotification => self.vlans_told(ethernet, &message),
            FipOperation::Advertisement => self.advertised(ethernet, &message),
            FipOperation::ElsRequest => self.els_request(ethernet, &message),
            FipOperation::ElsReply => self.els_reply(ethernet, &message),
            FipOperation::ClearVirtualLinks => self.cleared(ethernet, &message),
            // What ENodes tell FCFs, FCFs each other, and VN2VN ports.
            _ => Ok(()),
        }
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.state.deadline(),
            self.fcfs.next_deadline(),
            self.backoff.settles_at(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.tick(now);
        self.expire_fcfs();
        if self.backoff.has_settled(self.now) {
            self.tell_login();
        }
        if self.state.deadline().is_none_or(|at| at > self.now) {
            return;
        }
        match self.state {
            EnodeState::Down | EnodeState::Left { .. } => {}
            EnodeState::Vlan { .. } => self.vlan_step(),
            EnodeState::Soliciting { .. } => self.soliciting_step(),
            EnodeState::Login { fcf, tries, .. } => self.flogi_unanswered(fcf, tries),
            EnodeState::Resting { .. } => self.rested(),
            EnodeState::Up { .. } => self.keep_alive(),
        }
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<FipEvent> {
        self.events.pop_front()
    }

    /// What is worth a line in the log.
    pub fn poll_notice(&mut self) -> Option<FabricNotice> {
        self.notices.take()
    }

    /// Writes what is to be sent, as far as there is room.
    pub fn transmit(&mut self, out: &mut impl FrameSink) {
        self.statistics.sent += self.outgoing.write(self.tag, out);
    }

    /// Writes the LOGO, after which the fabric takes no more frames of this N_Port.
    pub fn transmit_logo(&mut self, out: &mut impl FrameSink) {
        self.statistics.sent += self.pending_logo.write(self.tag, out);
    }

    /// Time never goes back, whatever the clock says.
    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    fn tell(&mut self, notice: FabricNotice) {
        self.notices.tell(self.now, notice);
    }

    /// Tells a problem, unless it was told and has not gone since.
    pub fn tell_problem(&mut self, problem: FabricNotice) {
        self.notices.tell_problem(self.now, problem);
    }

    /// The services of the fabric have taken what was registered: the login is of use.
    pub fn served(&mut self) {
        self.fcfs.try_all_again();
        self.has_refusal = false;
        self.notices.served();
    }

    /// Ends the login, if there is one.
    fn release(&mut self, why: UnlinkReason) {
        if let EnodeState::Up { login, .. } = &self.state {
            let fc_id = login.fc_id;
            self.events.push_back(FipEvent::Lost(FcId::FABRIC_F, why));
            self.events.push_back(FipEvent::Released(fc_id));
            // After our LOGO an FCF may clear the link that a late frame still speaks of, and the
            // port lets its link go: no news.
            let is_loud = why == UnlinkReason::LinkDown || !self.backoff.is_flapping();
            if is_loud && !self.is_leaving {
                self.tell(FabricNotice::LoggedOut { why });
            }
            self.state = EnodeState::Left { asked: None };
        }
    }

    /// The login is over: looks for an FCF again, after a rest if that happens all the time.
    fn lost(&mut self, why: UnlinkReason) {
        let login = self.login().copied();
        self.release(why);
        if self.is_leaving {
            return;
        }
        let rest = self.ended(login.map(|login| login.fcf));
        match (rest.filter(|_| why != UnlinkReason::Silent), login) {
            (Some(rest), _) => self.rest(rest),
            (None, Some(login)) => self.resume(&login),
            (None, None) => self.solicit(),
        }
    }

    /// A login to this FCF has ended. Returns for how long no other one is to be made.
    fn ended(&mut self, fcf: Option<Mac>) -> Option<Duration> {
        let rest = self.backoff.ended(self.now);
        if let Some(fcf) = fcf.filter(|_| self.backoff.begins_to_flap()) {
            self.tell(FabricNotice::Flapping { fcf });
        }
        rest
    }

    /// Sends a message to an FCF, or to all.
    fn send(&mut self, (dst, src): (Mac, Mac), operation: FipOperation, says: &[Descriptor<'_>]) {
        let flags = match operation {
            FipOperation::Solicitation => Flags::FPMA.with(Flags::SPMA),
            _ => self.addressing(dst),
        };
        self.outgoing.push(PendingMessage {
            dst,
            src,
            bytes: fip::encode(operation, flags, says),
            least: 0,
        });
    }

    /// Whose MAC addresses VN_Ports have at this FCF. One that leaves the choice provides them.
    fn addressing(&self, fcf: Mac) -> Flags {
        match self.fcfs.get(fcf) {
            Some(fcf) if !fcf.provides_mac => Flags::SPMA,
            _ => Flags::FPMA,
        }
    }

    fn expire_fcfs(&mut self) {
        let ours = self.login().map(|login| login.fcf);
        let silent = self.fcfs.expire(self.now);
        if ours.is_some_and(|fcf| silent.contains(&fcf)) {
            self.statistics.link_failures += 1;
            self.lost(UnlinkReason::Silent);
        }
    }
}

/// From the first FCF that can be used, or the first VLAN Notification, to the choice: answers come
/// within 100 ms.
const SETTLING: Duration = Duration::from_millis(500);

/// 16 messages a second, where the shortest FKA_ADV_PERIOD makes four.
const OF_FCF: FillRate = FillRate {
    cost: Duration::from_millis(1000 / 16),
    burst: 64,
};
