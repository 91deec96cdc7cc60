//! The watchdog on ExpCmdSN. A target executes commands in the order of their CmdSN, so one that it
//! never counted blocks all later ones (RFC 7143 §4.2.2.1). Pings and task management are
//! immediate: they are answered all the while and show nothing.

use scsi::medium::{Lease, Now};

use super::Initiator;
use super::error::SessionEnd;
use super::mover::InitiatorMover;
use crate::wire::serial::CmdSn;

/// Where ExpCmdSN stood when the watch began, and when it is looked at again.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountWatchdog {
    exp_cmd_sn: CmdSn,
    deadline: Now,
    /// The first deadline has passed, and a ping is in flight.
    is_overdue: bool,
    /// A ping that followed a command through the connection was answered, and the command is not
    /// counted: however slow the connection is, the target has received both.
    is_missing: bool,
}

impl CountWatchdog {
    pub(super) const fn deadline(&self) -> Now {
        self.deadline
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Begins to watch, if a command was sent that the target has not counted.
    pub(super) fn watch_counting(&mut self) {
        if self.watch.is_none() && !self.numbers.has_counted(self.numbers.cmd_sn) {
            self.watch = Some(CountWatchdog {
                exp_cmd_sn: self.numbers.exp_cmd_sn,
                deadline: self.now.saturating_add(self.config.times.patience),
                is_overdue: false,
                is_missing: false,
            });
        }
    }

    /// A ping was answered that left when `next` was the CmdSN of the next command.
    pub(super) fn ping_followed(&mut self, next: CmdSn) {
        let counted = self.numbers.has_counted(next);
        let Some(watch) = self.watch.as_mut().filter(|_| !counted) else {
            return;
        };
        watch.is_missing = true;
        if watch.is_overdue {
            watch.deadline = self.now;
        }
    }

    pub(super) fn check_counting(&mut self) {
        let Some(watch) = self.watch.take_if(|watch| watch.deadline <= self.now) else {
            return;
        };
        if watch.exp_cmd_sn != self.numbers.exp_cmd_sn {
            return self.watch_counting();
        }
        if watch.is_missing {
            return self.end(SessionEnd::CmdSnGap);
        }
        self.ping();
        self.watch = Some(CountWatchdog {
            deadline: self.now.saturating_add(self.config.times.patience),
            is_overdue: true,
            ..watch
        });
    }
}
