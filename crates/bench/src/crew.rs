//! Threads that do the same at the same time: warming up, being measured, and coming to an end.
//!
//! Each counts for itself. While it works it shares two numbers, which it alone writes and the
//! thread that started it looks at every so often; there is no lock and no system call in that.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ::io::ring::Waker;

use crate::outcome::{Interval, Load, Tally};
use crate::processes;

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

/// What all are in at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is counted.
    Ramp,
    /// Everything is.
    Measure,
    /// Nothing is begun any more.
    Stop,
    /// What is under way is not waited for either.
    Abandon,
}

const PHASES: [Phase; 4] = [Phase::Ramp, Phase::Measure, Phase::Stop, Phase::Abandon];

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

/// Written by one member, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    ios: AtomicU64,
    bytes: AtomicU64,
}

/// A member's place in the crew.
pub(crate) struct Post<'a> {
    phase: &'a AtomicU8,
    counters: &'a Counters,
    ready: Sender<Event>,
}

enum Event {
    Ready(Option<Waker>),
    Ended,
}

impl Post<'_> {
    /// It can be measured from now on. Who waits for long is to be woken by `waker`.
    pub(crate) fn ready(&self, waker: Option<Waker>) {
        // Nobody listens any more when it is over already.
        let _ = self.ready.send(Event::Ready(waker));
    }

    pub(crate) fn phase(&self) -> Phase {
        PHASES[usize::from(self.phase.load(Relaxed)).min(PHASES.len() - 1)]
    }

    /// Shows what was counted until now.
    pub(crate) fn show(&self, report: &Report) {
        let Report { reads, writes, .. } = report;
        self.counters.ios.store(reads.ios + writes.ios, Relaxed);
        self.counters
            .bytes
            .store(reads.bytes + writes.bytes, Relaxed);
    }
}

/// A post where nobody leads: everything is measured.
#[cfg(test)]
pub(crate) fn alone<T>(act: impl FnOnce(&Post<'_>) -> T) -> T {
    let (ready, _events) = channel();
    act(&Post {
        phase: &AtomicU8::new(Phase::Measure as u8),
        counters: &Counters::default(),
        ready,
    })
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
    let phase = AtomicU8::new(Phase::Ramp as u8);
    let counters: Vec<_> = members.iter().map(|_| Counters::default()).collect();
    let (sender, events) = channel();
    let mut lead = Lead {
        phase: &phase,
        counters: &counters,
        events,
        wakers: Vec::new(),
        ended: false,
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (member, counters) in members.into_iter().zip(&counters) {
            let post = Post {
                phase: &phase,
                counters,
                ready: sender.clone(),
            };
            let body = move || {
                let report = member(&post);
                let _ = post.ready.send(Event::Ended);
                report
            };
            let thread = thread::Builder::new().name("job".to_owned());
            match thread.spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(cause) => {
                    lead.set(Phase::Stop);
                    return Err(cause);
                }
            }
        }
        let mut result = lead.measure(threads.len(), times, watch, targets);
        lead.end(threads.len(), watch);
        let joined = threads.into_iter().map(ScopedJoinHandle::join);
        // A panic of a member is ours too.
        result.reports = joined
            .map(|report| report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        Ok(result)
    })
}

/// The thread that leads.
struct Lead<'a> {
    phase: &'a AtomicU8,
    counters: &'a [Counters],
    events: Receiver<Event>,
    wakers: Vec<Waker>,
    /// A member has ended by itself.
    ended: bool,
}

impl Lead<'_> {
    fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }

    fn measure(
        &mut self,
        members: usize,
        times: Times,
        watch: &mut Watch<'_>,
        targets: impl FnOnce() -> Vec<u32>,
    ) -> Result {
        let mut ready = 0;
        while ready < members && self.goes_on(watch) {
            if let Some(Event::Ready(waker)) = self.event(SAMPLE) {
                self.wakers.extend(waker);
                ready += 1;
            }
        }
        let ramp_end = Instant::now() + times.ramp;
        while self.goes_on(watch) && !ramp_end.saturating_duration_since(Instant::now()).is_zero() {
            self.event(
                ramp_end
                    .saturating_duration_since(Instant::now())
                    .min(SAMPLE),
            );
            (watch.live)(Live::Ramp);
        }
        if !self.goes_on(watch) {
            return Result::default();
        }
        let targets = targets();
        let own = [std::process::id()];
        let before = [&own[..], &targets].map(processes::cpu_time_of);
        self.set(Phase::Measure);
        let begin = Instant::now();
        let series = self.sample(begin, times.runtime, watch);
        let runtime = begin.elapsed();
        let after = [&own[..], &targets].map(processes::cpu_time_of);
        self.set(Phase::Stop);
        let used = |at: usize| after[at]?.checked_sub(before[at]?);
        Result {
            reports: Vec::new(),
            runtime,
            series,
            cpu: used(0),
            target_cpu: used(1),
        }
    }

    /// Looks at the counters until the time is over.
    fn sample(&mut self, begin: Instant, time: Duration, watch: &mut Watch<'_>) -> Vec<Interval> {
        // At most a thousand points, however long it takes.
        let step = SAMPLE.max(time / 1000);
        let mut series = Vec::new();
        let (mut last_ios, mut last_bytes, mut last) = (0, 0, Duration::ZERO);
        while self.goes_on(watch) && last < time {
            self.event((last + step).min(time).saturating_sub(begin.elapsed()));
            let now = begin.elapsed();
            if now < (last + step).min(time) {
                continue;
            }
            let (ios, bytes) = self.counted();
            let seconds = (now - last).as_secs_f64();
            (watch.live)(Live::Measure {
                elapsed: now,
                iops: (ios - last_ios) as f64 / seconds,
                mb_per_s: (bytes - last_bytes) as f64 / seconds / 1e6,
            });
            series.push(Interval {
                end_ms: now.as_millis() as u64,
                ios: ios - last_ios,
                bytes: bytes - last_bytes,
            });
            (last_ios, last_bytes, last) = (ios, bytes, now);
        }
        series
    }

    fn counted(&self) -> (u64, u64) {
        let each = |counters: &Counters| (counters.ios.load(Relaxed), counters.bytes.load(Relaxed));
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        self.counters.iter().map(each).fold((0, 0), sum)
    }

    fn goes_on(&self, watch: &Watch<'_>) -> bool {
        !self.ended && !watch.stopped()
    }

    /// What a member tells within `limit`.
    fn event(&mut self, limit: Duration) -> Option<Event> {
        match self.events.recv_timeout(limit) {
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                None
            }
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Waits for all to end; who stops it a second time, or at all, does not wait for long.
    fn end(&mut self, members: usize, watch: &Watch<'_>) {
        let begin = Instant::now();
        let mut ended = usize::from(self.ended);
        while ended < members {
            match self.events.recv_timeout(SAMPLE) {
                Ok(Event::Ended) => ended += 1,
                // One that was late: it has to be told as well.
                Ok(Event::Ready(waker)) => {
                    self.wakers.extend(waker);
                    self.set(Phase::Stop);
                }
                Err(_) if watch.stopped() && begin.elapsed() > PATIENCE => {
                    self.set(Phase::Abandon);
                }
                Err(_) => {}
            }
        }
    }
}

/// How often the counters are looked at, at the most.
const SAMPLE: Duration = Duration::from_millis(100);

/// How long what is under way may take when somebody wants an end.
const PATIENCE: Duration = Duration::from_secs(2);
