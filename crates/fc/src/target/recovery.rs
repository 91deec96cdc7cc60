//! What initiators do about lost frames: REC, SRR, RRQ (FC-LS-2; FCP-4, error recovery), and
//! FCP_CONF, which says that nothing of an exchange was lost.

use std::collections::VecDeque;
use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::FcpTarget;
use super::exchanges::{ExchangeSlot, ExchangeStage};
use super::transmit::ExchangeOutput;
use crate::remote::RemoteId;
use crate::wire::els::{
    Els, ExchangeName, ExchangeStatus, LsRejectReason, RecAccept, Reply, Srr, explanation, reason,
};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameHeader, OxId, RCtl, RxId};

/// What an initiator calls an exchange, and what it knows of its name here.
type ExchangeNames = (OxId, RxId);

/// Data-In that can be sent again.
#[derive(Debug, Default)]
pub(super) struct Confirming {
    /// Exchanges whose data is kept until FCP_CONF comes, the oldest first, each once.
    waiting: VecDeque<(Now, RxId)>,
    /// Bytes that are kept, of these and of commands that have not ended.
    pub(super) bytes: usize,
}

impl Confirming {
    pub(super) fn deadline(&self) -> Option<Now> {
        Some(self.waiting.front()?.0)
    }
}

/// Exchanges that were aborted, the oldest first.
#[derive(Debug, Default)]
pub(super) struct AbortedExchanges {
    waiting: VecDeque<(Now, RxId)>,
}

/// More aborts than initiators that are well ever need within R_A_TOV.
const MAX_PLUGS: usize = 2048;

impl AbortedExchanges {
    pub(super) fn deadline(&self) -> Option<Now> {
        Some(self.waiting.front()?.0)
    }
}

