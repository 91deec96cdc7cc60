//! Requests in their order, and SCSI commands (RFC 7143 §4.2.2.1, §11.3).

use scsi::medium::Lease;
use scsi::nexus::NexusId;
use scsi::task::{Attribute, Command};

use super::receive::{DataFill, SegmentSink};
use super::sense::Condition;
use super::task::TaskStage;
use super::window::CmdSnPlace;
use super::{Session, SessionEvent};
use crate::datamover::{Datamover, TaskSlot};
use crate::wire::ahs::{self, Ahs};
use crate::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use crate::wire::control::reason;
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::serial::CmdSn;

/// A request that came before its turn.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) cmd_sn: CmdSn,
    pub(super) what: DeferredRequest,
}

/// What came before its turn.
#[derive(Debug)]
pub(super) enum DeferredRequest {
    /// A SCSI command: its task is there, and collects data already.
    Task(TaskSlot, Box<Command>),
    /// Another request with its data segment.
    Request(Box<(Bhs, Vec<u8>)>),
    /// A command that never came, and was aborted all the same (RFC 7143 §11.6.1).
    Plug,
}

/// What additional header segments say.
#[derive(Clone, Copy, Debug)]
struct Extension {
    /// Bytes 16 to 31 of the CDB, and how many there are; more do not fit.
    cdb: [u8; 16],
    cdb_len: usize,
    bidirectional_read: Option<u32>,
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Takes a request that has a CmdSN.
    pub(super) fn request(&mut self, bhs: &Bhs) -> SegmentSink {
        if bhs.is_immediate() {
            let inbound = self.deliver(bhs).1;
            self.proceed();
            return inbound;
        }
        match self.window.place(bhs.cmd_sn()) {
            // Outside the window, and twice: to be ignored without a word (§4.2.2.1).
            CmdSnPlace::Outside => SegmentSink::Drop,
            _ if self.is_deferred(bhs.cmd_sn()) => SegmentSink::Drop,
            CmdSnPlace::Next if !self.functions.holds_back(bhs.cmd_sn()) => self.deliver_next(bhs),
            CmdSnPlace::Next | CmdSnPlace::Ahead => {
                let inbound = self.defer(bhs);
                self.watch_gap();
                inbound
            }
        }
    }

    pub(super) fn is_deferred(&self, number: CmdSn) -> bool {
        self.deferred.iter().any(|early| early.cmd_sn == number)
    }

    fn deliver_next(&mut self, bhs: &Bhs) -> SegmentSink {
        let (taken, inbound) = self.deliver(bhs);
        // A request that was rejected counts as not received (§7.3).
        if taken {
            self.window.accept();
            self.proceed();
        }
        inbound
    }

    /// Carries a request out: whether it was not rejected, and where its data goes.
    fn deliver(&mut self, bhs: &Bhs) -> (bool, SegmentSink) {
        let taken = match bhs.opcode() {
            Opcode::ScsiCommand => return self.scsi_command(bhs, true),
            Opcode::TaskRequest => self.task_request(bhs),
            Opcode::NopOut => self.nop_out(bhs),
            Opcode::TextRequest => self.text_request(bhs),
            _ => self.logout_request(bhs),
        };
        (taken, SegmentSink::Drop)
    }

    /// Keeps a request until its turn.
    fn defer(&mut self, bhs: &Bhs) -> SegmentSink {
        if bhs.opcode() == Opcode::ScsiCommand {
            return self.scsi_command(bhs, false).1;
        }
        let data = self.collected.clone();
        if self.held + data.len() > self.may_hold() {
            self.remark(
                "too many requests ahead of a missing CmdSN",
                "--connection-memory",
            );
            return SegmentSink::Drop;
        }
        self.held += data.len();
        self.deferred.push(Deferred {
            cmd_sn: bhs.cmd_sn(),
            what: DeferredRequest::Request(Box::new((*bhs, data))),
        });
        SegmentSink::Drop
    }

    /// Goes on with everything that may have waited for what just happened.
    pub(super) fn proceed(&mut self) {
        while self.is_open {
            self.start_functions();
            let next = self.window.exp_cmd_sn();
            if self.functions.holds_back(next) {
                return;
            }
            let Some(at) = self.deferred.iter().position(|early| early.cmd_sn == next) else {
                return;
            };
            let early = self.deferred.swap_remove(at);
            self.deliver_deferred(early.what);
        }
    }

