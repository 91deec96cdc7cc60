//! Data from the initiator: unsolicited, or asked for by R2T (RFC 7143 §11.7, §11.8).
//!
//! The device server lends memory, and the data is copied there straight from where it was
//! received. What comes before that is held, within a bound; beyond it the command ends with TASK
//! SET FULL, so that a connection is never left unread.

use std::collections::VecDeque;

use scsi::medium::Lease;
use scsi::received::ReceivedBytes;
use scsi::task::Function;

use super::command::UNSOLICITED;
use super::receive::{DataFill, SegmentSink};
use super::sense::Condition;
use super::task::{DataGrant, R2tSequence, SessionTask, SessionTaskSlot, TaskStage};
use super::transmit::SessionPdu;
use super::{Session, SessionEvent, manage};
use crate::wire::bhs::{Bhs, Itt, Ttt};
use crate::wire::data::DataOut;
use crate::wire::reject::reason;

/// Tags of aborted commands for which data may still come; that is dropped without a Reject.
#[derive(Debug)]
pub(super) struct RetiredTags {
    tags: VecDeque<(Itt, Ttt)>,
    limit: usize,
}

impl RetiredTags {
    /// Keeps the tags of all commands in a window of this width, as a reset of the unit aborts them
    /// together: of each its unsolicited data and each R2T in flight. Beyond that the oldest go.
    pub(super) fn new(window: u32, outstanding_r2t: u16) -> Self {
        Self {
            tags: VecDeque::new(),
            limit: window.max(1) as usize * (1 + usize::from(outstanding_r2t)),
        }
    }

    fn push(&mut self, itt: Itt, ttt: Ttt) {
        if self.tags.len() == self.limit {
            self.tags.pop_front();
        }
        self.tags.push_back((itt, ttt));
    }

    /// Whether the data is that of an aborted command; its last PDU ends that.
    fn take(&mut self, pdu: &DataOut) -> bool {
        let tags = (pdu.itt, pdu.ttt);
        let Some(at) = self.tags.iter().position(|known| *known == tags) else {
            return false;
        };
        if pdu.last {
            self.tags.remove(at);
        }
        true
    }
}

/// Why a Data-Out cannot be used.
enum DataOutFault {
    /// It belongs to nothing.
    Stray,
    /// It ends its command.
    Ends(Condition),
}

impl<L: Lease> Session<L> {
    /// A Data-Out: where its data goes.
    pub(super) fn data_out(&mut self, bhs: &Bhs) -> SegmentSink {
        let pdu = DataOut::decode(bhs);
        let Some(slot) = self.tasks.find(pdu.itt) else {
            self.stray(&pdu, bhs);
            return SegmentSink::Drop;
        };
        if bhs.data_len() > 0 {
            self.owed.moved(bhs.data_len());
        }
        match self.place_data(slot, &pdu, bhs.data_len()) {
            Ok(fill) => SegmentSink::Fill(fill),
            Err(DataOutFault::Stray) => {
                self.stray(&pdu, bhs);
                SegmentSink::Drop
            }
            Err(DataOutFault::Ends(condition)) => {
                self.end_with(slot, condition);
                self.close_if_last(slot, &pdu);
                SegmentSink::Drop
            }
        }
    }

    fn stray(&mut self, pdu: &DataOut, bhs: &Bhs) {
        if !self.retired.take(pdu) {
            self.reject(reason::INVALID_FIELD, bhs);
            self.remark("Data-Out for no task or R2T", "RFC 7143 §11.7.4");
        }
    }

    /// Checks a Data-Out against the sequence that it belongs to.
    fn place_data(
        &mut self,
        slot: SessionTaskSlot,
        pdu: &DataOut,
        len: u32,
    ) -> Result<DataFill, DataOutFault> {
        let in_order = self.keys().pdu_in_order;
        let task = self.tasks.entry(slot).ok_or(DataOutFault::Stray)?;
        let wanted = task.wants_data();
        let (next_sn, start, limit, cover) = if pdu.ttt == UNSOLICITED {
            unsolicited(task, wanted)?
        } else {
            solicited(task, pdu.ttt)?
        };
        let expected_sn = *next_sn;
        *next_sn = expected_sn.wrapping_add(1);
        if wanted {
            if pdu.data_sn.0 != expected_sn {
                return Err(DataOutFault::Ends(Condition::Digest));
            }
            let at = pdu.offset.checked_sub(start);
            let at = at.filter(|at| at.checked_add(len).is_some_and(|end| end <= limit));
            let is_new = |at: u32| {
                let fits = !in_order || at == cover.next();
                fits && !cover.overlaps(at, at + len) && cover.add(at, at + len)
            };
            if !at.is_some_and(is_new) {
                return Err(DataOutFault::Ends(Condition::IncorrectAmount));
            }
        }
        Ok(DataFill {
            slot,
            offset: pdu.offset,
            closes: pdu.last.then_some(pdu.ttt),
        })
    }