impl<L: Lease> FcpTarget<L> {
    /// REC, SRR or RRQ.
    pub(super) fn link_service(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Rec(rec)) => self.rec(remote, &frame.header, &rec),
            Ok(Els::Srr(srr)) => return self.srr(remote, &frame.header, &srr),
            Ok(Els::Rrq(rrq)) => Ok(self.rrq(remote, &rrq)),
            Ok(_) => return,
            Err(_) => Err(MALFORMED),
        };
        self.reply(remote, &frame.header, reply);
    }

    /// Reinstate Recovery Qualifier: the OX_ID of an aborted exchange is free again.
    fn rrq(&mut self, remote: RemoteId, rrq: &ExchangeName) -> Reply {
        if let Some(slot) = self.tasks.find(remote, rrq.ox_id, rrq.rx_id)
            && self.tasks[slot].stage == ExchangeStage::Aborted
        {
            self.forget(slot);
        }
        Reply::Accept
    }

    fn reply(
        &mut self,
        remote: RemoteId,
        request: &FrameHeader,
        reply: Result<Reply, LsRejectReason>,
    ) {
        let Some(peer) = self.peer(remote) else {
            return;
        };
        let r_ctl = match request.r_ctl {
            RCtl::FC4_REQUEST => RCtl::FC4_REPLY,
            _ => RCtl::ELS_REPLY,
        };
        let header = FrameHeader {
            f_ctl: FCtl::REPLY,
            ..peer.header(r_ctl, request.kind, request.ox_id, request.rx_id)
        };
        let reply = reply.unwrap_or_else(Reply::Reject);
        self.queue_control(remote, header, &reply.encode());
    }

    /// The exchange that a REC or SRR is about. An initiator that knows no RX_ID has heard nothing
    /// of it: what is found by its OX_ID may be an earlier one, whose end is not that of the
    /// command it asks about. The task retry identifier tells them apart (FCP-4); where there is
    /// none, an exchange that is over is not found, and the command is sent again.
    fn about(
        &self,
        remote: RemoteId,
        request: &FrameHeader,
        (ox_id, rx_id): ExchangeNames,
    ) -> Option<ExchangeSlot> {
        let slot = self.tasks.find(remote, ox_id, rx_id)?;
        let task = &self.tasks[slot];
        let is_it = if self.peer(remote)?.fcp.retry_identifier {
            task.retry_id == request.parameter
        } else {
            rx_id != RxId::UNASSIGNED || !task.stage.is_over()
        };
        is_it.then_some(slot)
    }

    /// Read Exchange Concise: how far the exchange has got at this end.
    fn rec(
        &self,
        remote: RemoteId,
        request: &FrameHeader,
        rec: &ExchangeName,
    ) -> Result<Reply, LsRejectReason> {
        let slot = self.about(remote, request, (rec.ox_id, rec.rx_id));
        let slot = slot.filter(|slot| self.tasks[*slot].stage != ExchangeStage::Aborted);
        let task = &self.tasks[slot.ok_or(LsRejectReason::NO_EXCHANGE)?];
        let peer = self.peer(remote).ok_or(LsRejectReason::NO_EXCHANGE)?;
        let moved = match task.expected_out {
            0 => task.presented,
            _ => task.cover.next(),
        };
        let status = match task.stage {
            ExchangeStage::Ended => ExchangeStatus::COMPLETE,
            ExchangeStage::Confirming => ExchangeStatus::default(),
            _ if task.asked > 0 => ExchangeStatus::default(),
            _ => ExchangeStatus::INITIATIVE,
        };
        Ok(Reply::Rec(RecAccept {
            ox_id: task.ox_id,
            rx_id: task.rx_id,
            originator: peer.address.fc_id,
            responder: peer.own.fc_id,
            transferred: moved,
            status: status.with(ExchangeStatus::RESPONDER),
        }))
    }

    /// Sequence Retransmission Request: the named information unit, and all after it, again. It is
    /// accepted before they leave, so that the initiator knows one copy from the other.
    fn srr(&mut self, remote: RemoteId, request: &FrameHeader, srr: &Srr) {
        let found = self.about(remote, request, (srr.ox_id, srr.rx_id));
        let can = match found.map(|slot| (slot, &self.tasks[slot])) {
            None => Err(LsRejectReason::NO_EXCHANGE),
            Some((_, task))
                if matches!(task.stage, ExchangeStage::Aborting | ExchangeStage::Aborted) =>
            {
                Err(LsRejectReason::NO_EXCHANGE)
            }
            Some((_, task)) if srr.unit == RCtl::SOLICITED_DATA && !task.has_kept(srr.offset) => {
                Err(NO_DATA)
            }
            Some((slot, _)) => Ok(slot),
        };
        self.reply(remote, request, can.map(|_| Reply::Accept));
        if let Ok(slot) = can {
            self.send_from(slot, srr);
        }
    }

    fn send_from(&mut self, slot: ExchangeSlot, srr: &Srr) {
        let task = &mut self.tasks[slot];
        task.touched = self.now;
        let stage = task.stage;
        if srr.unit == RCtl::SOLICITED_DATA {
            self.send_again(slot, srr.offset);
        }
        match (stage, srr.unit) {
            (ExchangeStage::Executing, RCtl::DATA_DESCRIPTOR) => self.ask_again(slot),
            // It was taken out of the queue.
            (ExchangeStage::Answered, RCtl::SOLICITED_DATA)
            | (ExchangeStage::Confirming | ExchangeStage::Ended, _) => {
                self.answer_again(slot);
            }
            _ => {}
        }
    }

    /// The response, again; behind data that is sent again.
    fn answer_again(&mut self, slot: ExchangeSlot) {
        self.tasks[slot].stage = ExchangeStage::Answered;
        self.queue.push(ExchangeOutput::Status(slot));
    }

    /// The response has left, and FCP_CONF was asked for.
    pub(super) fn await_confirmation(&mut self, slot: ExchangeSlot) {
        let task = &mut self.tasks[slot];
        task.stage = ExchangeStage::Confirming;
        let (remote, rx_id) = (task.remote, task.rx_id);
        let wait = self.peer(remote).map_or(Duration::ZERO, |peer| {
            peer.rec_tov().saturating_add(peer.e_d_tov)
        });
        let limit = self.now.saturating_add(wait);
        // One whose response leaves again stands in line already.
        if self.tasks[slot].confirm_by.replace(limit).is_none() {
            self.confirming.waiting.push_back((limit, rx_id));
        }
    }

    /// Takes the first one out of the line of those for which FCP_CONF is awaited. Gives the
    /// exchange, if that is still so, and until when.
    fn next_waiting(&mut self) -> Option<(ExchangeSlot, Now)> {
        let (_, rx_id) = self.confirming.waiting.pop_front()?;
        let slot = self.tasks.by_name(rx_id)?;
        let limit = self.tasks[slot].confirm_by.take()?;
        (self.tasks[slot].stage == ExchangeStage::Confirming).then_some((slot, limit))
    }

    /// Waits no more for the one that has waited longest; whether there was one.
    pub(super) fn settle_oldest(&mut self) -> bool {
        while !self.confirming.waiting.is_empty() {
            if let Some((slot, _)) = self.next_waiting() {
                self.retire_exchange(slot);
                return true;
            }
        }
        false
    }

    /// An FCP_CONF.
    pub(super) fn confirmed(&mut self, remote: RemoteId, header: &FrameHeader) {
        let Some(slot) = self.tasks.find(remote, header.ox_id, header.rx_id) else {
            return;
        };
        if self.tasks[slot].stage == ExchangeStage::Answered {
            return self.confirmed_early(slot);
        }
        if self.tasks[slot].stage != ExchangeStage::Confirming {
            return;
        }
        self.retire_exchange(slot);
        // Confirmations come in the order of responses, but for those that are lost.
        while let Some((_, first)) = self.confirming.waiting.front()
            && !self.is_confirming(*first)
        {
            self.next_waiting();
        }
    }

    /// What was asked for again was not needed: the first copy has come.
    fn confirmed_early(&mut self, slot: ExchangeSlot) {
        let dropped = self.queue.remove(slot);
        let remote = self.tasks[slot].remote;
        self.count_queued(remote, dropped, 0);
        self.retire_exchange(slot);
    }

    fn is_confirming(&self, rx_id: RxId) -> bool {
        let slot = self.tasks.by_name(rx_id);
        slot.is_some_and(|slot| self.tasks[slot].stage == ExchangeStage::Confirming)
    }

    /// An exchange is over: nothing of it is sent again but its response.
    pub(super) fn retire_exchange(&mut self, slot: ExchangeSlot) {
        self.drop_kept(slot);
        self.tasks[slot].stage = ExchangeStage::Ended;
        self.tasks.ended(slot);
    }

    pub(super) fn check_confirming(&mut self) {
        while (self.confirming.deadline()).is_some_and(|limit| limit <= self.now) {
            match self.next_waiting() {
                Some((slot, limit)) if limit > self.now => {
                    let task = &mut self.tasks[slot];
                    task.confirm_by = Some(limit);
                    self.confirming.waiting.push_back((limit, task.rx_id));
                }
                Some((slot, _)) => self.retire_exchange(slot),
                None => {}
            }
        }
    }

    /// Leaves the OX_ID of an aborted exchange alone for R_A_TOV.
    pub(super) fn plug(&mut self, slot: ExchangeSlot) {
        let task = &self.tasks[slot];
        let wait = self
            .peer(task.remote)
            .map_or(Duration::ZERO, |peer| peer.r_a_tov);
        let limit = self.now.saturating_add(wait);
        self.plugs.waiting.push_back((limit, task.rx_id));
        if self.plugs.waiting.len() > MAX_PLUGS {
            self.unplug();
        }
    }

    pub(super) fn check_plugs(&mut self) {
        while self.plugs.deadline().is_some_and(|limit| limit <= self.now) {
            self.unplug();
        }
    }

    fn unplug(&mut self) {
        if let Some((_, rx_id)) = self.plugs.waiting.pop_front()
            && let Some(slot) = self.tasks.by_name(rx_id)
            && self.tasks[slot].stage == ExchangeStage::Aborted
        {
            self.forget(slot);
        }
    }
}

const NO_DATA: LsRejectReason = LsRejectReason::new(reason::UNABLE, explanation::NO_DATA);

const MALFORMED: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::PAYLOAD_LENGTH);
