//! Book on writes that a unit may hold in a volatile cache (SBC-4 §4.15).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What is known of the volatile cache of one unit. Its clients share it: a flush by one of them
/// covers the writes of all, and a reset that one of them is told of loses those of all.
///
/// Where it is not certain that something was lost, it is taken as lost. So each client that is
/// told of the same reset can have the writes since the last flush told as lost once more.
#[derive(Debug, Default)]
pub struct Cache {
    /// Volatile writes that have ended.
    written: AtomicU64,
    /// How many of them are flushed, or known as lost.
    settled: AtomicU64,
    /// How many there were when a nexus was lost: whether the unit was reset then, is not known
    /// before there is another one.
    doubtful: AtomicU64,
    /// Resets that a client was told of.
    resets: AtomicU64,
    /// Those of them that may have lost writes.
    losses: AtomicU64,
}

impl Cache {
    pub(super) fn written(&self) -> u64 {
        self.written.load(SeqCst)
    }

    pub(super) fn resets(&self) -> u64 {
        self.resets.load(SeqCst)
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(SeqCst)
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(SeqCst) > self.settled.load(SeqCst)
    }

    /// A volatile write has ended.
    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, SeqCst);
    }

    /// A flush went well that began when so many writes had ended.
    pub(super) fn flushed(&self, written: u64) {
        self.settled.fetch_max(written, SeqCst);
    }

    pub(super) fn nexus_lost(&self) {
        self.doubtful.fetch_max(self.written(), SeqCst);
    }

    /// The unit was reset. Returns whether writes may be lost by it.
    pub(super) fn reset(&self) -> bool {
        self.resets.fetch_add(1, SeqCst);
        let written = self.written();
        let lost = self.settled.fetch_max(written, SeqCst) < written;
        self.losses.fetch_add(u64::from(lost), SeqCst);
        lost
    }
}
