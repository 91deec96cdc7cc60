//! The load generator: threads that keep so many I/Os under way on volumes.
//!
//! Every volume gets as many threads as there are jobs, and all of them work at the same time.
//! Each thread attaches the volume for itself, so a remote one has a session for each. Between
//! two waits a thread takes no lock, no memory and, while I/Os come and go, no system call.

mod book;
mod fill;
mod job;
mod places;
mod stamp;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use ::io::ring::Kind;
use block::volume::Volume;

use crate::crew::{self, Report, Times, Watch};
use crate::outcome::{Load, Row};
use crate::processes;
use crate::words::{Span, Words};
use job::{Job, Task};

pub use fill::{fill, is_hole};

/// A volume to be measured, and the part of it that is used.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its address.
    pub address: String,
    /// The volume.
    pub volume: Arc<dyn Volume>,
    /// What of it.
    pub span: Span,
}

/// What the machine gives to it.
#[derive(Clone, Debug)]
pub struct Machinery {
    /// How the kernel is asked.
    pub ring: Kind,
    /// Whose CPU time is that of the target; who is at the other end of our sockets, where empty.
    pub targets: Vec<u32>,
}

/// What was measured, and why it ended before its time.
#[derive(Debug)]
pub struct Measured {
    /// One for each volume; of several volumes also what they gave together.
    pub rows: Vec<Row>,
    /// The first thing that failed.
    pub failure: Option<String>,
}

/// Measures one load on all volumes at the same time.
///
/// # Errors
///
/// When there are no threads to be had.
pub fn measure(
    subjects: &[Subject],
    words: &Words,
    load: Load,
    machinery: &Machinery,
    watch: &mut Watch<'_>,
) -> io::Result<Measured> {
    let run = stamp::new_run();
    let parts = subjects
        .iter()
        .flat_map(|subject| (0..load.jobs).map(move |number| (subject, number)));
    let task = |(subject, number)| Task {
        subject,
        words,
        load,
        number,
        run,
    };
    let members = parts
        .map(task)
        .map(|task| move |post: &crew::Post<'_>| Job::run(&task, machinery.ring, post))
        .collect();
    let times = Times {
        ramp: words.ramp,
        runtime: words.runtime,
    };
    let given = machinery.targets.clone();
    let result = crew::run(members, times, watch, || match given.is_empty() {
        true => processes::peers(),
        false => given,
    })?;
    Ok(measured(subjects, load, &result))
}

/// Rows of what the jobs counted. CPU time cannot be told apart by volume, so that it stands with
/// what all gave together.
fn measured(subjects: &[Subject], load: Load, result: &crew::Result) -> Measured {
    let jobs = load.jobs as usize;
    let addresses = subjects.iter().map(|subject| subject.address.clone());
    let mut rows: Vec<_> = addresses
        .zip(result.reports.chunks(jobs))
        .map(|(address, reports)| row(address, load, result.runtime, reports))
        .collect();
    if subjects.len() > 1 {
        let all = format!("all {}", subjects.len());
        rows.push(row(all, load, result.runtime, &result.reports));
    }
    if let Some(all) = rows.last_mut() {
        let us = |time: std::time::Duration| time.as_micros() as u64;
        all.cpu_us = result.cpu.map(us);
        all.target_cpu_us = result.target_cpu.map(us);
        all.series.clone_from(&result.series);
    }
    let failures = result
        .reports
        .iter()
        .filter_map(|report| report.failure.clone());
    Measured {
        rows,
        failure: failures.into_iter().next(),
    }
}

pub(crate) fn row(
    address: String,
    load: Load,
    runtime: std::time::Duration,
    reports: &[Report],
) -> Row {
    let mut row = Row {
        address,
        load,
        runtime_us: runtime.as_micros() as u64,
        reads: Default::default(),
        writes: Default::default(),
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
