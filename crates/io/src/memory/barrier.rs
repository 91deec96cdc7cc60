//! A barrier of two unequal sides: next to nothing where it is passed with every write, a system
//! call where memory is given back.
//!
//! Two threads that each store to one place and then load the other's need a full barrier between
//! the two, or both may load what was there before. On the path of data that barrier would wait
//! for every store of a write to reach memory (half a microsecond for 4 KiB at a random place), for
//! the sake of an UNMAP that hardly ever comes. So the side that comes seldom has the kernel
//! execute the barrier on all processors that run threads of ours (membarrier(2)), and the side
//! that comes often only keeps the compiler from moving its stores behind its loads.
//!
//! Where membarrier is forbidden, both sides are ordinary fences.

use crate::sync::{Ordering::SeqCst, fence};

/// To be called once before the others, by each thread that will need them.
#[cfg(not(loom))]
pub(super) fn prepare() {
    kernel::offered();
}

/// The side of the path of data: what was stored before comes before what is loaded after, as far
/// as threads can tell that pass [`heavy`].
#[cfg(not(loom))]
#[inline]
pub(super) fn light() {
    if kernel::offered() {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        fence(SeqCst);
    }
}

/// The seldom side. When it returns, every other thread has either its stores from before its
/// [`light`] in memory, or its loads from after it yet to come.
#[cfg(not(loom))]
pub(super) fn heavy() {
    fence(SeqCst);
    if kernel::offered() {
        kernel::pass();
    }
}

#[cfg(loom)]
pub(super) fn prepare() {}

/// As the other, in a form that loom knows.
#[cfg(loom)]
pub(super) fn light() {
    fence(SeqCst);
}

/// As the other, in a form that loom knows.
#[cfg(loom)]
pub(super) fn heavy() {
    fence(SeqCst);
}

#[cfg(not(loom))]
mod kernel {
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, membarrier};

    /// Whether the kernel executes barriers for us. It is asked once, and its answer holds.
    #[inline]
    pub(super) fn offered() -> bool {
        static OFFERED: OnceLock<bool> = OnceLock::new();
        *OFFERED.get_or_init(|| {
            membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
                && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
        })
    }

    /// Has all threads of this process pass a full barrier.
    pub(super) fn pass() {
        pass_by(|command| membarrier(command).is_ok());
    }

    /// Threads rely on the barrier once it was offered, so it is tried until it has worked. What it
    /// lacks is memory for a set of processors; the barrier of all processes needs none, and takes
    /// some milliseconds.
    pub(super) fn pass_by(mut works: impl FnMut(MembarrierCommand) -> bool) {
        while !works(MembarrierCommand::PrivateExpedited) && !works(MembarrierCommand::Global) {
            std::thread::sleep(PAUSE);
        }
    }

    const PAUSE: Duration = Duration::from_millis(1);
}

#[cfg(all(test, not(loom)))]
mod tests;
