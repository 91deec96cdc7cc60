//! Task management (RFC 7143 §4.2.3, §11.5, §11.6; RFC 7144 §6).
//!
//! A function on one task is carried out at once. One on a task set first waits for the commands
//! before it and, unless FastAbort was agreed upon, for the data that was asked for from the tasks
//! that it affects (§4.2.3.3); commands after it are held back until the device server has been
//! told. On a single connection the order of the queue is the response fence (§4.2.2.3.3 a).

use std::time::Duration;

use scsi::medium::{Lease, Now};
use scsi::task::{Function, FunctionResult};
use scsi::wire::lun::Lun;

use super::command::{Deferred, DeferredRequest};
use super::task::{SessionTask, TaskStage};
use super::window::CmdSnPlace;
use super::{Session, SessionEvent};
use crate::datamover::{Datamover, TaskSlot};
use crate::parameters::TaskReporting;
use crate::wire::bhs::{Bhs, Itt, Stamps, Ttt};
use crate::wire::control::{AsyncMessage, NopIn, event, reason};
use crate::wire::serial::CmdSn;
use crate::wire::task_management::{TaskRequest, TaskResponse, function, response};

/// Names an [`SessionEvent::Manage`] by which the session itself ends a command.
pub(super) const OWN: u32 = u32::MAX;

/// Names the [`SessionEvent::Manage`] of a logout.
pub(super) const LOGOUT: u32 = u32::MAX - 1;

/// How long a function on a task set waits for commands and data that an initiator owes. Initiators
/// that abort fast without having agreed upon it (open-iscsi does so by default) never send them,
/// and give the function up after 15 s or more.
const PATIENCE: Duration = Duration::from_secs(2);

/// Task management functions that may be in progress.
const MAX_FUNCTIONS: usize = 16;

/// The functions in progress.
#[derive(Debug, Default)]
pub(super) struct Functions {
    active: Vec<Option<ActiveTmf>>,
}

#[derive(Clone, Copy, Debug)]
struct ActiveTmf {
    itt: Itt,
    code: u8,
    function: Function,
    lun: Lun,
    cmd_sn: CmdSn,
    immediate: bool,
    /// The device server has been told.
    told: bool,
    /// When it waits no longer.
    deadline: Now,
}

impl Functions {
    fn len(&self) -> usize {
        self.active.iter().flatten().count()
    }

    pub(super) fn has(&self, itt: Itt) -> bool {
        self.active.iter().flatten().any(|active| active.itt == itt)
    }

    /// Whether a command has to wait until a function before it has been passed on.
    pub(super) fn holds_back(&self, number: CmdSn) -> bool {
        let waiting = |active: &ActiveTmf| !active.told && !number.is_before(active.until());
        self.active.iter().flatten().any(waiting)
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        let waiting = self.active.iter().flatten().filter(|active| !active.told);
        waiting.map(|active| active.deadline).min()
    }

    fn add(&mut self, active: ActiveTmf) -> u32 {
        let free = self.active.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        self.active[at] = Some(active);
        at as u32
    }

    fn take(&mut self, id: u32) -> Option<ActiveTmf> {
        self.active.get_mut(id as usize)?.take()
    }
}

impl ActiveTmf {
    /// The first CmdSN after it.
    const fn until(&self) -> CmdSn {
        if self.immediate {
            self.cmd_sn
        } else {
            self.cmd_sn.next()
        }
    }

    /// Whether it is one of those that abort several tasks.
    const fn is_on_set(&self) -> bool {
        matches!(
            self.code,
            function::ABORT_TASK_SET
                | function::CLEAR_TASK_SET
                | function::LOGICAL_UNIT_RESET
                | function::TARGET_WARM_RESET
                | function::TARGET_COLD_RESET
                | function::I_T_NEXUS_RESET
        )
    }

    const fn is_on_target(&self) -> bool {
        matches!(
            self.code,
            function::TARGET_WARM_RESET | function::TARGET_COLD_RESET | function::I_T_NEXUS_RESET
        )
    }

