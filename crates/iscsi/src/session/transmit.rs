//! The way out: everything in one order, numbered when it leaves (RFC 7143 §4.2.2.2, §4.2.2.4).
//!
//! Nothing is kept for ExpStatSN to acknowledge: at ErrorRecoveryLevel 0 nothing is sent twice.

use std::collections::VecDeque;

use scsi::medium::Lease;
use scsi::task::SenseBytes;
use scsi::wire::lun::Lun;

use super::Session;
use super::task::{SessionTaskSlot, SessionTasks, TaskEnding};
use crate::pdu_sink::PduSink;
use crate::tcp::Digests;
use crate::wire::bhs::{Bhs, Stamps, Ttt};
use crate::wire::data::{DataIn, DataInStatus, R2t};
use crate::wire::scsi_response::{COMPLETED, ScsiResponse};
use crate::wire::serial::{DataSn, StatSn};

/// What waits to be sent.
#[derive(Debug)]
pub(super) enum SessionPdu<L> {
    /// Data of a command, to be cut into Data-In PDUs.
    Data {
        slot: SessionTaskSlot,
        offset: u32,
        data: L,
    },
    /// The response of a command.
    Status(SessionTaskSlot),
    /// A request for data.
    R2t { slot: SessionTaskSlot, ttt: Ttt },
    /// Any other PDU.
    Control(Box<ControlPdu>),
}

/// A PDU that is whole but for its numbers.
#[derive(Debug)]
pub(super) struct ControlPdu {
    pub(super) bhs: Bhs,
    pub(super) data: Vec<u8>,
    /// It uses up a StatSN.
    pub(super) numbered: bool,
    /// With it the place of its request in the command window becomes free.
    pub(super) releases: bool,
}

/// What waits to be sent, in order.
#[derive(Debug)]
pub(super) struct SendQueue<L> {
    entries: VecDeque<SessionPdu<L>>,
    controls: usize,
    /// Bytes of Data-In.
    data: usize,
}

/// Responses other than those of SCSI commands (which the window bounds) that may wait before the
/// session takes nothing more from the wire.
const MAX_CONTROLS: usize = 32;

