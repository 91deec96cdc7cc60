//! Memory of buffers that nobody needs any more is given back.

use ::io::ring::Ring;
use scsi::medium::Now;

use super::Core;
use super::timers::Timer;
use crate::mail::Post;

/// How long a buffer is kept for the next one who needs it, at the least; twice that at the most.
/// To come by memory again costs a page fault for each 4 KiB, so a second of it is nothing.
const INTERVAL: Now = Now::from_secs(1);

impl<R: Ring, P: Post> Core<R, P> {
    /// Sees to it that idle buffers are looked at. A core that has none is not woken for them.
    pub(super) fn trim_later(&mut self, now: Now) {
        if !self.trimming && self.buffers.resident() > self.buffers.in_use() {
            self.trimming = true;
            self.timers.set(now + INTERVAL, Timer::Trim);
        }
    }

    /// Gives back what was not needed since the last time.
    pub(super) fn trim(&mut self) {
        self.trimming = false;
        self.buffers.trim();
    }
}
