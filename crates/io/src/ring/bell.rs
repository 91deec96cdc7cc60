//! How other threads reach a ring that may be asleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use rustix::event::EventfdFlags;

/// [`Waker::wake`] was called.
pub(super) const WOKEN: u8 = 1;
/// A blocking operation is over.
pub(super) const DONE: u8 = 2;
const SLEEPING: u8 = 4;

/// Wakes a ring from another thread. Costs a system call only when the ring sleeps, and only for
/// the first who wakes it.
#[derive(Clone, Debug)]
pub struct Waker {
    bell: Arc<Bell>,
}

impl Waker {
    pub(super) fn new(bell: &Arc<Bell>) -> Self {
        let bell = Arc::clone(bell);
        Self { bell }
    }

    /// A waker that wakes nobody, for rings that are simulated.
    ///
    /// # Errors
    ///
    /// When the process has too many descriptors.
    pub fn of_nobody() -> io::Result<Self> {
        Ok(Self::new(&Bell::new()?))
    }

    /// Wakes it: [`Event::Woken`](super::Event::Woken) comes out of its next `wait`, once for
    /// however many calls there were before.
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
    state: AtomicU8,
}

impl Bell {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let state = AtomicU8::new(0);
        Ok(Arc::new(Self { event, state }))
    }

    pub(super) fn ring(&self, what: u8) {
        let before = self.state.fetch_or(what, SeqCst);
        if before == SLEEPING {
            // It can only fail when the counter is full, and then the ring has been told.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Announces that the ring is going to wait on the eventfd. `false`: it was rung, and must not.
    pub(super) fn sleep(&self) -> bool {
        self.state.fetch_or(SLEEPING, SeqCst) == 0
    }

    /// What it was rung for since the last time. The ring is awake.
    pub(super) fn answer(&self) -> u8 {
        if self.state.load(SeqCst) == 0 {
            return 0;
        }
        self.state.swap(0, SeqCst) & !SLEEPING
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
