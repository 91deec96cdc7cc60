//! Task management (FCP-4): ABORT TASK by ABTS, QUERY TASK by REC, all others by FCP_CMND.

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

use super::exchanges::{CommandStage, InitiatorExchange, InitiatorSlot, OTHER};
use super::recovery::LinkServiceKind;
use super::transmit::function_header;
use super::{CommandRefusal, FcpCause, FcpInitiator, FcpInitiatorEvent, FcpTmf, FcpWhy};
use crate::remote::RemoteId;
use crate::wire::els::{ExchangeStatus, Reply};
use crate::wire::fcp::{self, Cmnd, ManagementFlags, Rsp, response};
use crate::wire::frame::OxId;

/// A function that was not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFcpFunction {
    pub(super) remote: RemoteId,
    /// The caller's name for it.
    id: u64,
    function: FcpTmf,
    lun: Lun,
    /// Its own exchange, or of ABORT TASK that of the command.
    ox_id: OxId,
    /// Commands with lower numbers are covered.
    number: u32,
    pub(super) deadline: Now,
}

/// Functions of the caller's at once.
const MAX_FUNCTIONS: usize = 16;

impl<L: Lease> FcpInitiator<L> {
    /// Asks for a task management function; `id` is the caller's name for it, and `lun` is passed
    /// over where the function names a command. A command that was not sent is taken back instead
    /// of aborted.
    ///
    /// # Errors
    /// Nothing is sent.
    pub fn manage(
        &mut self,
        now: Now,
        remote: RemoteId,
        id: u64,
        lun: Lun,
        function: FcpTmf,
    ) -> Result<(), CommandRefusal> {
        self.now = now;
        if self.peer(remote).is_none() {
            return Err(CommandRefusal::NotLoggedIn);
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            return Err(CommandRefusal::Full);
        }
        match function {
            FcpTmf::AbortTask(named) => self.abort_task(remote, id, named),
            FcpTmf::QueryTask(named) => self.query_task(remote, id, named),
            _ => self.manage_unit(remote, id, lun, function),
        }
    }

    fn abort_task(&mut self, remote: RemoteId, id: u64, named: u64) -> Result<(), CommandRefusal> {
        let (slot, task) = self.named(remote, named)?;
        let (ox_id, is_ready) = (task.ox_id, task.stage == CommandStage::Ready);
        self.pend(remote, id, FcpTmf::AbortTask(named), Lun([0; 8]), ox_id);
        self.abort(slot, FcpWhy::Own(FcpCause::Function));
        if is_ready {
            self.abort_done(ox_id);
        }
        Ok(())
    }

    fn query_task(&mut self, remote: RemoteId, id: u64, named: u64) -> Result<(), CommandRefusal> {
        let (_, task) = self.named(remote, named)?;
        let (names, number) = ((task.ox_id, task.rx_id), task.number);
        if self.ask_rec(remote, names, LinkServiceKind::Query(id), number) {
            Ok(())
        } else {
            Err(CommandRefusal::Full)
        }
    }

    /// The command that the caller calls so.
    fn named(
        &self,
        remote: RemoteId,
        id: u64,
    ) -> Result<(InitiatorSlot, &InitiatorExchange<L>), CommandRefusal> {
        let mut tasks = self.tasks.iter();
        let found = tasks.find(|(_, task)| task.remote == remote && task.id == id);
        found.ok_or(CommandRefusal::NoCommand)
    }

    /// The answer to a QUERY TASK.
    pub(super) fn queried(&mut self, remote: RemoteId, id: u64, reply: &Reply) {
        let is_there = match reply {
            Reply::Rec(at) => !at.status.has(ExchangeStatus::COMPLETE),
            _ => false,
        };
        let code = if is_there {
            response::SUCCEEDED
        } else {
            response::COMPLETE
        };
        self.told(remote, id, Some(code));
    }

    /// There was no answer.
    pub(super) fn unanswered(&mut self, remote: RemoteId, id: u64) {
        self.told(remote, id, None);
    }

    fn told(&mut self, remote: RemoteId, id: u64, response: Option<u8>) {
        self.informed(remote, id, response, [0; 3]);
    }

    fn informed(&mut self, remote: RemoteId, id: u64, response: Option<u8>, information: [u8; 3]) {
        self.events.push_back(FcpInitiatorEvent::Managed {
            remote,
            id,
            response,
            information,
        });
    }

