//! NOP-Out and NOP-In: pings both ways, and what silence leads to (RFC 7143 §11.18, §11.19).
//!
//! A session that answers and has nothing else to say is asked less and less often, as thousands of
//! idle ones would else keep a core from sleep. That its host is there the kernel asks meanwhile
//! (TCP keepalive), so what is found later is only an initiator that hangs and owes nothing.

use std::time::Duration;

use scsi::medium::{Lease, Now};
use scsi::wire::lun::Lun;

use super::Session;
use super::receive::SegmentSink;
use crate::datamover::Datamover;
use crate::target::TargetLimits;
use crate::wire::bhs::{Bhs, Itt, Stamps, Ttt};
use crate::wire::control::{NopIn, NopOut, reason};
use crate::wire::serial::CmdSn;

/// Intervals of silence after which an idle session is asked at the most: 10,000 of them took 1.1 %
/// of a core when they were asked after each.
const LONGEST_PATIENCE: u32 = 4;

/// When the peer was heard last, and what it was asked.
#[derive(Debug)]
pub(super) struct PeerLiveness {
    heard: Now,
    pinged: Option<Now>,
    /// ExpCmdSN when it was asked last, and how long it may be silent while that has not moved.
    idle: (CmdSn, Duration),
    logout_by: Option<Now>,
    next_ttt: u32,
}

impl PeerLiveness {
    pub(super) const fn new(now: Now, expected: CmdSn, limits: &TargetLimits) -> Self {
        Self {
            heard: now,
            pinged: None,
            idle: (expected, limits.nop_interval),
            logout_by: None,
            next_ttt: 0,
        }
    }

    pub(super) const fn heard(&mut self, now: Now) {
        self.heard = now;
        self.pinged = None;
    }

    pub(super) fn deadline(&self, limits: &TargetLimits, expected: CmdSn) -> Now {
        match self.pinged {
            Some(at) => at.saturating_add(limits.nop_timeout),
            None => self.heard.saturating_add(self.patience(limits, expected)),
        }
    }

    fn ask(&mut self, now: Now, limits: &TargetLimits, expected: CmdSn) {
        self.pinged = Some(now);
        let patience = self.patience(limits, expected).saturating_mul(2);
        let longest = limits.nop_interval.saturating_mul(LONGEST_PATIENCE);
        self.idle = (expected, patience.min(longest));
    }

    fn patience(&self, limits: &TargetLimits, expected: CmdSn) -> Duration {
        let (asked_at, patience) = self.idle;
        if asked_at == expected {
            patience
        } else {
            limits.nop_interval
        }
    }

    pub(super) const fn logout_deadline(&self) -> Option<Now> {
        self.logout_by
    }

    pub(super) const fn expect_logout(&mut self, by: Now) {
        self.logout_by = Some(by);
    }

    fn next_ttt(&mut self) -> Ttt {
        self.next_ttt = self.next_ttt.wrapping_add(1) & 0x7fff_ffff;
        Ttt(self.next_ttt)
    }
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// A NOP-Out, its data in `collected`; whether it was not rejected.
    pub(super) fn nop_out(&mut self, bhs: &Bhs) -> bool {
        let ping = NopOut::decode(bhs);
        if ping.itt == Itt::NONE {
            // An answer to a ping of ours, or only an ExpStatSN: that it came was all.
            if !ping.immediate {
                self.reject(reason::PROTOCOL_ERROR, bhs);
                self.remark(
                    "a numbered NOP-Out with the reserved Initiator Task Tag",
                    "RFC 7143 §11.18.1",
                );
            }
            return ping.immediate;
        }
        if self.is_itt_in_use(ping.itt) {
            self.reject(reason::TASK_IN_PROGRESS, bhs);
            return false;
        }
        let answer = NopIn {
            lun: Lun([0; 8]),
            itt: ping.itt,
            ttt: Ttt::NONE,
            stamps: Stamps::default(),
        };
        let limit = self.keys().peer_data_segment as usize;
        let echo = self.collected[..self.collected.len().min(limit)].to_vec();
        self.queue_control(answer.encode(), echo, !ping.immediate);
        true
    }

    /// The peer has been silent for long: asks whether it is there, and in the end gives it up.
    pub(super) fn check_silence(&mut self) {
        let expected = self.window.exp_cmd_sn();
        if self.now
            < self
                .connection
                .liveness
                .deadline(&self.config.limits, expected)
        {
            return;
        }
        if self.connection.liveness.pinged.is_some() {
            self.violated("silence", "RFC 7143 §7.14");
            return;
        }
        self.connection
            .liveness
            .ask(self.now, &self.config.limits, expected);
        self.trim();
        // A discovery session gets nothing but text and logout responses (§7.4.3).
        if !self.is_discovery() {
            let ping = NopIn {
                lun: Lun([0; 8]),
                itt: Itt::NONE,
                ttt: self.connection.liveness.next_ttt(),
                stamps: Stamps::default(),
            };
            self.queue_unnumbered(ping.encode());
        }
    }

    /// Gives back the memory that a busy session needed.
    fn trim(&mut self) {
        self.tasks.trim();
        self.connection.mover.trim(!self.tasks.is_empty());
        self.events.shrink_to_fit();
        if matches!(self.inbound, SegmentSink::Drop) {
            self.collected = Vec::new();
        }
    }
}
