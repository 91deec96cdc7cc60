//! Metrics for Prometheus, and the same numbers for `lunar stats`.
//!
//! Cores count for themselves; who asks adds them up. Volumes that nobody has used yet have no
//! series but their capacity, so 10,000 silent LUNs cost little.
//!
//! | duty | module |
//! |---|---|
//! | what there is: names, kinds, units, help | [`series`] |
//! | what a volume is and has done | [`volume`] |
//! | the text: its two formats, labels | `exposition` |
//! | what is at `/metrics`, and what may be asked of it | [`scrape`] |

mod exposition;
pub mod scrape;
pub mod series;
pub mod volume;

pub use scrape::{ScrapeRequest, metrics};
pub use volume::{OperationStats, VolumeStats};

#[cfg(test)]
mod tests;
