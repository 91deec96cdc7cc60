//! N_Port login: PLOGI, both ways (FC-LS-2).

use std::time::Duration;

use scsi::medium::Now;

use super::{
    AcceptedRequest, Cx, LocalPort, NexusEnd, PortLogin, RemotePort, RemoteState,
    RequestedExchange, Role,
};
use crate::port::config::E_D_TOVS;
use crate::wire::els::{ClassParameters, Els, Features, LsRejectReason, Reply, ServiceParameters};
use crate::wire::els::{explanation, reason};
use crate::wire::frame::MIN_PAYLOAD;
use crate::wire::names::Wwn;

impl RemotePort {
    /// It is found: begins to log in, if there is to be a login.
    pub(crate) fn begin(&mut self, cx: &mut Cx<'_>) {
        self.is_waiting = false;
        let is_ours_to_ask = cx.local.wwpn > self.wwpn();
        if !cx.local.partners.admit(self.wwpn()) {
            self.rest(None);
            if cx.local.role == Role::Target && self.neighbour.initiator != Some(false) {
                self.remark(cx, "a port that is not allowed was discovered", "--allow");
            }
        } else if cx.local.awaits_logins() || cx.local.in_fabric && !self.wants_place(cx.local) {
            self.rest(None);
        } else if is_ours_to_ask || cx.local.in_fabric {
            self.enter(cx, RemoteState::Plogi);
        } else {
            self.enter(cx, RemoteState::Awaited);
        }
    }

    /// It has sent PLOGI before it was discovered, which follows.
    pub(crate) fn plogi_received_first(&mut self, _: &mut Cx<'_>) {
        self.is_waiting = false;
        self.rest(None);
    }

    /// Something about it has changed: what was of no use before may be now, and it may have
    /// forgotten our login, which it is asked by ADISC.
    pub(crate) fn state_changed(&mut self, cx: &mut Cx<'_>) {
        match self.state {
            RemoteState::Idle if self.wants_place(cx.local) => self.log_in(cx),
            RemoteState::Open if self.is_up() => self.verify(cx),
            _ => {}
        }
    }

    /// The port was discovered but no slot is free. [`Self::begin`] follows when one is.
    pub(crate) fn wait(&mut self) {
        self.is_waiting = true;
        self.rest(None);
    }

    /// Logs in, whichever of the two should ask: as the other one did not, or knows of no reason
    /// to.
    pub(crate) fn log_in(&mut self, cx: &mut Cx<'_>) {
        if cx.local.partners.admit(self.wwpn()) && !self.is_waiting {
            self.enter(cx, RemoteState::Plogi);
        } else {
            self.rest(None);
        }
    }

    /// Its deadline may have passed.
    pub(crate) fn expire(&mut self, cx: &mut Cx<'_>) {
        if self.deadline.is_none_or(|deadline| cx.now < deadline) {
            return;
        }
        self.deadline = None;
        match self.state {
            RemoteState::Idle | RemoteState::Awaited if cx.local.awaits_logins() => self.rest(None),
            RemoteState::Idle | RemoteState::Awaited => self.log_in(cx),
            RemoteState::Plogi | RemoteState::Prli if self.asked.is_some() => {
                self.again(cx, Duration::ZERO);
            }
            RemoteState::Plogi | RemoteState::Prli => self.ask(cx),
            RemoteState::Open if self.asked.is_some() => self.unverified(cx),
            RemoteState::Open if self.is_up() => {
                self.verify_at = self.verify_at.filter(|at| cx.now < *at);
                self.verify(cx);
            }
            // A nexus was precluded; the other end may have been configured since.
            RemoteState::Open => self.enter(cx, RemoteState::Prli),
        }
    }