    /// Whether a task is one of those that it aborts. An immediate command has the CmdSN of the
    /// next numbered one, and came before the function all the same.
    fn affects<L>(&self, task: &SessionTask<L>) -> bool {
        let earlier = task.cmd_sn.is_before(self.cmd_sn) || task.immediate;
        earlier && (self.is_on_target() || task.lun == self.lun)
    }
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// A Task Management Function Request; whether it was not rejected.
    pub(super) fn task_request(&mut self, bhs: &Bhs) -> bool {
        let request = TaskRequest::decode(bhs);
        if bhs.data_len() > 0 {
            self.violated("a task management request with data", "RFC 7143 §11.5.2");
            return false;
        }
        if self.is_itt_in_use(request.itt) {
            self.reject(reason::TASK_IN_PROGRESS, bhs);
            return false;
        }
        if self.functions.len() >= MAX_FUNCTIONS {
            self.reject(reason::TOO_MANY_IMMEDIATE, bhs);
            return false;
        }
        match self.function(&request) {
            Ok(function) => self.begin(&request, function),
            Err(code) => self.respond(request.itt, code, [0; 3], !request.immediate),
        }
        true
    }

    /// What the device server is to do; or the response, where there is nothing to do for it.
    fn function(&mut self, request: &TaskRequest) -> Result<Function, u8> {
        let level_2 = self.keys().protocol_level >= 2;
        Ok(match request.function {
            function::ABORT_TASK => Function::AbortTask(self.task_to_abort(request)?.tag()),
            function::ABORT_TASK_SET => Function::AbortTaskSet,
            function::CLEAR_ACA => Function::ClearAca,
            function::CLEAR_TASK_SET => Function::ClearTaskSet,
            function::LOGICAL_UNIT_RESET => Function::LogicalUnitReset,
            function::TARGET_WARM_RESET | function::TARGET_COLD_RESET => Function::TargetReset,
            // One connection, ErrorRecoveryLevel 0: there is nowhere to come from (§11.6.1).
            function::TASK_REASSIGN => return Err(response::REASSIGN_NOT_SUPPORTED),
            function::QUERY_TASK if level_2 => {
                Function::QueryTask(self.task_to_query(request)?.tag())
            }
            function::QUERY_TASK_SET if level_2 => Function::QueryTaskSet,
            function::I_T_NEXUS_RESET if level_2 => Function::NexusReset,
            function::QUERY_ASYNCHRONOUS_EVENT if level_2 => Function::QueryAsynchronousEvent,
            _ => return Err(response::NOT_SUPPORTED),
        })
    }

    /// RFC 7143 §11.6.1, the rules for ABORT TASK; `Err` is the response of one that ends here.
    fn task_to_abort(&mut self, request: &TaskRequest) -> Result<TaskSlot, u8> {
        if self.functions.has(request.referenced) {
            return Err(response::REJECTED);
        }
        if self.abort_text(request.referenced) {
            return Err(response::COMPLETE);
        }
        let Some(slot) = self.tasks.find(request.referenced) else {
            return Err(self.abort_unseen(request));
        };
        let Some(task) = self.tasks.entry(slot) else {
            return Err(response::NO_TASK);
        };
        let stage = task.stage;
        if task.lun != request.lun {
            return Err(response::NO_TASK);
        }
        match stage {
            TaskStage::Executing => Ok(slot),
            // Its response stands in the queue, and goes before this one's.
            TaskStage::Answered => Err(response::NO_TASK),
            TaskStage::Deferred => {
                self.unplug(slot);
                self.forget(slot);
                Err(response::COMPLETE)
            }
            TaskStage::Ended => {
                self.forget(slot);
                Err(response::COMPLETE)
            }
        }
    }

