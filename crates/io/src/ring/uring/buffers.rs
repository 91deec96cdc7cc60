//! The buffers that the kernel chooses from when bytes come in, so that a connection that is
//! silent holds none.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::memory::Mapping;
use crate::ring::lend::{LENT_BYTES, Lender, Received};

/// The group that receives choose from; there is one.
pub(super) const GROUP: u16 = 0;

/// Buffers at the most, 32 MiB: sockets that are received from by one system call. Where more have
/// something, the rest is received by the next. A power of two.
const BUFFERS: u16 = 128;

/// Buffers that the kernel has at the least. The kernel takes the one that it had for the longest
/// time, so few buffers stay in the cache and many do not.
const WANTED_MIN: u16 = 4;

/// How many times buffers are handed over before their number is judged.
const PERIOD: u32 = 1024;

/// A ring of buffers in shared memory, filled by us and emptied by the kernel.
pub(super) struct Buffers {
    lender: Rc<Lender>,
    entries: Mapping,
    tail: u16,
    /// How many the kernel has.
    provided: u16,
    /// How many it should have: doubled when it ran out, halved after a period in which a quarter
    /// was enough.
    wanted: u16,
    /// The most that it has used between two handings-over, of the period.
    peak: u16,
    handed_over: u32,
    /// It ran out since the last handing-over.
    short: bool,
}

impl Buffers {
    /// Makes the buffers known to an io_uring. They must not be dropped before it has no receive
    /// in flight any more.
    pub(super) fn register(ring: &IoUring) -> io::Result<Self> {
        let entries = Mapping::reserve(usize::from(BUFFERS) * size_of::<BufRingEntry>())?;
        let address = entries.at(0).as_ptr() as u64;
        let submitter = ring.submitter();
        // SAFETY: the mapping is as large, page-aligned, zero, and the kernel pins its page.
        unsafe { submitter.register_buf_ring_with_flags(address, BUFFERS, GROUP, 0)? };
        Ok(Self {
            lender: Lender::new(BUFFERS)?,
            entries,
            tail: 0,
            provided: 0,
            wanted: WANTED_MIN,
            peak: 0,
            handed_over: 0,
            short: false,
        })
    }

    /// Hands what was given back over to the kernel. Returns whether it has any buffer.
    pub(super) fn hand_over(&mut self) -> bool {
        self.judge();
        if self.provided >= self.wanted {
            return true;
        }
        let before = self.tail;
        while self.provided < self.wanted
            && let Some(id) = self.lender.take()
        {
            self.provide(id);
        }
        if self.tail != before {
            self.publish();
        }
        self.provided > 0
    }

    fn judge(&mut self) {
        if std::mem::take(&mut self.short) {
            self.wanted = (self.wanted * 2).min(BUFFERS);
        }
        self.peak = self.peak.max(self.wanted.saturating_sub(self.provided));
        self.handed_over += 1;
        if self.handed_over >= PERIOD {
            self.end_period();
        }
    }

    fn end_period(&mut self) {
        if self.peak <= self.wanted / 4 {
            self.wanted = (self.wanted / 2).max(WANTED_MIN);
        }
        self.handed_over = 0;
        self.peak = 0;
    }

    /// Whether a trim, now or later, can give memory back.
    pub(super) fn has_idle(&self) -> bool {
        self.wanted > WANTED_MIN || self.lender.has_idle()
    }

    /// Gives back the memory of buffers that were not needed since the last trim. What the kernel
    /// has cannot be taken from it: where it has more than are wanted, each receive brings one
    /// back.
    pub(super) fn trim(&mut self) {
        self.end_period();
        self.lender.trim();
    }

    /// The kernel had no buffer for a receive.
    pub(super) fn ran_out(&mut self) {
        self.short = true;
    }

    fn provide(&mut self, id: u16) {
        let at = usize::from(self.tail % BUFFERS) * size_of::<BufRingEntry>();
        let entry = self.entries.at(at).cast::<BufRingEntry>().as_ptr();
        // SAFETY: in the mapping and aligned. The kernel does not look at it until the tail has
        // passed it, and has done with it before we come round, as there are not more buffers
        // than entries. The fields set are not the one that holds the tail.
        unsafe {
            (*entry).set_addr(self.lender.address(id).as_ptr() as u64);
            (*entry).set_len(LENT_BYTES as u32);
            (*entry).set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.provided += 1;
    }

    fn publish(&self) {
        let first = self.entries.at(0).cast::<BufRingEntry>().as_ptr();
        // SAFETY: the tail lies in the first entry, two bytes aligned to two; the kernel only
        // reads it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) };
        tail.store(self.tail, Release);
    }

    /// Lends what the kernel has received in a buffer that it chose, with what came to the
    /// `late` socket since.
    pub(super) fn received(&mut self, id: u16, len: usize, late: Option<&OwnedFd>) -> Received {
        self.provided -= 1;
        let len = match late {
            Some(socket) if len > 0 => self.lender.top_up(id, len, socket),
            _ => len,
        };
        // SAFETY: the kernel has taken it off the ring, and gets it back only by way of the
        // lender.
        unsafe { self.lender.lend(id, len) }
    }

    /// Whether the kernel does not have all of them.
    pub(super) fn has_free(&self) -> bool {
        self.lender.has_free()
    }

    /// Receives what a socket has, without waiting: `None` if that is nothing yet, or there is no
    /// buffer.
    pub(super) fn receive_now(&self, socket: &OwnedFd) -> Option<io::Result<Received>> {
        let id = self.lender.take()?;
        let received = self.lender.receive(id, 0, socket);
        if let Ok(len) = received
            && len > 0
        {
            // SAFETY: it was taken, and gets back only by way of the lender.
            return Some(Ok(unsafe { self.lender.lend(id, len) }));
        }
        self.lender.give_back(id);
        match received {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                None
            }
            received => Some(received.map(|_| self.nothing())),
        }
    }

    /// No bytes at all.
    pub(super) fn nothing(&self) -> Received {
        self.lender.nothing()
    }

    /// Keeps the memory mapped for ever.
    pub(super) fn leak(&self) {
        std::mem::forget(Rc::clone(&self.lender));
    }
}
