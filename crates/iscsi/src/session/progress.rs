//! Whether what a peer has to do gets on, however slowly.

use scsi::medium::Now;

/// Looks at something now and then: it is stuck when nothing of it moved between two looks.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// When to look next; `None` while nothing is under way.
    look: Option<Now>,
    /// Something moved since the last look.
    moved: bool,
}

impl Progress {
    pub(super) const fn deadline(&self) -> Option<Now> {
        self.look
    }

    /// Something is under way. The first look never finds it stuck, as `now` may be long ago: what
    /// came last from the peer can have waited for others, or for a medium.
    pub(super) fn begin(&mut self, now: Now, wait: Now) {
        if self.look.is_none() {
            self.look = Some(now.saturating_add(wait));
            self.moved = true;
        }
    }

    pub(super) const fn moved(&mut self) {
        self.moved = true;
    }

    /// Looks, if it is time to. Whether what is `under_way` has not moved since the last look.
    pub(super) fn is_stuck(&mut self, now: Now, wait: Now, under_way: bool) -> bool {
        if self.look.is_none_or(|look| now < look) {
            return false;
        }
        let moved = std::mem::take(&mut self.moved);
        self.look = (under_way && moved).then(|| now.saturating_add(wait));
        under_way && !moved
    }
}
