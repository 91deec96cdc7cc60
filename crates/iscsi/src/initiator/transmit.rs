//! The send order: first pings and task management, then commands within the window (unless a
//! reset is in flight), then Data-Out in the order of the R2Ts, one PDU per turn, so that a command
//! never waits behind a long write.

use scsi::medium::Lease;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::data_out::DataOutSequence;
use super::tasks::InitiatorTaskSlot;
use super::{Data, Initiator};
use crate::pdu_sink::Digests;
use crate::pdu_sink::PduSink;
use crate::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use crate::wire::data::DataOut;
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::serial::DataSn;

/// A request that is not a SCSI command, with its data segment. All are immediate, so that they
/// neither wait for the window nor narrow it; their numbers are filled in when they leave.
#[derive(Debug)]
pub(super) struct ControlRequest(pub(super) Bhs, pub(super) Vec<u8>);

impl<L: Lease> Initiator<L> {
    pub(super) fn send(&mut self, out: &mut impl PduSink<L>) -> bool {
        let mut any = false;
        let first = self.numbers.cmd_sn;
        let held = self.is_resetting();
        while !out.is_full() {
            if let Some(control) = self.controls.pop_front() {
                self.send_control(out, control);
            } else if self.numbers.is_open()
                && !held
                && let Some(slot) = self.ready.pop_front()
            {
                self.send_command(out, slot);
            } else if let Some(sequence) = self.sequences.pop_front() {
                self.send_data(out, sequence);
            } else {
                break;
            }
            any = true;
        }
        if self.numbers.cmd_sn != first {
            self.watch_counting();
        }
        any
    }

    fn digests(&self) -> Digests {
        Digests {
            header: self.keys.header_digest,
            data: self.keys.data_digest,
        }
    }

    fn send_control(&mut self, out: &mut impl PduSink<L>, control: ControlRequest) {
        let ControlRequest(mut bhs, data) = control;
        let cmd_sn = self.numbers.cmd_sn;
        bhs.put_request(cmd_sn, self.numbers.exp_stat_sn());
        self.digests().put_bytes(out, bhs, &data);
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

    /// Sends a command with as much of its data as may go along, and queues what may follow
    /// without being asked for.
    fn send_command(&mut self, out: &mut impl PduSink<L>, slot: InitiatorTaskSlot) {
        let (exp_stat_sn, digests, keys) = (self.numbers.exp_stat_sn(), self.digests(), self.keys);
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let cmd_sn = self.numbers.take();
        task.sent = Some(cmd_sn);
        let first = task.first_burst(&keys);
        let pdu = ScsiCommand {
            immediate: false,
            last: first.unsolicited == 0,
            read: matches!(task.data, Data::In(_)) && task.len > 0,
            write: matches!(task.data, Data::Out(_)) && task.len > 0,
            attribute: code(task.attribute),
            priority: 0,
            lun: task.lun,
            itt: task.itt,
            expected: task.len,
            cmd_sn,
            exp_stat_sn,
            cdb: task.cdb,
        };
        match &task.data {
            Data::Out(from) if first.immediate > 0 => {
                let data = from.slice(0, first.immediate as usize);
                digests.put_lease(out, pdu.encode(), data);
            }
            _ => digests.put_bytes(out, pdu.encode(), &[]),
        }
        task.moved = first.immediate;
        task.unasked(first.immediate + first.unsolicited, &keys);
        if first.unsolicited > 0 {
            task.queued += 1;
            self.sequences.push_back(DataOutSequence {
                slot,
                ttt: Ttt::NONE,
                offset: first.immediate,
                left: first.unsolicited,
                data_sn: 0,
            });
        }
    }

    /// Sends one Data-Out; what is left of its sequence goes to the front of the queue, as data
    /// without R2T has to come in the order of its commands (RFC 7143 §4.2.5.2).
    fn send_data(&mut self, out: &mut impl PduSink<L>, mut sequence: DataOutSequence) {
        let (exp_stat_sn, digests) = (self.numbers.exp_stat_sn(), self.digests());
        let len = sequence.left.min(self.keys.peer_data_segment);
        let Some(task) = self.tasks.at(sequence.slot) else {
            return;
        };
        let Data::Out(from) = &task.data else {
            return;
        };
        let solicited = sequence.ttt != Ttt::NONE;
        let last = len == sequence.left;
        let pdu = DataOut {
            last,
            lun: if solicited { task.lun } else { Lun([0; 8]) },
            itt: task.itt,
            ttt: sequence.ttt,
            exp_stat_sn,
            data_sn: DataSn(sequence.data_sn),
            offset: sequence.offset,
        };
        let data = from.slice(sequence.offset as usize, len as usize);
        digests.put_lease(out, pdu.encode(), data);
        task.moved += len;
        if last {
            task.queued -= 1;
            task.outstanding -= u16::from(solicited);
            return;
        }
        sequence.offset += len;
        sequence.left -= len;
        sequence.data_sn += 1;
        self.sequences.push_front(sequence);
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
