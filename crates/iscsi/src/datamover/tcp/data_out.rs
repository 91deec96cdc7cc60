//! Solicited Data-Out: R2Ts for data that is wanted, and the PDUs that answer them (RFC 7143 §11.7,
//! §11.8).

use std::collections::VecDeque;

use scsi::medium::{Lease, Now};
use scsi::received::ReceivedBytes;
use scsi::wire::lun::Lun;

use super::TcpMover;
use super::queue::TcpPdu;
use crate::datamover::{DataOutRange, Solicited, SolicitedFault, TaskEnding, TaskSlot, WantedData};
use crate::wire::bhs::{Itt, Ttt};
use crate::wire::data::DataOut;

/// The data of one command on its way, in either direction.
#[derive(Debug)]
pub(super) struct TaskTransfer<L> {
    pub(super) itt: Itt,
    pub(super) lun: Lun,
    /// DataSN of the next Data-In; R2TSN of the next R2T.
    pub(super) next_data: u32,
    pub(super) next_r2t: u32,
    /// Entries of Data-In in the queue, and bytes sent since the last F bit.
    pub(super) queued: u32,
    pub(super) burst: u32,
    /// What the command ended with, while its response waits to be sent.
    pub(super) ending: Option<TaskEnding>,
    /// The status goes out with the last Data-In.
    pub(super) collapse: bool,
    /// No more is asked for.
    is_frozen: bool,
    /// Data that comes is dropped.
    is_dropped: bool,
    /// R2Ts that have not been answered whole.
    sequences: VecDeque<R2tSequence>,
    /// What is to be filled.
    gets: VecDeque<DataGet<L>>,
}

/// The answer to one R2T.
#[derive(Debug)]
struct R2tSequence {
    ttt: Ttt,
    offset: u32,
    len: u32,
    /// The R2T has left.
    sent: bool,
    /// When it was asked for.
    since: Now,
    next_sn: u32,
    received: ReceivedBytes,
}

/// One *Get_Data*.
#[derive(Debug)]
struct DataGet<L> {
    wanted: WantedData<L>,
    /// Bytes from its beginning that are there or were asked for.
    asked: u32,
}

/// The data segment of a Data-Out that is coming in.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataOutFill {
    slot: TaskSlot,
    /// Where the next byte belongs.
    offset: u32,
    /// The sequence that ends with this PDU.
    closes: Option<Ttt>,
    header: DataOut,
}

impl<L: Lease> TaskTransfer<L> {
    pub(super) const fn new() -> Self {
        Self {
            itt: Itt::NONE,
            lun: Lun([0; 8]),
            next_data: 0,
            next_r2t: 0,
            queued: 0,
            burst: 0,
            ending: None,
            collapse: false,
            is_frozen: false,
            is_dropped: false,
            sequences: VecDeque::new(),
            gets: VecDeque::new(),
        }
    }

    /// Becomes that of another task. Its queues keep their memory.
    pub(super) fn begin(&mut self, itt: Itt, lun: Lun) {
        (self.itt, self.lun) = (itt, lun);
        (self.next_data, self.next_r2t) = (0, 0);
        (self.queued, self.burst, self.collapse) = (0, 0, false);
        (self.is_frozen, self.is_dropped) = (false, false);
    }

    pub(super) fn want(&mut self, wanted: WantedData<L>) {
        self.gets.push_back(DataGet {
            asked: wanted.filled,
            wanted,
        });
    }

    /// What had not been asked for yet is forgotten.
    pub(super) fn stop_asking(&mut self) {
        self.is_frozen = true;
        if !self.sequences.is_empty() {
            self.sequences.retain(|sequence| sequence.sent);
        }
    }

    pub(super) fn drop_data(&mut self) {
        self.is_dropped = true;
        if !self.gets.is_empty() {
            self.gets.clear();
        }
    }

    pub(super) fn is_getting(&self) -> bool {
        self.sequences.iter().any(|sequence| sequence.sent)
    }

