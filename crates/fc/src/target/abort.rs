//! ABTS (FC-FS-3, abort sequence; FCP-4, recovery abort): the initiator ends an exchange.
//!
//! It is answered when the device server has ended the command: nothing of it happens afterwards.
//! One of which nothing is known is answered too. Its FCP_CMND may still be on its way, so the
//! OX_ID begins nothing before R_A_TOV has passed or RRQ gives it back.

use scsi::medium::Lease;

use super::FcpTarget;
use super::exchanges::{ExchangeSlot, ExchangeStage};
use crate::remote::RemoteId;
use crate::wire::bls::{BaAcc, BaRjt};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

impl<L: Lease> FcpTarget<L> {
    pub(super) fn abts(&mut self, remote: RemoteId, header: &FrameHeader) {
        let found = self.tasks.find(remote, header.ox_id, header.rx_id);
        // A name that does not fit is that of nothing here, but the OX_ID may be in use.
        let slot = match found.or_else(|| self.tasks.by_ox_id(remote, header.ox_id)) {
            Some(slot) if found.is_none() && !self.tasks[slot].stage.is_over() => {
                return self.reject_abort(remote, header);
            }
            Some(slot) => slot,
            None => match self.tasks.insert(remote, header.ox_id) {
                Some(slot) => {
                    self.tasks[slot].stage = ExchangeStage::Ended;
                    slot
                }
                None => return self.accept_abort(remote, header.ox_id, header.rx_id),
            },
        };
        self.tasks[slot].rests = true;
        match self.tasks[slot].stage {
            ExchangeStage::Executing => {
                self.tasks[slot].owes_answer = true;
                self.abort(slot);
            }
            ExchangeStage::Managing | ExchangeStage::Aborting => {
                self.tasks[slot].owes_answer = true;
            }
            _ => self.abort_done(slot),
        }
    }

    /// The device server ended a command without a response: because the initiator asked for that,
    /// or another one, or because its data did not come.
    pub(super) fn device_aborted(&mut self, slot: ExchangeSlot) {
        match self.tasks[slot].stage {
            ExchangeStage::Executing | ExchangeStage::Aborting => self.abort_done(slot),
            _ => {}
        }
    }

    /// Nothing of an exchange is in flight any more.
    pub(super) fn abort_done(&mut self, slot: ExchangeSlot) {
        let task = &mut self.tasks[slot];
        let remote = task.remote;
        let owes = std::mem::take(&mut task.owes_answer);
        let was = std::mem::replace(&mut task.stage, ExchangeStage::Aborted);
        self.open -= u32::from(was.is_open());
        self.asks_no_more(slot);
        self.drop_kept(slot);
        let task = &mut self.tasks[slot];
        task.let_go();
        task.ending = None;
        let (ox_id, rx_id) = (task.ox_id, task.rx_id);
        let dropped = self.queue.remove(slot);
        self.count_queued(remote, dropped, 0);
        if was != ExchangeStage::Aborted {
            self.plug(slot);
        }
        if owes || !matches!(was, ExchangeStage::Executing | ExchangeStage::Aborting) {
            self.accept_abort(remote, ox_id, rx_id);
        }
    }

    /// The names are not those of one exchange.
    fn reject_abort(&mut self, remote: RemoteId, request: &FrameHeader) {
        let names = (request.ox_id, request.rx_id);
        self.answer_abort(remote, RCtl::BA_RJT, names, &BaRjt::UNKNOWN.encode());
    }

    fn accept_abort(&mut self, remote: RemoteId, ox_id: OxId, rx_id: RxId) {
        // All sequences, whatever their numbers: both ends leave the OX_ID alone for R_A_TOV.
        let payload = BaAcc::exchange(ox_id, rx_id).encode();
        self.answer_abort(remote, RCtl::BA_ACC, (ox_id, rx_id), &payload);
    }

    fn answer_abort(
        &mut self,
        remote: RemoteId,
        r_ctl: RCtl,
        (ox_id, rx_id): (OxId, RxId),
        payload: &[u8],
    ) {
        if let Some(peer) = self.peer(remote) {
            let header = FrameHeader {
                f_ctl: FCtl::REPLY,
                ..peer.header(r_ctl, FrameType::BLS, ox_id, rx_id)
            };
            self.queue_control(remote, header, payload);
        }
    }
}
