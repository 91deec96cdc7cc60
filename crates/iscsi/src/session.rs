//! A session in its full-feature phase, at the target (RFC 7143 §4.2, §11).
//!
//! Above it is a device server, to which it presents SAM's protocol services; below it one
//! connection (ErrorRecoveryLevel 0), whose PDUs and data a [`Datamover`] carries: the session
//! knows neither bytes nor R2Ts. The machine is split by duty: `receive` hands PDUs out, `command`,
//! `data_out`, `data_in` carry SCSI commands, `manage` task management; `connection` counts what
//! leaves, `window` and `task` hold what is counted for the session. Each has what the device
//! server tells of its duty, too.

mod command;
mod connection;
mod data_in;
mod data_out;
mod data_out_timeout;
mod logout;
mod manage;
mod nop;
mod receive;
mod reject;
mod sense;
mod stall;
mod task;
mod text;
mod window;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use scsi::medium::{Lease, Now};
use scsi::task::{Command, Function, Tag};
use scsi::wire::lun::Lun;

use self::command::Deferred;
use self::connection::Connection;
use self::manage::Functions;
use self::nop::PeerLiveness;
use self::receive::SegmentSink;
use self::reject::RejectRateLimit;
use self::sense::DeliveredAttentions;
use self::stall::{SendStall, StallTimer};
use self::task::SessionTasks;
use self::text::TextNegotiation;
use self::window::{CommandWindow, WindowMemory};
use crate::datamover::Datamover;
use crate::datamover::tcp::{RetiredTags, TcpMover};
use crate::parameters::{Operational, Parameters};
use crate::target::TargetConfig;
use crate::wire::bhs::Itt;
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// A session, whose data moves by `D`.
#[derive(Debug)]
pub struct Session<L, D = TcpMover<L>> {
    parameters: Parameters,
    config: Arc<TargetConfig>,
    now: Now,
    is_open: bool,
    pub(crate) connection: Connection<D>,
    inbound: SegmentSink,
    /// The data segment of a PDU that is looked at only when all of it is there.
    collected: Vec<u8>,
    window: CommandWindow,
    deferred: Vec<Deferred>,
    tasks: SessionTasks<L>,
    /// Bytes in the `held` of all tasks, and in deferred requests.
    held: usize,
    next_ttt: u16,
    /// Commands whose unsolicited data may still come.
    retired: RetiredTags,
    functions: Functions,
    text: Option<TextNegotiation>,
    /// A logout that is answered when all commands have ended.
    logout: Option<Itt>,
    /// Of data that was announced or is asked for.
    owed: StallTimer,
    /// The CmdSN that later requests wait for, and until when.
    gap: Option<(CmdSn, Now)>,
    events: VecDeque<SessionEvent<L>>,
}

/// What a session wants of the device server and of its surroundings. The `nexus` of a
/// [`Command`] is filled in by the caller, which joins the two.
#[derive(Debug)]
pub enum SessionEvent<L> {
    /// *Execute Command*.
    Execute(Command),
    /// Data-Out that was asked for has come.
    DataOut {
        /// For which command.
        tag: Tag,
        /// Where in its data.
        offset: u32,
        /// The lease that was given to be filled.
        data: L,
    },
    /// *Task management*, to be answered by [`Session::managed`].
    Manage {
        /// Names the answer.
        id: u32,
        /// On which LUN.
        lun: Lun,
        /// The task management function.
        function: Function,
    },
    /// A TARGET COLD RESET was done (RFC 7143 §11.5.1): every connection of every session with
    /// this target is to be closed. `Close` for this one follows.
    ColdReset,
    /// Close the connection once what is queued has been transmitted: the session has ended.
    Close(Violation),
    /// Close it gracefully, once what is queued has been transmitted: a logout. Nothing for
    /// the log.
    LoggedOut,
    /// Worth a line in the log, though the session goes on.
    Remark(Violation),
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// The session that a login led to.
    #[must_use]
    pub fn new(parameters: Parameters, config: Arc<TargetConfig>, now: Now) -> Self {
        let keys = parameters.keys;
        Self {
            now,
            is_open: true,
            connection: Connection {
                mover: D::new(&keys, &config.limits),
                stat_sn: StatSn(parameters.stat_sn),
                attentions: DeliveredAttentions::default(),
                liveness: PeerLiveness::new(now, CmdSn(parameters.exp_cmd_sn), &config.limits),
                rejects: RejectRateLimit::new(now),
                send_stall: SendStall::default(),
            },
            inbound: SegmentSink::Drop,
            collected: Vec::new(),
            window: CommandWindow::new(
                CmdSn(parameters.exp_cmd_sn),
                config.limits.window,
                WindowMemory::new(config.limits.held_bytes, &keys),
            ),
            deferred: Vec::new(),
            tasks: SessionTasks::new(),
            held: 0,
            next_ttt: 0,
            retired: RetiredTags::new(config.limits.window as usize),
            functions: Functions::default(),
            text: None,
            logout: None,
            owed: StallTimer::default(),
            gap: None,
            events: VecDeque::new(),
            parameters,
            config,
        }
    }

