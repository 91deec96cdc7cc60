//! Book on writes that a unit may hold in a volatile cache (SBC-4 §4.15).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What is known of the volatile cache of one unit. Its clients share it: a flush by one of them
/// covers the writes of all, and a reset that one of them is told of loses those of all.
///
/// Where it is not certain that something was lost, it is taken as lost:
///
/// - Each client that is told of the same reset can have the writes since the last flush told as
///   lost once more.
/// - A write that ends while another client is told of a reset counts as lost, as it is unknown
///   which of the two was first at the unit.
/// - To a new client a unit may tell a reset that was none, or that another client, which has
///   written, was not told of yet. Its flush then leaves in doubt what was written before it was
///   there: that is settled by a flush of a client that knows, or lost when that one is told.
///
/// A loss is told by one flush of each client that was there when it was found, and by the first
/// one of those that come before anybody has told it.
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
    /// How many of those a flush has told.
    told: AtomicU64,
    /// The unit has begun to cache writes, and its user has not been told that.
    secret: AtomicBool,
    /// Another initiator has removed our registrations.
    fenced: AtomicBool,
}

/// The book, as one client of the unit writes and reads it.
#[derive(Debug, Default)]
pub(super) struct CacheView {
    shared: Arc<Cache>,
    /// Losses that a flush has told.
    told: u64,
    /// Writes of which this client does not know whether they were there when it came.
    floor: u64,
    /// There was a nexus before: a unit may tell a reset to each new initiator, and mean nothing.
    known: bool,
}

impl CacheView {
    pub(super) fn of(shared: Arc<Cache>) -> Self {
        Self {
            told: shared.told.load(SeqCst),
            shared,
            floor: 0,
            known: false,
        }
    }

    pub(super) fn written(&self) -> u64 {
        self.shared.written.load(SeqCst)
    }

    pub(super) fn resets(&self) -> u64 {
        self.shared.resets.load(SeqCst)
    }

    /// Whether a flush would make something stable, or has a loss to tell.
    pub(super) fn owes_flush(&self) -> bool {
        self.written() > self.shared.settled.load(SeqCst)
            || self.shared.losses.load(SeqCst) != self.told
    }

    /// There is a nexus.
    pub(super) fn open(&mut self) {
        self.known = true;
    }

    pub(super) fn nexus_lost(&self) {
        self.shared.doubtful.fetch_max(self.written(), SeqCst);
    }

    /// The unit caches writes from now on, which it did not.
    pub(super) fn now_caches(&self) {
        self.shared.secret.store(true, SeqCst);
    }

    /// Whether every write has to be stable when it ends.
    pub(super) fn keeps_all(&self) -> bool {
        self.shared.secret.load(SeqCst)
    }

    /// Another initiator fences us.
    pub(super) fn fence(&self) {
        self.shared.fenced.store(true, SeqCst);
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.shared.fenced.load(SeqCst)
    }

    /// A volatile write has ended that began after this many resets. Returns whether there was one
    /// since that may have lost it.
    pub(super) fn wrote(&self, resets: u64) -> bool {
        self.shared.written.fetch_add(1, SeqCst);
        let lost = self.resets() != resets;
        self.shared.losses.fetch_add(u64::from(lost), SeqCst);
        lost
    }

    /// A flush went well that began when this many writes had ended. Returns whether others were
    /// lost, which were not reported yet.
    pub(super) fn flushed(&mut self, written: u64) -> bool {
        if self.shared.settled.load(SeqCst) >= self.floor {
            self.shared.settled.fetch_max(written, SeqCst);
        }
        let losses = self.shared.losses.load(SeqCst);
        self.shared.told.fetch_max(losses, SeqCst);
        std::mem::replace(&mut self.told, losses) != losses
    }

    /// The unit tells of a reset. Returns whether writes may be lost by it.
    pub(super) fn reset(&mut self) -> bool {
        if self.known || self.shared.is_doubtful() {
            return self.shared.reset();
        }
        self.floor = self.written();
        false
    }
}

impl Cache {
    /// The user of the unit knows that its writes are volatile until they are flushed. Before that,
    /// a unit that has begun to cache them is made to keep each one.
    pub fn is_known(&self) {
        self.secret.store(false, SeqCst);
    }

    fn is_doubtful(&self) -> bool {
        self.doubtful.load(SeqCst) > self.settled.load(SeqCst)
    }

    fn reset(&self) -> bool {
        self.resets.fetch_add(1, SeqCst);
        let written = self.written.load(SeqCst);
        let lost = self.settled.fetch_max(written, SeqCst) < written;
        self.losses.fetch_add(u64::from(lost), SeqCst);
        lost
    }
}
