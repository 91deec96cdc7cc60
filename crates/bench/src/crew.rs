//! Threads that do the same at the same time: warming up, being measured, and coming to an end.
//!
//! Each counts for itself. While it works it shares two numbers, which it alone writes and the
//! thread that started it looks at every so often; there is no lock and no system call in that.

mod turns;

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ::io::ring::Waker;

use crate::outcome::{Interval, Load, Tally};
use crate::processes;

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

/// What all are in at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is the turn of others: nothing is begun, and what was counted is handed in.
    Rest,
    /// Nothing is counted.
    Ramp,
    /// Everything is.
    Measure,
    /// Nothing is begun any more, and what is in flight is waited for.
    Stop,
    /// What is in flight is given up.
    Cancel,
    /// Nothing is waited for either.
    Abandon,
}

impl Phase {
    /// Whether nothing is begun any more.
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::Stop | Self::Cancel | Self::Abandon)
    }
}

const PHASES: [Phase; 6] = [
    Phase::Rest,
    Phase::Ramp,
    Phase::Measure,
    Phase::Stop,
    Phase::Cancel,
    Phase::Abandon,
];

/// A phase and the number of a turn in one word, so that no member sees the one without the other.
const PHASE_BITS: u32 = 3;

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

/// What members and their lead share.
struct Stage {
    /// The turn and the phase.
    at: AtomicU32,
    counters: Vec<Counters>,
}

impl Stage {
    fn new(phase: Phase, members: usize) -> Self {
        Self {
            at: AtomicU32::new(phase as u32),
            counters: (0..members).map(|_| Counters::default()).collect(),
        }
    }
}

/// A member's place in the crew.
pub(crate) struct Post<'a> {
    at: &'a AtomicU32,
    counters: &'a Counters,
    events: Sender<Event>,
}

enum Event {
    Ready(Option<Waker>),
    Rested(Box<Report>),
    Ended,
}

impl Post<'_> {
    /// It can be measured from now on. Who waits for long is to be woken by `waker`.
    pub(crate) fn ready(&self, waker: Option<Waker>) {
        self.tell(Event::Ready(waker));
    }

    /// The turn is over, and this is what was counted in it.
    pub(crate) fn rested(&self, report: Report) {
        self.show(&Report::default());
        self.tell(Event::Rested(Box::new(report)));
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more when it is over already.
        let _ = self.events.send(event);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.at().1
    }

    /// The number of the turn, 0 before the first, and the phase.
    pub(crate) fn at(&self) -> (u32, Phase) {
        let at = self.at.load(Relaxed);
        let phase = (at % (1 << PHASE_BITS)) as usize;
        (at >> PHASE_BITS, PHASES[phase.min(PHASES.len() - 1)])
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

/// A post where the test leads, beginning with what is measured.
#[cfg(test)]
pub(crate) fn led<T>(act: impl FnOnce(&Post<'_>, &TestLead<'_>) -> T) -> T {
    let (sender, events) = channel();
    let at = &AtomicU32::new(0);
    let lead = TestLead { at, events };
    lead.set(0, Phase::Measure);
    let post = Post {
        at,
        counters: &Counters::default(),
        events: sender,
    };
    act(&post, &lead)
}

#[cfg(test)]
pub(crate) struct TestLead<'a> {
    at: &'a AtomicU32,
    events: Receiver<Event>,
}

#[cfg(test)]
impl TestLead<'_> {
    pub(crate) fn set(&self, turn: u32, phase: Phase) {
        self.at.store(turn << PHASE_BITS | phase as u32, Relaxed);
    }

    /// What was handed in, if anything was.
    pub(crate) fn rested(&self) -> Option<Report> {
        match self.events.try_recv() {
            Ok(Event::Rested(report)) => Some(*report),
            _ => None,
        }
    }
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

/// The thread that leads. Once nobody leads any more, nothing is begun any more.
pub(crate) struct Lead<'scope> {
    stage: &'scope Stage,
    threads: Vec<ScopedJoinHandle<'scope, Report>>,
    events: Receiver<Event>,
    wakers: Vec<Waker>,
    turn: u32,
    /// How many members have ended by themselves.
    ended: usize,
    /// Why nothing can be measured, if it is no member's failure.
    failure: Option<String>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.set(Phase::Stop);
    }
}

