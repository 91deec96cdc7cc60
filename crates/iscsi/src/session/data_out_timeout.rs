//! The end of an initiator that is alive, but does not send what it owes: data that was asked for
//! or announced, or the request whose CmdSN is missing.
//!
//! A write that waits for its data holds the blocks that it goes to, and COMPARE AND WRITE, FORMAT
//! UNIT or a fence of another initiator wait for it. Pings answered in time say nothing of that.

use scsi::medium::{Lease, Now};

use super::Session;
use super::task::SessionTask;
use crate::datamover::Datamover;

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Ends the session when data is owed for long and next to nothing moved between two looks:
    /// neither came data, nor left any.
    pub(super) fn check_owed(&mut self) {
        let unsolicited = self.tasks.iter().filter_map(|(_, task)| announced(task));
        let oldest = unsolicited.chain(self.connection.mover.oldest_get()).min();
        self.owed.moved(self.connection.mover.take_moved());
        let wait = self.config.limits.nop_timeout;
        if self.owed.is_slow(self.now, wait, oldest) {
            self.violated("requested data did not arrive", "--nop-timeout");
        }
    }

    /// A request waits for the one before it. Over one connection that one cannot come late: it was
    /// rejected, or never sent. The initiator may plug the gap (RFC 7143 §11.6.1), but not take for
    /// ever, as what came early is held meanwhile.
    pub(super) fn watch_gap(&mut self) {
        if !self.has_gap() {
            self.gap = None;
        } else if self.gap.is_none() {
            let deadline = self.now.saturating_add(self.config.limits.nop_timeout);
            self.gap = Some((self.window.exp_cmd_sn(), deadline));
        }
    }

    pub(super) fn check_gap(&mut self) {
        let expected = self.window.exp_cmd_sn();
        match self.gap {
            Some((missing, _)) if missing != expected => {
                self.gap = None;
                self.watch_gap();
            }
            Some((_, deadline)) if deadline <= self.now && self.has_gap() => {
                self.violated("a missing CmdSN", "RFC 7143 §4.2.2.1");
            }
            Some((_, deadline)) if deadline <= self.now => self.gap = None,
            _ => {}
        }
    }

    /// Whether requests wait for one that has not come, and not for a task management function.
    fn has_gap(&self) -> bool {
        !self.deferred.is_empty() && !self.is_deferred(self.window.exp_cmd_sn())
    }

    /// How many bytes may be held before the device server takes them. Behind a gap it is little:
    /// that is all that the initiators of many sessions can make us hold by leaving gaps.
    pub(super) fn may_hold(&self) -> usize {
        let limit = self.config.limits.held_bytes as usize;
        if self.has_gap() {
            limit.min(HELD_BEHIND_GAP)
        } else {
            limit
        }
    }
}

/// Since when data that was announced with a command is owed.
fn announced<L>(task: &SessionTask<L>) -> Option<Now> {
    task.unsolicited.open.then_some(task.unsolicited.since)
}

/// Enough for the data of a few small writes.
const HELD_BEHIND_GAP: usize = 16 << 10;