    /// A function on many commands, which is an exchange of its own.
    fn manage_unit(
        &mut self,
        remote: RemoteId,
        id: u64,
        lun: Lun,
        function: FcpTmf,
    ) -> Result<(), CommandRefusal> {
        let peer = *self.peer(remote).ok_or(CommandRefusal::NotLoggedIn)?;
        let ox_id = self.tasks.ids.assign(OTHER).ok_or(CommandRefusal::Full)?;
        let number = self.pend(remote, id, function, lun, OxId(ox_id));
        let cmnd = Cmnd {
            lun,
            crn: 0,
            priority: 0,
            attribute: fcp::SIMPLE,
            management: flags(function),
            read: false,
            write: false,
            cdb: &[0; 16],
            data_len: 0,
            read_len: None,
        };
        let mut payload = vec![0; cmnd.len()];
        cmnd.put(&mut payload);
        self.queue_control(remote, function_header(&peer, OxId(ox_id), number), payload);
        Ok(())
    }

    fn pend(&mut self, remote: RemoteId, id: u64, function: FcpTmf, lun: Lun, ox_id: OxId) -> u32 {
        let number = self.tasks.next_number();
        self.functions.push(PendingFcpFunction {
            remote,
            id,
            function,
            lun,
            ox_id,
            number,
            deadline: self.now.saturating_add(self.config.function),
        });
        number
    }

    /// A command was aborted, which the user may have asked for.
    pub(super) fn abort_done(&mut self, ox_id: OxId) {
        let is_it = |known: &PendingFcpFunction| {
            known.ox_id == ox_id && matches!(known.function, FcpTmf::AbortTask(_))
        };
        while let Some(at) = self.functions.iter().position(is_it) {
            let known = self.functions.swap_remove(at);
            self.told(known.remote, known.id, Some(response::COMPLETE));
        }
    }

    /// An FCP_RSP that is no command's.
    pub(super) fn function_answered(&mut self, remote: RemoteId, ox_id: OxId, rsp: &Rsp<'_>) {
        let is_it = |known: &PendingFcpFunction| {
            let is_abort = matches!(known.function, FcpTmf::AbortTask(_));
            known.remote == remote && known.ox_id == ox_id && !is_abort
        };
        let Some(at) = self.functions.iter().position(is_it) else {
            return;
        };
        let known = self.functions.swap_remove(at);
        self.tasks.ids.release(ox_id.0);
        let code = rsp.response.unwrap_or(response::FAILED);
        if code == response::COMPLETE && known.function.ends_commands() {
            self.covered(&known);
        }
        self.informed(remote, known.id, Some(code), rsp.information);
    }

    /// Ends the commands that a function covered, each by ABTS: one may have come to the target
    /// after the function that was sent after it, and be in flight there still.
    fn covered(&mut self, known: &PendingFcpFunction) {
        let of_all = known.function == FcpTmf::TargetReset;
        let covered = self.tasks.iter().filter(|(_, task)| {
            // Numbers begin anew after the last one.
            let is_older = known.number.wrapping_sub(task.number) < u32::MAX / 2;
            let is_covered = task.stage != CommandStage::Ready && is_older;
            task.remote == known.remote && is_covered && (of_all || task.lun == known.lun)
        });
        let covered: Vec<_> = covered.map(|(slot, _)| slot).collect();
        for slot in covered {
            self.abort(slot, FcpWhy::Own(FcpCause::Function));
        }
    }

    /// A login is over, and with it what was asked.
    pub(super) fn end_functions(&mut self, remote: RemoteId) {
        self.give_up(|known| known.remote == remote);
    }

    pub(super) fn check_functions(&mut self) {
        let now = self.now;
        self.give_up(|known| known.deadline <= now);
    }

    fn give_up(&mut self, which: impl Fn(&PendingFcpFunction) -> bool) {
        while let Some(at) = self.functions.iter().position(&which) {
            let known = self.functions.swap_remove(at);
            if !matches!(known.function, FcpTmf::AbortTask(_)) {
                self.tasks.ids.release(known.ox_id.0);
            }
            self.told(known.remote, known.id, None);
        }
    }
}

impl FcpTmf {
    /// Whether commands end by it.
    const fn ends_commands(self) -> bool {
        !matches!(
            self,
            Self::ClearAca | Self::QueryTask(_) | Self::QueryTaskSet | Self::QueryAsynchronousEvent
        )
    }
}

const fn flags(function: FcpTmf) -> ManagementFlags {
    match function {
        FcpTmf::AbortTaskSet => ManagementFlags::ABORT_TASK_SET,
        FcpTmf::ClearTaskSet => ManagementFlags::CLEAR_TASK_SET,
        FcpTmf::LogicalUnitReset => ManagementFlags::LOGICAL_UNIT_RESET,
        FcpTmf::TargetReset => ManagementFlags::TARGET_RESET,
        FcpTmf::ClearAca => ManagementFlags::CLEAR_ACA,
        FcpTmf::QueryTaskSet => ManagementFlags::QUERY_TASK_SET,
        FcpTmf::QueryAsynchronousEvent => ManagementFlags::QUERY_ASYNCHRONOUS_EVENT,
        FcpTmf::AbortTask(_) | FcpTmf::QueryTask(_) => ManagementFlags::NONE,
    }
}
