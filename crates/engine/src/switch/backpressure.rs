//! Backpressure: which cables are left unread, as what comes in goes to a port that is slower.
//!
//! Class 3 has no flow control, but a cable has: a socket that is not read fills up, and its other
//! end waits. So a cable is not read while frames that came from it fill the queue of an egress
//! port. A station that reads slowly must not hold up others for ever, nor again and again: after
//! [`HOLD_MAX`] the port that it is at exerts no backpressure until its queue has been empty once,
//! and meanwhile loses what it has no room for.
//!
//! Where there are several cores, each has a queue of its own for each egress port.
//!
//! Whatever a port is, it is left unread while the machine's core does not take its mail: what is
//! lost there is a host's login, not only a frame.
//!
//! What comes in at a cable and is not forwarded, but for the switch itself or dropped, has no such
//! queue. A station that sends nothing else, as fast as it can, would have the switch read a whole
//! batch of it in each turn, while the ports of others wait. So the time that such frames take is
//! paid from a bucket for each cable, and a cable that has none left is throttled: not read until
//! it has some again.

use std::time::Duration;

use scsi::medium::Now;

/// Ports of one switch at the most. A set of them is one word.
pub const PORTS_MAX: usize = 64;

/// For how long a cable is left unread at the most.
pub(super) const HOLD_MAX: Duration = Duration::from_millis(100);

/// Frames of a cable that are not forwarded have the core's time divided by this.
const SHARE_DIVISOR: u32 = 32;

/// What they may take at once, after a rest: hosts log in, and ask the name server what there is.
const BURST: Duration = Duration::from_millis(2);

/// What a frame is charged at the most: beyond that this thread did not run.
const FRAME_MAX: Duration = Duration::from_micros(100);

/// Bytes in the queue of an egress port from which on it holds cables back: a quarter of what it
/// takes, as each of several cables may be in the midst of a batch of up to 0.6 MiB.
const HIGH_WATERMARK: usize = super::backlog::BACKLOG_MAX / 4;

/// Bytes in its queue from which on downwards it does not any more.
const LOW_WATERMARK: usize = HIGH_WATERMARK / 4;

/// The state of the ports of a core.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    /// Egress ports whose queue is at the high watermark, until it is at the low one.
    full: PortSet,
    /// Egress ports that have held a cable back for too long, until their queue is empty.
    timed_out: PortSet,
    /// Ports that are left unread as their mail is not taken.
    unmailed: PortSet,
    cables: Vec<CableState>,
    /// When the part of the core that each has will have paid for its frames that were not
    /// forwarded.
    paid_at: Vec<Now>,
}

/// What is known of an ingress port.
#[derive(Clone, Copy, Debug, Default)]
struct CableState {
    /// Where the frames went that came in last.
    fed: PortSet,
    /// Since when it is left unread.
    since: Option<Now>,
    /// Until when it is left unread for frames that were not forwarded.
    throttled_until: Option<Now>,
}

/// Frames that came in at a port in one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchCount {
    pub(super) forwarded: usize,
    /// For the switch itself, or dropped.
    pub(super) others: usize,
}

/// A set of ports, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortSet(u64);

impl PortSet {
    const fn insert(&mut self, port: usize) {
        self.0 |= 1 << port;
    }

    const fn remove(&mut self, port: usize) {
        self.0 &= !(1 << port);
    }

    const fn has(self, port: usize) -> bool {
        self.0 & 1 << port != 0
    }

    const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Backpressure {
    /// For as many ports, numbered from 0; at most [`PORTS_MAX`].
    pub(super) fn new(ports: usize) -> Self {
        Self {
            cables: vec![CableState::default(); ports],
            paid_at: vec![Now::ZERO; ports],
            ..Self::default()
        }
    }

    /// Whether a cable is to be read now. What is read next has gone nowhere yet.
    pub(super) fn may_read(&mut self, now: Now, ingress: usize) -> bool {
        let cable = &mut self.cables[ingress];
        if cable.throttled_until.is_some_and(|until| now < until) {
            return false;
        }
        let blocking = cable.fed.both(self.full).without(self.timed_out);
        if blocking == PortSet::default() {
            *cable = CableState::default();
            return true;
        }
        let since = *cable.since.get_or_insert(now);
        if now.saturating_sub(since) < HOLD_MAX {
            return false;
        }
        self.timed_out.0 |= blocking.0;
        *cable = CableState::default();
        true
    }

    /// Whether a port is left unread.
    pub(super) fn is_held(&self, ingress: usize) -> bool {
        let cable = &self.cables[ingress];
        cable.since.is_some() || cable.throttled_until.is_some() || self.unmailed.has(ingress)
    }

    /// Whether the mail of a port is full. Returns whether that is news.
    pub(super) const fn is_unmailed(&mut self, ingress: usize, is_full: bool) -> bool {
        let was_full = self.unmailed.has(ingress);
        if is_full {
            self.unmailed.insert(ingress);
        } else {
            self.unmailed.remove(ingress);
        }
        was_full != is_full
    }

    /// A batch was read at a cable until `now`, which took so long.
    pub(super) fn was_read(
        &mut self,
        now: Now,
        ingress: usize,
        count: BatchCount,
        spent: Duration,
    ) {
        if count.others > 0 {
            let all = (count.forwarded + count.others) as u32;
            let spent = spent.min(FRAME_MAX * all);
            let price = spent * SHARE_DIVISOR * count.others as u32 / all;
            let credit = BURST * SHARE_DIVISOR;
            let paid_at = &mut self.paid_at[ingress];
            *paid_at = (now.max(*paid_at) + price).min(now + credit + HOLD_MAX);
            let until = paid_at.saturating_sub(credit);
            self.cables[ingress].throttled_until = Some(until).filter(|until| *until > now);
        }
    }

    /// A frame that came in at `ingress` goes to `egress`.
    pub(super) fn feeds(&mut self, ingress: usize, egress: usize) {
        self.cables[ingress].fed.insert(egress);
    }

    /// As many bytes wait on this core for an egress port.
    pub(super) const fn waits(&mut self, egress: usize, queued: usize) {
        if queued >= HIGH_WATERMARK {
            self.full.insert(egress);
        } else if queued <= LOW_WATERMARK {
            self.full.remove(egress);
        }
        if queued == 0 {
            self.timed_out.remove(egress);
        }
    }
}
