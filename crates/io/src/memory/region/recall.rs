//! Waiting for buffers of a region that are in use.

use std::fmt::Debug;
use std::rc::Weak;

/// Buffers that are waited for; see [`super::LocalRegion::recall`] and
/// [`LocalFileMap::recall`](crate::memory::LocalFileMap::recall).
#[derive(Debug)]
pub struct Recall(Vec<Weak<dyn Debug>>);

impl Recall {
    /// What waits for the last claim on each of these.
    pub(in crate::memory) fn of_all(claims: Vec<Weak<dyn Debug>>) -> Self {
        Self(claims)
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
