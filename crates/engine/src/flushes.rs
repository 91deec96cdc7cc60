//! Which volumes were flushed at shutdown, to tell the user.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scsi::medium::MediumError;

/// The book of flushes at the end of a process.
#[derive(Debug, Default)]
pub struct FinalFlushes {
    results: Mutex<FlushResults>,
}

#[derive(Debug, Default)]
struct FlushResults {
    /// The volumes that are served, by the slots of their units: addresses and results.
    each: BTreeMap<u32, (String, Option<Result<(), MediumError>>)>,
    done: usize,
    /// When the log last told how many.
    told: Option<Instant>,
}

impl FinalFlushes {
    fn results(&self) -> MutexGuard<'_, FlushResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A volume of this address is served from now on.
    pub fn insert(&self, volume: u32, name: String) {
        self.results().each.insert(volume, (name, None));
    }

    /// The volumes are at these addresses now.
    pub(crate) fn rename<'a>(&self, volumes: impl Iterator<Item = (u32, &'a str)>) {
        let mut results = self.results();
        for (volume, address) in volumes {
            if let Some((name, _)) = results.each.get_mut(&volume)
                && name != address
            {
                address.clone_into(name);
            }
        }
    }

    /// It is no longer served.
    pub(crate) fn remove(&self, volume: u32) {
        self.results().each.remove(&volume);
    }

    /// A flush has ended. Logs a line for it, or for many at once where there are many volumes.
    pub(crate) fn flushed(&self, volume: u32, result: Result<(), MediumError>) {
        let mut results = self.results();
        let Some((name, before)) = results.each.get_mut(&volume) else {
            return;
        };
        if let Err(error) = result {
            tracing::error!("not flushed: {name}: {error}");
        }
        let is_first = before.replace(result).is_none();
        results.done += usize::from(is_first);
        if let Some(line) = results.progress(volume, Instant::now()) {
            tracing::info!("{line}");
        }
    }

    /// A line with the volumes whose flush has not ended; `None` if all have.
    pub(crate) fn waiting(&self) -> Option<String> {
        let results = self.results();
        let volumes = results.each.values();
        let mut names = volumes.filter_map(|(name, result)| result.is_none().then_some(&**name));
        let mut line = format!("waiting for the flush of {}", names.next()?);
        for name in names.by_ref().take(NAMED - 1) {
            line = line + ", " + name;
        }
        match names.count() {
            0 => {}
            more => line += &format!(" and {more} more"),
        }
        Some(line + "; another signal stops at once and loses the data in their caches")
    }

    /// The volumes of which no flush went well: slots and addresses.
    #[must_use]
    pub fn missing(&self) -> Vec<(u32, String)> {
        let results = self.results();
        let mut missing = Vec::new();
        for (volume, (name, result)) in &results.each {
            if *result != Some(Ok(())) {
                missing.push((*volume, name.clone()));
            }
        }
        missing
    }
}

impl FlushResults {
    /// What there is to tell of a flush that has ended now.
    fn progress(&mut self, volume: u32, now: Instant) -> Option<String> {
        let (done, all) = (self.done, self.each.len());
        let (name, result) = self.each.get(&volume)?;
        if all <= EACH {
            let went_well = *result == Some(Ok(()));
            return went_well.then(|| format!("flushed {done} of {all}: {name}"));
        }
        if done < all {
            let told = *self.told.get_or_insert(now);
            if now.duration_since(told) < PAUSE {
                return None;
            }
            self.told = Some(now);
            return Some(format!("flushing: {done} of {all} volumes done"));
        }
        let failed = self.each.values().filter(|each| each.1 != Some(Ok(())));
        Some(match failed.count() {
            0 => format!("flushed all {all} volumes"),
            failed => format!("flushed {} of {all} volumes", all - failed),
        })
    }
}

/// Up to this number of volumes, each gets its own line.
const EACH: usize = 16;

/// How many volumes are named that are waited for.
const NAMED: usize = 3;

/// How long nothing is told of many volumes.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
