//! Which frames may leave that have waited at their egress.
//!
//! A port that takes nothing for a while has frames in its queue that are of no use to anybody, or
//! that may not pass any more. So each frame is checked again when its turn comes. Those that were
//! handed to the Ethernet port already, up to 64 and what its socket holds, are not.

use std::collections::HashMap;

use fc::fabric::{DropReason, PortNumber, Switch};
use fc::wire::names::FcId;
use scsi::medium::Now;

use super::backlog::QueuedFrame;
use super::lldp::LldpAgents;
use super::port::{Egress, SwitchPort};

/// When ports were logged out: a frame from before is not for those that have their N_Port_IDs
/// since.
#[derive(Debug, Default)]
pub(super) struct Logouts {
    at: HashMap<FcId, Now>,
}

impl Logouts {
    pub(super) fn insert(&mut self, now: Now, fc_id: FcId) {
        self.at.insert(fc_id, now);
    }

    /// Whether a frame that came in then was between logins that are over.
    fn concern(&self, since: Now, ports: [FcId; 2]) -> bool {
        let is_over = |fc_id| self.at.get(fc_id).is_some_and(|at| since <= *at);
        !self.at.is_empty() && ports.iter().any(is_over)
    }

    /// Forgets those that concern no frame any more. There are as many as there were N_Port_IDs
    /// logged in within a minute.
    pub(super) fn sweep(&mut self, now: Now) {
        self.at
            .retain(|_, at| now.saturating_sub(*at) <= Switch::E_D_TOV);
    }
}

/// A switch while one of its ports sends.
pub(super) struct EgressOf<'a> {
    pub(super) switch: &'a mut Switch,
    pub(super) lldp: &'a mut LldpAgents,
    pub(super) logouts: &'a Logouts,
    pub(super) now: Now,
    pub(super) number: PortNumber,
}

impl EgressOf<'_> {
    fn check(&self, queued: &QueuedFrame) -> Result<(), DropReason> {
        let (s_id, d_id) = (queued.frame.s_id, queued.frame.d_id);
        if self.now.saturating_sub(queued.since) > Switch::E_D_TOV {
            return Err(DropReason::Aged);
        }
        self.switch.still_allows(self.number, s_id, d_id)?;
        if self.logouts.concern(queued.since, [s_id, d_id]) {
            return Err(DropReason::NotLoggedIn);
        }
        Ok(())
    }
}

impl Egress for EgressOf<'_> {
    fn may_leave(&mut self, queued: &QueuedFrame) -> bool {
        let checked = self.check(queued);
        if let Err(reason) = checked {
            self.switch.count_undelivered(reason, &queued.frame);
        }
        checked.is_ok()
    }

    fn say(&mut self, out: &mut SwitchPort) {
        self.lldp.transmit(self.number.0.into(), out);
        self.switch.transmit(self.number, out);
    }
}
