//! Task management (RFC 7143 §11.5, §11.6; RFC 7144 §6).

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

use super::error::SessionEnd;
use super::mover::InitiatorMover;
use super::tasks::{InitiatorTaskSlot, kind};
use super::{Fate, Initiator, InitiatorEvent, IscsiCause, IscsiRefusal, IscsiWhy, Tmf};
use crate::wire::bhs::{Bhs, Itt};
use crate::wire::serial::{CmdSn, DataSn, StatSn};
use crate::wire::task_management::{TaskRequest, TaskResponse, function, response};
use scsi::violation::Violation;

/// A function that was not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFunction {
    pub(super) itt: Itt,
    /// The caller's name for it; `None`: a rung of the ladder for commands that are late.
    pub(super) user: Option<u64>,
    pub(super) code: u8,
    lun: Lun,
    /// The task that it names.
    referenced: Itt,
    /// Commands before this one are covered; `None` before it has left.
    cmd_sn: Option<CmdSn>,
    deadline: Now,
}

impl PendingFunction {
    /// When it has to be answered; a rung has the ladder's deadline instead.
    pub(super) fn deadline(&self) -> Option<Now> {
        self.user.map(|_| self.deadline)
    }

    /// What the caller is told when the session ends.
    pub(super) fn unanswered<L>(self) -> Option<InitiatorEvent<L>> {
        self.user.map(|id| InitiatorEvent::Managed {
            id,
            response: None,
            information: [0; 3],
        })
    }