    /// What the login agreed upon.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// What to do next; to be asked until `None` after each call of another function.
    pub fn poll(&mut self) -> Option<SessionEvent<L>> {
        self.events.pop_front()
    }

    /// Whether `poll` has anything to say.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether every unit attention that a command of this session ended with has come to its
    /// initiator: only then the next session of the same port need not be told again.
    #[must_use]
    pub const fn has_told(&self) -> bool {
        self.connection.attentions.has_come()
    }

    /// Whether too many responses wait that nothing more is taken from the wire before some have
    /// been transmitted.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.connection.mover.is_crowded()
    }

    /// How many PDUs, or runs of Data-In, wait to be transmitted; over RDMA also what is to be
    /// asked for or given up. While it is not 0, `transmit` has something to do, now or when reads
    /// that were given up are over.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.connection.mover.queued()
    }

    /// Bytes of Data-In that wait to be transmitted, for the device server to know by.
    #[must_use]
    pub fn data_in_queued(&self) -> usize {
        self.connection.mover.data_in_queued()
    }

    /// Opens no more places of the command window than these, or than are open, until it is called
    /// again: of a transport that has to have a receive for each (RFC 7145 §8.1.1).
    pub fn limit_window(&mut self, places: u32) {
        self.window.set_limit(places);
    }

    /// How many places there are, if the initiator has used up as many as there may be. Where
    /// [`Session::limit_window`] allows more before the next response leaves, there are more then.
    #[must_use]
    pub fn used_up_window(&self) -> Option<u32> {
        self.window.used_up()
    }

    /// When [`Session::timeout`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        if !self.is_open {
            return None;
        }
        let expected = self.window.exp_cmd_sn();
        let silence = self
            .connection
            .liveness
            .deadline(&self.config.limits, expected);
        let others = [
            self.functions.deadline(),
            self.connection.liveness.logout_deadline(),
            self.owed.deadline(),
            self.connection.send_stall.progress.deadline(),
        ];
        let earliest = others.into_iter().flatten().chain([silence]).min();
        match self.gap {
            Some((_, deadline)) => earliest.min(Some(deadline)),
            None => earliest,
        }
    }

    /// The deadline passed.
    pub fn timeout(&mut self, now: Now) {
        self.now = now;
        if !self.is_open {
            return;
        }
        self.check_logout();
        self.check_silence();
        self.check_owed();
        self.check_gap();
        self.check_untaken();
        self.proceed();
    }

    fn keys(&self) -> &Operational {
        &self.parameters.keys
    }

    fn is_discovery(&self) -> bool {
        self.parameters.node().is_none()
    }

    pub(crate) fn remark(&mut self, rule: &'static str, clause: &'static str) {
        self.events
            .push_back(SessionEvent::Remark(Violation { rule, clause }));
    }

    /// Ends the session: T15 from S5, T16 from S7, T17 from S6, through S8 to S1 at once. Only
    /// responses that are not those of SCSI commands still leave.
    fn close(&mut self, why: SessionEvent<L>) {
        if !self.is_open {
            return;
        }
        self.is_open = false;
        self.inbound = SegmentSink::Drop;
        self.connection.mover.retain(|_| false);
        self.events.push_back(why);
    }

    fn violated(&mut self, rule: &'static str, clause: &'static str) {
        self.close(SessionEvent::Close(Violation { rule, clause }));
    }
}
