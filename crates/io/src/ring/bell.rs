//! How other threads reach a ring that may be asleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::EventfdFlags;

use crate::sync::{AtomicU8, Ordering::SeqCst};

/// [`Waker::wake`] was called.
pub(super) const WOKEN: u8 = 1;
/// A blocking operation is over.
pub(super) const DONE: u8 = 2;
const SLEEPING: u8 = 4;

/// Wakes a ring from another thread. Costs a system call only when the ring sleeps, and only for
/// the first to wake it.
#[derive(Clone, Debug)]
pub struct Waker {
    bell: Arc<Bell>,
}

impl Waker {
    pub(super) fn new(bell: &Arc<Bell>) -> Self {
        let bell = Arc::clone(bell);
        Self { bell }
    }

    /// A waker without effect, for rings that are simulated.
    ///
    /// # Errors
    ///
    /// When the process has too many descriptors.
    pub fn detached() -> io::Result<Self> {
        Ok(Self::new(&Bell::new()?))
    }

    /// Wakes it: [`RingEvent::Woken`](super::RingEvent::Woken) comes out of its next `wait`, once
    /// for however many calls there were before.
    pub fn wake(&self) {
        self.bell.ring(WOKEN);
    }
}

/// What a ring was rung for, and an eventfd that a sleeping ring waits on.
///
/// The eventfd's counter is never read: both epoll (edge-triggered) and a multishot poll of
/// io_uring tell of each write, and 2^64 of them do not happen.
#[derive(Debug)]
pub(super) struct Bell {
    event: OwnedFd,
    state: BellState,
}

impl Bell {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let state = BellState::new();
        Ok(Arc::new(Self { event, state }))
    }

    pub(super) fn ring(&self, what: u8) {
        if self.state.ring(what) {
            // It can only fail when the counter is full, and then the ring has been told.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Announces that the ring is going to wait on the eventfd. `false`: it was rung, and must not.
    pub(super) fn sleep(&self) -> bool {
        self.state.sleep()
    }

    /// What it was rung for since the last time. The ring is awake.
    pub(super) fn answer(&self) -> u8 {
        self.state.answer()
    }
}

/// The part without a descriptor, on which everything depends: no ring of the bell may be missed.
#[derive(Debug)]
struct BellState(AtomicU8);

impl BellState {
    fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Whether the ring sleeps, and this is the first wake.
    fn ring(&self, what: u8) -> bool {
        self.0.fetch_or(what, SeqCst) == SLEEPING
    }

    fn sleep(&self) -> bool {
        self.0.fetch_or(SLEEPING, SeqCst) == 0
    }

    fn answer(&self) -> u8 {
        if self.0.load(SeqCst) == 0 {
            return 0;
        }
        self.0.swap(0, SeqCst) & !SLEEPING
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
