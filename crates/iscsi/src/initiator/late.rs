//! Commands that are late, and the ladder that is climbed for them: ABORT TASK, then LOGICAL UNIT
//! RESET, then the end of the connection, each given its time. One command is dealt with after the
//! other, as targets take few immediate requests, and what holds one back mostly holds back all.

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

use super::error::SessionEnd;
use super::mover::InitiatorMover;
use super::{Fate, Initiator, IscsiWhy};
use crate::wire::bhs::Itt;
use crate::wire::task_management::{function, response};

/// Where the ladder stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    rung: EscalationStep,
    /// The function of this rung: answers to others, which were given up, come late or never.
    asked: Itt,
    /// The command that it is climbed for.
    itt: Itt,
    lun: Lun,
    /// When it was begun to climb.
    since: Now,
    deadline: Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscalationStep {
    Abort,
    /// As `Abort`, but the command has ended by itself: the answer is still waited for.
    Ended,
    Reset,
}

impl Ladder {
    pub(super) const fn deadline(&self) -> Now {
        self.deadline
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Commands are to be looked at by then.
    pub(super) fn look_by(&mut self, deadline: Now) {
        self.look = Some(self.look.map_or(deadline, |look| look.min(deadline)));
    }

    pub(super) fn check_late(&mut self) {
        self.climb();
        if !self.is_open() || self.look.is_none_or(|look| self.now < look) {
            return;
        }
        self.drop_unsent();
        if self.ladder.is_none() {
            self.abort_first();
        }
        if self.functions.len() > MAX_UNANSWERED {
            return self.end(SessionEnd::Stuck);
        }
        // Those that are late wait for the ladder, which looks again when it is done.
        let waiting = self.tasks.iter().map(|(_, task)| task.deadline);
        self.look = waiting.filter(|deadline| *deadline > self.now).min();
        self.retry_stalled();
    }

    /// Commands whose turn did not come.
    fn drop_unsent(&mut self) {
        let now = self.now;
        self.fail_all(|task| {
            let late = task.sent.is_none() && task.deadline <= now;
            late.then_some((Fate::NeverSent, IscsiWhy::Late))
        });
    }

    /// The first rung, for the command that is late longest.
    fn abort_first(&mut self) {
        let late = self
            .tasks
            .iter()
            .filter(|(_, task)| task.deadline <= self.now);
        let first = late.min_by_key(|(_, task)| task.deadline);
        let Some((slot, task)) = first else { return };
        let (itt, lun) = (task.itt, task.lun);
        self.ladder = Some(Ladder {
            rung: EscalationStep::Abort,
            asked: self.ask(None, function::ABORT_TASK, lun, Some(slot)),
            itt,
            lun,
            since: self.now,
            deadline: self.now.saturating_add(self.config.times.abort),
        });
    }

    /// The next rung, when the answer to the last does not come.
    fn climb(&mut self) {
        let Some(ladder) = self.ladder.filter(|ladder| ladder.deadline <= self.now) else {
            return;
        };
        match ladder.rung {
            EscalationStep::Abort if self.is_silent_since(ladder.since) => {
                self.wait_for_life(ladder);
            }
            EscalationStep::Abort if self.tasks.sent(ladder.itt).is_some() => self.reset(ladder),
            // A reset would cost commands that are well, for one that has ended.
            EscalationStep::Abort => {
                self.ladder = Some(Ladder {
                    rung: EscalationStep::Ended,
                    deadline: self.now.saturating_add(self.config.times.reset),
                    ..ladder
                });
            }
            EscalationStep::Ended | EscalationStep::Reset => self.end(SessionEnd::Stuck),
        }
    }

    /// A reset would hit all users of the unit, and mend nothing where it is the target that
    /// sleeps: first it has to show that it lives, or the session ends.
    fn wait_for_life(&mut self, ladder: Ladder) {
        let deadline = self.ask_for_life();
        self.ladder = Some(Ladder { deadline, ..ladder });
    }

    fn reset(&mut self, ladder: Ladder) {
        self.ladder = Some(Ladder {
            rung: EscalationStep::Reset,
            asked: self.ask(None, function::LOGICAL_UNIT_RESET, ladder.lun, None),
            deadline: self.now.saturating_add(self.config.times.reset),
            ..ladder
        });
    }

    /// A function of our own was answered; commands that it ended have been told.
    pub(super) fn rung_answered(&mut self, function: Itt, answer: u8) {
        let Some(ladder) = self.ladder.filter(|ladder| ladder.asked == function) else {
            return;
        };
        let stays = self.tasks.sent(ladder.itt).is_some();
        match ladder.rung {
            EscalationStep::Abort if stays => self.reset(ladder),
            EscalationStep::Reset if stays || answer != response::COMPLETE => {
                self.end(SessionEnd::Stuck);
            }
            _ => {
                self.ladder = None;
                self.look_by(self.now);
            }
        }
    }
}

/// Functions without an answer, of a target that answers resets but no aborts.
const MAX_UNANSWERED: usize = 32;