    /// No attempt is made until `until`.
    pub(super) fn rest(&mut self, until: Option<Now>) {
        self.state = RemoteState::Idle;
        self.asked = None;
        self.deadline = until;
    }

    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, state: RemoteState) {
        self.state = state;
        self.asked = None;
        self.tries = 0;
        self.deadline = None;
        match state {
            RemoteState::Plogi | RemoteState::Prli => self.ask(cx),
            // Its PLOGI may be lost, and come again.
            RemoteState::Awaited => self.wake_after(cx, cx.local.e_d_tov * 2),
            RemoteState::Idle | RemoteState::Open => {}
        }
    }

    pub(super) fn wake_after(&mut self, cx: &Cx<'_>, wait: Duration) {
        self.deadline = Some(cx.now.saturating_add(wait));
    }

    /// Sends the request of the state.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        let els = match self.state {
            RemoteState::Plogi => Els::Plogi(cx.local.parameters()),
            _ => Els::Prli(vec![cx.local.process_login()]),
        };
        self.asked = Some(self.request(cx, &els));
        self.wake_after(cx, cx.local.e_d_tov);
    }

    /// The request of the state failed: once more after `wait`, unless it was tried enough.
    pub(super) fn again(&mut self, cx: &mut Cx<'_>, wait: Duration) {
        self.tries += 1;
        self.asked = None;
        if self.tries >= TRIES {
            self.rest(Some(cx.now.saturating_add(PAUSE)));
        } else if wait.is_zero() {
            self.ask(cx);
        } else {
            self.wake_after(cx, wait);
        }
    }

    pub(super) fn refused(&mut self, cx: &mut Cx<'_>, why: LsRejectReason) {
        self.note_reject(why);
        match (self.state, why.reason, why.explanation) {
            (RemoteState::Plogi, reason::IN_PROGRESS, _) => self.enter(cx, RemoteState::Awaited),
            (RemoteState::Prli, reason::UNABLE, explanation::LOGIN_REQUIRED) => {
                self.enter(cx, RemoteState::Plogi);
            }
            (RemoteState::Open, reason::UNABLE, explanation::LOGIN_REQUIRED) => {
                self.end(cx, NexusEnd::LoggedOut);
                self.log_in(cx);
            }
            (RemoteState::Open, reason::LOGICAL_BUSY, _) => self.verify_later(cx),
            // It is there, and does not say what it was asked.
            (RemoteState::Open, ..) => self.verified(),
            (_, reason::LOGICAL_BUSY, _) => {
                let wait = (SOON * (1 << self.tries)).min(cx.local.e_d_tov);
                self.again(cx, wait);
            }
            _ => self.again(cx, cx.local.e_d_tov),
        }
    }

    pub(super) fn plogi_asked(
        &mut self,
        cx: &mut Cx<'_>,
        asked: RequestedExchange,
        theirs: &ServiceParameters,
    ) {
        let login = match self.admit(cx, theirs) {
            Ok(login) => login,
            Err(refusal) => return self.refuse(cx, asked, refusal),
        };
        if !self.is_logged_in() || !AcceptedRequest::is_repeated(self.plogi, cx, asked) {
            self.end(cx, NexusEnd::Replaced);
            self.login = login;
            self.learn_node(theirs);
            self.plogi = Some(AcceptedRequest::now(cx, asked));
            self.answer(cx, asked, &Reply::Login(cx.local.parameters()));
            self.logged_in(cx);
        } else {
            self.answer(cx, asked, &Reply::Login(cx.local.parameters()));
        }
    }

    /// What comes of a PLOGI, or why it is refused.
    fn admit(
        &self,
        cx: &mut Cx<'_>,
        theirs: &ServiceParameters,
    ) -> Result<PortLogin, LsRejectReason> {
        if theirs.wwpn != self.wwpn() {
            self.remark(cx, "a PLOGI with a port name other than in FIP", "FC-BB-6");
            Err(LsRejectReason::OTHER_NAME)
        } else if !cx.local.partners.admit(self.wwpn()) {
            if cx.local.role == Role::Target {
                self.remark(cx, "a PLOGI from a port that is not allowed", "--allow");
            }
            Err(LsRejectReason::NOT_ALLOWED)
        } else if self.is_waiting {
            Err(LsRejectReason::NO_PLACE)
        } else if self.is_asking() && cx.local.wwpn > self.wwpn() {
            Err(LsRejectReason::IN_PROGRESS)
        } else {
            self.agreed(cx, theirs).ok_or(LsRejectReason::SIZES)
        }
    }

    /// Whether a PLOGI of ours is on its way; one that was refused may wait to be sent once more.
    fn is_asking(&self) -> bool {
        self.state == RemoteState::Plogi && self.asked.is_some()
    }

    pub(super) fn plogi_answered(&mut self, cx: &mut Cx<'_>, theirs: &ServiceParameters) {
        let login = self.agreed(cx, theirs);
        let Some(login) = login.filter(|_| theirs.wwpn == self.wwpn()) else {
            let rule = "a PLOGI response with another name or with invalid sizes";
            self.remark(cx, rule, "FC-LS-2");
            self.again(cx, cx.local.e_d_tov);
            return;
        };
        self.login = login;
        self.learn_node(theirs);
        self.plogi = None;
        self.logged_in(cx);
    }

    /// The name server of a fabric has told the port name alone.
    fn learn_node(&mut self, theirs: &ServiceParameters) {
        if self.neighbour.wwnn == Wwn(0) {
            self.neighbour.wwnn = theirs.wwnn;
        }
    }

    fn logged_in(&mut self, cx: &mut Cx<'_>) {
        self.logins = self.logins.saturating_add(1);
        let next = match cx.local.role {
            Role::Initiator => RemoteState::Prli,
            Role::Target => RemoteState::Open,
        };
        self.enter(cx, next);
    }

    /// What a PLOGI or its answer says of frames and times, held against our own; `None` where it
    /// cannot work.
    fn agreed(&self, cx: &Cx<'_>, theirs: &ServiceParameters) -> Option<PortLogin> {
        let class = Some(&theirs.class_3).filter(|class| class.is_valid())?;
        let sizes = [theirs.receive_size, class.receive_size];
        if sizes.iter().any(|size| *size < MIN_PAYLOAD) {
            return None;
        }
        let [common, class_3] = sizes;
        let e_d_tov = Duration::from_millis(theirs.e_d_tov_ms().into()).min(*E_D_TOVS.end());
        Some(PortLogin {
            payload_max: common.min(class_3).min(self.neighbour.payload_max) & !3,
            e_d_tov: e_d_tov.max(cx.local.e_d_tov),
        })
    }
}

