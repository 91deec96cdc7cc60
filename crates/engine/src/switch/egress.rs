//! Which frames may leave that have waited at their egress.
//!
//! A port that takes nothing for a while has frames in its queue that are older than E_D_TOV, or
//! that may not pass any more. So each frame is checked again when its turn comes. Those that were
//! handed to the Ethernet port already, up to 64 of each core and what its sockets hold, are not;
//! those 64 are given up after E_D_TOV.

use fc::fabric::{DropReason, PortNumber, Switch};
use scsi::medium::Now;

use super::backlog::QueuedFrame;
use super::lldp::LldpAgents;
use super::peer::CorePeer;
use super::port::{Egress, SwitchPort};

/// A core while one of its ports sends.
pub(super) struct EgressOf<'a> {
    pub(super) side: EgressSide<'a>,
    pub(super) now: Now,
    pub(super) number: PortNumber,
}

/// What decides and counts, and has something to say.
pub(super) enum EgressSide<'a> {
    /// The machine, on the only core.
    Machine(&'a mut Switch, &'a mut LldpAgents),
    /// A core of several.
    Peer(&'a mut CorePeer),
}

impl EgressOf<'_> {
    fn check(&self, queued: &QueuedFrame) -> Result<(), DropReason> {
        let ids = (queued.frame.s_id, queued.frame.d_id);
        if self.now.saturating_sub(queued.since) > Switch::E_D_TOV {
            return Err(DropReason::Aged);
        }
        match &self.side {
            EgressSide::Machine(switch, _) => switch.still_allows(self.number, ids, queued.since),
            EgressSide::Peer(peer) => peer.table.still_allows(self.number, ids, queued.since),
        }
    }
}

impl Egress for EgressOf<'_> {
    fn now(&self) -> Now {
        self.now
    }

    fn may_leave(&mut self, queued: &QueuedFrame) -> bool {
        let checked = self.check(queued);
        if let Err(reason) = checked {
            match &mut self.side {
                EgressSide::Machine(switch, _) => switch.count_undelivered(reason, &queued.frame),
                EgressSide::Peer(peer) => peer.count_undelivered(reason, &queued.frame),
            }
        }
        checked.is_ok()
    }

    fn say(&mut self, out: &mut SwitchPort) {
        match &mut self.side {
            EgressSide::Machine(switch, lldp) => {
                lldp.transmit(self.number.0.into(), out);
                switch.transmit(self.number, out);
            }
            EgressSide::Peer(peer) => peer.send_control(self.number.0.into(), out),
        }
    }
}
