//! What the log says of a file or device that others changed, or that fails: a line an event, as
//! initiators see no more of it than errors.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::BackingRules;

/// What was told of a backing.
#[derive(Debug, Default)]
pub(super) struct Notices {
    shorter: AtomicBool,
    removed: AtomicBool,
    not_mapped: AtomicBool,
    /// When it was found full last.
    full: Mutex<Option<Instant>>,
}

impl Notices {
    /// Reports a change of size: `bytes` is the current size, `capacity` the one served.
    pub(super) fn len(&self, rules: &BackingRules, bytes: u64, capacity: u64) {
        let (name, is_shorter) = (&rules.name, bytes < capacity);
        let was_shorter = self.shorter.swap(is_shorter, Relaxed);
        let block_size = u64::from(rules.block_size.bytes());
        match (was_shorter, is_shorter) {
            (false, true) if bytes == 0 && rules.is_device => {
                tracing::error!(
                    "{name}: the device is gone, or has no medium: nothing can be read"
                );
            }
            (false, true) => tracing::error!(
                "{name}: it shrank from {capacity} to {bytes} bytes; reads and writes beyond that \
                 fail"
            ),
            (true, false) if !rules.is_device => tracing::warn!(
                "{name}: it has {bytes} bytes again, but the data that was cut off is lost: reads \
                 and writes there fail until it is opened again"
            ),
            (true, false) => tracing::info!("{name}: it has {bytes} bytes again"),
            _ if bytes / block_size > capacity / block_size => {
                tracing::info!("{name}: it has grown from {capacity} to {bytes} bytes");
            }
            _ => {}
        }
    }

    /// It has no name any more.
    pub(super) fn removed(&self, rules: &BackingRules) {
        if !self.removed.swap(true, Relaxed) {
            let name = &rules.name;
            tracing::error!(
                "{name}: the file was removed or replaced: its data is served until this server \
                 stops, and is then lost; copy it first"
            );
        }
    }

    /// It cannot be mapped, so that data is copied once more than it could be.
    pub(super) fn not_mapped(&self, rules: &BackingRules, cause: &io::Error) {
        if !self.not_mapped.swap(true, Relaxed) {
            let name = &rules.name;
            tracing::info!("{name}: it cannot be mapped: {cause}; reads take more CPU time");
        }
    }

    /// A write found no room.
    pub(super) fn full(&self, rules: &BackingRules) {
        let mut last = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= FULL_EVERY) {
            *last = Some(Instant::now());
            let name = &rules.name;
            tracing::error!("{name}: no space for a write: writes fail until there is room");
        }
    }

    /// A write or flush failed that may have lost data.
    pub(super) fn lost(&self, rules: &BackingRules, cause: &io::Error) {
        let name = &rules.name;
        tracing::error!(
            "{name}: a write or flush failed, and data may be lost: {cause}; flushes fail until it \
             is opened again"
        );
    }
}

/// How often initiators that go on writing to what is full are worth a line.
const FULL_EVERY: Duration = Duration::from_secs(60);
