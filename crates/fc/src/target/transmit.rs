//! The way out: everything in one order, so that no response overtakes the data before it.

use std::collections::VecDeque;

use scsi::medium::Lease;

use super::FcpTarget;
use super::exchanges::{ExchangeSlot, Exchanges};
use crate::exchange::data::DataSequence;
use crate::frames::{self, FrameSink, Single};
use crate::remote::{FcpPeer, RemoteId};
use crate::wire::fcp::{Rsp, XferRdy};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, RCtl};

/// What waits to be sent.
#[derive(Debug)]
pub(super) enum ExchangeOutput<L> {
    /// Data of a command.
    Data {
        slot: ExchangeSlot,
        sequence: DataSequence<L>,
    },
    /// The response of a command or function.
    Status(ExchangeSlot),
    /// A request for data.
    XferRdy(ExchangeSlot),
    /// Anything else.
    Control(Box<(RemoteId, Single)>),
}

/// What waits to be sent, in order.
#[derive(Debug)]
pub(super) struct ExchangeQueue<L> {
    entries: VecDeque<ExchangeOutput<L>>,
    controls: usize,
    /// Requests for data that wait until less is on its way.
    held: VecDeque<ExchangeSlot>,
    /// Less is on its way than when they were looked at last.
    is_freed: bool,
}

/// Answers to link services that may wait. What is asked beyond it is dropped, as if its frame had
/// been lost: initiators ask again.
const MAX_CONTROLS: usize = 1024;

impl<L: Lease> ExchangeQueue<L> {
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            controls: 0,
            held: VecDeque::new(),
            is_freed: false,
        }
    }

    pub(super) fn push(&mut self, out: ExchangeOutput<L>) {
        self.entries.push_back(out);
    }

    /// Whether a request for data of an exchange waits.
    pub(super) fn asks(&self, slot: ExchangeSlot) -> bool {
        let asks = |out: &_| matches!(out, ExchangeOutput::XferRdy(other) if *other == slot);
        self.held.contains(&slot) || self.entries.iter().any(asks)
    }

    /// Less is on its way: requests that were held back may go on.
    pub(super) const fn freed(&mut self) {
        self.is_freed = true;
    }

    /// Drops all that belongs to one exchange, and tells how many bytes of Data-In that was.
    pub(super) fn remove(&mut self, gone: ExchangeSlot) -> usize {
        let mut dropped = 0;
        self.held.retain(|slot| *slot != gone);
        self.entries.retain(|out| match out {
            ExchangeOutput::Data { slot, sequence } if *slot == gone => {
                dropped += sequence.left() as usize;
                false
            }
            ExchangeOutput::Status(slot) | ExchangeOutput::XferRdy(slot) => *slot != gone,
            ExchangeOutput::Data { .. } | ExchangeOutput::Control(_) => true,
        });
        dropped
    }

    /// Drops all that is for one initiator.
    pub(super) fn remove_remote(&mut self, tasks: &Exchanges<L>, gone: RemoteId) {
        self.entries.retain(|out| match out {
            ExchangeOutput::Data { slot, .. }
            | ExchangeOutput::Status(slot)
            | ExchangeOutput::XferRdy(slot) => tasks[*slot].remote != gone,
            ExchangeOutput::Control(control) => control.0 != gone,
        });
        self.held.retain(|slot| tasks[*slot].remote != gone);
        let is_control = |out: &&ExchangeOutput<L>| matches!(out, ExchangeOutput::Control(_));
        self.controls = self.entries.iter().filter(is_control).count();
    }
}

impl<L: Lease> FcpTarget<L> {
    /// Queues a sequence of one frame that is none of a command's own.
    pub(super) fn queue_control(&mut self, remote: RemoteId, header: FrameHeader, payload: &[u8]) {
        let Some(peer) = self.peer(remote) else {
            return;
        };
        let single = Single {
            ethernet: peer.ethernet(),
            header,
            payload: payload.to_vec(),
        };
        if self.queue.controls < MAX_CONTROLS {
            self.queue.controls += 1;
            self.queue
                .push(ExchangeOutput::Control(Box::new((remote, single))));
        }
    }

    /// Bytes of Data-In were taken out of the queue, and put into it.
    pub(super) fn count_queued(&mut self, remote: RemoteId, out: usize, added: usize) {
        if let Some(Some(nexus)) = self.nexuses.get_mut(remote.index()) {
            nexus.queued = nexus.queued - out + added;
        }
    }

    pub(super) fn send_queue(&mut self, out: &mut impl FrameSink) -> bool {
        let mut any = false;
        while let Some(mut next) = self.next_out() {
            let has_left = match &mut next {
                ExchangeOutput::Data { slot, sequence } => self.send_data(out, *slot, sequence),
                ExchangeOutput::Status(slot) => self.send_status(out, *slot),
                ExchangeOutput::XferRdy(slot) => self.send_xfer_rdy(out, *slot),
                ExchangeOutput::Control(control) => {
                    let has_left = control.1.put(out);
                    self.queue.controls -= usize::from(has_left);
                    has_left
                }
            };
            any |= has_left;
            if !has_left {
                any |=
                    matches!(&next, ExchangeOutput::Data { sequence, .. } if sequence.seq_cnt > 0);
                self.queue.entries.push_front(next);
                break;
            }
        }
        any
    }

