//! The send order: first pings and task management, then commands within the window, unless a
//! reset is in flight. How they leave is the mover's.

use scsi::medium::Lease;
use scsi::task::Attribute;

use super::mover::InitiatorMover;
use super::tasks::{InitiatorTask, InitiatorTaskSlot};
use super::{Data, Initiator};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::serial::{CmdSn, StatSn};

/// A request that is not a SCSI command, with its data segment. All are immediate, so that they
/// neither wait for the window nor narrow it; their numbers are filled in when they leave.
#[derive(Debug)]
pub(super) struct ControlRequest(pub(super) Bhs, pub(super) Vec<u8>);

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// The command that is sent next, unless commands are `held` back.
    pub(super) fn pop_ready(&mut self, held: bool) -> Option<InitiatorTaskSlot> {
        if held || !self.numbers.is_open() {
            return None;
        }
        self.ready.pop_front()
    }

    /// The same, which stays where it is.
    pub(super) fn next_ready(&self, held: bool) -> Option<InitiatorTaskSlot> {
        if held || !self.numbers.is_open() {
            return None;
        }
        self.ready.front().copied()
    }

    /// A request leaves that is not a SCSI command, and gets its numbers.
    pub(super) fn control_leaves(&mut self, bhs: &mut Bhs) {
        let cmd_sn = self.numbers.cmd_sn;
        bhs.put_request(cmd_sn, self.numbers.exp_stat_sn());
        match bhs.opcode() {
            Opcode::NopOut if bhs.itt() != Itt::NONE => self.liveness.followed = cmd_sn,
            Opcode::TaskRequest => self.function_sent(bhs.itt(), cmd_sn),
            _ => {}
        }
    }

    /// Queues a request without a data segment.
    pub(super) fn request(&mut self, bhs: Bhs) {
        self.controls.push_back(ControlRequest(bhs, Vec::new()));
    }
}

impl<L: Lease, T> InitiatorTask<L, T> {
    /// The PDU by which the command leaves now. `last`: no unsolicited Data-Out follows it.
    pub(super) fn command(
        &mut self,
        cmd_sn: CmdSn,
        exp_stat_sn: StatSn,
        last: bool,
    ) -> ScsiCommand {
        self.sent = Some(cmd_sn);
        ScsiCommand {
            immediate: false,
            last,
            read: matches!(self.data, Data::In(_)) && self.len > 0,
            write: matches!(self.data, Data::Out(_)) && self.len > 0,
            attribute: code(self.attribute),
            priority: 0,
            lun: self.lun,
            itt: self.itt,
            expected: self.len,
            cmd_sn,
            exp_stat_sn,
            cdb: self.cdb,
        }
    }
}

/// ATTR (RFC 7143 §11.3.1).
const fn code(attribute: Attribute) -> u8 {
    match attribute {
        Attribute::Simple => 1,
        Attribute::Ordered => 2,
        Attribute::HeadOfQueue => 3,
        Attribute::Aca => 4,
    }
}
