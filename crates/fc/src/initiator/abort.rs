//! ABTS, and what follows it: the OX_ID rests for R_A_TOV, then RRQ frees it (FC-FS-3, recovery
//! qualifier).

use scsi::medium::{Lease, Now};

use super::exchanges::{CommandStage, InitiatorExchange, InitiatorSlot};
use super::recovery::LinkServiceKind;
use super::{Fate, FcpInitiator, FcpInitiatorEvent, FcpWhy};
use crate::remote::RemoteId;
use crate::wire::bls::BaRjt;
use crate::wire::els::{Els, ExchangeName};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

/// An OX_ID that must not be used yet, as frames of its exchange may still come.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldOxId {
    pub(super) until: Now,
    remote: RemoteId,
    ox_id: OxId,
    rx_id: RxId,
    /// The other end leaves it alone too, until it is told.
    is_shared: bool,
}

/// ABTS that are sent, each after REC_TOV, before the target counts as stuck; more where the first
/// pauses are shorter. That takes nine times E_D_TOV, longer than the twice R_A_TOV that FC-FS-3
/// gives an ABTS where that is twice E_D_TOV.
const TRIES: u8 = 6;

impl<L: Lease> FcpInitiator<L> {
    /// Ends a command before its time.
    pub(super) fn abort(&mut self, slot: InitiatorSlot, why: FcpWhy) {
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        match task.stage {
            CommandStage::Ready => self.fail(slot, Fate::NeverSent, why),
            CommandStage::Open => {
                task.stage = CommandStage::Aborting { why, tries: 0 };
                self.sequences.retain(|(waiting, _)| *waiting != slot);
                self.abort_again(slot);
            }
            CommandStage::Aborting { .. } => {}
        }
    }

    /// Sends ABTS, as often as it may be lost.
    pub(super) fn abort_again(&mut self, slot: InitiatorSlot) {
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let CommandStage::Aborting { why, tries } = task.stage else {
            return;
        };
        let (remote, ox_id, rx_id) = (task.remote, task.ox_id, task.rx_id);
        let seq_id = task.next_seq_id();
        task.touched = self.now;
        let Some(Some(nexus)) = self.nexuses.get(remote.index()) else {
            return;
        };
        if tries >= nexus.patience.tries(TRIES) {
            return self.stuck(remote);
        }
        task.stage = CommandStage::Aborting {
            why,
            tries: tries + 1,
        };
        let header = FrameHeader {
            f_ctl: FCtl::END_SEQUENCE.with(FCtl::SEQUENCE_INITIATIVE),
            seq_id,
            ..nexus.peer.header(RCtl::ABTS, FrameType::BLS, ox_id, rx_id)
        };
        self.queue_control(remote, header, Vec::new());
        if let Some(until) = self.silence_until(slot) {
            self.look_by(until);
        }
    }

    /// BA_ACC, or BA_RJT that says that there is no such exchange: nothing of it happens any more
    /// at the target. Any other BA_RJT says nothing of that, and ABTS goes out again in its time.
    pub(super) fn abort_answered(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let says_unknown = |why: BaRjt| why.explanation == BaRjt::INVALID_OX_RX_ID;
        let is_over =
            header.r_ctl == RCtl::BA_ACC || BaRjt::parse(frame.payload).is_ok_and(says_unknown);
        let Some(slot) = self.tasks.find(remote, header.ox_id).filter(|_| is_over) else {
            return;
        };
        let task = self.tasks.at(slot);
        let Some(CommandStage::Aborting { why, .. }) = task.map(|task| task.stage) else {
            return;
        };
        self.fail(slot, Fate::Aborted, why);
        self.abort_done(header.ox_id);
    }

    fn stuck(&mut self, remote: RemoteId) {
        if let Some(nexus) = self.nexus(remote)
            && !std::mem::replace(&mut nexus.is_stuck, true)
        {
            self.events.push_back(FcpInitiatorEvent::Stuck(remote));
        }
    }

    /// Leaves the OX_ID of a command alone for R_A_TOV.
    pub(super) fn hold(&mut self, task: &InitiatorExchange<L>) {
        let Some(peer) = self.peer(task.remote) else {
            return;
        };
        self.held.push_back(HeldOxId {
            until: self.now.saturating_add(peer.r_a_tov),
            remote: task.remote,
            ox_id: task.ox_id,
            rx_id: task.rx_id,
            is_shared: matches!(task.stage, CommandStage::Aborting { .. }),
        });
        self.tasks.ids.hold(task.ox_id.0);
    }

    /// With the login, the other end has forgotten what it left alone.
    pub(super) fn keep_held(&mut self, remote: RemoteId) {
        let of_it = self.held.iter_mut().filter(|held| held.remote == remote);
        of_it.for_each(|held| held.is_shared = false);
    }

    pub(super) fn check_held(&mut self) {
        while let Some(held) = self.held.pop_front_if(|held| held.until <= self.now) {
            let asked = held.is_shared && self.reinstate(&held);
            if !asked {
                self.tasks.ids.release(held.ox_id.0);
            }
        }
    }

    /// RRQ: both ends may use the OX_ID again.
    fn reinstate(&mut self, held: &HeldOxId) -> bool {
        let Some(peer) = self.peer(held.remote) else {
            return false;
        };
        let rrq = Els::Rrq(ExchangeName {
            originator: peer.own.fc_id,
            ox_id: held.ox_id,
            rx_id: held.rx_id,
        });
        self.serve(held.remote, held.ox_id, LinkServiceKind::Rrq, &rrq, 0)
    }
}
