//! Which volumes have been flushed at the end, for whoever must tell the user.

use std::sync::{Mutex, PoisonError};

use scsi::medium::MediumError;

/// The book of flushes at the end of a process.
#[derive(Debug)]
pub struct Flushes {
    /// Addresses.
    volumes: Vec<String>,
    results: Mutex<Vec<Option<Result<(), MediumError>>>>,
}

impl Flushes {
    /// A book for volumes of these addresses; a volume's number is its place.
    #[must_use]
    pub fn new(volumes: Vec<String>) -> Self {
        let results = Mutex::new(vec![None; volumes.len()]);
        Self { volumes, results }
    }

    /// A flush has ended.
    pub(crate) fn flushed(&self, volume: usize, result: Result<(), MediumError>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results[volume] = Some(result);
        let done = results.iter().flatten().count();
        let (all, name) = (results.len(), &self.volumes[volume]);
        match result {
            Ok(()) => tracing::info!("flushed {done} of {all}: {name}"),
            Err(error) => tracing::error!("not flushed: {name}: {error}"),
        }
    }

    /// The volumes of which no flush went well: numbers and addresses.
    #[must_use]
    pub fn missing(&self) -> Vec<(usize, String)> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let volumes = self.volumes.iter().cloned().enumerate();
        volumes
            .zip(results.iter())
            .filter(|(_, result)| **result != Some(Ok(())))
            .map(|(volume, _)| volume)
            .collect()
    }
}
