//! What initiators do about lost frames: REC, SRR, RRQ (FC-LS-2; FCP-4, error recovery), and
//! FCP_CONF, which says that nothing of an exchange was lost.

use std::collections::VecDeque;
use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::Target;
use super::tasks::{Slot, Stage};
use super::transmit::Out;
use crate::remote::RemoteId;
use crate::wire::els::{
    Els, ExchangeName, ExchangeStatus, RecAccept, Reject, Reply, Srr, explanation, reason,
};
use crate::wire::fcoe::Frame;
use crate::wire::frame::{FCtl, Header, RCtl, RxId};

/// Exchanges whose data is kept until FCP_CONF comes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Confirming {
    waiting: VecDeque<(Now, RxId)>,
    pub(super) octets: usize,
}

impl Confirming {
    pub(super) fn deadline(&self) -> Option<Now> {
        Some(self.waiting.front()?.0)
    }
}

/// Exchanges that were aborted, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    waiting: VecDeque<(Now, RxId)>,
}

/// More aborts than initiators that are well ever need within R_A_TOV.
const MAX_PLUGS: usize = 2048;

impl Plugs {
    pub(super) fn deadline(&self) -> Option<Now> {
        Some(self.waiting.front()?.0)
    }
}

impl<L: Lease> Target<L> {
    /// REC, SRR or RRQ.
    pub(super) fn link_service(&mut self, remote: RemoteId, frame: &Frame<'_>) {
        let reply = match Els::parse(frame.payload) {
            Ok(Els::Rec(rec)) => self.rec(remote, &rec),
            Ok(Els::Srr(srr)) => self.srr(remote, &srr),
            Ok(Els::Rrq(rrq)) => {
                let slot = self.tasks.find(remote, rrq.ox_id, rrq.rx_id);
                if let Some(slot) = slot
                    && self.tasks[slot].stage == Stage::Aborted
                {
                    self.forget(slot);
                }
                Ok(Reply::Accept)
            }
            Ok(_) => return,
            Err(_) => Err(MALFORMED),
        };
        let reply = reply.unwrap_or_else(Reply::Reject);
        self.reply(remote, &frame.header, &reply.encode());
    }

    fn reply(&mut self, remote: RemoteId, request: &Header, payload: &[u8]) {
        let Some(peer) = self.peer(remote) else {
            return;
        };
        let r_ctl = match request.r_ctl {
            RCtl::FC4_REQUEST => RCtl::FC4_REPLY,
            _ => RCtl::ELS_REPLY,
        };
        let header = Header {
            f_ctl: FCtl::REPLY,
            ..peer.header(r_ctl, request.kind, request.ox_id, request.rx_id)
        };
        self.queue_control(remote, header, payload);
    }

