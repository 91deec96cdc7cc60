//! FIP in an ENode (FC-BB-6): how an N_Port gets an address and neighbours on plain Ethernet with
//! no fabric, which is VN2VN. Multipoint among any number of ports, or point-to-point between two.
//!
//! | state | left after | and then sent |
//! |---|---|---|
//! | down | the link comes up | |
//! | waiting | 0 to 100 ms by lot, or 10 s after ten conflicts | Probe Request |
//! | probing | 100 ms | Probe Request |
//! | probed | 400 ms | Claim Notification |
//! | claiming | 400 ms | Beacon |
//! | up | | a Beacon after 400 ms, then each 8 s and 0 to 100 ms by lot |
//!
//! What another port says about the N_Port_ID that is ours or is to be:
//!
//! | | waiting | probing, probed | claiming | up |
//! |---|---|---|---|---|
//! | Probe Request | another one | reply if our WWPN is higher and its ID not recorded; else another one | reply | reply |
//! | Probe Reply | another one | another one | another one | claim |
//! | claim or Beacon | another one | another one | claim if our WWPN is higher; else another one | as claiming |
//!
//! A port that is up logs in to each that has claimed and beacons, by an FLOGI inside FIP. Mostly
//! that is the one of two which was up first, as the other's first Beacon is what it waits for. The
//! FLOGI makes a virtual link, and each the other's [`Neighbour`]. Beacons keep it.
//!
//! An ENode that logs in to a fabric is a machine of its own, [`enode::Enode`]. An N_Port is told
//! its address and its neighbours by events, the same from both machines, and does not ask how they
//! came about. The role of an FCF is a third machine.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use scsi::medium::Now;

use crate::frames::FrameSink;
use crate::wire::ethernet::{self, Mac, VlanTag};
use crate::wire::fip::{FipMessage, FipOperation};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

mod announcement;
pub(crate) mod budget;
mod conflict;
pub(crate) mod els;
pub mod enode;
mod login;
mod neighbour;
pub mod responder;
#[cfg(test)]
pub(crate) mod tests;
mod transmit;

use announcement::Announcement;
use budget::{Budget, OverBudget};
use neighbour::Neighbours;
pub use neighbour::{Neighbour, UnlinkReason};
use transmit::OutgoingMessages;

/// How many ports share the Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Any number.
    Multipoint,
    /// Two, and no link at all if there are more. A port in this mode that hears one in the other
    /// changes over to it until the link goes down.
    PointToPoint,
}

/// What a port is by itself.
#[derive(Clone, Copy, Debug)]
pub struct FipConfig {
    /// The address of the ENode, which FIP is sent from.
    pub mac: Mac,
    /// WWPN.
    pub wwpn: Wwn,
    /// WWNN.
    pub wwnn: Wwn,
    /// The longest FCoE frame that can be received, see [`max_fcoe`].
    pub max_fcoe: u16,
    /// How many ports share the Ethernet.
    pub mode: Mode,
    /// Whether it says to be an FCP target.
    pub target: bool,
    /// Whether it says to be an FCP initiator.
    pub initiator: bool,
}

/// What the N_Port has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FipEvent {
    /// The N_Port_ID is ours: receive at [`Fip::mac`] too.
    Claimed(FcId),
    /// The N_Port_ID is ours no more. All neighbours have been told to be lost before.
    Released(FcId),
    /// There is a virtual link to this port.
    Found(Neighbour),
    /// The virtual link is gone.
    Lost(FcId, UnlinkReason),
}

/// What was counted since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FipStatistics {
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages among them that broke a rule.
    pub refused: u64,
    /// Messages among them that were not looked at, as their sender sent too many.
    pub dropped: u64,
    /// N_Port_IDs given up as another port had them.
    pub conflicts: u64,
    /// How often the link went down (LinkFailureCount of the Link Error Status Block).
    pub link_downs: u64,
    /// Virtual links that ended by silence (VLinkFailureCount of the Link Error Status Block).
    pub link_failures: u64,
}

/// Where the N_Port_ID stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FipState {
    Down,
    Waiting,
    Probing,
    Probed,
    Claiming,
    Up,
}

/// The FIP machine of one VN_Port.
#[derive(Debug)]
pub struct Fip {
    config: FipConfig,
    tag: Option<VlanTag>,
    mode: Mode,
    now: Now,
    state: FipState,
    /// When the state ends, or the next Beacon is due.
    timer: Option<Now>,
    /// Ours, or to be.
    fc_id: FcId,
    /// N_Port_IDs tried since the link came up or the last one was claimed.
    tries: u32,
    /// When the last Claim Notification was sent.
    claimed: Now,
    /// When a port in point-to-point mode was last asked to change over.
    invited: Option<Now>,
    random: fastrand::Rng,
    budget: Budget,
    neighbours: Neighbours,
    /// The link is about to go down: nothing is to begin until then.
    is_leaving: bool,
    next_ox_id: u16,
    outgoing: OutgoingMessages,
    events: VecDeque<FipEvent>,
    statistics: FipStatistics,
}

