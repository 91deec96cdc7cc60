//! Which frames may leave that have waited at their egress.
//!
//! A port that takes nothing for a while has frames in its queue that are of no use to anybody, or
//! that may not pass any more. So each frame is checked again when its turn comes. Those that were
//! handed to the Ethernet port already, up to 64 and what its socket holds, are not.

use fc::fabric::{DropReason, PortNumber, Switch};
use scsi::medium::Now;

use super::backlog::QueuedFrame;
use super::lldp::LldpAgents;
use super::port::{Egress, SwitchPort};

/// A switch while one of its ports sends.
pub(super) struct EgressOf<'a> {
    pub(super) switch: &'a mut Switch,
    pub(super) lldp: &'a mut LldpAgents,
    pub(super) now: Now,
    pub(super) number: PortNumber,
}

impl EgressOf<'_> {
    fn check(&self, queued: &QueuedFrame) -> Result<(), DropReason> {
        let ids = (queued.frame.s_id, queued.frame.d_id);
        if self.now.saturating_sub(queued.since) > Switch::E_D_TOV {
            return Err(DropReason::Aged);
        }
        self.switch.still_allows(self.number, ids, queued.since)
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
