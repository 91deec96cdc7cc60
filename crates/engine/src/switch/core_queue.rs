//! A bounded queue of frames from one core to another: one puts frames in, the other one takes all
//! of them out at once.
//!
//! Both hold the lock only to copy a frame or to change one ring for another, so neither waits for
//! what the other does. Nothing is allocated for a frame: the rings go round.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::backlog::Backlog;

/// A queue of frames, each with what is known of it.
#[derive(Debug)]
pub(super) struct CoreQueue<T> {
    frames: Mutex<Backlog<T>>,
    /// What waits, in bytes, so that the lock is not taken in vain.
    used: AtomicUsize,
}

/// What each frame counts for beside its bytes, as something is kept of it.
const EACH: usize = 64;

impl<T> CoreQueue<T> {
    /// For as many bytes of frames.
    pub(super) fn new(size: usize) -> Self {
        Self {
            frames: Mutex::new(Backlog::new(size)),
            used: AtomicUsize::new(0),
        }
    }

    /// Puts a frame in, which is written where this says. `false`: there is no room for it.
    pub(super) fn push(&self, len: usize, about: T, write: impl FnOnce(&mut [u8])) -> bool {
        let mut frames = self.lock();
        let Some(room) = frames.push(len, about) else {
            return false;
        };
        write(room);
        let used = frames.used() + frames.len() * EACH;
        self.used.store(used, Ordering::Release);
        true
    }

    /// What waits, in bytes.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Takes all that waits, and leaves an empty ring of the same size for it.
    pub(super) fn take(&self, empty: &mut Backlog<T>) {
        if self.used() == 0 {
            return;
        }
        let mut frames = self.lock();
        std::mem::swap(&mut *frames, empty);
        self.used.store(0, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Backlog<T>> {
        // Each change leaves it whole.
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
