//! Work on long ranges, a bounded step at a time, so that other I/O goes on in between.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::io::ring::FileOp;

/// What a step does to a range of bytes, on a thread that may block.
pub(crate) type ChunkStep = Arc<dyn Fn(Range<u64>) -> io::Result<()> + Send + Sync>;

/// A range that is worked through.
pub(crate) struct ChunkedRange {
    rest: Range<u64>,
    step: u64,
    work: ChunkStep,
}

impl ChunkedRange {
    /// `step` is more than 0.
    pub(crate) fn new(range: Range<u64>, step: u64, work: ChunkStep) -> Self {
        Self {
            rest: range,
            step,
            work,
        }
    }

    /// The operation for the next step; `None` when all is done.
    pub(crate) fn next(&self) -> Option<FileOp> {
        if self.rest.is_empty() {
            return None;
        }
        let (work, step) = (Arc::clone(&self.work), self.current());
        Some(FileOp::Blocking(Box::new(move || work(step).map(|()| 0))))
    }

    /// The step that `next` started went well.
    pub(crate) fn advance(&mut self) {
        self.rest.start = self.current().end;
    }

    /// What is not done yet.
    pub(crate) fn rest(&self) -> Range<u64> {
        self.rest.clone()
    }

    fn current(&self) -> Range<u64> {
        let end = self.rest.start.saturating_add(self.step);
        self.rest.start..end.min(self.rest.end)
    }
}
