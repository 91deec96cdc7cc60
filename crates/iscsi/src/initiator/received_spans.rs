//! Which parts of a command's data came or were asked for, where no order was agreed upon.

/// Parts that do not touch each other, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedSpans(Vec<(u32, u32)>);

/// Why a part cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanError {
    /// A part of it is there.
    Overlap,
    /// More than [`MAX_SPANS`] parts that do not touch.
    Scattered,
}

impl ReceivedSpans {
    /// Adds `len` bytes from `start`; the end is within 32 bits.
    pub(super) fn add(&mut self, start: u32, len: u32) -> Result<(), SpanError> {
        if len == 0 {
            return Ok(());
        }
        let end = start.saturating_add(len);
        let at = self.0.partition_point(|span| span.1 <= start);
        if self.0.get(at).is_some_and(|span| span.0 < end) {
            return Err(SpanError::Overlap);
        }
        let before = at.checked_sub(1).filter(|at| self.0[*at].1 == start);
        let after = self.0.get(at).is_some_and(|span| span.0 == end);
        match (before, after) {
            (Some(before), true) => {
                self.0[before].1 = self.0[at].1;
                self.0.remove(at);
            }
            (Some(before), false) => self.0[before].1 = end,
            (None, true) => self.0[at].0 = start,
            (None, false) if self.0.len() == MAX_SPANS => return Err(SpanError::Scattered),
            (None, false) => self.0.insert(at, (start, end)),
        }
        Ok(())
    }
}

/// More parts than a target has reason to leave apart: each of its disks or cores ahead of the
/// others by one.
const MAX_SPANS: usize = 64;