    pub(super) fn oldest(&self) -> Option<Now> {
        self.sequences.iter().map(|sequence| sequence.since).min()
    }

    /// The next range to be asked for, which counts as asked for from now on.
    fn next_range(&mut self, max_burst: u32) -> Option<(u32, u32)> {
        let is_asked = |get: &DataGet<L>| get.asked as usize >= get.wanted.into.len();
        let get = self.gets.iter_mut().find(|get| !is_asked(get))?;
        let start = get.asked;
        let len = (get.wanted.into.len() as u32 - start).min(max_burst);
        get.asked = start + len;
        Some((get.wanted.offset + start, len))
    }

    /// R2TSN, offset and length of an R2T that leaves now.
    pub(super) fn r2t_leaves(&mut self, ttt: Ttt) -> Option<(u32, u32, u32)> {
        let known = |sequence: &&mut R2tSequence| sequence.ttt == ttt;
        let sequence = self.sequences.iter_mut().find(known)?;
        sequence.sent = true;
        let number = self.next_r2t;
        self.next_r2t = number.wrapping_add(1);
        Some((number, sequence.offset, sequence.len))
    }

    /// Puts data where it belongs; gives memory back that is full with it.
    fn fill(&mut self, at: u32, bytes: &[u8]) -> Option<WantedData<L>> {
        let inside = |get: &DataGet<L>| get.wanted.offset <= at && at < get.wanted.end();
        let place = self.gets.iter().position(inside)?;
        let wanted = &mut self.gets[place].wanted;
        wanted.fill(at, bytes);
        if !wanted.is_full() {
            return None;
        }
        Some(self.gets.remove(place)?.wanted)
    }

    /// The PDU with the F bit has come: whether nothing of its sequence is missing.
    fn close(&mut self, ttt: Ttt) -> bool {
        let sequence = self.sequences.iter().position(|known| known.ttt == ttt);
        let sequence = sequence.and_then(|at| self.sequences.remove(at));
        sequence.is_none_or(|known| known.received.next() == known.len)
    }
}

impl<L: Lease> TcpMover<L> {
    /// Sends R2Ts for memory that nothing is on its way to.
    pub(super) fn ask_for_data(&mut self, now: Now, slot: TaskSlot) {
        let Some(transfer) = self.transfers.get_mut(slot.index()) else {
            return;
        };
        while !transfer.is_frozen
            && transfer.sequences.len() < usize::from(self.keys.outstanding_r2t)
            && let Some((offset, len)) = transfer.next_range(self.keys.max_burst)
        {
            let ttt = Ttt(u32::from(self.next_ttt) << 16 | u32::from(slot.0));
            self.next_ttt = self.next_ttt.wrapping_add(1);
            transfer.sequences.push_back(R2tSequence {
                ttt,
                offset,
                len,
                sent: false,
                since: now,
                next_sn: 0,
                received: ReceivedBytes::default(),
            });
            self.queue.push(TcpPdu::R2t { slot, ttt });
        }
    }

    /// The header of a Data-Out with a Target Transfer Tag: where its data goes. `Err` is told to
    /// the session: a fault, or nothing where the PDU belongs to no R2T.
    pub(super) fn expect_data_out(
        &mut self,
        pdu: &DataOut,
        len: u32,
    ) -> Result<DataOutFill, Option<SolicitedFault>> {
        let slot = TaskSlot(pdu.ttt.0 as u16);
        let transfer = self.transfers.get_mut(slot.index()).ok_or(None)?;
        let mut sequences = transfer.sequences.iter_mut();
        let sequence = sequences
            .find(|known| known.ttt == pdu.ttt && known.sent)
            .filter(|_| transfer.itt == pdu.itt)
            .ok_or(None)?;
        self.moved = self.moved.saturating_add(len);
        let mut range = DataOutRange {
            next_sn: &mut sequence.next_sn,
            start: sequence.offset,
            len: sequence.len,
            received: &mut sequence.received,
        };
        range.take(pdu, len, !transfer.is_dropped, self.keys.pdu_in_order)?;
        Ok(DataOutFill {
            slot,
            offset: pdu.offset,
            closes: pdu.last.then_some(pdu.ttt),
            header: *pdu,
        })
    }