    fn close_if_last(&mut self, slot: SessionTaskSlot, pdu: &DataOut) {
        if pdu.last {
            self.close_sequence(slot, pdu.ttt);
        }
    }

    /// A Data-Out whose data digest is wrong: a hole in the data of its command.
    pub(super) fn lost_data(&mut self, pdu: &DataOut) {
        let Some(slot) = self.tasks.find(pdu.itt) else {
            self.retired.take(pdu);
            return;
        };
        self.end_with(slot, Condition::Digest);
        self.close_if_last(slot, pdu);
    }

    /// The PDU with the F bit has come.
    pub(super) fn close_sequence(&mut self, slot: SessionTaskSlot, ttt: Ttt) {
        let first_burst = self.keys().first_burst;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let whole = if ttt == UNSOLICITED {
            let open = std::mem::take(&mut task.unsolicited.open);
            let cover = &task.unsolicited.cover;
            // What lies behind a hole would be asked for again, and counted twice.
            let full = task.expected_out <= first_burst || cover.next() == first_burst;
            !open || full && cover.is_contiguous()
        } else {
            let sequence = task.sequences.iter().position(|known| known.ttt == ttt);
            let sequence = sequence.and_then(|at| task.sequences.remove(at));
            sequence.is_none_or(|known| known.cover.next() == known.len)
        };
        if !whole {
            self.end_with(slot, Condition::IncorrectAmount);
        }
        self.ask_for_data(slot);
        self.answer_if_complete(slot);
        self.proceed();
    }

    /// *Receive Data-Out*.
    pub(super) fn grant(&mut self, slot: SessionTaskSlot, offset: u32, into: L) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if task.stage != TaskStage::Executing || task.condition.is_some() {
            return;
        }
        debug_assert!(u64::from(offset) + into.len() as u64 <= u64::from(task.expected_out));
        let mut grant = DataGrant {
            offset,
            filled: 0,
            asked: 0,
            into,
        };
        grant.filled = task.held.copy(offset, &mut grant.into);
        let lent = task.unsolicited.reserved.min(grant.into.len() as u32);
        task.unsolicited.reserved -= lent;
        if task.unsolicited.reserved == 0 {
            self.held -= task.held.clear();
        }
        self.window.unreserve(lent);
        task.grants.push_back(grant);
        if matches!(self.inbound, SegmentSink::Fill(fill) if fill.slot == slot) {
            self.place_collected();
        }
        self.hand_up(slot);
        self.ask_for_data(slot);
    }

    /// Puts data where it belongs: into the memory lent, or aside until there is some.
    pub(super) fn fill(&mut self, slot: SessionTaskSlot, offset: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut room = self.may_hold().saturating_sub(self.held);
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if !task.wants_data() {
            return;
        }
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
            self.hand_up(slot);
        } else {
            self.end_with(slot, Condition::NoRoom);
        }
    }

    /// Tells the device server of memory that is full.
    fn hand_up(&mut self, slot: SessionTaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        while let Some(at) = task.grants.iter().position(DataGrant::is_full) {
            let Some(grant) = task.grants.remove(at) else {
                return;
            };
            self.events.push_back(SessionEvent::DataOut {
                tag: slot.tag(),
                offset: grant.offset,
                data: grant.into,
            });
        }
    }

    /// Sends R2Ts for memory that nothing is on its way to.
    fn ask_for_data(&mut self, slot: SessionTaskSlot) {
        let keys = &self.parameters.keys;
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        // How far unsolicited data goes is known only at its end.
        if task.unsolicited.open || task.frozen || !task.wants_data() || !self.is_open {
            return;
        }
        let prefix = task.unsolicited.cover.next();
        while task.sequences.len() < usize::from(keys.outstanding_r2t) {
            let Some((offset, len)) = next_range(&mut task.grants, prefix, keys.max_burst) else {
                return;
            };
            let ttt = Ttt(u32::from(self.next_ttt) << 16 | u32::from(slot.0));
            self.next_ttt = self.next_ttt.wrapping_add(1);
            task.sequences.push_back(R2tSequence {
                ttt,
                offset,
                len,
                sent: false,
                since: self.now,
                next_sn: 0,
                cover: ReceivedBytes::default(),
            });
            self.queue.push(SessionPdu::R2t { slot, ttt });
            self.owed.begin(self.now, self.config.limits.nop_timeout);
        }
    }

    /// The session ends a command itself, once nothing more of its data is to come.
    pub(super) fn end_with(&mut self, slot: SessionTaskSlot, condition: Condition) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        if !task.wants_data() {
            return;
        }
        task.condition = Some(condition);
        task.stop_asking();
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
    pub(super) fn forget(&mut self, slot: SessionTaskSlot) {
        let Some(task) = self.tasks.entry(slot) else {
            return;
        };
        let itt = task.itt;
        if task.unsolicited.open {
            self.retired.push(itt, UNSOLICITED);
        }
        for sequence in task.sequences.iter().filter(|sequence| sequence.sent) {
            self.retired.push(itt, sequence.ttt);
        }
        self.queue.remove(slot);
        self.remove_task(slot);
    }

    /// Takes a task out of the table. Its place in the window becomes free; one that still waits
    /// for its turn has taken none.
    pub(super) fn remove_task(&mut self, slot: SessionTaskSlot) {
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

impl<L: Lease> DataGrant<L> {
    fn is_full(&self) -> bool {
        self.filled as usize >= self.into.len()
    }

    fn end(&self) -> u32 {
        self.offset + self.into.len() as u32
    }
}

type SequencePosition<'t> = (&'t mut u32, u32, u32, &'t mut ReceivedBytes);

/// DataSN, start, length and cover of the unsolicited data.
fn unsolicited<L>(
    task: &mut SessionTask<L>,
    wanted: bool,
) -> Result<SequencePosition<'_>, DataOutFault> {
    let data = &mut task.unsolicited;
    if !data.open {
        return Err(if wanted {
            DataOutFault::Ends(Condition::UnexpectedUnsolicited)
        } else {
            DataOutFault::Stray
        });
    }
    Ok((&mut data.next_sn, 0, data.limit, &mut data.cover))
}

