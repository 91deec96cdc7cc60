//! Memory that the target reaches, by command; and functions, after which it may not any more.

use std::collections::BTreeMap;

use iscsi::wire::bhs::Bhs;
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use iscsi::wire::serial::CmdSn;
use iscsi::wire::task_management::{TaskRequest, TaskResponse, function, response};
use rdma::iwarp::stream::Stream;
use rdma::verbs::{QueuePair as _, Stag};
use scsi::medium::{HeapLease, Lease as _};
use scsi::residual::Residual;
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

/// What memory holds before the target has written to it.
pub(super) const FILL: u8 = 0xa5;

/// Commands and functions that were not answered, by Initiator Task Tag.
#[derive(Debug, Default)]
pub(super) struct Commands {
    commands: BTreeMap<u32, Command>,
    functions: BTreeMap<u32, Function>,
}

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    itt: u32,
    lun: Lun,
    cmd_sn: CmdSn,
    expected: u32,
    read: Option<Advertised>,
    write: Option<Advertised>,
}

/// Memory that is advertised.
#[derive(Debug)]
pub(super) struct Advertised {
    stag: Stag,
    memory: HeapLease,
}

impl Advertised {
    pub(super) const fn new(stag: Stag, memory: HeapLease) -> Self {
        Self { stag, memory }
    }
}

impl Command {
    pub(super) fn new(bhs: &Bhs, read: Option<Advertised>, write: Option<Advertised>) -> Self {
        let pdu = ScsiCommand::decode(bhs);
        Self {
            itt: pdu.itt.0,
            lun: pdu.lun,
            cmd_sn: pdu.cmd_sn,
            expected: pdu.expected,
            read,
            write,
        }
    }

    /// The STag that a response invalidates: that which data went to, or else the other one.
    pub(super) fn invalidated(&self) -> Option<Stag> {
        let advertised = self.read.as_ref().or(self.write.as_ref());
        advertised.map(|one| one.stag)
    }

    /// What a command has read.
    ///
    /// # Errors
    /// The target has written more than its response tells.
    pub(super) fn data_in(&self, pdu: &ScsiResponse) -> Result<Vec<u8>, Violation> {
        let Some(read) = &self.read else {
            return Ok(Vec::new());
        };
        let missing = match pdu.residual {
            Residual::Underflow(missing) => missing.min(self.expected),
            _ => 0,
        };
        let mut bytes = vec![0; read.memory.len()];
        read.memory.copy_out(0, &mut bytes);
        let rest = bytes.split_off((self.expected - missing) as usize);
        let is_untouched = rest.iter().all(|byte| *byte == FILL);
        is_untouched.then_some(bytes).ok_or(MORE_THAN_TOLD)
    }

    fn withdraw(&self, stream: &mut Stream<HeapLease>) {
        for one in [&self.read, &self.write].into_iter().flatten() {
            stream.withdraw(one.stag);
        }
    }
}

/// A task management function.
#[derive(Debug)]
pub(super) struct Function {
    request: TaskRequest,
    /// The commands that it ends, if it is carried out: each by its tag and its number, as a tag
    /// may be used again.
    ends: Vec<(u32, CmdSn)>,
}

impl Function {
    pub(super) const fn new(request: &TaskRequest) -> Self {
        Self {
            request: *request,
            ends: Vec::new(),
        }
    }

    fn ends(&self, command: &Command) -> bool {
        let request = &self.request;
        match request.function {
            function::ABORT_TASK => request.referenced.0 == command.itt,
            function::ABORT_TASK_SET | function::CLEAR_TASK_SET | function::LOGICAL_UNIT_RESET => {
                request.lun == command.lun
            }
            function::TARGET_WARM_RESET | function::TARGET_COLD_RESET => true,
            _ => false,
        }
    }
}

impl Commands {
    /// A command is sent, whose tag may have been that of one that was given up.
    pub(super) fn begin(&mut self, stream: &mut Stream<HeapLease>, command: Command) {
        self.forget(stream, command.itt);
        self.commands.insert(command.itt, command);
    }

    /// A function is sent.
    pub(super) fn manage(&mut self, mut function: Function) {
        let ended = self.commands.values().filter(|one| function.ends(one));
        function.ends = ended.map(|one| (one.itt, one.cmd_sn)).collect();
        self.functions.insert(function.request.itt.0, function);
    }

    /// A command has ended, or nothing is to come of it any more: its memory is not reached.
    pub(super) fn forget(&mut self, stream: &mut Stream<HeapLease>, itt: u32) -> Option<Command> {
        let command = self.commands.remove(&itt)?;
        command.withdraw(stream);
        Some(command)
    }

    /// A function was answered: if it was carried out, what it ended reaches no memory any more.
    pub(super) fn managed(&mut self, stream: &mut Stream<HeapLease>, pdu: &TaskResponse) {
        let function = self.functions.remove(&pdu.itt.0);
        let done = function.filter(|_| pdu.response == response::COMPLETE);
        for (itt, cmd_sn) in done.map_or_else(Vec::new, |function| function.ends) {
            let command = self.commands.get(&itt);
            if command.is_some_and(|command| command.cmd_sn == cmd_sn) {
                self.forget(stream, itt);
            }
        }
    }
}

const MORE_THAN_TOLD: Violation = Violation {
    rule: "more data written than the response tells",
    clause: "RFC 7145 §7.3.5",
};
