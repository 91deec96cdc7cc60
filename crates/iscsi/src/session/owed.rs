//! The end of an initiator that is alive, but sends no data that it owes.
//!
//! A write that waits for its data holds the blocks that it goes to, and COMPARE AND WRITE, FORMAT
//! UNIT or a fence of another initiator wait for it. Pings answered in time say nothing of that.

use scsi::medium::{Lease, Now};

use super::Session;
use super::task::Task;

/// Whether data that is owed comes.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// When that is looked at next; `None` while nothing is owed.
    look: Option<Now>,
    /// Something moved since the last look.
    moved: bool,
}

impl Owed {
    pub(super) const fn deadline(&self) -> Option<Now> {
        self.look
    }

    /// Data was announced or is asked for. The first look never ends anything, as `now` may be
    /// long ago: a write can have waited for others before there was memory for its data.
    pub(super) fn await_data(&mut self, now: Now, wait: Now) {
        if self.look.is_none() {
            self.look = Some(now.saturating_add(wait));
            self.moved = true;
        }
    }

    /// Data came, or data or an R2T has left: the initiator, however slow, is at work.
    pub(super) const fn moved(&mut self) {
        self.moved = true;
    }
}

impl<L: Lease> Session<L> {
    /// Ends the session when nothing at all moved between two looks.
    pub(super) fn check_owed(&mut self) {
        if self.owed.look.is_none_or(|look| self.now < look) {
            return;
        }
        let owes = |task: &Task<L>| task.unsolicited.open || !task.sequences.is_empty();
        if !self.tasks.iter().any(owes) {
            self.owed.look = None;
        } else if std::mem::take(&mut self.owed.moved) {
            let wait = self.config.limits.nop_timeout;
            self.owed.look = Some(self.now.saturating_add(wait));
        } else {
            self.violated("data that was asked for does not come", "");
        }
    }
}