/// DataSN, start, length and cover of the answer to an R2T.
fn solicited<L>(task: &mut SessionTask<L>, ttt: Ttt) -> Result<SequencePosition<'_>, DataOutFault> {
    let sequence = task.sequences.iter_mut().find(|known| known.ttt == ttt);
    let sequence = sequence
        .filter(|known| known.sent)
        .ok_or(DataOutFault::Stray)?;
    let (start, len) = (sequence.offset, sequence.len);
    Ok((&mut sequence.next_sn, start, len, &mut sequence.cover))
}

/// Puts the first bytes of `rest`, which belong at `at`, into a grant, or aside as far as there is
/// room; tells how many.
fn place<L: Lease>(
    task: &mut SessionTask<L>,
    at: u32,
    rest: &[u8],
    room: &mut usize,
) -> Option<usize> {
    let inside = |grant: &&mut DataGrant<L>| grant.offset <= at && at < grant.end();
    if let Some(grant) = task.grants.iter_mut().find(inside) {
        let len = rest.len().min((grant.end() - at) as usize);
        grant
            .into
            .copy_in((at - grant.offset) as usize, &rest[..len]);
        grant.filled += len as u32;
        return Some(len);
    }
    let starts = task.grants.iter().map(|grant| grant.offset);
    let next = starts.filter(|start| *start > at).min().unwrap_or(u32::MAX);
    let len = rest.len().min((next - at) as usize);
    *room = room.checked_sub(len)?;
    task.held.push(at, &rest[..len]);
    Some(len)
}

/// The next range to be asked for, which counts as asked for from now on. The first `prefix` bytes
/// of the command came unsolicited.
fn next_range<L: Lease>(
    grants: &mut VecDeque<DataGrant<L>>,
    prefix: u32,
    max_burst: u32,
) -> Option<(u32, u32)> {
    for grant in grants {
        let len = grant.into.len() as u32;
        let unasked = prefix
            .saturating_sub(grant.offset)
            .min(len)
            .max(grant.asked);
        if unasked < len {
            let burst = (len - unasked).min(max_burst);
            grant.asked = unasked + burst;
            return Some((grant.offset + unasked, burst));
        }
    }
    None
}
