//! What goes on beside the load: one thread changes rows, many read, one scrapes.

use std::fmt;
use std::iter::Sum;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use control::api::SetRequest;

use super::{Arguments, median};
use crate::daemon::{LUNS, RunningDaemon, name};

/// What readers ask for.
const PATHS: [&str; 4] = ["/v1/status", "/v1/sessions", "/v1/stats", "/v1/volumes"];

const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// Those that make noise.
pub(super) struct NoiseThreads<'a> {
    daemon: &'a RunningDaemon,
    arguments: &'a Arguments,
    /// The number of the next change. They go on from turn to turn.
    next: AtomicU32,
}

/// What they have done.
#[derive(Debug, Default)]
pub(super) struct NoiseCounts {
    /// The time of each change, in milliseconds.
    pub(super) applies: Vec<f64>,
    pub(super) reads: u64,
    pub(super) scrapes: u64,
    /// For how long.
    pub(super) time: Duration,
}

impl<'a> NoiseThreads<'a> {
    pub(super) fn new(daemon: &'a RunningDaemon, arguments: &'a Arguments) -> Self {
        Self {
            daemon,
            arguments,
            next: AtomicU32::new(0),
        }
    }

    /// Starts threads that go on until `over`.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        over: &'scope AtomicBool,
    ) -> Vec<ScopedJoinHandle<'scope, Result<NoiseCounts>>> {
        let readers = (0..self.arguments.readers as usize)
            .map(|reader| scope.spawn(move || remote(|| self.read(reader, over))));
        let mut threads: Vec<_> = readers.collect();
        threads.push(scope.spawn(move || remote(|| self.apply(over))));
        threads.push(scope.spawn(move || remote(|| self.scrape(over))));
        threads
    }

    /// Makes changes, each when it is due or the one before is made.
    fn apply(&self, over: &AtomicBool) -> Result<NoiseCounts> {
        // A little ahead, so that what is wanted is reached where it can be.
        let every = self.arguments.seconds.mul_f64(0.98) / self.arguments.applies;
        let (begin, mut applies) = (Instant::now(), Vec::new());
        while !over.load(Relaxed) {
            let number = self.next.fetch_add(1, Relaxed);
            applies.push(self.daemon.set(&change(number, self.arguments.targets))?);
            sleep_until(begin + every * applies.len() as u32);
        }
        Ok(NoiseCounts {
            applies,
            time: begin.elapsed(),
            ..NoiseCounts::default()
        })
    }

    fn read(&self, reader: usize, over: &AtomicBool) -> Result<NoiseCounts> {
        let mut counts = NoiseCounts::default();
        // Not all ask for the same at the same time.
        for path in PATHS.iter().cycle().skip(reader) {
            if over.load(Relaxed) {
                break;
            }
            self.daemon.text(path)?;
            counts.reads += 1;
            thread::sleep(self.arguments.pause);
        }
        Ok(counts)
    }

    fn scrape(&self, over: &AtomicBool) -> Result<NoiseCounts> {
        let (begin, mut counts) = (Instant::now(), NoiseCounts::default());
        while !over.load(Relaxed) {
            let text = self.daemon.text("/metrics")?;
            // The load's is one more.
            let volumes = text.matches("lunar_volume_capacity_bytes{").count() as u32;
            let wanted = self.arguments.targets * LUNS;
            ensure!(volumes > wanted, "{volumes} volumes in /metrics");
            counts.scrapes += 1;
            sleep_until(begin + SCRAPE_EVERY * counts.scrapes as u32);
        }
        Ok(counts)
    }
}

/// What would be on another machine gives way to all that is measured.
fn remote<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    io::cpu::give_way(19)?;
    work()
}

fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}

/// By turns: a limit is set, a LUN is added, the limit is lifted, the LUN is removed. Each four are
/// at another volume and another target.
pub(super) fn change(number: u32, targets: u32) -> SetRequest {
    let (round, step) = (number / 4, number % 4);
    let volume = format!("volume.v{}", round % (targets * LUNS));
    let more = format!("volume.more{round}");
    let lun = format!("target.{}.luns.{LUNS}", name(round % targets));
    let (set, unset) = match step {
        0 => (
            vec![(format!("{volume}.limit.iops"), "100000".to_owned())],
            vec![],
        ),
        1 => {
            let of_volume = (format!("{more}.address"), "null:1G".to_owned());
            (vec![of_volume, (lun, format!("more{round}"))], vec![])
        }
        2 => (vec![], vec![format!("{volume}.limit")]),
        _ => (vec![], vec![lun, more]),
    };
    SetRequest { set, unset }
}

impl NoiseCounts {
    /// How many changes were made in a part of the time.
    pub(super) fn applies_in(&self, time: Duration) -> f64 {
        self.applies.len() as f64 * time.as_secs_f64() / self.time.as_secs_f64()
    }
}

/// Of several threads.
impl Sum for NoiseCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |mut all, one| {
            all.applies.extend(one.applies);
            all.reads += one.reads;
            all.scrapes += one.scrapes;
            all.time = all.time.max(one.time);
            all
        })
    }
}

impl fmt::Display for NoiseCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, scrapes, .. } = self;
        let applies = self.applies.len();
        let ms = median(self.applies.clone()).unwrap_or_default();
        write!(
            f,
            "{applies} applies (the median took {ms:.1} ms), {reads} reads, {scrapes} scrapes in \
             {:.1} s",
            self.time.as_secs_f64()
        )
    }
}
