//! Data from initiators. The device server lends memory, FCP_XFER_RDY asks for what fits, and the
//! data is copied there straight from the frames.
//!
//! One FCP_XFER_RDY of an exchange is answered at a time, as it passes sequence initiative (FCP-4).
//! It asks for all memory that there is.

use scsi::medium::{Lease, Now};
use scsi::task::Function;

use super::exchanges::{Burst, Exchange, ExchangeGrant, ExchangeSlot, ExchangeStage};
use super::transmit::ExchangeOutput;
use super::{FcpTarget, FcpTargetEvent, manage};
use crate::remote::RemoteId;
use crate::wire::fcoe::ReceivedFrame;

/// When commands are looked at for those whose data does not come.
#[derive(Debug, Default)]
pub(super) struct DataOutTimeout {
    pub(super) look: Option<Now>,
}

/// In this many R_A_TOVs all that was asked for at once has to come, however often it is asked for
/// again.
const PATIENCE: u32 = 8;

impl<L: Lease> FcpTarget<L> {
    /// An FCP_DATA.
    pub(super) fn data(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let Some(slot) = self.tasks.by_rx_id(remote, header.ox_id, header.rx_id) else {
            return;
        };
        let task = &mut self.tasks[slot];
        let Some(burst) = task.burst.filter(|_| header.f_ctl.relative_offset()) else {
            return;
        };
        let start = header.parameter;
        let end = start.checked_add(frame.payload.len() as u32);
        let Some(end) = end.filter(|end| *end <= burst.end) else {
            return;
        };
        task.fill(start, frame.payload);
        let before = task.cover.next();
        let _noted = task.cover.add(start, end);
        let came = task.cover.next() - before;
        if came > 0 {
            task.touched = self.now;
            self.came(slot, came);
            self.hand_up(slot);
        }
        let task = &mut self.tasks[slot];
        if task.cover.next() >= burst.end {
            task.burst = None;
            self.asks_no_more(slot);
            self.ask_for_data(slot);
        } else if header.f_ctl.end_sequence() && task.retry_id != 0 {
            self.ask_again(slot);
        }
    }

    /// *Receive Data-Out*.
    pub(super) fn grant(&mut self, slot: ExchangeSlot, offset: u32, into: L) {
        let task = &mut self.tasks[slot];
        if task.stage != ExchangeStage::Executing {
            return;
        }
        let grant = ExchangeGrant { offset, into };
        debug_assert!(grant.end() <= task.expected_out);
        task.grants.push_back(grant);
        self.ask_for_data(slot);
    }

    /// Tells the device server of memory that is full.
    fn hand_up(&mut self, slot: ExchangeSlot) {
        let task = &mut self.tasks[slot];
        let come = task.cover.next();
        while let Some(grant) = task.grants.pop_front_if(|grant| grant.end() <= come) {
            self.events.push_back(FcpTargetEvent::DataOut {
                remote: task.remote,
                tag: task.tag(),
                offset: grant.offset,
                data: grant.into,
            });
        }
    }

    /// Asks for what there is memory for, if nothing is on its way.
    fn ask_for_data(&mut self, slot: ExchangeSlot) {
        let task = &mut self.tasks[slot];
        if task.burst.is_some() {
            return;
        }
        let Some(first) = task.grants.front() else {
            return;
        };
        let (start, end) = (first.offset, first.end());
        task.burst = Some(Burst { start, end });
        self.queue.push(ExchangeOutput::XferRdy(slot));
    }

    /// Asks again for what has not come of what was asked for.
    pub(super) fn ask_again(&mut self, slot: ExchangeSlot) {
        if self.tasks[slot].burst.is_some() && !self.queue.asks(slot) {
            self.queue.push(ExchangeOutput::XferRdy(slot));
        }
    }

    /// Nothing of an exchange is on its way any more: others may ask.
    pub(super) fn asks_no_more(&mut self, slot: ExchangeSlot) {
        let asked = self.tasks[slot].asked;
        self.came(slot, asked);
    }

    /// So much of what was asked for is not on its way any more.
    fn came(&mut self, slot: ExchangeSlot, bytes: u32) {
        let task = &mut self.tasks[slot];
        let came = bytes.min(task.asked);
        if came == 0 {
            return;
        }
        task.asked -= came;
        let came = u64::from(came);
        self.asked -= came;
        if let Some(Some(nexus)) = self.nexuses.get_mut(task.remote.index()) {
            nexus.asked -= came;
        }
        self.queue.freed();
    }

    pub(super) fn owe(&mut self, slot: ExchangeSlot) {
        let remote = self.tasks[slot].remote;
        if let Some(peer) = self.peer(remote) {
            let look = self.now.saturating_add(peer.r_a_tov);
            self.owed.look.get_or_insert(look);
        }
    }

    /// Ends commands of whose data nothing has come in R_A_TOV: by then its initiator has given it
    /// up, and what they hold is needed by others. So do those that take too long altogether.
    pub(super) fn check_owed(&mut self) {
        if self.owed.look.is_none_or(|look| self.now < look) {
            return;
        }
        self.owed.look = None;
        for slot in self.tasks.slots() {
            let task = &self.tasks[slot];
            if task.stage != ExchangeStage::Executing || task.asked == 0 {
                continue;
            }
            let Some(peer) = self.peer(task.remote) else {
                continue;
            };
            let last = task.asked_since.saturating_add(peer.r_a_tov * PATIENCE);
            let limit = last.min(task.touched.saturating_add(peer.r_a_tov));
            if limit <= self.now {
                self.abort(slot);
            } else {
                let look = self.owed.look.map_or(limit, |look| look.min(limit));
                self.owed.look = Some(look);
            }
        }
    }

    /// Has the device server end a command without a response.
    pub(super) fn abort(&mut self, slot: ExchangeSlot) {
        self.asks_no_more(slot);
        self.drop_kept(slot);
        let task = &mut self.tasks[slot];
        task.stage = ExchangeStage::Aborting;
        task.let_go();
        let (remote, tag, lun) = (task.remote, task.tag(), task.lun);
        let dropped = self.queue.remove(slot);
        self.count_queued(remote, dropped, 0);
        self.events.push_back(FcpTargetEvent::Manage {
            remote,
            id: manage::OWN,
            lun,
            function: Function::AbortTask(tag),
        });
    }
}

impl<L: Lease> Exchange<L> {
    /// What to ask for, when the request leaves: all that there is memory for by then, but for what
    /// has come. `None` if that is nothing.
    pub(super) fn burst_now(&mut self) -> Option<Burst> {
        self.burst?;
        let first = self.grants.front()?;
        let (start, mut end) = (first.offset.max(self.cover.next()), first.end());
        for grant in self.grants.iter().skip(1) {
            if grant.offset != end {
                break;
            }
            end = grant.end();
        }
        self.burst = Some(Burst { start, end });
        self.burst
    }

    /// Copies bytes that belong at `start` to where there is memory for them. What has none was
    /// filled before.
    fn fill(&mut self, start: u32, bytes: &[u8]) {
        let end = start + bytes.len() as u32;
        for grant in &mut self.grants {
            let (from, to) = (start.max(grant.offset), end.min(grant.end()));
            if from < to {
                let part = &bytes[(from - start) as usize..(to - start) as usize];
                grant.into.copy_in((from - grant.offset) as usize, part);
            }
        }
    }
}
