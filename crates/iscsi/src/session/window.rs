//! The command window from ExpCmdSN to MaxCmdSN: which CmdSN may come (RFC 7143 §4.2.2.1).
//!
//! Each request that is not immediate takes one place of the window, and gives it back when its
//! response has been handed to the connection. So a peer that does not read its responses runs out
//! of places, and what a session can cost is bounded by the width. The width starts small, doubles
//! whenever the initiator used it up, and never shrinks, as MaxCmdSN must not move back.
//!
//! A place that is free is not always open. A command may bring data that was not asked for, which
//! is held until the device server lends memory. MaxCmdSN goes only so far as all of that could be
//! held at once: a target that opens more places than that must answer commands it asked for with
//! TASK SET FULL. Nothing is set aside for an idle session, as all of it is counted, not allocated.

use crate::parameters::{FIRST_WINDOW, Operational};
use crate::wire::serial::CmdSn;

/// The command window of a session.
#[derive(Debug)]
pub(super) struct CommandWindow {
    /// The CmdSN of the next request.
    exp_cmd_sn: CmdSn,
    /// The last CmdSN that the initiator may use.
    max_cmd_sn: CmdSn,
    width: u32,
    limit: u32,
    used_up: bool,
    /// Places that are free, and not open for want of memory.
    free: u32,
    memory: WindowMemory,
}

/// Memory for the data that comes before the device server lends some, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowMemory {
    /// What neither the commands that have come nor those that may come can take. It can be below
    /// zero, as commands for immediate delivery need no place.
    spare: i64,
    /// How much a command may bring.
    each: i64,
}

impl WindowMemory {
    /// `limit` bytes for a session that agreed upon `keys`.
    pub(super) fn new(limit: u32, keys: &Operational) -> Self {
        let each = match (keys.initial_r2t, keys.immediate_data) {
            (false, _) => keys.first_burst,
            (true, true) => keys.first_burst.min(keys.own_data_segment),
            (true, false) => 0,
        };
        // While nothing is held, one command may always come.
        let each = each.min(limit);
        Self {
            spare: limit.into(),
            each: each.into(),
        }
    }
}

/// Where a CmdSN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CmdSnPlace {
    /// It is the next one.
    Next,
    /// It may come, but others come before it.
    Ahead,
    /// It has come already, or is beyond what may be sent.
    Outside,
}

impl CommandWindow {
    /// With the places open that login responses opened, for all of which there is memory
    /// ([`crate::target::TargetLimits::preferences`]).
    pub(super) fn new(exp_cmd_sn: CmdSn, limit: u32, memory: WindowMemory) -> Self {
        let limit = limit.max(1);
        let width = FIRST_WINDOW.min(limit);
        let mut window = Self {
            exp_cmd_sn,
            max_cmd_sn: exp_cmd_sn.minus(1),
            width,
            limit,
            used_up: false,
            free: width,
            memory,
        };
        window.open();
        window
    }

    /// Sets the widest that it may be from now on; it never gets narrower than it is.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit.max(self.width);
    }

    /// The width, if the initiator has used up the widest that may be.
    pub(super) fn used_up(&self) -> Option<u32> {
        (self.used_up && self.width == self.limit).then_some(self.width)
    }

    pub(super) const fn exp_cmd_sn(&self) -> CmdSn {
        self.exp_cmd_sn
    }

    pub(super) const fn max_cmd_sn(&self) -> CmdSn {
        self.max_cmd_sn
    }

    pub(super) fn place(&self, number: CmdSn) -> CmdSnPlace {
        if number == self.exp_cmd_sn && !self.is_closed() {
            CmdSnPlace::Next
        } else if number.is_before(self.exp_cmd_sn) || self.max_cmd_sn.is_before(number) {
            CmdSnPlace::Outside
        } else {
            CmdSnPlace::Ahead
        }
    }

    /// Advances ExpCmdSN: the next request has come, and takes a place.
    pub(super) fn accept(&mut self) {
        self.exp_cmd_sn = self.exp_cmd_sn.next();
        self.memory.spare += self.memory.each;
        self.used_up |= self.is_closed();
    }

    /// Advances ExpCmdSN past a request that is taken as received, and needs no place
    /// (RFC 7143 §11.6.1).
    pub(super) fn skip(&mut self) {
        self.exp_cmd_sn = self.exp_cmd_sn.next();
        self.max_cmd_sn = self.max_cmd_sn.next();
    }

    /// The response of an accepted request has left: its place is free, and there are more places
    /// if all had been in use.
    pub(super) fn release(&mut self) {
        if self.free == 0 && self.memory.spare >= self.memory.each && !self.used_up {
            self.memory.spare -= self.memory.each;
            self.max_cmd_sn = self.max_cmd_sn.next();
        } else {
            self.free += 1;
            self.widen();
        }
    }

    #[cold]
    fn widen(&mut self) {
        if self.used_up {
            self.used_up = false;
            let width = self.width.saturating_mul(2).min(self.limit);
            self.free += width - self.width;
            self.width = width;
        }
        self.open();
    }

    /// A command has come that brings `bytes` before memory is lent for them.
    pub(super) fn reserve(&mut self, bytes: u32) {
        self.memory.spare -= i64::from(bytes);
    }

    /// Of these, `bytes` need no memory here any more.
    pub(super) fn unreserve(&mut self, bytes: u32) {
        self.memory.spare += i64::from(bytes);
        if self.free > 0 && bytes > 0 {
            self.open();
        }
    }

    /// Opens the places that are free, as far as there is memory.
    #[cold]
    fn open(&mut self) {
        while self.free > 0 && self.memory.spare >= self.memory.each {
            self.free -= 1;
            self.memory.spare -= self.memory.each;
            self.max_cmd_sn = self.max_cmd_sn.next();
        }
    }

    fn is_closed(&self) -> bool {
        self.max_cmd_sn.next() == self.exp_cmd_sn
    }
}
