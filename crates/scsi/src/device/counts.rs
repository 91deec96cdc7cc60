//! What a device server holds at the moment, for tests that look for leaks and for metrics.

use super::DeviceServer;

/// How many of everything that comes and goes a device server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Nexuses, those that are being lost among them.
    pub nexuses: usize,
    /// Commands that have not ended.
    pub tasks: usize,
    /// Requests that owners have not answered.
    pub requests: usize,
    /// Task management functions that have not ended.
    pub functions: usize,
    /// Publications that are not acknowledged.
    pub publications: usize,
}

impl<L> DeviceServer<L> {
    /// What it holds now.
    #[must_use]
    pub fn counts(&self) -> DeviceCounts {
        DeviceCounts {
            nexuses: self.nexuses.iter().flatten().count(),
            tasks: self.tasks.len(),
            requests: self.asks.len(),
            functions: self.managements.len(),
            publications: self.units.iter().map(|unit| unit.pending.len()).sum(),
        }
    }
}
