//! The load generator: threads that keep a queue depth of I/Os in flight on volumes.
//!
//! Every volume gets as many threads as there are jobs, and all of them work at the same time.
//! Each thread attaches the volume for itself, so a remote one has a session for each. Between
//! two waits a thread takes no lock, no memory and, while I/Os come and go, no system call.

mod fill;
mod job;
mod stamp;
#[cfg(test)]
pub(crate) mod tests;
mod write_generations;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::io::ring::RingKind;
use block::volume::Volume;
use client::worker::PollMode;

use crate::load_threads::{self, LiveFigures, LoadThread, LoadTotals, RunObserver, ThreadTotals};
use crate::outcome::{Load, OperationTotals, ResultRow, TOGETHER};
use crate::plan::{BlockSpan, FioOptions};
use crate::processes;
use job::{JobSpec, LoadJob};

pub use fill::{FillError, UnwrittenRange, fill, holes};
pub(crate) use stamp::{mix, new_run};

/// A volume to be measured, and the part of it that is used.
#[derive(Clone, Debug)]
pub struct LoadVolume {
    /// Its address.
    pub address: String,
    /// The volume.
    pub volume: Arc<dyn Volume>,
    /// What of it.
    pub span: BlockSpan,
    /// Our sockets that came when it was opened: its first session waits there.
    pub(crate) sockets: BTreeSet<u64>,
}

/// How the threads of a load wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadWaits {
    /// How the kernel is asked.
    pub ring: RingKind,
    /// When the threads spin in place of sleeping.
    pub poll: PollMode,
}

/// What the machine gives to it.
#[derive(Clone, Debug)]
pub struct LoadResources {
    /// How threads wait.
    pub waits: LoadWaits,
    /// Whose CPU time is that of the target; where empty, the process at the other end of our
    /// sockets.
    pub targets: Vec<u32>,
}

/// What was measured, and why it ended before its time.
#[derive(Debug)]
pub struct Measured {
    /// One for each volume; of several volumes also what they gave together.
    pub rows: Vec<ResultRow>,
    /// The first thing that failed.
    pub failure: Option<String>,
}

/// Why a measurement ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Our own machine.
    #[error("cannot start the load: {0}")]
    Machine(#[from] io::Error),
    /// A volume could not be filled.
    #[error("{address}: {cause}")]
    Fill {
        /// Its address.
        address: String,
        /// What failed.
        cause: FillError,
    },
    /// An I/O failed, or gave wrong data.
    #[error("{0}")]
    Load(String),
}

impl Measured {
    /// Adds its rows to others, as far as anything was measured.
    pub(crate) fn take(self, rows: &mut Vec<ResultRow>) -> Result<(), RunError> {
        rows.extend(self.rows.into_iter().filter(|row| row.runtime_us > 0));
        self.failure
            .map_or(Ok(()), |failure| Err(RunError::Load(failure)))
    }
}

/// Measures load after load, until all are, something fails, or it is stopped.
pub(crate) fn each(
    loads: impl Iterator<Item = Load>,
    watch: &mut RunObserver<'_>,
    mut measure: impl FnMut(Load, &mut RunObserver<'_>) -> Result<(), RunError>,
) -> Result<(), RunError> {
    for load in loads {
        if watch.stopped() {
            return Ok(());
        }
        (watch.live)(LiveFigures::Begin(load));
        measure(load, watch)?;
    }
    Ok(())
}

/// Measures one load on all volumes at the same time.
///
/// # Errors
///
/// When there are no threads to be had.
pub fn measure(
    subjects: &[LoadVolume],
    words: &FioOptions,
    load: Load,
    machinery: &LoadResources,
    watch: &mut RunObserver<'_>,
) -> io::Result<Measured> {
    let run = new_run();
    let members = subjects
        .iter()
        .flat_map(|subject| members(subject, (words, load), machinery.waits, run))
        .collect();
    let given = machinery.targets.clone();
    let result = load_threads::run(members, words.times(), watch, || {
        if given.is_empty() {
            processes::peers(&processes::sockets())
        } else {
            given
        }
    })?;
    let addresses = subjects.iter().map(|subject| subject.address.clone());
    Ok(measured(addresses.collect(), load, &result))
}

/// The jobs of one volume; `run` tells what they write from what others did.
pub(crate) fn members<'a>(
    subject: &'a LoadVolume,
    (words, load): (&'a FioOptions, Load),
    waits: LoadWaits,
    run: u64,
) -> impl Iterator<Item = impl FnOnce(&LoadThread<'_>) -> ThreadTotals + Send + use<'a>> + use<'a> {
    let task = move |number| JobSpec {
        subject,
        words,
        load,
        number,
        run,
    };
    (0..load.jobs)
        .map(task)
        .map(move |task| move |post: &LoadThread<'_>| LoadJob::run(&task, waits, post))
}

/// Rows of what the jobs counted, as many for each address. CPU time cannot be told apart by
/// volume, so that it stands with what all gave together.
pub(crate) fn measured(addresses: Vec<String>, load: Load, result: &LoadTotals) -> Measured {
    let all = format!("{TOGETHER}{}", addresses.len());
    let row =
        |(address, reports): (_, &[ThreadTotals])| row(address, load, result.runtime, reports);
    let each = result.reports.chunks(load.jobs as usize);
    let mut rows: Vec<_> = addresses.into_iter().zip(each).map(row).collect();
    if rows.len() > 1 {
        rows.push(row((all, &result.reports)));
    }
    if let Some(all) = rows.last_mut() {
        add_cpu(all, result);
        all.series.clone_from(&result.series);
    }
    let mut failures = result.reports.iter().flat_map(|report| &report.failure);
    Measured {
        rows,
        failure: failures.next().cloned(),
    }
}

/// Adds the CPU times of all jobs together.
pub(crate) fn add_cpu(row: &mut ResultRow, result: &LoadTotals) {
    let us = |time: Duration| time.as_micros() as u64;
    row.cpu_us = result.cpu.map(us);
    row.target_cpu_us = result.target_cpu.map(us);
}

pub(crate) fn row(
    address: String,
    load: Load,
    runtime: Duration,
    reports: &[ThreadTotals],
) -> ResultRow {
    let mut row = ResultRow {
        address,
        load,
        runtime_us: runtime.as_micros() as u64,
        reads: OperationTotals::default(),
        writes: OperationTotals::default(),
        cpu_us: None,
        target_cpu_us: None,
        series: Vec::new(),
    };
    for report in reports {
        row.reads.add(&report.reads);
        row.writes.add(&report.writes);
    }
    row
}
