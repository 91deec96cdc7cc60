//! Which volumes were flushed at shutdown, to tell the user.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use scsi::medium::MediumError;

/// The book of flushes at the end of a process.
#[derive(Debug)]
pub struct FinalFlushes {
    /// Addresses.
    volumes: Vec<String>,
    results: Mutex<FlushResults>,
}

#[derive(Debug)]
struct FlushResults {
    /// By volume.
    each: Vec<Option<Result<(), MediumError>>>,
    done: usize,
    /// When the log last told how many.
    told: Option<Instant>,
}

impl FinalFlushes {
    /// A book for volumes of these addresses; a volume's number is its place.
    #[must_use]
    pub fn new(volumes: Vec<String>) -> Self {
        let results = FlushResults {
            each: vec![None; volumes.len()],
            done: 0,
            told: None,
        };
        Self {
            volumes,
            results: Mutex::new(results),
        }
    }

    /// The address of a volume.
    pub(crate) fn name(&self, volume: usize) -> &str {
        &self.volumes[volume]
    }

    /// A flush has ended. Logs a line for it, or for many at once where there are many volumes.
    pub(crate) fn flushed(&self, volume: usize, result: Result<(), MediumError>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.each[volume].replace(result).is_none() {
            results.done += 1;
        }
        let name = &self.volumes[volume];
        if let Err(error) = result {
            tracing::error!("not flushed: {name}: {error}");
        }
        let now = Instant::now();
        if let Some(line) = self.progress(&mut results, volume, now) {
            tracing::info!("{line}");
        }
    }

    /// What there is to tell of a flush that has ended now.
    fn progress(&self, results: &mut FlushResults, volume: usize, now: Instant) -> Option<String> {
        let (done, all) = (results.done, self.volumes.len());
        let went_well = results.each[volume] == Some(Ok(()));
        if all <= EACH {
            let name = &self.volumes[volume];
            return went_well.then(|| format!("flushed {done} of {all}: {name}"));
        }
        if done < all {
            let told = *results.told.get_or_insert(now);
            if now.duration_since(told) < PAUSE {
                return None;
            }
            results.told = Some(now);
            return Some(format!("flushing: {done} of {all} volumes done"));
        }
        let failed = results.each.iter().filter(|each| **each != Some(Ok(())));
        Some(match failed.count() {
            0 => format!("flushed all {all} volumes"),
            failed => format!("flushed {} of {all} volumes", all - failed),
        })
    }

    /// A line with the volumes whose flush has not ended; `None` if all have.
    pub(crate) fn waiting(&self) -> Option<String> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let volumes = self.volumes.iter().zip(&results.each);
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

    /// The volumes of which no flush went well: numbers and addresses.
    #[must_use]
    pub fn missing(&self) -> Vec<(usize, String)> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let volumes = self.volumes.iter().cloned().enumerate();
        volumes
            .zip(results.each.iter())
            .filter(|(_, result)| **result != Some(Ok(())))
            .map(|(volume, _)| volume)
            .collect()
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
