//! A remote port, from when FIP finds it to when it is lost (FC-LS-2).
//!
//! Both ends find each other and log in; their WWPNs decide which one asks, as in Linux's libfc:
//! the port of the higher one sends PLOGI, or the other one if that takes too long. Then the
//! initiator sends PRLI, and with the answer to that there is an I_T nexus.
//!
//! | state | in progress | accepted | refused, or not answered |
//! |---|---|---|---|
//! | idle | nothing; begins again after a while, if it is to | | |
//! | awaited | its PLOGI | prli as initiator, open as target | plogi |
//! | plogi | our PLOGI | prli as initiator, open as target | again, or awaited if its own goes first; at last idle |
//! | prli | our PRLI, as initiator | open | again, or from PLOGI on; at last idle |
//! | open | nothing, or our ADISC | open | from PLOGI on, or later again |
//!
//! What the other end asks is answered in every state, and moves the state too: a PLOGI where a
//! login exists says that the other end has begun anew, and ends what was in flight.
//!
//! At a target, a nexus that ended is replaced only when the device server has ended all that was
//! of it: until then a PRLI waits for its answer, so that no write of the old nexus comes after one
//! of the new.

mod answer;
mod local;
mod login;
mod logout;
mod outbox;
mod peer;
mod process;
mod refusal;
#[cfg(test)]
mod tests;
mod verify;

use std::time::Duration;

use scsi::medium::Now;

pub use self::local::{LocalPort, Partners, PrliOffer, Role};
pub(crate) use self::outbox::{
    Cx, OxIds, PendingEls, RemoteOutput, RequestedExchange, SERVICE_OX_IDS,
};
pub use self::peer::{Fcp, FcpPeer, PeerAddress, RemoteId};
use self::process::ParkedPrli;
pub use self::refusal::LoginRefusal;
use crate::fip::{Neighbour, UnlinkReason};
use crate::wire::frame::OxId;
use crate::wire::names::Wwn;

/// A remote port.
#[derive(Clone, Debug)]
pub struct RemotePort {
    id: RemoteId,
    neighbour: Neighbour,
    state: RemoteState,
    /// Our request that has not been answered.
    asked: Option<OxId>,
    /// Requests of this state that failed.
    tries: u8,
    deadline: Option<Now>,
    /// When the other end is asked whether it still knows of our login: until R_A_TOV after it, a
    /// PLOGI or LOGO of before may come there, and end it.
    verify_at: Option<Now>,
    login: PortLogin,
    /// What the image pair agreed upon, while there is one.
    pair: Option<Fcp>,
    /// The PLOGI and the PRLI that hold, to know a second copy of them.
    plogi: Option<AcceptedRequest>,
    prli: Option<AcceptedRequest>,
    /// The device server has not yet ended what was in flight.
    is_ending: bool,
    parked: Option<ParkedPrli>,
    is_lost: bool,
    logins: u32,
    /// LOGOs of the other end, each soon after the one before, and when the last one came.
    logouts: u8,
    logged_out: Option<Now>,
    /// Waits for a free slot to log in.
    is_waiting: bool,
    /// Our last login that was refused, until there is a nexus.
    refusal: Option<LoginRefusal>,
}

/// Where a login stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteState {
    /// No exchange is in progress.
    Idle,
    /// The other end is to send PLOGI.
    Awaited,
    /// Our PLOGI is not answered yet.
    Plogi,
    /// Our PRLI is not answered yet.
    Prli,
    /// Logged in.
    Open,
}

/// Why a nexus ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NexusEnd {
    /// By its LOGO or PRLO.
    LoggedOut,
    /// It logged in anew, as after a restart.
    Replaced,
    /// FIP lost it.
    Lost(UnlinkReason),
    /// We logged out.
    ByUs,
    /// Exchanges with it could not be ended but by this.
    Stuck,
}

/// What two PLOGIs agreed upon.
#[derive(Clone, Copy, Debug)]
struct PortLogin {
    payload_max: u16,
    e_d_tov: Duration,
}

/// A request of the other end that was accepted.
#[derive(Clone, Copy, Debug)]
struct AcceptedRequest {
    ox_id: OxId,
    at: Now,
    /// The other end may have restarted since, and may number its exchanges as before.
    may_have_restarted: bool,
}

impl AcceptedRequest {
    /// Whether a request is a second copy of it: within R_A_TOV an old frame may still come, and no
    /// port uses the number of its exchange again.
    fn is_repeated(seen: Option<Self>, cx: &Cx<'_>, asked: RequestedExchange) -> bool {
        let is_same = |seen: Self| {
            let lasts = if seen.may_have_restarted {
                RESTART_MIN
            } else {
                cx.local.r_a_tov
            };
            seen.ox_id == asked.ox_id && cx.now < seen.at.saturating_add(lasts)
        };
        seen.is_some_and(is_same)
    }
}