    /// What leaves next: what waits in order, then a request for data that was held back.
    fn next_out(&mut self) -> Option<ExchangeOutput<L>> {
        if let Some(next) = self.queue.entries.pop_front() {
            return Some(next);
        }
        if !std::mem::take(&mut self.queue.is_freed) {
            return None;
        }
        let at = (self.queue.held.iter()).position(|slot| self.may_ask(self.tasks[*slot].remote));
        let slot = self.queue.held.remove(at?)?;
        self.queue.is_freed = true;
        Some(ExchangeOutput::XferRdy(slot))
    }

    /// Whether an initiator may be asked for data, as so much is on its way already.
    fn may_ask(&self, remote: RemoteId) -> bool {
        let nexus = self.nexuses.get(remote.index()).and_then(Option::as_ref);
        let is_first = nexus.is_none_or(|nexus| nexus.asked == 0);
        self.asked < self.limits.window() * if is_first { 2 } else { 1 }
    }

    /// Sends frames of Data-In; whether that was all.
    fn send_data(
        &mut self,
        out: &mut impl FrameSink,
        slot: ExchangeSlot,
        sequence: &mut DataSequence<L>,
    ) -> bool {
        let task = &mut self.tasks[slot];
        let Some(Some(nexus)) = self.nexuses.get_mut(task.remote.index()) else {
            return true;
        };
        let peer = &nexus.peer;
        let header = FrameHeader {
            f_ctl: FCtl::RESPONDER,
            ..peer.header(RCtl::SOLICITED_DATA, FrameType::FCP, task.ox_id, task.rx_id)
        };
        let before = sequence.left();
        let is_whole = sequence.send(out, peer, &header, FCtl::END_SEQUENCE);
        nexus.queued -= (before - sequence.left()) as usize;
        task.touched = self.now;
        is_whole
    }

    fn send_status(&mut self, out: &mut impl FrameSink, slot: ExchangeSlot) -> bool {
        let task = &mut self.tasks[slot];
        let Some(Some(nexus)) = self.nexuses.get(task.remote.index()) else {
            return true;
        };
        let peer = &nexus.peer;
        let wants_confirmation = is_worth_confirming(peer, task.kept_bytes());
        let f_ctl = if wants_confirmation {
            PASSING
        } else {
            FCtl::REPLY
        };
        let header = FrameHeader {
            f_ctl,
            seq_id: task.next_seq_id(),
            ..peer.header(RCtl::COMMAND_STATUS, FrameType::FCP, task.ox_id, task.rx_id)
        };
        let Some(ending) = &task.ending else {
            return true;
        };
        let rsp = Rsp {
            qualifier: ending.qualifier,
            confirm: wants_confirmation,
            residual: ending.residual,
            status: ending.status,
            response: ending.code,
            information: ending.information,
            sense: ending.sense.as_slice(),
        };
        let ethernet = peer.ethernet();
        let fill = |bytes: &mut [u8]| rsp.put(bytes);
        if !frames::put_single(out, &ethernet, &header, rsp.len(), fill) {
            return false;
        }
        if wants_confirmation {
            self.await_confirmation(slot);
        } else {
            self.retire_exchange(slot);
        }
        true
    }

    fn send_xfer_rdy(&mut self, out: &mut impl FrameSink, slot: ExchangeSlot) -> bool {
        let (remote, has_asked) = (self.tasks[slot].remote, self.tasks[slot].asked > 0);
        if !has_asked && !self.may_ask(remote) {
            self.queue.held.push_back(slot);
            return true;
        }
        let task = &mut self.tasks[slot];
        let Some(Some(nexus)) = self.nexuses.get_mut(remote.index()) else {
            return true;
        };
        let Some(burst) = task.burst_now() else {
            return true;
        };
        let peer = &nexus.peer;
        let header = FrameHeader {
            f_ctl: PASSING,
            seq_id: task.next_seq_id(),
            ..peer.header(
                RCtl::DATA_DESCRIPTOR,
                FrameType::FCP,
                task.ox_id,
                task.rx_id,
            )
        };
        let payload = XferRdy {
            offset: burst.start,
            burst: burst.end - burst.start,
        };
        let (ethernet, bytes) = (peer.ethernet(), payload.encode());
        let fill = |to: &mut [u8]| to.copy_from_slice(&bytes);
        if !frames::put_single(out, &ethernet, &header, bytes.len(), fill) {
            return false;
        }
        let (before, now) = (u64::from(task.asked), u64::from(payload.burst));
        self.asked = self.asked - before + now;
        nexus.asked = nexus.asked - before + now;
        if !has_asked {
            task.asked_since = self.now;
        }
        (task.asked, task.touched) = (payload.burst, self.now);
        self.owe(slot);
        true
    }
}

/// Whether a response asks for FCP_CONF. That costs a frame; without it, what is lost of the data
/// after the response has left is read again by a new command.
fn is_worth_confirming(peer: &FcpPeer, kept: usize) -> bool {
    peer.fcp.retry && peer.fcp.confirm && kept >= WORTH_CONFIRMING
}

/// Data of which FCP_CONF is at most one frame in ten: eight frames of 2112 bytes and a response.
const WORTH_CONFIRMING: usize = 16 << 10;

/// A sequence of one frame after which the initiator goes on.
const PASSING: FCtl = FCtl::RESPONDER
    .with(FCtl::END_SEQUENCE)
    .with(FCtl::SEQUENCE_INITIATIVE);
