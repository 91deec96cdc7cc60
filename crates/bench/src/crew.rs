//! Threads that do the same at the same time: warming up, being measured, and coming to an end.
//!
//! Each counts for itself. While it works it shares two numbers, which it alone writes and the
//! thread that started it looks at every so often; there is no lock and no system call in that.

mod lead;
mod post;
mod turns;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::outcome::{Interval, Load, Tally};
use lead::Lead;
use post::Stage;

pub(crate) use post::{Phase, Post};
#[cfg(test)]
pub(crate) use post::{TestLead, led};
pub(crate) use turns::{Group, take_turns};

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// What is not counted, at the beginning.
    pub ramp: Duration,
    /// What is.
    pub runtime: Duration,
}

/// Who looks on, and may end it.
pub struct Watch<'a> {
    /// Ends it when it becomes true.
    pub stop: &'a AtomicBool,
    /// Told several times a second how it goes.
    pub live: &'a mut dyn FnMut(Live),
}

/// How it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Live {
    /// A row begins.
    Begin(Load),
    /// A volume is filled.
    Fill {
        /// Octets written.
        done: u64,
        /// Octets to be written.
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
        /// Millions of octets a second since the last time.
        mb_per_s: f64,
    },
}

impl Watch<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What one member has counted.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) reads: Tally,
    pub(crate) writes: Tally,
    /// What else went wrong.
    pub(crate) failure: Option<String>,
}

/// What all have counted.
#[derive(Debug, Default)]
pub(crate) struct Result {
    /// In the order of the members.
    pub(crate) reports: Vec<Report>,
    pub(crate) runtime: Duration,
    pub(crate) series: Vec<Interval>,
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
    times: Times,
    watch: &mut Watch<'_>,
    targets: impl FnOnce() -> Vec<u32>,
) -> io::Result<Result>
where
    F: FnOnce(&Post<'_>) -> Report + Send,
{
    let stage = Stage::new(Phase::Ramp, members.len());
    thread::scope(|scope| {
        let mut lead = Lead::start(scope, members, &stage)?;
        lead.meet(watch);
        let mut result = lead.measure(times, watch, targets);
        result.reports = lead.end(watch);
        Ok(result)
    })
}
