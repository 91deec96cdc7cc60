//! Frames that wait for room at an egress port.

use std::collections::VecDeque;

/// A queue of frames, bounded in bytes: a ring that is allocated once.
///
/// The memory is that of zero pages until it is written, so a port that never has to queue takes
/// none.
#[derive(Debug)]
pub(super) struct Backlog {
    bytes: Box<[u8]>,
    /// Where the oldest frame begins.
    first: usize,
    /// Bytes that are taken.
    used: usize,
    /// How long each frame is, oldest first.
    lengths: VecDeque<u32>,
}

/// Bytes of frames that one egress port queues at the most: what 10 Gbit/s takes 3.4 ms for.
pub(super) const BACKLOG_MAX: usize = 4 << 20;

impl Backlog {
    /// An empty one for this many bytes.
    pub(super) fn new(size: usize) -> Self {
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            first: 0,
            used: 0,
            lengths: VecDeque::new(),
        }
    }

    /// Bytes of frames that wait.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Queues a frame; `false` if there is no room for it.
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        let len = frame.len();
        let Ok(length) = u32::try_from(len) else {
            return false;
        };
        if len > self.bytes.len() - self.used {
            return false;
        }
        let (before, after) = self.span(self.used, len);
        let (head, tail) = frame.split_at(before.len());
        self.bytes[before].copy_from_slice(head);
        self.bytes[after].copy_from_slice(tail);
        self.used += len;
        self.lengths.push_back(length);
        true
    }

    /// How long the oldest frame is.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.lengths.front().map(|len| *len as usize)
    }

    /// Moves the oldest frame to `slot`, which has its length.
    pub(super) fn pop_into(&mut self, slot: &mut [u8]) {
        let Some(len) = self.lengths.pop_front() else {
            return;
        };
        let len = len as usize;
        let (before, after) = self.span(0, len);
        let (head, tail) = slot.split_at_mut(before.len());
        head.copy_from_slice(&self.bytes[before]);
        tail.copy_from_slice(&self.bytes[after]);
        self.used -= len;
        self.first = match self.used {
            0 => 0,
            _ => (self.first + len) % self.bytes.len(),
        };
    }

    /// `len` bytes that begin `offset` behind the oldest frame's first one: up to the end of the
    /// ring, and from its start.
    fn span(&self, offset: usize, len: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let size = self.bytes.len();
        let start = match self.first + offset {
            start if start >= size => start - size,
            start => start,
        };
        let before = len.min(size - start);
        (start..start + before, 0..len - before)
    }
}
