//! Batches that sessions fill, and the return of buffers that are no longer used.

use std::io;
use std::sync::Once;

use ::io::ring::{Ring, SendBatch};
use scsi::medium::Now;

use super::Core;
use super::timers::Timer;
use crate::mailbox::Mailer;

/// How long an idle buffer is kept, at the least; twice that at the most.
/// To come by memory again costs a page fault for each 4 KiB, so a second of it is nothing.
const INTERVAL: Now = Now::from_secs(1);

/// Empty batches that are kept for the next connection that has something to send. Two are in use
/// for one busy session; more only help when many sends are in flight at once.
const SPARE_MAX: usize = 64;

/// Spare batches that are kept by an idle core too. Each may have 300 KiB of room.
const SPARE_MIN: usize = 2;

/// Empty batches, of which the one used last is used first.
#[derive(Default)]
pub(super) struct SpareBatches {
    #[expect(clippy::vec_box, reason = "the kernel may hold pointers into a batch")]
    batches: Vec<Box<SendBatch>>,
    /// The fewest there were since the last trim: those that no connection needed.
    idle: usize,
}

impl SpareBatches {
    pub(super) fn take(&mut self) -> Box<SendBatch> {
        let batch = self.batches.pop().unwrap_or_default();
        self.idle = self.idle.min(self.batches.len());
        batch
    }

    pub(super) fn give_back(&mut self, batch: Box<SendBatch>) {
        if self.batches.len() < SPARE_MAX {
            self.batches.push(batch);
        }
    }

    fn has_idle(&self) -> bool {
        self.batches.len() > SPARE_MIN
    }

    fn trim(&mut self) {
        let most = self.batches.len().saturating_sub(SPARE_MIN);
        self.batches.drain(..self.idle.min(most));
        self.idle = self.batches.len();
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Sees to it that idle buffers are looked at. A core that has none is not woken for them.
    pub(super) fn trim_later(&mut self, now: Now) {
        let is_idle = self.context.pool.resident() > self.context.pool.in_use()
            || self.batches.has_idle()
            || self.ring.has_idle();
        if !self.trimming && is_idle {
            self.trimming = true;
            self.timers.set(now + INTERVAL, Timer::Trim);
        }
    }

    /// Gives back what was not needed since the last time.
    pub(super) fn trim(&mut self) {
        self.trimming = false;
        self.context.pool.trim();
        self.batches.trim();
        self.ring.trim();
        if let Some(cause) = self.ring.refusal() {
            tell_refusal(&cause);
        }
    }
}

/// Cores meet the same limit: one tells of it.
fn tell_refusal(cause: &io::Error) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::info!(
            "buffers cannot be registered with io_uring ({cause}): devices, and files with \
             ?direct, take more processor time. Raise the limit of locked memory (ulimit -l, \
             LimitMEMLOCK= of systemd)"
        );
    });
}

#[cfg(test)]
mod tests;
