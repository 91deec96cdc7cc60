//! What other ports say, and which port keeps an N_Port_ID that two ports want (FC-BB-6).

use super::announcement::Announcement;
use super::{ANNOUNCE_WAIT, LOCAL_IDS, PROBE_WAIT, QUICK_TRIES, RATE_LIMIT};
use super::{Fip, FipEvent, FipState, Mode, UnlinkReason};
use crate::wire::ethernet::Mac;
use crate::wire::fip::FipOperation;
use crate::wire::names::FcId;
use scsi::violation::Violation;

impl Fip {
    /// Draws lots for when to send the first probe.
    pub(super) fn wait(&mut self) {
        let wait = if self.tries < QUICK_TRIES {
            self.lot(PROBE_WAIT)
        } else {
            RATE_LIMIT
        };
        self.tries = self.tries.saturating_add(1);
        self.outgoing.clear();
        self.enter(FipState::Waiting, Some(wait));
    }

    /// Sends it to all.
    pub(super) fn announce(&mut self, operation: FipOperation) {
        self.send(operation, self.group());
    }

    pub(super) fn claim(&mut self) {
        self.claimed = self.now;
        self.announce(FipOperation::ClaimNotification);
    }

    const fn group(&self) -> Mac {
        match self.mode {
            Mode::Multipoint => Mac::ALL_VN2VN_ENODE,
            Mode::PointToPoint => Mac::ALL_PT2PT_ENODE,
        }
    }

    pub(super) fn announced(&mut self, from: &Announcement) -> Result<(), Violation> {
        if from.is_echo(&self.config) || self.is_of_another_mode(from) {
            return Ok(());
        }
        if from.fc_id == self.fc_id {
            self.contend(from);
            return Ok(());
        }
        match from.operation {
            FipOperation::ClaimNotification if self.has_claimed() => {
                self.answer(from);
                self.meet(from)
            }
            FipOperation::ClaimResponse if self.has_claimed() => self.meet(from),
            FipOperation::Beacon => self.hear(from),
            FipOperation::ProbeRequest => {
                self.note_probe(from);
                Ok(())
            }
            // A claim while we have none: its sender answers ours, so we shall know it in time.
            _ => Ok(()),
        }
    }

    /// Whether others take our N_Port_ID for ours.
    pub(super) const fn has_claimed(&self) -> bool {
        matches!(self.state, FipState::Claiming | FipState::Up)
    }

    /// A port in point-to-point mode that hears of multipoint changes over. A port in multipoint
    /// mode asks the other to.
    fn is_of_another_mode(&mut self, from: &Announcement) -> bool {
        match (self.mode, from.mode) {
            (Mode::PointToPoint, Some(Mode::Multipoint)) => {
                self.release(UnlinkReason::Mode);
                self.mode = Mode::Multipoint;
                self.wait();
                true
            }
            (Mode::Multipoint, Some(Mode::PointToPoint)) => {
                // Another probe is answered as ever, so that its sender takes nothing that is ours.
                let probe = from.operation == FipOperation::ProbeRequest;
                if !probe {
                    self.invite();
                }
                !probe
            }
            _ => false,
        }
    }

    fn invite(&mut self) {
        let again = |at| self.now >= ANNOUNCE_WAIT.saturating_add(at);
        if self.invited.is_none_or(again) {
            self.invited = Some(self.now);
            self.announce(FipOperation::ProbeRequest);
        }
    }

    /// Our N_Port_ID is another port's. The higher WWPN keeps it, but for what was claimed before.
    /// Two ports of the same WWPN are told apart by their MAC addresses: else they would claim
    /// against each other for ever.
    fn contend(&mut self, from: &Announcement) {
        let ours = (self.config.wwpn, self.config.mac);
        let stronger = ours > (from.wwpn, from.enode);
        match (self.state, from.operation) {
            (FipState::Claiming | FipState::Up, FipOperation::ProbeRequest) => self.deny(from),
            (FipState::Probing | FipState::Probed, FipOperation::ProbeRequest)
                if stronger && !from.recorded =>
            {
                self.deny(from);
            }
            (FipState::Up, FipOperation::ProbeReply) => self.claim(),
            (FipState::Claiming | FipState::Up, operation)
                if stronger && operation != FipOperation::ProbeReply =>
            {
                self.claim();
            }
            _ => self.give_up(),
        }
    }

    fn deny(&mut self, from: &Announcement) {
        self.send(FipOperation::ProbeReply, from.enode);
    }

    /// Begins anew with another N_Port_ID, that no known port has.
    fn give_up(&mut self) {
        self.statistics.conflicts += 1;
        self.release(UnlinkReason::Conflict);
        let mut fc_id = self.draw();
        for _ in 0..DRAWS {
            if fc_id != self.fc_id && !self.neighbours.knows(fc_id) {
                break;
            }
            fc_id = self.draw();
        }
        self.fc_id = fc_id;
        self.wait();
    }

    /// An N_Port_ID, whether or not another port has it.
    fn draw(&mut self) -> FcId {
        FcId(self.random.u32(LOCAL_IDS))
    }

    /// All virtual links end, as does our claim.
    pub(super) fn release(&mut self, why: UnlinkReason) {
        self.unlink_all(why);
        if self.state == FipState::Up {
            self.events.push_back(FipEvent::Released(self.fc_id));
        }
    }
}

/// With as many ports as there may be, a draw fails once in 16.
const DRAWS: usize = 32;