    /// Read Exchange Concise: how far the exchange has got at this end.
    fn rec(&self, remote: RemoteId, rec: &ExchangeName) -> Result<Reply, Reject> {
        let slot = self.tasks.find(remote, rec.ox_id, rec.rx_id);
        let slot = slot.filter(|slot| self.tasks[*slot].stage != Stage::Aborted);
        let task = &self.tasks[slot.ok_or(NO_EXCHANGE)?];
        let peer = self.peer(remote).ok_or(NO_EXCHANGE)?;
        let moved = match task.expected_out {
            0 => task.presented,
            _ => task.cover.next(),
        };
        let status = match task.stage {
            Stage::Ended => ExchangeStatus::COMPLETE,
            Stage::Confirming => ExchangeStatus::default(),
            _ if task.burst.is_some() => ExchangeStatus::default(),
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

    /// Sequence Retransmission Request: the named information unit, and all after it, again.
    fn srr(&mut self, remote: RemoteId, srr: &Srr) -> Result<Reply, Reject> {
        let slot = self.tasks.find(remote, srr.ox_id, srr.rx_id);
        let slot = slot.ok_or(NO_EXCHANGE)?;
        self.tasks[slot].touched = self.now;
        match (self.tasks[slot].stage, srr.unit) {
            (Stage::Executing, RCtl::SOLICITED_DATA) => self.data_again(slot, srr.offset)?,
            (Stage::Executing, RCtl::DATA_DESCRIPTOR) => self.ask_again(slot),
            (Stage::Answered | Stage::Confirming | Stage::Ended, RCtl::SOLICITED_DATA) => {
                self.data_again(slot, srr.offset)?;
                self.answer_again(slot);
            }
            (Stage::Confirming | Stage::Ended, _) => self.answer_again(slot),
            (Stage::Executing | Stage::Managing | Stage::Answered, _) => {}
            (Stage::Aborting | Stage::Aborted, _) => return Err(NO_EXCHANGE),
        }
        Ok(Reply::Accept)
    }

    fn data_again(&mut self, slot: Slot, offset: u32) -> Result<(), Reject> {
        match self.send_again(slot, offset) {
            true => Ok(()),
            false => Err(NO_DATA),
        }
    }

    /// The response, again; behind data that is sent again.
    fn answer_again(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot];
        if task.stage == Stage::Confirming {
            self.confirming.octets -= task.kept_octets();
        }
        task.stage = Stage::Answered;
        self.queue.push(Out::Status(slot));
    }

    /// The response has left, and FCP_CONF was asked for.
    pub(super) fn await_confirmation(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot];
        task.stage = Stage::Confirming;
        self.confirming.octets += task.kept_octets();
        let (remote, rx_id) = (task.remote, task.rx_id);
        let wait = self.peer(remote).map_or(Duration::ZERO, |peer| {
            peer.rec_tov().saturating_add(peer.e_d_tov)
        });
        let limit = self.now.saturating_add(wait);
        self.confirming.waiting.push_back((limit, rx_id));
        while self.confirming.octets > self.limits.unconfirmed
            && let Some((_, oldest)) = self.confirming.waiting.pop_front()
        {
            self.settle(oldest);
        }
    }

    /// An FCP_CONF.
    pub(super) fn confirmed(&mut self, remote: RemoteId, header: &Header) {
        let Some(slot) = self.tasks.find(remote, header.ox_id, header.rx_id) else {
            return;
        };
        let rx_id = self.tasks[slot].rx_id;
        self.settle(rx_id);
        // Confirmations come in the order of responses, but for those that are lost.
        while let Some((_, first)) = self.confirming.waiting.front()
            && !self.is_confirming(*first)
        {
            self.confirming.waiting.pop_front();
        }
    }

    fn is_confirming(&self, rx_id: RxId) -> bool {
        let slot = self.tasks.by_name(rx_id);
        slot.is_some_and(|slot| self.tasks[slot].stage == Stage::Confirming)
    }

    /// Waits for FCP_CONF no more.
    fn settle(&mut self, rx_id: RxId) {
        if let Some(slot) = self.tasks.by_name(rx_id)
            && self.tasks[slot].stage == Stage::Confirming
        {
            let task = &mut self.tasks[slot];
            self.confirming.octets -= task.kept_octets();
            task.kept.clear();
            task.stage = Stage::Ended;
            self.tasks.ended(slot);
        }
    }

    pub(super) fn check_confirming(&mut self) {
        while let Some((_, rx_id)) = self
            .confirming
            .waiting
            .pop_front_if(|(limit, _)| *limit <= self.now)
        {
            self.settle(rx_id);
        }
    }

    /// Leaves the OX_ID of an aborted exchange alone for R_A_TOV.
    pub(super) fn plug(&mut self, slot: Slot) {
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
            && self.tasks[slot].stage == Stage::Aborted
        {
            self.forget(slot);
        }
    }
}

const NO_EXCHANGE: Reject = Reject::new(reason::LOGICAL_ERROR, explanation::INVALID_OX_RX_ID);

const NO_DATA: Reject = Reject::new(reason::UNABLE, explanation::NO_DATA);

const MALFORMED: Reject = Reject::new(reason::LOGICAL_ERROR, explanation::PAYLOAD_LENGTH);
