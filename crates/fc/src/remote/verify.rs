//! Whether the other end still knows of our login: ADISC (FC-LS-2).

use super::login::{PAUSE, TRIES};
use super::{Cx, LocalPort, RemotePort, Role};
use crate::wire::els::{Adisc, Els, LsRejectReason};

impl RemotePort {
    /// Asks. What is in flight goes on.
    pub(super) fn verify(&mut self, cx: &mut Cx<'_>) {
        self.tries = 0;
        self.ask_adisc(cx);
    }

    fn ask_adisc(&mut self, cx: &mut Cx<'_>) {
        let adisc = Els::Adisc(cx.local.adisc());
        self.asked = Some(self.request(cx, &adisc));
        self.wake_after(cx, cx.local.e_d_tov);
    }

    /// No answer came in time. A port that is silent for too long may know of us all the same.
    pub(super) fn unverified(&mut self, cx: &mut Cx<'_>) {
        self.tries += 1;
        if self.tries < TRIES {
            self.ask_adisc(cx);
        } else {
            self.verify_later(cx);
        }
    }

    /// It is asked again after [`PAUSE`].
    pub(super) fn verify_later(&mut self, cx: &Cx<'_>) {
        self.asked = None;
        self.wake_after(cx, PAUSE);
    }

    /// It knows of us, as far as it says.
    pub(super) const fn verified(&mut self) {
        self.asked = None;
        self.deadline = self.verify_at;
    }

    /// Whether an initiator has a login with us as target, but no nexus, nor is one being made.
    /// When it asks whether its login holds, it has to log in anew: its commands would be ended by
    /// LOGO.
    pub(super) fn lacks_nexus(&self, local: &LocalPort) -> bool {
        let is_initiator = self.neighbour.initiator != Some(false);
        local.role == Role::Target && is_initiator && !self.is_up() && self.parked.is_none()
    }

    /// Another port that has its N_Port_ID has no login of ours.
    pub(super) fn adisc_answered(&mut self, cx: &mut Cx<'_>, theirs: &Adisc) {
        if theirs.wwpn == self.wwpn() {
            self.verified();
        } else {
            self.refused(cx, LsRejectReason::NO_LOGIN);
        }
    }
}