    fn deliver_deferred(&mut self, early: DeferredRequest) {
        match early {
            DeferredRequest::Plug => self.window.skip(),
            DeferredRequest::Task(slot, command) => {
                self.window.accept();
                self.execute(slot, *command);
            }
            DeferredRequest::Request(request) => {
                let (bhs, data) = *request;
                self.held -= data.len();
                let current = std::mem::replace(&mut self.collected, data);
                let (taken, _) = self.deliver(&bhs);
                self.collected = current;
                if taken {
                    self.window.accept();
                }
            }
        }
    }

    /// Hands a command to the device server, unless it is to end without.
    pub(super) fn execute(&mut self, slot: TaskSlot, command: Command) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.condition.is_some() {
            task.stage = TaskStage::Ended;
            self.answer_if_complete(slot);
        } else {
            task.stage = TaskStage::Executing;
            self.events.push_back(SessionEvent::Execute(command));
        }
    }

    /// A SCSI command, whose turn it is or not.
    fn scsi_command(&mut self, bhs: &Bhs, its_turn: bool) -> (bool, SegmentSink) {
        let pdu = ScsiCommand::decode(bhs);
        let extension = match self.extension(bhs) {
            Ok(extension) => extension,
            Err(refused) => return (refused, SegmentSink::Drop),
        };
        let Some(attribute) = self.check_command(bhs, &pdu, &extension) else {
            return (false, SegmentSink::Drop);
        };
        let entry = self
            .tasks
            .insert(pdu.itt, pdu.lun, pdu.cmd_sn, pdu.immediate);
        let Some(slot) = entry else {
            self.reject(reason::OUT_OF_RESOURCES, bhs);
            return (false, SegmentSink::Drop);
        };
        self.connection.mover.allocate(slot, pdu.itt, pdu.lun);
        let inbound = self.expect_data(slot, &pdu, bhs.data_len(), &extension);
        let command = self.command(slot, &pdu, &extension, attribute);
        if its_turn {
            self.execute(slot, command);
        } else {
            self.deferred.push(Deferred {
                cmd_sn: pdu.cmd_sn,
                what: DeferredRequest::Task(slot, Box::new(command)),
            });
        }
        (true, inbound)
    }

    /// Reads the additional header segments; `Err` when the command goes no further.
    fn extension(&mut self, bhs: &Bhs) -> Result<Extension, bool> {
        let mut extension = Extension {
            cdb: [0; 16],
            cdb_len: 0,
            bidirectional_read: None,
        };
        let mut unknown = false;
        let mut malformed = false;
        for segment in ahs::segments(self.connection.mover.ahs()) {
            match segment {
                Ok(Ahs::ExtendedCdb(more)) => {
                    let kept = more.len().min(extension.cdb.len());
                    extension.cdb[..kept].copy_from_slice(&more[..kept]);
                    extension.cdb_len = more.len();
                }
                Ok(Ahs::BidirectionalRead(expected)) => {
                    extension.bidirectional_read = Some(expected);
                }
                Ok(Ahs::Other(_)) => unknown = true,
                Err(ahs::MalformedAhs) => malformed = true,
            }
        }
        if malformed {
            self.violated(
                "an additional header segment of the wrong length",
                "RFC 7143 §11.2.2",
            );
            return Err(false);
        }
        if unknown {
            self.reject(reason::INVALID_FIELD, bhs);
            self.remark("an unassigned AHSType", "RFC 7143 §11.2.2.1");
            return Err(false);
        }
        Ok(extension)
    }

    /// What makes a command no command, so that it is rejected: its task attribute if it is one.
    fn check_command(
        &mut self,
        bhs: &Bhs,
        pdu: &ScsiCommand,
        extension: &Extension,
    ) -> Option<Attribute> {
        let expects = pdu.expected > 0 || extension.bidirectional_read.is_some_and(|len| len > 0);
        let both = pdu.read && pdu.write;
        let (code, rule, clause) = if pdu.itt == Itt::NONE {
            (
                reason::INVALID_FIELD,
                "a command with the reserved Initiator Task Tag",
                "RFC 7143 §11.2.1.8",
            )
        } else if self.is_itt_in_use(pdu.itt) {
            (
                reason::TASK_IN_PROGRESS,
                "a task tag that is in use",
                "RFC 7143 §11.2.1.8",
            )
        } else if pdu.immediate && !self.tasks.has_immediate_room() {
            (
                reason::TOO_MANY_IMMEDIATE,
                "too many immediate commands",
                "RFC 7143 §4.2.2.1",
            )
        } else if !pdu.write && !pdu.last {
            (
                reason::INVALID_FIELD,
                "a command with neither W nor F",
                "RFC 7143 §11.3.1",
            )
        } else if !pdu.read && !pdu.write && expects {
            (
                reason::INVALID_FIELD,
                "a data length without a direction",
                "RFC 7143 §11.3.1",
            )
        } else if both != extension.bidirectional_read.is_some() {
            (
                reason::INVALID_FIELD,
                "an incomplete bidirectional command",
                "RFC 7143 §11.3.4",
            )
        } else if pdu.task_attribute().is_none() {
            (
                reason::INVALID_FIELD,
                "a reserved task attribute",
                "RFC 7143 §11.3.1",
            )
        } else {
            return pdu.task_attribute();
        };
        self.reject(code, bhs);
        self.remark(rule, clause);
        None
    }

    /// Whether a task, of whatever kind, has this tag; the reserved one is always taken.
    pub(super) fn is_itt_in_use(&self, itt: Itt) -> bool {
        itt == Itt::NONE
            || self.tasks.find(itt).is_some()
            || self.functions.has(itt)
            || self
                .text
                .as_ref()
                .is_some_and(|exchange| exchange.itt == itt)
    }

    /// Sets a new task up for the data that comes with and after the command.
    fn expect_data(
        &mut self,
        slot: TaskSlot,
        pdu: &ScsiCommand,
        data_len: u32,
        extension: &Extension,
    ) -> SegmentSink {
        let keys = &self.parameters.keys;
        let Some(task) = self.tasks.entry(slot) else {
            return SegmentSink::Drop;
        };
        task.expected_out = if pdu.write { pdu.expected } else { 0 };
        task.expected_in = match extension.bidirectional_read {
            Some(expected) => expected,
            None if pdu.read => pdu.expected,
            None => 0,
        };
        // FirstBurstLength bounds unsolicited data.
        let limit = keys.first_burst.min(task.expected_out);
        task.unsolicited.limit = limit;
        task.unsolicited.received.add(0, data_len.min(limit));
        if !pdu.last {
            task.unsolicited.open = true;
            task.unsolicited.since = self.now;
            self.owed.begin(self.now, self.config.limits.nop_timeout);
        }
        task.condition = if pdu.read && pdu.write || extension.cdb_len > 16 {
            Some(Condition::NoSuchCommand)
        } else if data_len > 0 && !(pdu.write && keys.immediate_data)
            || !pdu.last && keys.initial_r2t
        {
            Some(Condition::UnexpectedUnsolicited)
        } else if data_len > limit {
            Some(Condition::IncorrectAmount)
        } else {
            None
        };
        if task.condition.is_some() {
            return SegmentSink::Drop;
        }
        task.unsolicited.reserved = if pdu.last { data_len } else { limit };
        self.window.reserve(task.unsolicited.reserved);
        SegmentSink::Fill(DataFill {
            slot,
            offset: 0,
            closes: false,
        })
    }

    fn command(
        &self,
        slot: TaskSlot,
        pdu: &ScsiCommand,
        extension: &Extension,
        attribute: Attribute,
    ) -> Command {
        let mut cdb = [0; 32];
        cdb[..16].copy_from_slice(&pdu.cdb);
        cdb[16..].copy_from_slice(&extension.cdb);
        Command {
            nexus: NexusId(0),
            tag: slot.tag(),
            lun: pdu.lun,
            cdb,
            cdb_len: (16 + extension.cdb_len.min(16)) as u8,
            attribute,
            priority: if self.keys().protocol_level >= 2 {
                pdu.priority
            } else {
                0
            },
            expected_in: if pdu.read { pdu.expected } else { 0 },
            expected_out: if pdu.write { pdu.expected } else { 0 },
        }
    }
}

/// The Target Transfer Tag by which unsolicited data is known among the sequences of a command.
pub(super) const UNSOLICITED: Ttt = Ttt::NONE;