impl<L: Lease> SendQueue<L> {
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            controls: 0,
            data: 0,
        }
    }

    pub(super) fn push(&mut self, out: SessionPdu<L>) {
        match &out {
            SessionPdu::Control(_) => self.controls += 1,
            SessionPdu::Data { data, .. } => self.data += data.len(),
            SessionPdu::Status(_) | SessionPdu::R2t { .. } => {}
        }
        self.entries.push_back(out);
    }

    /// Puts what is left of data back to the front.
    fn put_back(&mut self, slot: SessionTaskSlot, offset: u32, data: L) {
        self.data += data.len();
        self.entries
            .push_front(SessionPdu::Data { slot, offset, data });
    }

    fn pop(&mut self) -> Option<SessionPdu<L>> {
        let out = self.entries.pop_front()?;
        match &out {
            SessionPdu::Control(_) => self.controls -= 1,
            SessionPdu::Data { data, .. } => self.data -= data.len(),
            SessionPdu::Status(_) | SessionPdu::R2t { .. } => {}
        }
        Some(out)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of Data-In that wait.
    pub(super) const fn data(&self) -> usize {
        self.data
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.controls >= MAX_CONTROLS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops all that belongs to SCSI commands.
    pub(super) fn keep_controls(&mut self) {
        self.entries
            .retain(|out| matches!(out, SessionPdu::Control(_)));
        self.data = 0;
    }

    /// Drops what belongs to SCSI commands that have not been answered.
    pub(super) fn keep_answered(&mut self, tasks: &SessionTasks<L>) {
        let left = &mut self.data;
        self.entries.retain(|out| match out {
            SessionPdu::Control(_) => true,
            SessionPdu::Status(slot) | SessionPdu::R2t { slot, .. } => tasks.is_answered(*slot),
            SessionPdu::Data { slot, data, .. } => {
                let answered = tasks.is_answered(*slot);
                if !answered {
                    *left -= data.len();
                }
                answered
            }
        });
    }

    /// Drops all that belongs to one command.
    pub(super) fn remove(&mut self, gone: SessionTaskSlot) {
        let left = &mut self.data;
        self.entries.retain(|out| match out {
            SessionPdu::Data { slot, data, .. } if *slot == gone => {
                *left -= data.len();
                false
            }
            SessionPdu::Data { .. } | SessionPdu::Control(_) => true,
            SessionPdu::Status(slot) | SessionPdu::R2t { slot, .. } => *slot != gone,
        });
    }

    pub(super) fn trim(&mut self) {
        self.entries.shrink_to_fit();
    }
}

impl<L: Lease> Session<L> {
    /// Queues a PDU that is not of a SCSI command.
    pub(super) fn queue_control(&mut self, bhs: Bhs, data: Vec<u8>, releases: bool) {
        self.queue.push(SessionPdu::Control(Box::new(ControlPdu {
            bhs,
            data,
            numbered: true,
            releases,
        })));
    }

    /// Queues a PDU that uses up no StatSN.
    pub(super) fn queue_unnumbered(&mut self, bhs: Bhs) {
        self.queue.push(SessionPdu::Control(Box::new(ControlPdu {
            bhs,
            data: Vec::new(),
            numbered: false,
            releases: false,
        })));
    }

    pub(super) fn send_queue(&mut self, out: &mut impl PduSink<L>) -> bool {
        let mut any = false;
        while !out.is_full()
            && let Some(next) = self.queue.pop()
        {
            any = true;
            match next {
                SessionPdu::Data { slot, offset, data } => self.send_data(out, slot, offset, data),
                SessionPdu::Status(slot) => self.send_status(out, slot),
                SessionPdu::R2t { slot, ttt } => self.send_r2t(out, slot, ttt),
                SessionPdu::Control(control) => self.send_control(out, &control),
            }
        }
        any
    }

    fn digests(&self) -> Digests {
        Digests {
            header: self.keys().header_digest,
            data: self.keys().data_digest,
        }
    }

    fn stamps(&self) -> Stamps {
        Stamps {
            stat_sn: self.stat_sn,
            exp_cmd_sn: self.window.exp_cmd_sn(),
            max_cmd_sn: self.window.max_cmd_sn(),
        }
    }

    /// The numbers of a response, which uses up a StatSN.
    fn next_stamps(&mut self) -> Stamps {
        let stamps = self.stamps();
        self.stat_sn = self.stat_sn.next();
        stamps
    }

    /// Sends one Data-In; what is left of the data goes back to the front of the queue.
    fn send_data(
        &mut self,
        out: &mut impl PduSink<L>,
        slot: SessionTaskSlot,
        offset: u32,
        data: L,
    ) {
        let Some((mut pdu, len)) = self.next_data_in(slot, offset, data.len()) else {
            return;
        };
        if pdu.status.is_some() {
            // The window opens with this very PDU, so the task goes before the numbers are taken.
            self.remove_task(slot);
            pdu.stamps = self.next_stamps();
        }
        self.owed.moved(len as u32);
        if len == data.len() {
            self.digests().put_lease(out, pdu.encode(), data);
            return;
        }
        let later = data.slice(len, data.len() - len);
        let now = data.slice(0, len);
        self.digests().put_lease(out, pdu.encode(), now);
        self.queue.put_back(slot, offset + len as u32, later);
    }

    /// The next Data-In of a command that has `left` bytes to send from `offset` on, and how many
    /// of them it carries.
    fn next_data_in(
        &mut self,
        slot: SessionTaskSlot,
        offset: u32,
        left: usize,
    ) -> Option<(DataIn, usize)> {
        let stamps = Stamps {
            stat_sn: StatSn(0),
            ..self.stamps()
        };
        let keys = &self.parameters.keys;
        let task = self.tasks.entry(slot)?;
        let room = keys.peer_data_segment.min(keys.max_burst - task.burst);
        let len = left.min(room as usize);
        let is_rest = len == left;
        task.queued -= u32::from(is_rest);
        let idle = is_rest && task.queued == 0;
        task.burst += len as u32;
        // A sequence may end before its time; so none is left open when a command fails later.
        let last = idle || task.burst == keys.max_burst;
        if last {
            task.burst = 0;
        }
        let data_sn = DataSn(task.next_data);
        task.next_data = task.next_data.wrapping_add(1);
        let ending = task.ending.take_if(|_| idle && task.collapse);
        let pdu = DataIn {
            last,
            acknowledge: false,
            status: ending.as_ref().map(collapsed),
            lun: Lun([0; 8]),
            itt: task.itt,
            ttt: Ttt::NONE,
            stamps,
            data_sn,
            offset,
        };
        Some((pdu, len))
    }

    fn send_status(&mut self, out: &mut impl PduSink<L>, slot: SessionTaskSlot) {
        let with_qualifier = self.keys().protocol_level >= 2;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let Some(ending) = task.ending.take() else {
            return;
        };
        let (itt, exp_data_sn) = (task.itt, DataSn(task.next_data));
        self.remove_task(slot);
        let bhs = ScsiResponse {
            residual: ending.residual,
            read_residual: ending.read_residual,
            response: COMPLETED,
            status: ending.status as u8,
            qualifier: if with_qualifier { ending.qualifier } else { 0 },
            itt,
            snack_tag: 0,
            stamps: self.next_stamps(),
            exp_data_sn,
        };
        let sense = ending.sense.as_slice();
        if sense.is_empty() {
            return self.digests().put_bytes(out, bhs.encode(), &[]);
        }
        self.told.sent(&ending.sense, bhs.stamps.stat_sn);
        let mut segment = [0; 2 + SenseBytes::MAX];
        segment[..2].copy_from_slice(&(sense.len() as u16).to_be_bytes());
        segment[2..2 + sense.len()].copy_from_slice(sense);
        self.digests()
            .put_bytes(out, bhs.encode(), &segment[..2 + sense.len()]);
    }

    fn send_r2t(&mut self, out: &mut impl PduSink<L>, slot: SessionTaskSlot, ttt: Ttt) {
        let stamps = self.stamps();
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let sequence = task.sequences.iter_mut().find(|known| known.ttt == ttt);
        let Some(sequence) = sequence else { return };
        sequence.sent = true;
        let bhs = R2t {
            lun: task.lun,
            itt: task.itt,
            ttt,
            stamps,
            r2t_sn: DataSn(task.next_r2t),
            offset: sequence.offset,
            desired: sequence.len,
        };
        task.next_r2t = task.next_r2t.wrapping_add(1);
        self.digests().put_bytes(out, bhs.encode(), &[]);
    }

    fn send_control(&mut self, out: &mut impl PduSink<L>, control: &ControlPdu) {
        if control.releases {
            self.window.release();
        }
        let mut bhs = control.bhs;
        bhs.stamp(if control.numbered {
            self.next_stamps()
        } else {
            self.stamps()
        });
        self.digests().put_bytes(out, bhs, &control.data);
    }
}

fn collapsed(ending: &TaskEnding) -> DataInStatus {
    DataInStatus {
        status: ending.status as u8,
        residual: ending.residual,
    }
}