    /// A Data-Out whose data is of no use: a hole in that of its command, whose sequence may end
    /// with it. `None` where it belongs to no R2T.
    pub(super) fn lost_data_out(
        &mut self,
        now: Now,
        pdu: &DataOut,
        fault: SolicitedFault,
    ) -> Option<Solicited<L>> {
        let task = TaskSlot(pdu.ttt.0 as u16);
        let transfer = self.transfers.get_mut(task.index())?;
        let mut sequences = transfer.sequences.iter();
        if !sequences.any(|known| known.ttt == pdu.ttt && known.sent) || transfer.itt != pdu.itt {
            self.retired.take(pdu);
            return None;
        }
        if pdu.last {
            transfer.close(pdu.ttt);
            self.ask_for_data(now, task);
        }
        Some(Solicited {
            task,
            exp_stat_sn: pdu.exp_stat_sn,
            got: None,
            fault: Some(fault),
            closed: pdu.last,
        })
    }

    /// Bytes of the data segment of a Data-Out; tells what the session has to know.
    pub(super) fn fill(
        &mut self,
        now: Now,
        fill: &mut DataOutFill,
        bytes: &[u8],
        end: bool,
    ) -> Option<Solicited<L>> {
        let transfer = self.transfers.get_mut(fill.slot.index())?;
        let got = match bytes {
            [] => None,
            bytes => transfer.fill(fill.offset, bytes),
        };
        fill.offset = fill.offset.saturating_add(bytes.len() as u32);
        let closes = fill.closes.filter(|_| end);
        if got.is_none() && closes.is_none() {
            return None;
        }
        let mut fault = None;
        if let Some(ttt) = closes {
            let missing = !transfer.close(ttt) && !transfer.is_dropped;
            fault = missing.then_some(SolicitedFault::Incorrect);
            self.ask_for_data(now, fill.slot);
        }
        Some(Solicited {
            task: fill.slot,
            exp_stat_sn: fill.header.exp_stat_sn,
            got,
            fault,
            closed: closes.is_some(),
        })
    }

    /// Forgets what was asked for; data that still comes is dropped without a word.
    pub(super) fn retire(&mut self, slot: TaskSlot) {
        let Some(transfer) = self.transfers.get_mut(slot.index()) else {
            return;
        };
        for sequence in transfer.sequences.drain(..).filter(|known| known.sent) {
            self.retired.push(transfer.itt, sequence.ttt);
        }
        transfer.drop_data();
        transfer.ending = None;
        transfer.queued = 0;
    }

    /// Whether a Data-Out answers an R2T of a command that was aborted.
    pub(super) fn is_retired(&mut self, pdu: &DataOut) -> bool {
        self.retired.take(pdu)
    }
}

/// Tags of aborted commands for which data may still come; that is dropped without a Reject.
#[derive(Debug)]
pub(crate) struct RetiredTags {
    tags: VecDeque<(Itt, Ttt)>,
    limit: usize,
}

impl RetiredTags {
    /// Keeps this many, which should be as many as a reset of the unit can abort together. Beyond
    /// that the oldest go.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            tags: VecDeque::new(),
            limit: limit.max(1),
        }
    }

    pub(crate) fn push(&mut self, itt: Itt, ttt: Ttt) {
        if self.tags.len() == self.limit {
            self.tags.pop_front();
        }
        self.tags.push_back((itt, ttt));
    }

    /// Whether the data is that of an aborted command; its last PDU ends that.
    pub(crate) fn take(&mut self, pdu: &DataOut) -> bool {
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
