//! Threads that do the same at the same time: warming up, being measured, and coming to an end.
//!
//! Each counts for itself. While it works it shares two numbers, which it alone writes and the
//! thread that started it looks at every so often; there is no lock and no system call in that.

mod control;
mod coordinator;
#[cfg(test)]
pub(crate) mod tests;
mod turns;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::outcome::{Load, OperationTotals, RowInterval};
use control::LoadControl;
use coordinator::Coordinator;

pub(crate) use control::{LoadPhase, LoadThread};
pub(crate) use turns::{ThreadGroup, take_turns};

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct RunTimes {
    /// What is not counted, at the beginning.
    pub ramp: Duration,
    /// What is.
    pub runtime: Duration,
}

/// Watches a run, and may end it.
pub struct RunObserver<'a> {
    /// Ends it when it becomes true.
    pub stop: &'a AtomicBool,
    /// Told several times a second how it goes.
    pub live: &'a mut dyn FnMut(LiveFigures),
}

/// How it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LiveFigures {
    /// A row begins.
    Begin(Load),
    /// A volume is filled.
    Fill {
        /// Bytes written.
        done: u64,
        /// Bytes to be written.
        total: u64,
    },
    /// The next of those that take turns has its turn.
    Turn {
        /// Which one, from 1 on.
        lane: usize,
        /// Which round this is, from 1 on; 0 warms up.
        round: u32,
        /// How many there are to be.
        rounds: u32,
        /// How long the rest of all loads takes, from the begin of this turn.
        left: Duration,
    },
    /// Not all jobs have a session yet.
    Meet,
    /// The time is over, and what is in flight is waited for.
    Drain,
    /// Nothing is counted yet.
    Ramp,
    /// Everything is.
    Measure {
        /// Since that began.
        elapsed: Duration,
        /// I/Os a second since the last time.
        iops: f64,
        /// Millions of bytes a second since the last time.
        mb_per_s: f64,
    },
}

impl RunObserver<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What one member has counted.
#[derive(Debug, Default)]
pub(crate) struct ThreadTotals {
    pub(crate) reads: OperationTotals,
    pub(crate) writes: OperationTotals,
    /// What else went wrong.
    pub(crate) failure: Option<String>,
}

impl ThreadTotals {
    /// What was written, or what was read.
    pub(crate) fn tally(&mut self, write: bool) -> &mut OperationTotals {
        if write {
            &mut self.writes
        } else {
            &mut self.reads
        }
    }
}

/// What all have counted.
#[derive(Debug, Default)]
pub(crate) struct LoadTotals {
    /// In the order of the members.
    pub(crate) reports: Vec<ThreadTotals>,
    pub(crate) runtime: Duration,
    pub(crate) series: Vec<RowInterval>,
    pub(crate) cpu: Option<Duration>,
    pub(crate) target_cpu: Option<Duration>,
}

/// Runs the members, each on a thread of its own. `targets` tells whose CPU time is counted, once
/// they are all ready.
///
/// # Errors
///
/// When there are no more threads to be had.
pub(crate) fn run<F>(
    members: Vec<F>,
    times: RunTimes,
    watch: &mut RunObserver<'_>,
    targets: impl FnOnce() -> Vec<u32>,
) -> io::Result<LoadTotals>
where
    F: FnOnce(&LoadThread<'_>) -> ThreadTotals + Send,
{
    let stage = LoadControl::new(LoadPhase::Ramp, members.len());
    thread::scope(|scope| {
        let mut lead = Coordinator::start(scope, members, &stage)?;
        lead.meet(watch);
        let mut result = lead.measure(times, watch, targets);
        result.reports = lead.end(watch);
        Ok(result)
    })
}