/// A port that restarts in a fabric sends no PLOGI sooner: it waits for Advertisements first. Ours
/// do for so long, Linux for 2 s.
const RESTART_MIN: Duration = Duration::from_millis(500);

impl RemotePort {
    /// A port that was found. [`Self::begin`] follows.
    pub(crate) fn new(id: RemoteId, neighbour: Neighbour, local: &LocalPort) -> Self {
        Self {
            id,
            state: RemoteState::Idle,
            asked: None,
            tries: 0,
            deadline: None,
            verify_at: None,
            login: PortLogin {
                payload_max: neighbour.payload_max,
                e_d_tov: local.e_d_tov,
            },
            neighbour,
            pair: None,
            plogi: None,
            prli: None,
            is_ending: false,
            parked: None,
            is_lost: false,
            logins: 0,
            logouts: 0,
            logged_out: None,
            is_waiting: false,
            refusal: None,
        }
    }

    /// It was lost and is found again, before all that it left behind has ended.
    pub(crate) fn found_again(&mut self, neighbour: Neighbour) {
        self.neighbour = neighbour;
        self.is_lost = false;
        self.is_waiting = false;
        self.refusal = None;
    }

    /// It was something else before.
    pub(crate) const fn becomes_target(&mut self) {
        self.neighbour.target = Some(true);
    }

    /// It may have restarted: its next PLOGI is no second copy of the one that holds, unless it
    /// comes within [`RESTART_MIN`] of that.
    pub(crate) const fn suspect_restart(&mut self) {
        if let Some(plogi) = &mut self.plogi {
            plogi.may_have_restarted = true;
        }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> RemoteId {
        self.id
    }

    /// What FIP tells of it.
    #[must_use]
    pub const fn neighbour(&self) -> &Neighbour {
        &self.neighbour
    }

    /// Its place on the wire.
    #[must_use]
    pub const fn address(&self) -> PeerAddress {
        PeerAddress {
            fc_id: self.neighbour.fc_id,
            mac: self.neighbour.mac,
        }
    }

    /// Its port name.
    #[must_use]
    pub const fn wwpn(&self) -> Wwn {
        self.neighbour.wwpn
    }

    /// Its node name.
    #[must_use]
    pub const fn wwnn(&self) -> Wwn {
        self.neighbour.wwnn
    }

    /// Where its login stands.
    #[must_use]
    pub const fn state(&self) -> RemoteState {
        self.state
    }

    /// Whether there is an I_T nexus with it.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.pair.is_some()
    }

    /// The most bytes of payload in a frame to it.
    #[must_use]
    pub const fn payload_max(&self) -> u16 {
        self.login.payload_max
    }

    /// How often there was a login.
    #[must_use]
    pub const fn logins(&self) -> u32 {
        self.logins
    }

    /// When [`Self::expire`] wants to be called.
    pub(crate) const fn deadline(&self) -> Option<Now> {
        self.deadline
    }

    /// Whether FIP does not know it any more.
    pub(crate) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether there may be a nexus with it, so that it wants a place.
    pub(crate) fn wants_place(&self, local: &LocalPort) -> bool {
        let fits = match local.role {
            Role::Initiator => self.neighbour.target,
            Role::Target => self.neighbour.initiator,
        };
        fits != Some(false) && local.partners.admit(self.wwpn())
    }

    /// Whether it counts among those that limits allow.
    pub(crate) fn has_place(&self, local: &LocalPort) -> bool {
        let may_begin = !self.is_lost && !self.is_waiting && self.wants_place(local);
        self.is_up() || self.is_ending || may_begin
    }

    /// Whether it waits for a place.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Whether nothing of it is left: its number may be used again.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_lost && !self.is_ending
    }

    /// As the machines of FCP see it, while there is a nexus.
    #[must_use]
    pub fn peer(&self, local: &LocalPort) -> Option<FcpPeer> {
        let fcp = self.pair?;
        Some(FcpPeer {
            address: self.address(),
            own: local.address,
            tag: local.tag,
            wwpn: self.wwpn(),
            payload_max: self.login.payload_max,
            fcp,
            e_d_tov: self.login.e_d_tov,
            r_a_tov: local.r_a_tov.max(self.login.e_d_tov * 2),
        })
    }

    /// Whether there is an N_Port login.
    #[must_use]
    pub const fn is_logged_in(&self) -> bool {
        matches!(self.state, RemoteState::Prli | RemoteState::Open)
    }
}
