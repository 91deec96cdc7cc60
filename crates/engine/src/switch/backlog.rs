//! Frames that wait: for room at an egress port, or for another core.

use std::collections::VecDeque;

use fc::fabric::UndeliveredFrame;
use scsi::medium::Now;

/// A queue of frames, bounded in bytes: a ring that is allocated once, in which each frame lies in
/// one piece.
///
/// The memory is that of zero pages until it is written, so a port that never has to queue takes
/// none.
#[derive(Debug)]
pub(super) struct Backlog<T = QueuedFrame> {
    bytes: Box<[u8]>,
    /// Bytes of frames.
    used: usize,
    /// Where each frame is, oldest first, and what is known of it.
    frames: VecDeque<(Span, T)>,
}

/// Where a frame lies.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
}

/// What is known of a frame that waits at its egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedFrame {
    /// When it came in.
    pub(super) since: Now,
    /// Where it is from, and to whom it goes.
    pub(super) frame: UndeliveredFrame,
}

/// Bytes of frames that one egress port queues at the most: what 10 Gbit/s takes 3.4 ms for.
pub(super) const BACKLOG_MAX: usize = 4 << 20;

impl<T> Backlog<T> {
    /// An empty one for this many bytes.
    pub(super) fn new(size: usize) -> Self {
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            used: 0,
            frames: VecDeque::new(),
        }
    }

    /// Bytes of frames that wait.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// How many frames wait.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Queues a frame of `len` bytes, to be written where this says; `None` if there is no room for
    /// it.
    pub(super) fn push(&mut self, len: usize, frame: T) -> Option<&mut [u8]> {
        let start = self.room(len)?;
        let span = Span {
            start,
            end: start + len,
        };
        self.used += len;
        self.frames.push_back((span, frame));
        Some(&mut self.bytes[span.start..span.end])
    }

    /// The oldest frame.
    pub(super) fn front(&self) -> Option<(&T, &[u8])> {
        let (span, frame) = self.frames.front()?;
        Some((frame, &self.bytes[span.start..span.end]))
    }

    /// Takes the oldest frame out.
    pub(super) fn pop(&mut self) {
        if let Some((span, _)) = self.frames.pop_front() {
            self.used -= span.end - span.start;
        }
    }

    /// Where a frame of `len` bytes has room: behind the newest one, or before the oldest, in which
    /// case what is left at the end of the ring stays empty.
    fn room(&self, len: usize) -> Option<usize> {
        let size = self.bytes.len();
        let (Some((first, _)), Some((last, _))) = (self.frames.front(), self.frames.back()) else {
            return (len <= size).then_some(0);
        };
        let (before, after) = if first.start <= last.start {
            (first.start, size - last.end)
        } else {
            (0, first.start - last.end)
        };
        if len <= after {
            Some(last.end)
        } else {
            (len <= before).then_some(0)
        }
    }
}
