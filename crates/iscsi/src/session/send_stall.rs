//! The end of an initiator that is alive, but does not take what it is sent.
//!
//! What waits for it is in memory that others need too, and may be memory of a volume that others
//! have to wait for. What it sends by itself, pings or answers to none, says nothing of that.

use scsi::medium::Lease;

use super::Session;
use super::stall_timer::StallTimer;

/// Whether what is sent leaves.
#[derive(Debug, Default)]
pub(super) struct SendStall {
    pub(super) progress: StallTimer,
    /// Something is on its way.
    in_flight: bool,
}

impl<L: Lease> Session<L> {
    /// All that was sent before has left; whether there was more to be sent.
    pub(super) fn left(&mut self, more: bool) {
        self.untaken.progress.moved(1);
        self.untaken.in_flight = more;
        if more {
            let wait = self.config.limits.nop_timeout;
            self.untaken.progress.begin(self.now, wait);
        }
    }

    /// Ends the session when what was in flight at one look is so at the next.
    pub(super) fn check_untaken(&mut self) {
        let wait = self.config.limits.nop_timeout;
        let SendStall {
            progress,
            in_flight,
        } = &mut self.untaken;
        if progress.is_stuck(self.now, wait, *in_flight) {
            self.violated("the peer does not read its data", "--nop-timeout");
        }
    }
}
