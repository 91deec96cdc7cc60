//! The way out: PDUs, numbered when they leave (RFC 7143 §4.2.2.2, §4.2.2.4, §11.7).

use scsi::medium::Lease;
use scsi::task::SenseBytes;
use scsi::wire::lun::Lun;

use super::TcpMover;
use super::data_out::TaskTransfer;
use super::queue::TcpPdu;
use crate::datamover::{ControlPdu, TaskEnding, TaskSlot};
use crate::pdu_sink::PduSink;
use crate::session::Session;
use crate::wire::bhs::{Stamps, Ttt};
use crate::wire::data::{DataIn, DataInStatus, R2t};
use crate::wire::scsi_command::{COMPLETED, ScsiResponse};
use crate::wire::serial::{DataSn, StatSn};

impl<L: Lease> Session<L, TcpMover<L>> {
    /// Puts what is to be sent into `out`, until that is full; returns whether there was anything.
    /// To be called when all that was put out before has left.
    pub fn transmit(&mut self, out: &mut impl PduSink<L>) -> bool {
        let mut any = false;
        while !out.is_full()
            && let Some(next) = self.connection.mover.queue.pop()
        {
            any = true;
            match next {
                TcpPdu::Data { slot, offset, data } => self.send_data(out, slot, offset, data),
                TcpPdu::Status(slot) => self.send_status(out, slot),
                TcpPdu::R2t { slot, ttt } => self.send_r2t(out, slot, ttt),
                TcpPdu::Control(control) => self.send_pdu(out, &control),
            }
        }
        self.left(any);
        any
    }

    /// Sends one Data-In; what is left of the data goes back to the front of the queue.
    fn send_data(&mut self, out: &mut impl PduSink<L>, slot: TaskSlot, offset: u32, data: L) {
        let next = self.connection.mover.next_data_in(slot, offset, data.len());
        let Some((mut pdu, len)) = next else {
            return;
        };
        pdu.stamps = if pdu.status.is_some() {
            self.response_leaves(slot)
        } else {
            Stamps {
                stat_sn: StatSn(0),
                ..self.stamps()
            }
        };
        let mover = &mut self.connection.mover;
        if len == data.len() {
            mover.keys.digests.put_lease(out, pdu.encode(), data);
            return;
        }
        let later = data.slice(len, data.len() - len);
        let now = data.slice(0, len);
        mover.keys.digests.put_lease(out, pdu.encode(), now);
        mover.queue.put_back(slot, offset + len as u32, later);
    }

    fn send_status(&mut self, out: &mut impl PduSink<L>, slot: TaskSlot) {
        let Some((ending, mut bhs)) = self.connection.mover.response(slot) else {
            return;
        };
        bhs.stamps = self.response_leaves(slot);
        let digests = self.connection.mover.keys.digests;
        let sense = ending.sense.as_slice();
        if sense.is_empty() {
            return digests.put_bytes(out, bhs.encode(), &[]);
        }
        self.sense_leaves(&ending.sense, bhs.stamps.stat_sn);
        let mut segment = [0; 2 + SenseBytes::MAX];
        segment[..2].copy_from_slice(&(sense.len() as u16).to_be_bytes());
        segment[2..2 + sense.len()].copy_from_slice(sense);
        digests.put_bytes(out, bhs.encode(), &segment[..2 + sense.len()]);
    }

    fn send_r2t(&mut self, out: &mut impl PduSink<L>, slot: TaskSlot, ttt: Ttt) {
        let stamps = self.stamps();
        let mover = &mut self.connection.mover;
        if let Some(mut bhs) = mover.r2t(slot, ttt) {
            bhs.stamps = stamps;
            mover.keys.digests.put_bytes(out, bhs.encode(), &[]);
        }
    }

    fn send_pdu(&mut self, out: &mut impl PduSink<L>, control: &ControlPdu) {
        let mut bhs = control.bhs;
        bhs.stamp(self.control_leaves(control));
        let digests = self.connection.mover.keys.digests;
        digests.put_bytes(out, bhs, &control.data);
    }
}

impl<L: Lease> TcpMover<L> {
    /// The next Data-In of a command that has `left` bytes to send from `offset` on, and how many
    /// of them it carries.
    fn next_data_in(
        &mut self,
        slot: TaskSlot,
        offset: u32,
        left: usize,
    ) -> Option<(DataIn, usize)> {
        let keys = &self.keys;
        let transfer = self.transfers.get_mut(slot.index())?;
        let room = keys.peer_data_segment.min(keys.max_burst - transfer.burst);
        let len = left.min(room as usize);
        self.moved = self.moved.saturating_add(len as u32);
        let is_rest = len == left;
        transfer.queued -= u32::from(is_rest);
        let idle = is_rest && transfer.queued == 0;
        transfer.burst += len as u32;
        // A sequence may end before its time; so none is left open when a command fails later.
        let last = idle || transfer.burst == keys.max_burst;
        if last {
            transfer.burst = 0;
        }
        let data_sn = DataSn(transfer.next_data);
        transfer.next_data = transfer.next_data.wrapping_add(1);
        let ending = transfer.ending.take_if(|_| idle && transfer.collapse);
        let pdu = DataIn {
            last,
            acknowledge: false,
            status: ending.as_ref().map(collapsed),
            lun: Lun([0; 8]),
            itt: transfer.itt,
            ttt: Ttt::NONE,
            stamps: Stamps::default(),
            data_sn,
            offset,
        };
        Some((pdu, len))
    }

    /// The response of a command, but for its numbers.
    fn response(&mut self, slot: TaskSlot) -> Option<(TaskEnding, ScsiResponse)> {
        let transfer = self.transfers.get_mut(slot.index())?;
        let ending = transfer.ending.take()?;
        let bhs = ScsiResponse {
            residual: ending.residual,
            read_residual: ending.read_residual,
            response: COMPLETED,
            status: ending.status as u8,
            qualifier: ending.qualifier,
            itt: transfer.itt,
            snack_tag: 0,
            stamps: Stamps::default(),
            exp_data_sn: DataSn(transfer.next_data),
        };
        Some((ending, bhs))
    }

    /// An R2T that leaves now, but for its numbers.
    fn r2t(&mut self, slot: TaskSlot, ttt: Ttt) -> Option<R2t> {
        let transfer: &mut TaskTransfer<L> = self.transfers.get_mut(slot.index())?;
        let (number, offset, desired) = transfer.r2t_leaves(ttt)?;
        Some(R2t {
            lun: transfer.lun,
            itt: transfer.itt,
            ttt,
            stamps: Stamps::default(),
            r2t_sn: DataSn(number),
            offset,
            desired,
        })
    }
}

fn collapsed(ending: &TaskEnding) -> DataInStatus {
    DataInStatus {
        status: ending.status as u8,
        residual: ending.residual,
    }
}
