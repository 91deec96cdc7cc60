//! How a login ends (FC-LS-2, LOGO).

use scsi::medium::Now;

use super::login::PAUSE;
use super::{Cx, NexusEnd, RemoteOutput, RemotePort, RemoteState, RequestedExchange, Role};
use crate::port::config::E_D_TOV;
use crate::wire::els::{Els, Logo, LsRejectReason, Reply};

impl RemotePort {
    /// What is in flight with it ends, as far as anything is.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, why: NexusEnd) {
        self.parked = None;
        self.prli = None;
        if self.pair.take().is_some() {
            self.is_ending = cx.local.role == Role::Target;
            self.put(cx, RemoteOutput::Down(why));
        }
    }

    /// The device server has ended all that the last nexus left behind.
    pub(crate) fn ended(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.is_ending)
            && let Some(parked) = self.parked.take()
        {
            self.pair_up(cx, &parked);
        }
    }

    /// FIP has lost it, or is about to say goodbye to it.
    pub(crate) fn lost(&mut self, cx: &mut Cx<'_>, why: NexusEnd) {
        self.is_lost = true;
        self.plogi = None;
        self.end(cx, why);
        self.rest(None);
    }

    /// It sends commands though there is no nexus: it learns that by a LOGO instead of by waiting.
    /// Then it is up to it, for a while.
    pub(crate) fn strayed(&mut self, cx: &mut Cx<'_>) {
        let is_due = matches!(self.state, RemoteState::Idle | RemoteState::Open);
        if is_due && self.pair.is_none() && !self.is_ending && !self.is_lost {
            self.send_logo(cx);
            self.enter(cx, RemoteState::Awaited);
        }
    }

    /// Its exchanges can be ended by nothing else: logs out and in again.
    pub(crate) fn renew(&mut self, cx: &mut Cx<'_>) {
        if self.is_logged_in() {
            self.send_logo(cx);
            self.end(cx, NexusEnd::Stuck);
            self.log_in(cx);
        }
    }

    /// It may no longer log in, and is told so by a LOGO if it has.
    pub(crate) fn revoke(&mut self, cx: &mut Cx<'_>) {
        if self.is_lost {
            return;
        }
        if self.is_logged_in() || self.is_up() {
            self.send_logo(cx);
        }
        self.is_waiting = false;
        self.plogi = None;
        self.end(cx, NexusEnd::ByUs);
        self.rest(None);
    }

    fn send_logo(&self, cx: &mut Cx<'_>) {
        let logo = Logo {
            fc_id: cx.local.address.fc_id,
            wwpn: cx.local.wwpn,
        };
        self.request(cx, &Els::Logo(logo));
    }

    pub(super) fn logo_asked(&mut self, cx: &mut Cx<'_>, asked: RequestedExchange, logo: &Logo) {
        if (logo.fc_id, logo.wwpn) != (self.neighbour.fc_id, self.wwpn()) {
            self.refuse(cx, asked, LsRejectReason::OTHER_NAME);
            self.remark(cx, "a LOGO for another port", "FC-LS-2");
            return;
        }
        self.answer(cx, asked, &Reply::Accept);
        self.end(cx, NexusEnd::LoggedOut);
        self.rest(None);
        let soon = |at: Now| cx.now < at.saturating_add(E_D_TOV);
        let before = self.logged_out.replace(cx.now);
        self.logouts = if before.is_some_and(soon) {
            self.logouts.saturating_add(1)
        } else {
            1
        };
        // A target may have lost its memory of us, or it does not know us and never will. An
        // initiator comes when it wants to.
        match cx.local.role {
            Role::Initiator if self.logouts < LOGOUTS => self.log_in(cx),
            Role::Initiator => self.wake_after(cx, PAUSE),
            Role::Target => self.wake_after(cx, cx.local.r_a_tov),
        }
    }
}

/// LOGOs in a row, each within E_D_TOV of the one before, after which a target is left alone for
/// [`PAUSE`]. Linux gives up after as many (max_rport_retry_count).
const LOGOUTS: u8 = 3;
