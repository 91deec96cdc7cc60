//! Data from the initiator: unsolicited, which is taken in here, and what is asked of the datamover
//! (RFC 7143 §11.7).
//!
//! The device server lends memory, and the data is copied there straight from where it was
//! received. What comes before that is held, within a bound; beyond it the command ends with TASK
//! SET FULL, so that a connection is never left unread.

use scsi::medium::Lease;
use scsi::task::{Function, Tag};

use super::command::UNSOLICITED;
use super::receive::{DataFill, SegmentSink};
use super::sense::Condition;
use super::task::{SessionTask, TaskStage};
use super::{Session, SessionEvent, manage};
use crate::datamover::{Datamover, Solicited, SolicitedFault, TaskSlot, WantedData};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::control::reason;
use crate::wire::data::DataOut;

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// An unsolicited Data-Out: where its data goes.
    pub(super) fn data_out(&mut self, bhs: &Bhs) -> SegmentSink {
        let pdu = DataOut::decode(bhs);
        let Some(slot) = self.tasks.find(pdu.itt) else {
            self.stray(bhs);
            return SegmentSink::Drop;
        };
        self.owed.moved(bhs.data_len());
        let in_order = self.keys().pdu_in_order;
        let Some(task) = self.tasks.entry(slot) else {
            return SegmentSink::Drop;
        };
        let wanted = task.wants_data();
        if !task.unsolicited.open {
            if wanted {
                self.end_with(slot, Condition::UnexpectedUnsolicited);
            } else {
                self.stray(bhs);
            }
            return SegmentSink::Drop;
        }
        let mut range = task.unsolicited.range();
        match range.take(&pdu, bhs.data_len(), wanted, in_order) {
            Ok(()) => SegmentSink::Fill(DataFill {
                slot,
                offset: pdu.offset,
                closes: pdu.last,
            }),
            Err(fault) => {
                self.end_with(slot, fault.into());
                if pdu.last {
                    self.close_unsolicited(slot);
                }
                SegmentSink::Drop
            }
        }
    }

    /// A Data-Out for no task, or that was not asked for. Over RDMA none is ever asked for: that is
    /// a protocol error (RFC 7145 §7.3.4).
    pub(super) fn stray(&mut self, bhs: &Bhs) {
        let pdu = DataOut::decode(bhs);
        if self.is_discovery() {
            self.out_of_place(Opcode::DataOut, bhs);
        } else if self.keys().transport.is_rdma() && pdu.ttt != UNSOLICITED {
            self.reject(reason::PROTOCOL_ERROR, bhs);
            self.remark("a Data-Out with a Target Transfer Tag", "RFC 7145 §7.3.4");
        } else if !self.retired.take(&pdu) {
            self.reject(reason::INVALID_FIELD, bhs);
            self.remark("Data-Out for no task or R2T", "RFC 7143 §11.7.4");
        }
    }

    /// An unsolicited Data-Out whose data was damaged: a hole in the data of its command.
    pub(super) fn lost_data(&mut self, pdu: &DataOut) {
        let Some(slot) = self.tasks.find(pdu.itt) else {
            self.retired.take(pdu);
            return;
        };
        self.end_with(slot, Condition::Digest);
        if pdu.last && pdu.ttt == UNSOLICITED {
            self.close_unsolicited(slot);
        }
    }

    /// Unsolicited data has come to its end.
    pub(super) fn close_unsolicited(&mut self, slot: TaskSlot) {
        let first_burst = self.keys().first_burst;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let open = std::mem::take(&mut task.unsolicited.open);
        let received = &task.unsolicited.received;
        // What lies behind a hole would be asked for again, and counted twice.
        let full = task.expected_out <= first_burst || received.next() == first_burst;
        if open && !(full && received.is_contiguous()) {
            self.end_with(slot, Condition::IncorrectAmount);
        }
        self.get_rest(slot);
        self.answer_if_complete(slot);
        self.proceed();
    }

    /// News of data that was asked for.
    pub(super) fn solicited(&mut self, news: Solicited<L>) {
        self.connection.attentions.acknowledged(news.exp_stat_sn);
        if let Some(got) = news.got {
            self.hand_up(news.task, got);
        }
        if let Some(fault) = news.fault {
            self.end_with(news.task, fault.into());
        }
        if news.closed {
            self.answer_if_complete(news.task);
            self.proceed();
        }
    }

    /// *Receive Data-Out* of the device server: fill `into`.
    pub fn receive_data_out(&mut self, tag: Tag, offset: u32, into: L) {
        let Some((slot, task)) = self.tasks.tagged(tag) else {
            return;
        };
        if task.stage != TaskStage::Executing || task.condition.is_some() {
            return;
        }
        debug_assert!(u64::from(offset) + into.len() as u64 <= u64::from(task.expected_out));
        let mut grant = WantedData {
            offset,
            filled: 0,
            into,
        };
        grant.filled = task.held.copy(offset, &mut grant.into);
        let lent = task.unsolicited.reserved.min(grant.into.len() as u32);
        task.unsolicited.reserved -= lent;
        if task.unsolicited.reserved == 0 {
            self.held -= task.held.clear();
        }
        self.window.unreserve(lent);
        if grant.is_full() {
            return self.hand_up(slot, grant);
        }
        task.grants.push_back(grant);
        if self.is_filling(slot) {
            self.place_collected();
        }
        self.get_rest(slot);
    }

    /// Whether data of this command is coming in right now.
    fn is_filling(&self, slot: TaskSlot) -> bool {
        matches!(self.inbound, SegmentSink::Fill(fill) if fill.slot == slot)
    }

    /// Puts data where it belongs: into the memory lent, or aside until there is some.
    pub(super) fn fill(&mut self, slot: TaskSlot, offset: u32, bytes: &[u8]) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if bytes.is_empty() || !task.wants_data() {
            return;
        }
        // Most data is that of one piece of memory.
        let end = u64::from(offset) + bytes.len() as u64;
        match task.grants.front_mut() {
            Some(grant) if grant.offset <= offset && end <= u64::from(grant.end()) => {
                grant.fill(offset, bytes);
                if grant.is_full()
                    && let Some(grant) = task.grants.pop_front()
                {
                    self.hand_up(slot, grant);
                }
            }
            _ => self.fill_parts(slot, offset, bytes),
        }
    }

    fn fill_parts(&mut self, slot: TaskSlot, offset: u32, bytes: &[u8]) {
        let mut room = self.may_hold().saturating_sub(self.held);
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let before = task.held.len();
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty()
            && let Some(len) = place(task, at, rest, &mut room)
        {
            at += len as u32;
            rest = &rest[len..];
        }
        self.held += task.held.len() - before;
        if rest.is_empty() {
            self.hand_up_full(slot);
        } else {
            self.end_with(slot, Condition::NoRoom);
        }
    }

    /// Tells the device server of memory that is full.
    fn hand_up_full(&mut self, slot: TaskSlot) {
        while let Some(task) = self.tasks.entry(slot)
            && let Some(at) = task.grants.iter().position(WantedData::is_full)
            && let Some(grant) = task.grants.remove(at)
        {
            self.hand_up(slot, grant);
        }
    }

    fn hand_up(&mut self, slot: TaskSlot, got: WantedData<L>) {
        self.events.push_back(SessionEvent::DataOut {
            tag: slot.tag(),
            offset: got.offset,
            data: got.into,
        });
    }

    /// Asks for what is missing. How far unsolicited data goes is known only at its end.
    pub(super) fn get_rest(&mut self, slot: TaskSlot) {
        let is_filling = self.is_filling(slot);
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.unsolicited.open || task.frozen || is_filling || !task.wants_data() || !self.is_open
        {
            return;
        }
        let prefix = task.unsolicited.received.next();
        while let Some(mut wanted) = task.grants.pop_front() {
            let there = prefix.saturating_sub(wanted.offset);
            wanted.filled = there.min(wanted.into.len() as u32);
            self.connection.mover.get_data(self.now, slot, wanted);
            self.owed.begin(self.now, self.config.limits.nop_timeout);
        }
    }

    /// The session ends a command itself, once nothing more of its data is to come.
    pub(super) fn end_with(&mut self, slot: TaskSlot, condition: Condition) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if !task.wants_data() {
            return;
        }
        task.condition = Some(condition);
        task.drop_grants();
        self.connection.mover.drop_data(slot);
        self.held -= task.held.clear();
        let reserved = std::mem::take(&mut task.unsolicited.reserved);
        self.window.unreserve(reserved);
        if task.stage == TaskStage::Executing {
            self.events.push_back(SessionEvent::Manage {
                id: manage::OWN,
                lun: task.lun,
                function: Function::AbortTask(slot.tag()),
            });
        }
    }

    /// Forgets a task that was aborted; data that still comes for it is dropped.
    pub(super) fn forget(&mut self, slot: TaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let itt = task.itt;
        if task.unsolicited.open {
            self.retired.push(itt, UNSOLICITED);
        }
        self.connection.mover.deallocate(slot);
        self.remove_task(slot);
    }

    /// Takes a task out of the table. Its place in the window becomes free; one that still waits
    /// for its turn has taken none.
    pub(super) fn remove_task(&mut self, slot: TaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        self.held -= task.held.clear();
        self.window.unreserve(task.unsolicited.reserved);
        if !task.immediate && task.stage != TaskStage::Deferred {
            self.window.release();
        }
        self.tasks.remove(slot);
        if matches!(self.inbound, SegmentSink::Fill(fill) if fill.slot == slot) {
            self.inbound = SegmentSink::Drop;
        }
    }
}

impl From<SolicitedFault> for Condition {
    fn from(fault: SolicitedFault) -> Self {
        match fault {
            SolicitedFault::Lost => Self::Digest,
            SolicitedFault::Incorrect => Self::IncorrectAmount,
        }
    }
}

/// Puts the first bytes of `rest`, which belong at `at`, into a grant, or aside as far as there is
/// room; tells how many.
fn place<L: Lease>(
    task: &mut SessionTask<L>,
    at: u32,
    rest: &[u8],
    room: &mut usize,
) -> Option<usize> {
    let inside = |grant: &&mut WantedData<L>| grant.offset <= at && at < grant.end();
    if let Some(grant) = task.grants.iter_mut().find(inside) {
        let len = rest.len().min((grant.end() - at) as usize);
        grant.fill(at, &rest[..len]);
        return Some(len);
    }
    let starts = task.grants.iter().map(|grant| grant.offset);
    let next = starts.filter(|start| *start > at).min().unwrap_or(u32::MAX);
    let len = rest.len().min((next - at) as usize);
    *room = room.checked_sub(len)?;
    task.held.push(at, &rest[..len]);
    Some(len)
}
