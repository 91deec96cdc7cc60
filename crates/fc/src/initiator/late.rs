//! Commands that are silent, and commands that are late.

use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::exchanges::{CommandStage, InitiatorSlot};
use super::{FcpInitiator, FcpWhy};

/// Commands are looked at for silence no more often, as each look takes all of them: a thousand
/// that a slow disk answers one by one would otherwise have a thousand looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What is to be done about a command.
enum CommandDue {
    Nothing,
    Inquire,
    Abort,
    AbortAgain,
}

impl<L: Lease> FcpInitiator<L> {
    /// Commands are to be looked at by then.
    pub(super) fn look_by(&mut self, deadline: Now) {
        self.look = Some(self.look.map_or(deadline, |look| look.min(deadline)));
    }

    pub(super) fn check_silent(&mut self) {
        if self.look.is_none_or(|look| self.now < look) {
            return;
        }
        self.look = None;
        let next = self.now.saturating_add(BETWEEN_LOOKS);
        for slot in self.tasks.places() {
            match self.due(slot) {
                CommandDue::Nothing => {}
                CommandDue::Inquire => self.inquire(slot),
                CommandDue::Abort => self.abort(slot, FcpWhy::Late),
                CommandDue::AbortAgain => self.abort_again(slot),
            }
            if let Some(limit) = self.limit(slot, next) {
                self.look_by(limit);
            }
        }
    }

    fn due(&mut self, slot: InitiatorSlot) -> CommandDue {
        let now = self.now;
        let is_silent = self.silence_until(slot).is_some_and(|until| until <= now);
        let Some(task) = self.tasks.at(slot) else {
            return CommandDue::Nothing;
        };
        match task.stage {
            CommandStage::Aborting { .. } if is_silent => CommandDue::AbortAgain,
            CommandStage::Aborting { .. } => CommandDue::Nothing,
            _ if task.deadline <= now => CommandDue::Abort,
            CommandStage::Open if is_silent => CommandDue::Inquire,
            _ => CommandDue::Nothing,
        }
    }

    /// When to look at a command again, for silence not before `next`; `None` if it will not be
    /// silent unnoticed.
    fn limit(&mut self, slot: InitiatorSlot, next: Now) -> Option<Now> {
        let until = self.silence_until(slot).map(|until| until.max(next));
        let task = self.tasks.at(slot)?;
        match task.stage {
            CommandStage::Aborting { .. } => until,
            _ => Some(until.map_or(task.deadline, |until| until.min(task.deadline))),
        }
    }

    /// Until when a command may be silent.
    pub(super) fn silence_until(&mut self, slot: InitiatorSlot) -> Option<Now> {
        let task = self.tasks.at(slot)?;
        let (remote, touched, stage) = (task.remote, task.touched, task.stage);
        let asked = match stage {
            CommandStage::Aborting { tries, .. } => tries.saturating_sub(1),
            CommandStage::Ready | CommandStage::Open => task.inquiries,
        };
        let is_waiting = task.is_asking || stage == CommandStage::Ready;
        let nexus = self.nexus(remote)?;
        let is_aborting = matches!(stage, CommandStage::Aborting { .. });
        if is_waiting && !is_aborting || nexus.is_stuck || nexus.knows_no_rec && !is_aborting {
            return None;
        }
        Some(touched.saturating_add(nexus.patience.after(asked)))
    }
}
