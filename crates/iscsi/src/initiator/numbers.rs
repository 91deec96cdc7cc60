//! The numbers of a session and its connection (RFC 7143 §4.2.2).

use crate::wire::bhs::Stamps;
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceNumbers {
    /// CmdSN of the next command.
    pub(super) cmd_sn: CmdSn,
    /// ExpCmdSN: the target has counted every command before it.
    pub(super) exp_cmd_sn: CmdSn,
    /// Where the window ends: the last CmdSN that may be sent.
    max_cmd_sn: CmdSn,
    /// StatSN of the next status; `None` before the first.
    exp_stat_sn: Option<StatSn>,
    /// A status may come before its turn.
    may_overtake: bool,
    /// Those that have: the lowest bit is that of the status behind the next one.
    overtaken: u64,
    /// A discovery session, in which every request is immediate, so that none advances CmdSN
    /// (§4.2.2.1). istgt 0.4 advances ExpCmdSN all the same, which does no harm there; in a normal
    /// session it would take the next command for one that it has seen.
    discovery: bool,
}

impl SequenceNumbers {
    /// The window is closed.
    pub(super) const fn new(cmd_sn: CmdSn, discovery: bool, may_overtake: bool) -> Self {
        Self {
            cmd_sn,
            exp_cmd_sn: cmd_sn,
            max_cmd_sn: cmd_sn.minus(1),
            exp_stat_sn: None,
            may_overtake,
            overtaken: 0,
            discovery,
        }
    }

    /// ExpStatSN, which acknowledges all before it.
    pub(super) fn exp_stat_sn(&self) -> StatSn {
        self.exp_stat_sn.unwrap_or_default()
    }

    /// Whether the target has counted all commands before this one.
    pub(super) const fn has_counted(&self, next: CmdSn) -> bool {
        !self.exp_cmd_sn.is_before(next)
    }

    /// Whether the window has room for another command.
    pub(super) const fn is_open(&self) -> bool {
        !self.max_cmd_sn.is_before(self.cmd_sn)
    }

    /// The number of a command that is sent now.
    pub(super) const fn take(&mut self) -> CmdSn {
        let number = self.cmd_sn;
        self.cmd_sn = number.next();
        number
    }

    /// A Login Response. Over RDMA, tgt 1.0.85 counts the request in ExpCmdSN, though that is
    /// immediate (§4.2.2.1), and then expects the first command with the number it has counted.
    pub(super) fn login(&mut self, mut stamps: Stamps, may_count: bool) -> Result<(), Violation> {
        if may_count && !self.discovery && stamps.exp_cmd_sn == self.cmd_sn.next() {
            stamps.exp_cmd_sn = self.cmd_sn;
        }
        self.status(stamps)
    }

    /// A PDU that carries a status. Over one connection none can be missing, so a gap means that
    /// the target has lost count.
    pub(super) fn status(&mut self, stamps: Stamps) -> Result<(), Violation> {
        if self.exp_stat_sn.is_some_and(|next| next != stamps.stat_sn) {
            return Err(GAP);
        }
        let mut next = stamps.stat_sn.next();
        if self.overtaken != 0 {
            next = self.behind_overtaken(next);
        }
        self.exp_stat_sn = Some(next);
        self.window(stamps)
    }

    /// The number behind those that came ahead of this one.
    #[cold]
    fn behind_overtaken(&mut self, next: StatSn) -> StatSn {
        let more = self.overtaken.trailing_ones();
        self.overtaken = self.overtaken.checked_shr(1 + more).unwrap_or(0);
        StatSn(next.0.wrapping_add(more))
    }

    /// A SCSI Response. Over RDMA it may overtake others, as LIO posts two in another order than
    /// it has numbered them; the one that was overtaken is acknowledged with it. The response to a
    /// task management function may not: it tells that no status comes any more.
    pub(super) fn response(&mut self, stamps: Stamps) -> Result<(), Violation> {
        if self.may_overtake
            && let Some(next) = self.exp_stat_sn
        {
            let ahead = stamps.stat_sn.0.wrapping_sub(next.0);
            if (1..=u64::BITS).contains(&ahead) {
                return self.overtakes(1 << (ahead - 1), stamps);
            }
        }
        self.status(stamps)
    }

    fn overtakes(&mut self, bit: u64, stamps: Stamps) -> Result<(), Violation> {
        if self.overtaken & bit != 0 {
            return Err(GAP);
        }
        self.overtaken |= bit;
        self.window(stamps)
    }

    /// Any PDU: how far the window is open. It never moves back, and what contradicts itself is
    /// ignored (§4.2.2.1).
    pub(super) fn window(&mut self, stamps: Stamps) -> Result<(), Violation> {
        if stamps.max_cmd_sn.next().is_before(stamps.exp_cmd_sn) {
            return Ok(());
        }
        if self.cmd_sn.is_before(stamps.exp_cmd_sn) {
            if !self.discovery {
                return Err(AHEAD);
            }
            self.cmd_sn = stamps.exp_cmd_sn;
        }
        if self.exp_cmd_sn.is_before(stamps.exp_cmd_sn) {
            self.exp_cmd_sn = stamps.exp_cmd_sn;
        }
        if self.max_cmd_sn.is_before(stamps.max_cmd_sn) {
            self.max_cmd_sn = stamps.max_cmd_sn;
        }
        Ok(())
    }
}

const GAP: Violation = Violation {
    rule: "a StatSN that is not the next one",
    clause: "RFC 7143 §4.2.2.2",
};

const AHEAD: Violation = Violation {
    rule: "an ExpCmdSN beyond the last CmdSN sent",
    clause: "RFC 7143 §4.2.2.1",
};
