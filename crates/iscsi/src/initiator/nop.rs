//! Pings both ways, and what silence leads to (RFC 7143 §11.18, §11.19).

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

use super::Initiator;
use super::error::SessionEnd;
use super::mover::InitiatorMover;
use super::tasks::kind;
use crate::wire::bhs::{Bhs, Itt, Ttt};
use crate::wire::control::{NopIn, NopOut};
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// When the target was heard last, and what it was asked.
#[derive(Debug)]
pub(super) struct TargetLiveness {
    heard: Now,
    /// When it was pinged, after it was heard last.
    asked: Option<Now>,
    /// The ping that it has not answered.
    ping: Option<Itt>,
    /// CmdSN of the next command when that ping left.
    pub(super) followed: CmdSn,
}

impl TargetLiveness {
    pub(super) const fn new(now: Now) -> Self {
        Self {
            heard: now,
            asked: None,
            ping: None,
            followed: CmdSn(0),
        }
    }

    /// Any bytes are a sign of life.
    pub(super) const fn heard(&mut self, now: Now) {
        self.heard = now;
        self.asked = None;
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// When silence is looked at next. A discovery session is over before it is silent for long,
    /// and pings are not allowed there (RFC 7143 §4.3).
    pub(super) fn silence_deadline(&self) -> Option<Now> {
        let times = &self.config.times;
        let deadline = match self.liveness.asked {
            Some(at) => at.saturating_add(times.patience),
            None => self.liveness.heard.saturating_add(times.ping),
        };
        (!self.config.is_discovery()).then_some(deadline)
    }

    pub(super) fn check_silence(&mut self) {
        if self
            .silence_deadline()
            .is_none_or(|deadline| self.now < deadline)
        {
            return;
        }
        if self.liveness.asked.is_some() {
            return self.end(SessionEnd::Silent);
        }
        self.trim();
        self.ask_for_life();
    }

    /// Whether nothing was heard since, where pings tell.
    pub(super) fn is_silent_since(&self, since: Now) -> bool {
        self.liveness.heard <= since && !self.config.is_discovery()
    }

    /// Pings, unless that was done since the target was heard last. Returns by when it has to be
    /// heard.
    pub(super) fn ask_for_life(&mut self) -> Now {
        let asked = *self.liveness.asked.get_or_insert(self.now);
        self.ping();
        asked.saturating_add(self.config.times.patience)
    }

    /// Whether a ping of ours was not answered.
    pub(super) const fn is_pinging(&self) -> bool {
        self.liveness.ping.is_some()
    }

    pub(super) fn ping(&mut self) {
        if self.liveness.ping.is_some() {
            // One that was asked before is still to be answered; another would say no more.
            return;
        }
        let itt = self.tasks.tag(kind::PING);
        self.liveness.ping = Some(itt);
        self.nop_out(Lun([0; 8]), itt, Ttt::NONE);
    }

    fn nop_out(&mut self, lun: Lun, itt: Itt, ttt: Ttt) {
        let request = NopOut {
            immediate: true,
            lun,
            itt,
            ttt,
            cmd_sn: CmdSn(0),
            exp_stat_sn: StatSn(0),
        };
        self.request(request.encode());
    }

    /// Gives back the memory that a busy session needed.
    fn trim(&mut self) {
        self.tasks.trim();
        self.ready.shrink_to_fit();
        self.events.shrink_to_fit();
        self.mover.trim();
    }

    pub(super) fn nop_in(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let pdu = NopIn::decode(bhs);
        if pdu.itt != Itt::NONE {
            self.numbers.status(pdu.stamps)?;
            return self.pong(pdu.itt);
        }
        self.numbers.window(pdu.stamps)?;
        if pdu.ttt != Ttt::NONE {
            self.acknowledge(pdu.lun, pdu.ttt);
        }
        Ok(())
    }

    /// The ping of this tag is over, answered or rejected.
    pub(super) fn pong(&mut self, itt: Itt) -> Result<(), Violation> {
        match self.liveness.ping.take_if(|ping| *ping == itt) {
            Some(_) => {
                self.ping_followed(self.liveness.followed);
                Ok(())
            }
            None => Err(NO_PING),
        }
    }

    /// A NOP-Out that is not answered: the answer to a ping of the target's, or, without its tag,
    /// only an ExpStatSN.
    pub(super) fn acknowledge(&mut self, lun: Lun, ttt: Ttt) {
        self.nop_out(lun, Itt::NONE, ttt);
    }
}

const NO_PING: Violation = Violation {
    rule: "a response to a ping that was not sent",
    clause: "RFC 7143 §11.19",
};