    /// The command has not come. If it still may, it is taken as come and aborted.
    fn abort_unseen(&mut self, request: &TaskRequest) -> u8 {
        let number = request.ref_cmd_sn;
        let may_come = self.window.place(number) != CmdSnPlace::Outside
            && number.is_before(request.cmd_sn)
            && !self.deferred.iter().any(|early| early.cmd_sn == number);
        if !may_come {
            return response::NO_TASK;
        }
        self.deferred.push(Deferred {
            cmd_sn: number,
            what: DeferredRequest::Plug,
        });
        response::COMPLETE
    }

    /// A command that waits for its turn is not to be carried out when that comes.
    fn unplug(&mut self, gone: TaskSlot) {
        for early in &mut self.deferred {
            if matches!(&early.what, DeferredRequest::Task(slot, _) if *slot == gone) {
                early.what = DeferredRequest::Plug;
            }
        }
    }

    fn task_to_query(&mut self, request: &TaskRequest) -> Result<TaskSlot, u8> {
        if self.functions.has(request.referenced) {
            return Err(response::REJECTED);
        }
        let slot = self.tasks.find(request.referenced);
        let slot = slot.ok_or(response::COMPLETE)?;
        match self.tasks.entry(slot) {
            Some(task) if task.lun != request.lun => Err(response::COMPLETE),
            Some(task) if task.stage == TaskStage::Executing => Ok(slot),
            Some(task) if task.stage == TaskStage::Deferred => Err(response::SUCCEEDED),
            _ => Err(response::COMPLETE),
        }
    }

    fn begin(&mut self, request: &TaskRequest, function: Function) {
        let number = request.cmd_sn;
        let active = ActiveTmf {
            itt: request.itt,
            code: request.function,
            function,
            lun: request.lun,
            cmd_sn: number,
            immediate: request.immediate,
            told: false,
            deadline: self.now.saturating_add(PATIENCE),
        };
        if active.is_on_set() {
            for slot in self.tasks.slots() {
                if let Some(task) = self.tasks.entry(slot).filter(|task| active.affects(task)) {
                    task.frozen = true;
                    self.connection.mover.stop_asking(slot);
                }
            }
        }
        if active.is_on_target() {
            self.plug_until(number);
        }
        self.functions.add(active);
        self.start_functions();
    }

    /// Takes all commands before `number` as received (RFC 7143 §4.2.3.3 b).
    fn plug_until(&mut self, number: CmdSn) {
        let end = self.window.max_cmd_sn().next();
        while self.window.exp_cmd_sn().is_before(number) && self.window.exp_cmd_sn().is_before(end)
        {
            let next = self.window.exp_cmd_sn();
            let early = self.deferred.iter().position(|early| early.cmd_sn == next);
            match early.map(|at| self.deferred.swap_remove(at).what) {
                None | Some(DeferredRequest::Plug) => {}
                Some(DeferredRequest::Task(slot, _)) => self.forget(slot),
                Some(DeferredRequest::Request(request)) => self.held -= request.1.len(),
            }
            self.window.skip();
        }
    }

    /// Tells the device server of functions that have waited long enough.
    pub(super) fn start_functions(&mut self) {
        for at in 0..self.functions.active.len() {
            let Some(active) = self.functions.active[at] else {
                continue;
            };
            if active.told || !self.is_ready(&active) {
                continue;
            }
            self.functions.active[at] = Some(ActiveTmf {
                told: true,
                ..active
            });
            self.events.push_back(SessionEvent::Manage {
                id: at as u32,
                lun: active.lun,
                function: active.function,
            });
        }
    }

    fn is_ready(&self, active: &ActiveTmf) -> bool {
        if !active.is_on_set() || self.now >= active.deadline {
            return true;
        }
        let fast = self.keys().task_reporting == TaskReporting::FastAbort;
        let mover = &self.connection.mover;
        let owes = |(slot, task): (TaskSlot, &SessionTask<L>)| {
            active.affects(task) && mover.is_getting(slot)
        };
        let commands_came = !self.window.exp_cmd_sn().is_before(active.cmd_sn);
        commands_came && (fast || !self.tasks.iter().any(owes))
    }

