//! Commands that are silent, and commands that are late.

use scsi::medium::{Lease, Now};

use super::tasks::{Slot, Stage};
use super::{Initiator, Why};

/// What is to be done about a command.
enum Due {
    Nothing,
    Inquire,
    Abort,
    AbortAgain,
}

impl<L: Lease> Initiator<L> {
    /// Commands are to be looked at by then.
    pub(super) fn look_by(&mut self, deadline: Now) {
        self.look = Some(self.look.map_or(deadline, |look| look.min(deadline)));
    }

    pub(super) fn check_silent(&mut self) {
        if self.look.is_none_or(|look| self.now < look) {
            return;
        }
        self.look = None;
        let slots: Vec<Slot> = self.tasks.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            match self.due(slot) {
                Due::Nothing => {}
                Due::Inquire => self.inquire(slot),
                Due::Abort => self.abort(slot, Why::Late),
                Due::AbortAgain => self.abort_again(slot),
            }
            if let Some(limit) = self.limit(slot) {
                self.look_by(limit);
            }
        }
    }

    fn due(&mut self, slot: Slot) -> Due {
        let now = self.now;
        let is_silent = self.silence_until(slot).is_some_and(|until| until <= now);
        let Some(task) = self.tasks.at(slot) else {
            return Due::Nothing;
        };
        match task.stage {
            Stage::Aborting { .. } if is_silent => Due::AbortAgain,
            Stage::Aborting { .. } => Due::Nothing,
            _ if task.deadline <= now => Due::Abort,
            Stage::Open if is_silent => Due::Inquire,
            _ => Due::Nothing,
        }
    }

    /// When to look at a command again; `None` if it will not be silent unnoticed.
    fn limit(&mut self, slot: Slot) -> Option<Now> {
        let until = self.silence_until(slot);
        let task = self.tasks.at(slot)?;
        match task.stage {
            Stage::Aborting { .. } => until,
            _ => Some(until.map_or(task.deadline, |until| until.min(task.deadline))),
        }
    }

    /// Until when a command may be silent.
    fn silence_until(&mut self, slot: Slot) -> Option<Now> {
        let task = self.tasks.at(slot)?;
        let (remote, touched, stage) = (task.remote, task.touched, task.stage);
        let is_waiting = task.is_asking || stage == Stage::Ready;
        let nexus = self.nexus(remote)?;
        let is_aborting = matches!(stage, Stage::Aborting { .. });
        if is_waiting && !is_aborting || nexus.is_stuck || nexus.knows_no_rec && !is_aborting {
            return None;
        }
        Some(touched.saturating_add(nexus.peer.rec_tov()))
    }
}
