//! What leaves, PDU by PDU: control PDUs and commands first, then Data-Out in the order of the
//! R2Ts, one PDU per turn, so that a command never waits behind a long write.

use scsi::medium::Lease;
use scsi::wire::lun::Lun;

use super::data_out::DataOutSequence;
use crate::initiator::tasks::InitiatorTaskSlot;
use crate::initiator::transmit::ControlRequest;
use crate::initiator::{Data, Initiator};
use crate::pdu_sink::{Digests, PduSink};
use crate::wire::bhs::Ttt;
use crate::wire::data::DataOut;
use crate::wire::serial::DataSn;

impl<L: Lease> Initiator<L> {
    /// Puts what is to be sent into `out`, until that is full; returns whether there was anything.
    /// The data of a write leaves from where it lies. Slices of it may still be on their way when
    /// its command ends, if the target ends it early: memory that is used for something else while
    /// a slice is alive would be sent in its place.
    pub fn transmit(&mut self, out: &mut impl PduSink<L>) -> bool {
        let mut any = false;
        let first = self.numbers.cmd_sn;
        let held = self.is_resetting();
        while !out.is_full() {
            if let Some(control) = self.controls.pop_front() {
                self.send_control(out, control);
            } else if let Some(slot) = self.pop_ready(held) {
                self.send_command(out, slot);
            } else if let Some(sequence) = self.mover.sequences.pop_front() {
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
        self.control_leaves(&mut bhs);
        self.digests().put_bytes(out, bhs, &data);
    }

    /// Sends a command with as much of its data as may go along, and queues what may follow
    /// without being asked for.
    fn send_command(&mut self, out: &mut impl PduSink<L>, slot: InitiatorTaskSlot) {
        let (exp_stat_sn, digests, keys) = (self.numbers.exp_stat_sn(), self.digests(), self.keys);
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let first = task.first_burst(&keys);
        let pdu = task.command(self.numbers.take(), exp_stat_sn, first.unsolicited == 0);
        match &task.data {
            Data::Out(from) if first.immediate > 0 => {
                let data = from.slice(0, first.immediate as usize);
                digests.put_lease(out, pdu.encode(), data);
            }
            _ => digests.put_bytes(out, pdu.encode(), &[]),
        }
        task.moved = first.immediate;
        task.transfer
            .unasked(first.immediate + first.unsolicited, &keys);
        if first.unsolicited > 0 {
            task.transfer.queued += 1;
            self.mover.sequences.push_back(DataOutSequence {
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
            task.transfer.queued -= 1;
            task.transfer.outstanding -= u16::from(solicited);
            return;
        }
        sequence.offset += len;
        sequence.left -= len;
        sequence.data_sn += 1;
        self.mover.sequences.push_front(sequence);
    }
}