impl<'scope> Lead<'scope> {
    fn start<F>(
        scope: &'scope Scope<'scope, '_>,
        members: Vec<F>,
        stage: &'scope Stage,
    ) -> io::Result<Self>
    where
        F: FnOnce(&Post<'_>) -> Report + Send + 'scope,
    {
        let (sender, events) = channel();
        let mut lead = Self {
            stage,
            threads: Vec::new(),
            events,
            wakers: Vec::new(),
            turn: 0,
            ended: 0,
            failure: None,
        };
        for (member, counters) in members.into_iter().zip(&stage.counters) {
            let post = Post {
                at: &stage.at,
                counters,
                events: sender.clone(),
            };
            let body = move || {
                let report = member(&post);
                post.tell(Event::Ended);
                report
            };
            let thread = thread::Builder::new().name("job".to_owned());
            lead.threads.push(thread.spawn_scoped(scope, body)?);
        }
        Ok(lead)
    }

    fn set(&self, phase: Phase) {
        let at = self.turn << PHASE_BITS | phase as u32;
        self.stage.at.store(at, Relaxed);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Waits until all can be measured. Once one can, the others have not much longer: a target
    /// that has no session for them lets them ask for minutes.
    fn meet(&mut self, watch: &mut Watch<'_>) {
        let (mut ready, mut last) = (0, Instant::now());
        while ready < self.threads.len() && self.goes_on(watch) {
            if let Some(Event::Ready(waker)) = self.event(SAMPLE) {
                self.wakers.extend(waker);
                ready += 1;
                last = Instant::now();
            } else if ready > 0 && last.elapsed() > LATE {
                let (missing, all) = (self.threads.len() - ready, self.threads.len());
                self.failure = Some(format!(
                    "{missing} of {all} jobs have no session after {} s: see why above, or give \
                     fewer by --numjobs",
                    LATE.as_secs()
                ));
            }
            (watch.live)(Live::Meet);
        }
    }

    fn measure(
        &mut self,
        times: Times,
        watch: &mut Watch<'_>,
        targets: impl FnOnce() -> Vec<u32>,
    ) -> Result {
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
        self.stage.counters.iter().map(each).fold((0, 0), sum)
    }

    fn goes_on(&self, watch: &Watch<'_>) -> bool {
        self.ended == 0 && self.failure.is_none() && !watch.stopped()
    }

    /// What a member tells within `limit`.
    fn event(&mut self, limit: Duration) -> Option<Event> {
        match self.events.recv_timeout(limit) {
            Ok(Event::Ended) => {
                self.ended += 1;
                None
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = self.threads.len();
                None
            }
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Waits for all to end, as long as what is in flight takes; not for long after a failure, or
    /// where somebody wants an end.
    fn end(mut self, watch: &mut Watch<'_>) -> Vec<Report> {
        let mut phase = Phase::Stop;
        self.set(phase);
        let mut in_vain = None;
        while self.ended < self.threads.len() {
            if !self.goes_on(watch) {
                let since = *in_vain.get_or_insert_with(Instant::now);
                phase = match since.elapsed() > PATIENCE {
                    true => Phase::Abandon,
                    false => Phase::Cancel,
                };
                self.set(phase);
            }
            // One that was late: it has to be told as well.
            if let Some(Event::Ready(waker)) = self.event(SAMPLE) {
                self.wakers.extend(waker);
                self.set(phase);
            }
            (watch.live)(Live::Drain);
        }
        let joined = mem::take(&mut self.threads).into_iter();
        let joined = joined.map(ScopedJoinHandle::join);
        // A panic of a member is ours too.
        let joined =
            joined.map(|report| report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let mut reports: Vec<_> = joined.collect();
        if let (Some(failure), Some(first)) = (self.failure.take(), reports.first_mut()) {
            first.failure.get_or_insert(failure);
        }
        reports
    }
}

/// How often the counters are looked at, at the most.
const SAMPLE: Duration = Duration::from_millis(100);

/// How long others may be without a session once one has one.
const LATE: Duration = Duration::from_secs(10);

/// How long what is under way may take when somebody wants an end.
const PATIENCE: Duration = Duration::from_secs(2);
