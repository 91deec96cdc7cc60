//! The end of an initiator that is alive, but sends no data that it owes.
//!
//! A write that waits for its data holds the blocks that it goes to, and COMPARE AND WRITE, FORMAT
//! UNIT or a fence of another initiator wait for it. Pings answered in time say nothing of that.

use scsi::medium::Lease;

use super::Session;
use super::task::Task;

impl<L: Lease> Session<L> {
    /// Ends the session when data is owed and nothing moved between two looks: neither came data,
    /// nor left data or an R2T.
    pub(super) fn check_owed(&mut self) {
        let owes = |task: &Task<L>| task.unsolicited.open || !task.sequences.is_empty();
        let any = self.tasks.iter().any(owes);
        let wait = self.config.limits.nop_timeout;
        if self.owed.is_stuck(self.now, wait, any) {
            self.violated("data that was asked for does not come", "--nop-timeout");
        }
    }
}