impl Fip {
    /// A port whose link is down. `random` are fresh random bytes; the lots it draws come of them.
    #[must_use]
    pub fn new(config: FipConfig, now: Now, random: [u8; 8]) -> Self {
        Self {
            tag: None,
            mode: config.mode,
            now,
            state: FipState::Down,
            timer: None,
            fc_id: preferred(config.mac),
            tries: 0,
            claimed: now,
            invited: None,
            random: fastrand::Rng::with_seed(u64::from_be_bytes(random)),
            budget: Budget::new(u64::from_le_bytes(random)),
            neighbours: Neighbours::default(),
            is_leaving: false,
            next_ox_id: 0,
            outgoing: OutgoingMessages::default(),
            events: VecDeque::new(),
            statistics: FipStatistics::default(),
            config,
        }
    }

    /// The same, whose messages carry a tag.
    #[must_use]
    pub fn tagged(self, tag: Option<VlanTag>) -> Self {
        Self { tag, ..self }
    }

    /// Our N_Port_ID, once it is claimed.
    #[must_use]
    pub fn fc_id(&self) -> Option<FcId> {
        (self.state == FipState::Up).then_some(self.fc_id)
    }

    /// The address that our FCoE frames have, once the N_Port_ID is claimed.
    #[must_use]
    pub fn mac(&self) -> Option<Mac> {
        self.fc_id().map(vn_mac)
    }

    /// The groups that the Ethernet port has to receive, in either mode.
    #[must_use]
    pub const fn groups() -> [Mac; 2] {
        [Mac::ALL_VN2VN_ENODE, Mac::ALL_PT2PT_ENODE]
    }

    /// How many ports are thought to share the Ethernet, by now.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> FipStatistics {
        self.statistics
    }

    /// The ports that there is a virtual link to, by N_Port_ID.
    pub fn neighbours(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.linked()
    }

    /// Whether a port of this name is there that there is no virtual link to yet.
    #[must_use]
    pub fn is_linking(&self, wwpn: Wwn) -> bool {
        self.neighbours.has_unlinked(wwpn)
    }

    /// How many records are kept of other ports, of all kinds: what a message costs depends on
    /// this, not on how many came before it.
    #[must_use]
    pub fn records(&self) -> usize {
        self.neighbours.records() + self.budget.records()
    }

    /// So long may FCoE frames be, as soon as the link, which is down, is up again.
    pub(crate) const fn resize(&mut self, max_fcoe: u16) {
        self.config.max_fcoe = max_fcoe;
    }

    /// The link came up or went down. A port goes on with the N_Port_ID that it had.
    pub fn link(&mut self, now: Now, up: bool) {
        self.tick(now);
        if up == (self.state != FipState::Down) {
            return;
        }
        self.statistics.link_downs += u64::from(!up);
        self.release(UnlinkReason::LinkDown);
        self.neighbours = Neighbours::default();
        self.mode = self.config.mode;
        self.tries = 0;
        self.is_leaving = false;
        if up {
            self.wait();
        } else {
            self.enter(FipState::Down, None);
        }
    }

    /// Stops creating virtual links until the link goes down and up again. Otherwise a Beacon that
    /// arrives just after the logout would create one.
    pub(crate) const fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Takes the payload of an Ethernet frame of EtherType FIP.
    ///
    /// # Errors
    /// The rule that it broke. It has been ignored, and all goes on.
    pub fn receive(
        &mut self,
        now: Now,
        ethernet: &ethernet::EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        self.tick(now);
        if self.state == FipState::Down {
            return Ok(());
        }
        self.statistics.received += 1;
        if let Err(OverBudget { is_first }) = self.budget.take(self.now, ethernet.src) {
            self.statistics.dropped += 1;
            return if is_first { Err(FLOOD) } else { Ok(()) };
        }
        let taken = self.take(ethernet, payload);
        self.statistics.refused += u64::from(taken.is_err());
        taken
    }

    fn take(
        &mut self,
        ethernet: &ethernet::EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let message = FipMessage::parse(payload)?;
        match message.operation {
            FipOperation::ElsRequest => self.els_request(ethernet, &message),
            FipOperation::ElsReply => self.els_reply(ethernet, &message),
            FipOperation::ProbeRequest
            | FipOperation::ProbeReply
            | FipOperation::ClaimNotification
            | FipOperation::ClaimResponse
            | FipOperation::Beacon => {
                let announcement = Announcement::read(ethernet, &message)?;
                self.announced(&announcement)
            }
            // What a fabric and an ENode that looks for one tell each other.
            _ => Ok(()),
        }
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let timer = self.timer.into_iter();
        timer.chain(self.neighbours.next_deadline()).min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.tick(now);
        if self.timer.is_some_and(|at| at <= self.now) {
            self.step();
        }
        self.expire_neighbours();
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<FipEvent> {
        self.events.pop_front()
    }

    /// Writes what is to be sent, as far as there is room.
    pub fn transmit(&mut self, out: &mut impl FrameSink) {
        self.statistics.sent += self.outgoing.write(self.tag, out);
    }

    /// Time never goes back, whatever the clock says.
    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    /// A time of whole microseconds below `end`.
    fn lot(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.random.u64(..end.as_micros() as u64))
    }

    fn enter(&mut self, state: FipState, wait: Option<Duration>) {
        self.state = state;
        self.timer = wait.map(|wait| self.now.saturating_add(wait));
    }

    /// The timer ran out.
    fn step(&mut self) {
        match self.state {
            FipState::Down => self.timer = None,
            FipState::Waiting => {
                self.announce(FipOperation::ProbeRequest);
                self.enter(FipState::Probing, Some(PROBE_WAIT));
            }
            FipState::Probing => {
                self.announce(FipOperation::ProbeRequest);
                self.enter(FipState::Probed, Some(ANNOUNCE_WAIT));
            }
            FipState::Probed => {
                self.claim();
                self.enter(FipState::Claiming, Some(ANNOUNCE_WAIT));
            }
            FipState::Claiming => {
                self.tries = 0;
                self.announce(FipOperation::Beacon);
                self.enter(FipState::Up, Some(ANNOUNCE_WAIT));
                self.events.push_back(FipEvent::Claimed(self.fc_id));
            }
            FipState::Up => {
                self.announce(FipOperation::Beacon);
                let fuzz = self.lot(BEACON_FUZZ);
                self.timer = Some(self.now.saturating_add(BEACON_PERIOD + fuzz));
            }
        }
    }
}

