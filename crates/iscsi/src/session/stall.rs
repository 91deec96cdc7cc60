//! Stall timers: whether a peer makes progress, however slowly. A slow reader is held back by
//! backpressure; one that answers pings and never reads is ended here.
//!
//! What waits for it is in memory that others need too, and may be memory of a volume that others
//! have to wait for. What it sends by itself, pings or answers to none, says nothing of that.

use scsi::medium::{Lease, Now};

use super::Session;
use crate::datamover::Datamover;
use crate::datamover::iser::IserMover;
use crate::datamover::tcp::TcpMover;

/// Looks at something now and then: it is stuck when nothing of it moved between two looks.
#[derive(Debug, Default)]
pub(super) struct StallTimer {
    /// When to look next; `None` while nothing is in flight.
    look: Option<Now>,
    /// Bytes that moved since the last look.
    moved: u32,
}

/// Bytes between two looks below which a peer counts as slow: by default about 1 KiB a second. A
/// peer that sends a byte now and then would otherwise hold the memory that was lent to it for
/// ever.
const LEAST: u32 = 64 << 10;

impl StallTimer {
    pub(super) const fn deadline(&self) -> Option<Now> {
        self.look
    }

    /// Something is in flight. The first look never finds it stuck, as `now` may be long ago: what
    /// came last from the peer can have waited for others, or for a medium.
    pub(super) fn begin(&mut self, now: Now, wait: Now) {
        if self.look.is_none() {
            self.look = Some(now.saturating_add(wait));
            self.moved = u32::MAX;
        }
    }

    pub(super) const fn moved(&mut self, bytes: u32) {
        self.moved = self.moved.saturating_add(bytes);
    }

    /// Looks, if it is time to. Whether what is `in_flight` has not moved since the last look.
    pub(super) fn is_stuck(&mut self, now: Now, wait: Now, in_flight: bool) -> bool {
        if self.look.is_none_or(|look| now < look) {
            return false;
        }
        let stuck = in_flight && std::mem::take(&mut self.moved) == 0;
        self.look = (in_flight && !stuck).then(|| now.saturating_add(wait));
        stuck
    }

    /// Checks progress, if it is time to. Returns whether an operation was in flight for longer
    /// than `wait` (the `oldest` since then) and less than [`LEAST`] moved since the last check.
    pub(super) fn is_slow(&mut self, now: Now, wait: Now, oldest: Option<Now>) -> bool {
        if self.look.is_none_or(|look| now < look) {
            return false;
        }
        let overdue = oldest.is_some_and(|oldest| oldest.saturating_add(wait) <= now);
        let moved = std::mem::take(&mut self.moved);
        let slow = overdue && moved < LEAST;
        self.look = (oldest.is_some() && !slow).then(|| now.saturating_add(wait));
        slow
    }
}

/// Whether what is sent leaves.
#[derive(Debug, Default)]
pub(super) struct SendStall {
    pub(super) progress: StallTimer,
    /// Something is on its way.
    in_flight: bool,
}

impl<L: Lease> Session<L, TcpMover<L>> {
    /// All that was transmitted has left, as the next call of `transmit` would tell as well, which
    /// is saved where [`Session::queued`] tells that there is nothing more.
    pub fn all_left(&mut self) {
        self.left(false);
    }
}

impl<L: Lease> Session<L, IserMover<L>> {
    /// All that the queue pair put out before has left; whether it has put out more. What software
    /// iWARP completes does not tell that: a send is complete while its data is held, and a peer
    /// that reads nothing would have everything completed. What a device completes does.
    pub fn has_put_out(&mut self, more: bool) {
        self.left(more);
    }
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// All that was sent before has left; whether there was more to be sent.
    pub(crate) fn left(&mut self, more: bool) {
        self.connection.send_stall.progress.moved(1);
        self.connection.send_stall.in_flight = more;
        if more {
            let wait = self.config.limits.nop_timeout;
            self.connection.send_stall.progress.begin(self.now, wait);
        }
    }

    /// Something more is in flight. That is no progress.
    pub(crate) fn on_its_way(&mut self) {
        let wait = self.config.limits.nop_timeout;
        self.connection.send_stall.in_flight = true;
        self.connection.send_stall.progress.begin(self.now, wait);
    }

    /// Ends the session when what was in flight at one look is so at the next.
    pub(super) fn check_untaken(&mut self) {
        let wait = self.config.limits.nop_timeout;
        let SendStall {
            progress,
            in_flight,
        } = &mut self.connection.send_stall;
        if progress.is_stuck(self.now, wait, *in_flight) {
            self.violated("the peer does not read its data", "--nop-timeout");
        }
    }
}
