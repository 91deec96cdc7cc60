//! What is counted while a load runs.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use ::tests::process::waits;
use anyhow::{Result, bail};
use bench::outcome::Latency;
use io::cpu;
use serde::Serialize;

/// What a load gave.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measured {
    /// I/Os a second.
    pub(crate) iops: f64,
    /// Seconds of target CPU a second; `None` where its process is not known.
    pub(crate) target_load: Option<f64>,
    /// How often a second threads of the target went to sleep.
    pub(crate) target_sleeps: Option<f64>,
    /// Share of the time for which the generator had something to do.
    pub(crate) generator_load: f64,
    /// Median of the time from command to response, in microseconds.
    pub(crate) p50_us: f64,
    /// The time under which 99 of 100 stay.
    pub(crate) p99_us: f64,
    /// The slowest and the fastest session, as shares of the mean of all.
    pub(crate) slowest_fastest: (f64, f64),
    /// All those times.
    #[serde(skip)]
    pub(crate) latency: Latency,
}

impl Measured {
    /// Target CPU an I/O, in microseconds.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        self.target_load.map(|load| load * 1e6 / self.iops)
    }

    /// The generator's own, in microseconds.
    pub(crate) fn generator_us(&self) -> f64 {
        self.generator_load * 1e6 / self.iops
    }

    /// I/Os for each time that the target went to sleep, if it did.
    pub(crate) fn ios_a_sleep(&self) -> Option<f64> {
        let sleeps = self.target_sleeps.filter(|sleeps| *sleeps > 0.0);
        sleeps.map(|sleeps| self.iops / sleeps)
    }

    /// How far the session furthest off is off the mean of all, as a share of that.
    pub(crate) fn unfairness(&self) -> f64 {
        let (slowest, fastest) = self.slowest_fastest;
        (1.0 - slowest).max(fastest - 1.0)
    }

    /// With the percentiles of all times.
    pub(crate) fn with(mut self, latency: Latency) -> Self {
        let at = |percent| latency.percentile_ns(percent) as f64 / 1e3;
        (self.p50_us, self.p99_us) = (at(50.0), at(99.0));
        self.latency = latency;
        self
    }
}

pub(crate) struct Meter {
    start: Instant,
    target: Option<Target>,
    /// The time for which the generator found nothing to do.
    pub(crate) idle: Duration,
    times: Vec<u32>,
    /// I/Os of each session.
    done: Vec<u64>,
}

/// What the target had taken at the start.
struct Target {
    pid: u32,
    cpu: Duration,
    waits: u64,
}

impl Meter {
    pub(crate) fn start(pid: Option<u32>, sessions: usize) -> Result<Self> {
        let times = Vec::with_capacity(4 << 20);
        let target = pid.map(Target::now).transpose()?;
        Ok(Self {
            target,
            idle: Duration::ZERO,
            times,
            done: vec![0; sessions],
            start: Instant::now(),
        })
    }

    pub(crate) fn done(&mut self, session: usize, began: Instant) {
        let time = began.elapsed().as_nanos();
        self.times.push(u32::try_from(time).unwrap_or(u32::MAX));
        self.done[session] += 1;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn end(self) -> Result<Measured> {
        let seconds = self.start.elapsed().as_secs_f64();
        let before = self.target.as_ref();
        let after = before.map(|target| Target::now(target.pid)).transpose()?;
        let both = before.zip(after.as_ref());
        if self.times.is_empty() {
            bail!("nothing was done");
        }
        let mut latency = Latency::default();
        for time in &self.times {
            latency.record(u64::from(*time));
        }
        let spent = |(before, after): (&Target, &Target)| (after.cpu - before.cpu).as_secs_f64();
        let slept =
            |(before, after): (&Target, &Target)| after.waits.saturating_sub(before.waits) as f64;
        let measured = Measured {
            iops: self.times.len() as f64 / seconds,
            target_load: both.map(|both| spent(both) / seconds),
            target_sleeps: both.map(|both| slept(both) / seconds),
            generator_load: 1.0 - self.idle.as_secs_f64() / seconds,
            slowest_fastest: slowest_fastest(&self.done),
            ..Measured::default()
        };
        Ok(measured.with(latency))
    }
}

impl Target {
    fn now(pid: u32) -> Result<Self> {
        Ok(Self {
            pid,
            cpu: cpu::time_of(pid)?,
            waits: waits(pid)?,
        })
    }
}

/// As shares of the mean.
fn slowest_fastest(done: &[u64]) -> (f64, f64) {
    let mean = done.iter().sum::<u64>() as f64 / done.len() as f64;
    let shares = || done.iter().map(|done| *done as f64 / mean);
    let fastest = shares().fold(0.0, f64::max);
    (shares().fold(fastest, f64::min), fastest)
}