/// The N_Port_IDs that VN2VN ports may have: 16 bits, neither all zero nor all one.
const LOCAL_IDS: RangeInclusive<u32> = 1..=0xfffe;

/// What is tried first: the lower half of the address of the ENode, as Linux does, so that a port
/// is found under the same N_Port_ID again.
fn preferred(mac: Mac) -> FcId {
    let [.., high, low] = mac.0;
    let number = u32::from(u16::from_be_bytes([high, low]));
    FcId(number.clamp(*LOCAL_IDS.start(), *LOCAL_IDS.end()))
}

/// The address that the FCoE frames of a VN2VN port have.
const fn vn_mac(fc_id: FcId) -> Mac {
    Mac::of_port(Mac::VN2VN_FC_MAP, fc_id)
}

/// The longest FCoE frame, in bytes between Ethernet header and frame check sequence, that fits an
/// Ethernet of this MTU: 2,158 at most, for a payload of whole words up to 2,112.
#[must_use]
pub const fn max_fcoe(mtu: usize) -> u16 {
    let payload = mtu.saturating_sub(FCOE_OVERHEAD) & !3;
    let most = crate::wire::frame::MAX_PAYLOAD;
    let payload = if payload > most { most } else { payload };
    (payload + FCOE_OVERHEAD) as u16
}

/// The length of an FCoE frame, counted in the same way, with so many bytes of payload.
pub(crate) const fn fcoe_len(payload: u16) -> u16 {
    payload + FCOE_OVERHEAD as u16
}

/// FCoE header, frame header, CRC, and EOF with what follows it.
pub(crate) const FCOE_OVERHEAD: usize = 14 + 24 + 4 + 4;

pub(crate) const FLOOD: Violation = Violation {
    rule: "more than 128 FIP messages per second; the rest is dropped",
    clause: "a limit of Lunar",
};

/// The timers of VN2VN have in FC-BB-6 the values that all ports of an Ethernet must share.
const PROBE_WAIT: Duration = Duration::from_millis(100);
const ANNOUNCE_WAIT: Duration = Duration::from_millis(400);
const BEACON_PERIOD: Duration = Duration::from_secs(8);
const BEACON_FUZZ: Duration = Duration::from_millis(100);
/// How many N_Port_IDs are tried at once; after that each try takes this long.
const QUICK_TRIES: u32 = 10;
const RATE_LIMIT: Duration = Duration::from_secs(10);