impl AcceptedRequest {
    pub(super) const fn now(cx: &Cx<'_>, asked: RequestedExchange) -> Self {
        Self {
            ox_id: asked.ox_id,
            at: cx.now,
            may_have_restarted: false,
        }
    }
}

impl LocalPort {
    /// What our PLOGI says, and the answer to one. Any order of frames will do.
    pub(crate) fn parameters(&self) -> ServiceParameters {
        ServiceParameters {
            versions: [0x20; 2],
            bb_credit: 10,
            features: Features::CONTINUOUS_OFFSET,
            receive_size: self.payload_max,
            total_sequences: SEQUENCES,
            relative_offset: ALL_CATEGORIES,
            e_d_tov: u32::try_from(self.e_d_tov.as_millis()).unwrap_or(u32::MAX),
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            class_3: ClassParameters {
                options: ClassParameters::VALID,
                receive_size: self.payload_max,
                concurrent_sequences: SEQUENCES,
                open_sequences: 1,
                ..ClassParameters::default()
            },
        }
    }
}

/// Requests of one state that may fail before all is given up for [`PAUSE`].
pub(super) const TRIES: u8 = 5;

/// The first wait after a refusal that will pass soon; doubled each time, up to E_D_TOV. Linux
/// refuses a PRLI that comes before it has looked at the answer to its own PLOGI.
const SOON: Duration = Duration::from_millis(50);

/// How long a port is left alone that could not be logged in with.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// Sequences of a peer that may be open at once.
const SEQUENCES: u16 = 255;

/// Relative offsets are understood in each information category.
const ALL_CATEGORIES: u16 = 0x1f;