    /// The answer to [`SessionEvent::Manage`].
    pub fn managed(&mut self, id: u32, result: FunctionResult) {
        if id == LOGOUT {
            self.logged_out();
            return;
        }
        // Of a command that the session ended itself, the end is told by the command.
        let Some(active) = self.functions.take(id) else {
            return;
        };
        let (code, information) = match result {
            FunctionResult::Complete => (response::COMPLETE, [0; 3]),
            FunctionResult::Succeeded(information) => (response::SUCCEEDED, information),
            FunctionResult::Rejected => (response::REJECTED, [0; 3]),
            FunctionResult::IncorrectLun => (response::NO_LUN, [0; 3]),
            FunctionResult::NoTask => (response::NO_TASK, [0; 3]),
        };
        if active.is_on_set() && code == response::COMPLETE {
            self.forget_affected(&active);
        }
        self.respond(active.itt, code, information, !active.immediate);
        if code == response::COMPLETE {
            self.close_after(active.code);
        }
        self.proceed();
    }

    /// Forgets the tasks that ended, or are to end, without the device server, and still wait for
    /// data.
    fn forget_affected(&mut self, active: &ActiveTmf) {
        for slot in self.tasks.slots() {
            let Some(task) = self.tasks.entry(slot) else {
                continue;
            };
            if active.affects(task) && matches!(task.stage, TaskStage::Ended) {
                self.forget(slot);
            }
        }
    }

    /// RFC 7143 §11.5.1, RFC 7144 §6.3: functions after which connections are closed.
    fn close_after(&mut self, code: u8) {
        match code {
            function::TARGET_COLD_RESET => {
                self.events.push_back(SessionEvent::ColdReset);
                self.violated("TARGET COLD RESET", "RFC 7143 §11.5.1");
            }
            function::I_T_NEXUS_RESET => self.violated("I_T NEXUS RESET", "RFC 7144 §6.3"),
            _ => {}
        }
    }

    fn respond(&mut self, itt: Itt, code: u8, information: [u8; 3], releases: bool) {
        let pdu = TaskResponse {
            response: code,
            information,
            itt,
            stamps: Stamps::default(),
        };
        self.queue_control(pdu.encode(), Vec::new(), releases);
    }

    /// A task ended without a response. If this nexus did not ask for that, another nexus did:
    /// under FastAbort the initiator is told to stop sending data (§4.2.3.4 d); otherwise it learns
    /// by a NOP-In that there is room in the window, if nothing else will tell.
    pub(super) fn told_of_abort(&mut self, slot: TaskSlot) {
        let fast = self.keys().task_reporting == TaskReporting::FastAbort;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let asked = |active: &ActiveTmf| match active.function {
            Function::AbortTask(tag) => tag == slot.tag(),
            _ => active.affects(task),
        };
        if self.functions.active.iter().flatten().any(asked) || !self.is_open {
            return;
        }
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let mover = &mut self.connection.mover;
        if fast && (task.unsolicited.open || mover.is_getting(slot)) {
            let lun = task.lun;
            self.queue_async(lun, event::TASK_TERMINATION, [0; 3], Vec::new());
        } else if !mover.tells_window() {
            self.queue_unnumbered(window_news());
        }
    }

    pub(super) fn queue_async(&mut self, lun: Lun, event: u8, parameters: [u16; 3], data: Vec<u8>) {
        let message = AsyncMessage {
            lun,
            stamps: Stamps::default(),
            event,
            vendor_code: 0,
            parameters,
        };
        self.queue_control(message.encode(), data, false);
    }
}

/// A NOP-In that says nothing but its numbers (RFC 7143 §11.4.11).
fn window_news() -> Bhs {
    NopIn {
        lun: Lun([0; 8]),
        itt: Itt::NONE,
        ttt: Ttt::NONE,
        stamps: Stamps::default(),
    }
    .encode()
}
