//! Waiting for buffers of a region that are in use.

use std::rc::Weak;

use super::RegionView;

/// Buffers that are waited for; see [`super::LocalRegion::recall`].
#[derive(Debug)]
pub struct Recall(Vec<Weak<RegionView>>);

impl Recall {
    pub(super) fn of(view: Weak<RegionView>) -> Self {
        Self(vec![view])
    }

    /// What waits for both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether the last of them has been dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.iter().all(|claims| claims.strong_count() == 0)
    }
}
