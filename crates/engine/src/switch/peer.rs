//! One core of several: the table that it forwards by, what it counts, and its ends of the ways to
//! the others ([`super::cores`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use fc::fabric::{
    DropReason, ForwardTable, Forwarding, PortCounters, PortNumber, UndeliveredFrame, Verdict,
};
use fc::frames::FrameSink;
use fc::wire::ethernet::VlanTag;

use super::backlog::Backlog;
use super::core::number;
use super::cores::{FIRST_VERSION, SwitchCores};
use super::mail::{MAIL_FULL, MailItem};
use super::outbox::CONTROL_MAX;

/// One core of several.
pub(super) struct CorePeer {
    pub(super) id: usize,
    pub(super) cores: Arc<SwitchCores>,
    /// By what it forwards; on core 0 what the others were given last.
    pub(super) table: Arc<ForwardTable>,
    pub(super) version: u64,
    /// By port where frames came in: what was counted since [`Self::settle`].
    counts: Vec<PortCounters>,
    /// Ports with such counts, a bit each.
    counted: u64,
    /// Core 0 was given mail, and not woken since.
    has_mailed: bool,
    /// Control frames taken from core 0, or empty.
    taken: Backlog<PortNumber>,
    /// What the machine sends by the ports here.
    control: Vec<Backlog<()>>,
}

impl CorePeer {
    pub(super) fn new(id: usize, cores: Arc<SwitchCores>, table: Arc<ForwardTable>) -> Self {
        let ports = &cores.homes;
        let own = ports.iter().filter(|home| **home == id).count();
        // Twice as much, so that one frame always fits in one piece.
        let control = |home: &usize| Backlog::new(if *home == id { 2 * CONTROL_MAX } else { 0 });
        Self {
            id,
            table,
            version: FIRST_VERSION,
            counts: vec![PortCounters::default(); ports.len()],
            counted: 0,
            has_mailed: false,
            taken: Backlog::new(own * CONTROL_MAX),
            control: ports.iter().map(control).collect(),
            cores,
        }
    }
}

/// Frames.
impl CorePeer {
    /// How a frame goes on that came in at a port here, by the table. What is for the machine is
    /// mailed.
    pub(super) fn decide(
        &mut self,
        at: usize,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Option<Forwarding> {
        let verdict = self.table.forward_tagged(number(at), frame, tag);
        match verdict {
            Verdict::Forward(way) => {
                self.count(at, &verdict, frame);
                Some(way)
            }
            Verdict::Dropped(reason) => {
                self.count(at, &verdict, frame);
                // It has been counted. That its sender is told does not need each of them.
                if reason.is_heeded() && !self.is_mail_full(at) {
                    self.mail(at, MailItem::Dropped(reason), frame);
                }
                None
            }
            Verdict::Taken => {
                if !self.mail(at, MailItem::Frame(tag), frame) {
                    self.count(at, &Verdict::Dropped(DropReason::Congested), frame);
                }
                None
            }
        }
    }

    /// Wakes core 0 if it was given mail.
    pub(super) fn wake_mailed(&mut self) {
        if std::mem::take(&mut self.has_mailed) {
            self.cores.wakers[0].wake();
        }
    }
}

/// Counts.
impl CorePeer {
    fn count(&mut self, at: usize, verdict: &Verdict, frame: &[u8]) {
        self.counts[at].count(verdict, frame);
        self.counted |= 1 << at;
    }

    /// A frame that was to be forwarded did not leave after all.
    pub(super) fn count_undelivered(&mut self, reason: DropReason, frame: &UndeliveredFrame) {
        self.counts[usize::from(frame.ingress.0)].count_undelivered(reason, frame);
        self.counted |= 1 << frame.ingress.0;
    }

    /// Adds what was counted to what all cores have. It is done before anything leaves by which a
    /// host could know that its frames were counted.
    pub(super) fn settle(&mut self) {
        let mut counted = std::mem::take(&mut self.counted);
        while counted != 0 {
            let at = counted.trailing_zeros() as usize;
            counted &= counted - 1;
            let counts = &mut self.counts[at];
            self.cores.board.at(at).counters.add(counts);
            counts.clear();
        }
    }
}

/// Mail to the machine.
impl CorePeer {
    /// Mails what came in at a port here. `false`: there is no room for it.
    pub(super) fn mail(&mut self, at: usize, item: MailItem, frame: &[u8]) -> bool {
        self.settle();
        let copy = |room: &mut [u8]| room.copy_from_slice(frame);
        self.has_mailed = true;
        self.cores.mail[at].push(frame.len(), item, copy)
    }

    /// Whether a port is to be left unread, as the machine's core does not take its mail.
    pub(super) fn is_mail_full(&self, at: usize) -> bool {
        self.cores.mail[at].used() >= MAIL_FULL
    }

    /// Tells the machine's core whether a port is left unread.
    pub(super) fn tell_unmailed(&self, at: usize, is_full: bool) {
        let bit = 1 << at;
        if is_full {
            self.cores.unmailed.fetch_or(bit, Relaxed);
        } else {
            self.cores.unmailed.fetch_and(!bit, Relaxed);
        }
    }
}

/// What core 0 tells.
impl CorePeer {
    /// Takes control frames that are here. [`Self::queue_taken`] gives them to their ports.
    pub(super) fn take_control(&mut self) -> bool {
        self.cores.posts[self.id].control.take(&mut self.taken);
        !self.taken.is_empty()
    }

    /// Queues the control frames that were taken at their ports.
    pub(super) fn queue_taken(&mut self) {
        while let Some((port, bytes)) = self.taken.front() {
            let control = &mut self.control[usize::from(port.0)];
            if let Some(room) = control.push(bytes.len(), ()) {
                room.copy_from_slice(bytes);
            }
            self.taken.pop();
        }
    }

    /// Queues a control frame at a port here.
    pub(super) fn queue_control(&mut self, port: PortNumber, bytes: &[u8]) {
        if let Some(room) = self.control[usize::from(port.0)].push(bytes.len(), ()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Forwards by another table from now on.
    pub(super) fn adopt(&mut self, version: u64, table: Arc<ForwardTable>) {
        (self.version, self.table) = (version, table);
        let post = &self.cores.posts[self.id];
        post.acknowledged.store(version, Release);
        self.cores.wakers[0].wake();
    }

    /// Writes what the machine sends by a port, as far as there is room.
    pub(super) fn send_control(&mut self, at: usize, out: &mut impl FrameSink) {
        let control = &mut self.control[at];
        let mut written = 0;
        while let Some((_, bytes)) = control.front() {
            let Some(slot) = out.slot(bytes.len()) else {
                break;
            };
            slot[..bytes.len()].copy_from_slice(bytes);
            out.commit(bytes.len());
            written += bytes.len();
            control.pop();
        }
        if written > 0 {
            let unsent = &self.cores.unsent[at];
            unsent.bytes.fetch_sub(written, SeqCst);
            if unsent.has_more.swap(false, SeqCst) {
                self.cores.wakers[0].wake();
            }
        }
    }

    /// Whether all control frames have left.
    pub(super) fn has_sent_all(&self) -> bool {
        self.control.iter().all(Backlog::is_empty)
    }
}