    fn answered<L>(self, response: u8, information: [u8; 3]) -> Option<InitiatorEvent<L>> {
        self.user.map(|id| InitiatorEvent::Managed {
            id,
            response: Some(response),
            information,
        })
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Asks for a task management function; `id` is the caller's name for it, and `lun` is passed
    /// over where the function names a command. A command that was not sent is taken back instead
    /// of aborted, and never reaches the target.
    ///
    /// # Errors
    /// Nothing is sent.
    pub fn manage(
        &mut self,
        now: Now,
        id: u64,
        lun: Lun,
        function: Tmf,
    ) -> Result<(), IscsiRefusal> {
        self.now = now;
        if let Some(why) = self.refusal() {
            return Err(why);
        }
        if self.config.is_discovery() {
            return Err(IscsiRefusal::Discovery);
        }
        let code = code(function);
        if code >= function::QUERY_TASK && self.keys.protocol_level < 2 {
            return Err(IscsiRefusal::Level);
        }
        let users = self.functions.iter().filter(|other| other.user.is_some());
        if users.count() >= MAX_FUNCTIONS {
            return Err(IscsiRefusal::Full);
        }
        let (Tmf::AbortTask(named) | Tmf::QueryTask(named)) = function else {
            self.ask(Some(id), code, lun, None);
            return Ok(());
        };
        let found = self.tasks.iter().find(|(_, task)| task.id == named);
        let (slot, task) = found.ok_or(IscsiRefusal::NoCommand)?;
        if task.sent.is_some() {
            let lun = task.lun;
            self.ask(Some(id), code, lun, Some(slot));
            return Ok(());
        }
        if code == function::ABORT_TASK {
            self.fail(
                slot,
                Fate::NeverSent,
                IscsiWhy::Own(IscsiCause::Function(code)),
            );
        }
        self.events.push_back(InitiatorEvent::Managed {
            id,
            response: Some(response::COMPLETE),
            information: [0; 3],
        });
        Ok(())
    }

    /// Queues a function, about a task or a logical unit.
    pub(super) fn ask(
        &mut self,
        user: Option<u64>,
        code: u8,
        lun: Lun,
        about: Option<InitiatorTaskSlot>,
    ) -> Itt {
        let itt = self.function_tag();
        let task = about.and_then(|slot| self.tasks.at(slot));
        let (referenced, ref_cmd_sn) = match task {
            Some(task) => (task.itt, task.sent.unwrap_or_default()),
            None => (Itt::NONE, CmdSn(0)),
        };
        let request = TaskRequest {
            immediate: true,
            function: code,
            lun: if addresses_unit(code) {
                lun
            } else {
                Lun([0; 8])
            },
            itt,
            referenced,
            cmd_sn: CmdSn(0),
            exp_stat_sn: StatSn(0),
            ref_cmd_sn,
            exp_data_sn: DataSn(0),
        };
        self.request(request.encode());
        self.functions.push(PendingFunction {
            itt,
            user,
            code,
            lun,
            referenced,
            cmd_sn: None,
            deadline: self.now.saturating_add(self.config.times.reset),
        });
        itt
    }

    /// A tag that no function has which is not answered yet, however long ago that was asked for.
    fn function_tag(&mut self) -> Itt {
        loop {
            let itt = self.tasks.tag(kind::FUNCTION);
            if self.functions.iter().all(|other| other.itt != itt) {
                return itt;
            }
        }
    }

    pub(super) fn function_sent(&mut self, itt: Itt, cmd_sn: CmdSn) {
        let sent = self.functions.iter_mut().find(|known| known.itt == itt);
        if let Some(function) = sent {
            function.cmd_sn = Some(cmd_sn);
        }
    }

    pub(super) fn task_response(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let pdu = TaskResponse::decode(bhs);
        self.numbers.status(pdu.stamps)?;
        self.function_answered(pdu.itt, pdu.response, pdu.information)
    }

    /// A function was answered, or rejected.
    pub(super) fn function_answered(
        &mut self,
        itt: Itt,
        response: u8,
        information: [u8; 3],
    ) -> Result<(), Violation> {
        let sent = |known: &PendingFunction| known.itt == itt && known.cmd_sn.is_some();
        let at = self.functions.iter().position(sent).ok_or(NO_FUNCTION)?;
        let function = self.functions.swap_remove(at);
        if ends_tasks(function.code, response) {
            self.covered(&function);
        }
        self.events.extend(function.answered(response, information));
        if function.user.is_none() {
            self.rung_answered(itt, response);
        }
        Ok(())
    }

    /// Ends the commands that a function covered. The target has sent the statuses of those that
    /// ended by themselves before this response (RFC 7143 §4.2.3.3), so none comes any more.
    fn covered(&mut self, function: &PendingFunction) {
        let Some(limit) = function.cmd_sn else { return };
        let (now, of_ladder) = (self.now, function.user.is_none());
        self.fail_all(|task| {
            let before = task.sent.is_some_and(|sent| sent.is_before(limit));
            let covered = match function.code {
                function::ABORT_TASK => task.itt == function.referenced,
                function::TARGET_WARM_RESET
                | function::TARGET_COLD_RESET
                | function::I_T_NEXUS_RESET => true,
                _ => task.lun == function.lun,
            };
            let why = if of_ladder && task.deadline <= now {
                IscsiWhy::Late
            } else {
                IscsiWhy::Own(IscsiCause::Function(function.code))
            };
            (before && covered).then_some((Fate::Aborted, why))
        });
    }

    /// Whether a function is in flight. An abort of the ladder's that a reset has overtaken may
    /// never be answered, and does not count.
    pub(super) fn is_managing(&self) -> bool {
        self.ladder.is_some() || self.functions.iter().any(|known| known.user.is_some())
    }

    /// Whether a reset is in flight. It may also silently end commands that were sent after it
    /// (RFC 7143 §11.5.1), so no command is sent before its response.
    pub(super) fn is_resetting(&self) -> bool {
        let resets = |known: &PendingFunction| {
            matches!(
                known.code,
                function::LOGICAL_UNIT_RESET
                    | function::TARGET_WARM_RESET
                    | function::TARGET_COLD_RESET
                    | function::I_T_NEXUS_RESET
            )
        };
        self.functions.iter().any(resets)
    }

    /// A function of the caller's that is not answered: there is nothing left to try.
    pub(super) fn check_functions(&mut self) {
        let passed = |deadline: Now| deadline <= self.now;
        let late = |known: &PendingFunction| known.deadline().is_some_and(passed);
        if self.functions.iter().any(late) {
            self.end(SessionEnd::Stuck);
        }
    }
}

const fn code(function: Tmf) -> u8 {
    match function {
        Tmf::AbortTask(_) => function::ABORT_TASK,
        Tmf::AbortTaskSet => function::ABORT_TASK_SET,
        Tmf::ClearAca => function::CLEAR_ACA,
        Tmf::ClearTaskSet => function::CLEAR_TASK_SET,
        Tmf::LogicalUnitReset => function::LOGICAL_UNIT_RESET,
        Tmf::TargetWarmReset => function::TARGET_WARM_RESET,
        Tmf::TargetColdReset => function::TARGET_COLD_RESET,
        Tmf::QueryTask(_) => function::QUERY_TASK,
        Tmf::QueryTaskSet => function::QUERY_TASK_SET,
        Tmf::NexusReset => function::I_T_NEXUS_RESET,
        Tmf::QueryAsynchronousEvent => function::QUERY_ASYNCHRONOUS_EVENT,
    }
}

/// Whether the LUN field means something (RFC 7143 §11.5.3).
const fn addresses_unit(code: u8) -> bool {
    !matches!(
        code,
        function::TARGET_WARM_RESET | function::TARGET_COLD_RESET | function::I_T_NEXUS_RESET
    )
}

/// Whether commands are over with such a response. A task that the target does not know has been
/// answered or will never be taken up (RFC 7143 §11.6.1).
const fn ends_tasks(code: u8, answer: u8) -> bool {
    match code {
        function::ABORT_TASK => matches!(answer, response::COMPLETE | response::NO_TASK),
        function::ABORT_TASK_SET
        | function::CLEAR_TASK_SET
        | function::LOGICAL_UNIT_RESET
        | function::TARGET_WARM_RESET
        | function::TARGET_COLD_RESET
        | function::I_T_NEXUS_RESET => answer == response::COMPLETE,
        _ => false,
    }
}

/// Functions of the caller's at once. They are immediate, of which targets take few.
const MAX_FUNCTIONS: usize = 4;

const NO_FUNCTION: Violation = Violation {
    rule: "an unexpected Task Management Function Response",
    clause: "RFC 7143 §11.6",
};
