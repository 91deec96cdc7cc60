//! The command window: which CmdSN may come next (RFC 7143 §4.2.2.1).
//!
//! Each request that is not immediate takes one place of the window, and gives it back when its
//! response has been handed to the connection. So a peer that does not read its responses runs out
//! of places, and what a session can cost is bounded by the width. The width starts small, doubles
//! whenever the initiator used it up, and never shrinks, as MaxCmdSN must not move back.

use crate::parameters::FIRST_WINDOW;
use crate::wire::serial::CmdSn;

/// The command window of a session.
#[derive(Debug)]
pub(super) struct Window {
    expected: CmdSn,
    max: CmdSn,
    width: u32,
    limit: u32,
    used_up: bool,
}

/// Where a CmdSN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the next one.
    Next,
    /// It may come, but others come before it.
    Ahead,
    /// It has come already, or is beyond what may be sent.
    Outside,
}

impl Window {
    pub(super) fn new(expected: CmdSn, limit: u32) -> Self {
        let limit = limit.max(1);
        let width = FIRST_WINDOW.min(limit);
        Self {
            expected,
            max: expected.plus(width - 1),
            width,
            limit,
            used_up: false,
        }
    }

    pub(super) const fn expected(&self) -> CmdSn {
        self.expected
    }

    pub(super) const fn max(&self) -> CmdSn {
        self.max
    }

    pub(super) fn place(&self, number: CmdSn) -> Place {
        if number == self.expected && !self.is_closed() {
            Place::Next
        } else if number.is_before(self.expected) || self.max.is_before(number) {
            Place::Outside
        } else {
            Place::Ahead
        }
    }

    /// The next request has come.
    pub(super) fn accept(&mut self) {
        self.expected = self.expected.next();
        self.used_up |= self.is_closed();
    }

    /// The next request is taken as received and needs no place (RFC 7143 §11.6.1).
    pub(super) fn skip(&mut self) {
        self.expected = self.expected.next();
        self.max = self.max.next();
    }

    /// The response of an accepted request has left: its place is free, and there are more places
    /// if all had been in use.
    pub(super) fn release(&mut self) {
        self.max = self.max.next();
        if self.used_up {
            self.used_up = false;
            let width = self.width.saturating_mul(2).min(self.limit);
            self.max = self.max.plus(width - self.width);
            self.width = width;
        }
    }

    fn is_closed(&self) -> bool {
        self.max.next() == self.expected
    }
}
