//! The thread that leads: starts the members, tells them the phase, looks at what they count, and
//! waits for their end.

use std::io;
use std::mem;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ::io::ring::Waker;

use super::control::{LoadControl, LoadPhase, LoadThread, ThreadEvent};
use super::{LiveFigures, LoadTotals, RunObserver, RunTimes, ThreadTotals};
use crate::outcome::RowInterval;
use crate::processes;

/// The coordinating thread. When it is dropped, the members start no more operations.
pub(super) struct Coordinator<'scope> {
    stage: &'scope LoadControl,
    pub(super) threads: Vec<ScopedJoinHandle<'scope, ThreadTotals>>,
    events: Receiver<ThreadEvent>,
    wakers: Vec<Waker>,
    pub(super) turn: u32,
    /// How many members have ended by themselves.
    ended: usize,
    /// Why nothing can be measured, unless a member failed.
    failure: Option<String>,
}

impl Drop for Coordinator<'_> {
    fn drop(&mut self) {
        self.set(LoadPhase::Stop);
    }
}

impl<'scope> Coordinator<'scope> {
    pub(super) fn start<F>(
        scope: &'scope Scope<'scope, '_>,
        members: Vec<F>,
        stage: &'scope LoadControl,
    ) -> io::Result<Self>
    where
        F: FnOnce(&LoadThread<'_>) -> ThreadTotals + Send + 'scope,
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
        for (member, post) in members.into_iter().zip(stage.posts(&sender)) {
            let body = move || {
                let report = member(&post);
                post.tell(ThreadEvent::Ended);
                report
            };
            let thread = thread::Builder::new().name("job".to_owned());
            lead.threads.push(thread.spawn_scoped(scope, body)?);
        }
        Ok(lead)
    }

    pub(super) fn set(&self, phase: LoadPhase) {
        self.stage.set(self.turn, phase);
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Waits until all can be measured. Once one can, the others have not much longer: a target
    /// that has no session for them lets them ask for minutes.
    pub(super) fn meet(&mut self, watch: &mut RunObserver<'_>) {
        let (mut ready, mut last) = (0, Instant::now());
        while ready < self.threads.len() && self.goes_on(watch) {
            if let Some(ThreadEvent::Ready(waker)) = self.event(SAMPLE) {
                self.wakers.extend(waker);
                ready += 1;
                last = Instant::now();
            } else if ready > 0 && last.elapsed() > LATE {
                let (missing, all) = (self.threads.len() - ready, self.threads.len());
                self.failure = Some(format!(
                    "{missing} of {all} jobs have no session after {} s: see the reasons above, or \
                     give a smaller --numjobs",
                    LATE.as_secs()
                ));
            }
            (watch.live)(LiveFigures::Meet);
        }
    }

    pub(super) fn measure(
        &mut self,
        times: RunTimes,
        watch: &mut RunObserver<'_>,
        targets: impl FnOnce() -> Vec<u32>,
    ) -> LoadTotals {
        let ramp_end = Instant::now() + times.ramp;
        let left = || ramp_end.saturating_duration_since(Instant::now());
        while self.goes_on(watch) && !left().is_zero() {
            self.event(left().min(SAMPLE));
            (watch.live)(LiveFigures::Ramp);
        }
        if !self.goes_on(watch) {
            return LoadTotals::default();
        }
        let targets = targets();
        let own = [std::process::id()];
        let before = [&own[..], &targets].map(processes::cpu_time_of);
        self.set(LoadPhase::Measure);
        let begin = Instant::now();
        let series = self.sample(begin, times.runtime, watch);
        let runtime = begin.elapsed();
        let after = [&own[..], &targets].map(processes::cpu_time_of);
        let used = |at: usize| after[at]?.checked_sub(before[at]?);
        LoadTotals {
            reports: Vec::new(),
            runtime,
            series,
            cpu: used(0),
            target_cpu: used(1),
        }
    }

    /// Looks at the counters until the time is over.
    fn sample(
        &mut self,
        begin: Instant,
        time: Duration,
        watch: &mut RunObserver<'_>,
    ) -> Vec<RowInterval> {
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
            let (ios, bytes) = self.stage.counted();
            let seconds = (now - last).as_secs_f64();
            (watch.live)(LiveFigures::Measure {
                elapsed: now,
                iops: (ios - last_ios) as f64 / seconds,
                mb_per_s: (bytes - last_bytes) as f64 / seconds / 1e6,
            });
            series.push(RowInterval {
                end_ms: now.as_millis() as u64,
                ios: ios - last_ios,
                bytes: bytes - last_bytes,
            });
            (last_ios, last_bytes, last) = (ios, bytes, now);
        }
        series
    }

    pub(super) fn goes_on(&self, watch: &RunObserver<'_>) -> bool {
        self.ended == 0 && self.failure.is_none() && !watch.stopped()
    }

    /// What a member tells within `limit`.
    pub(super) fn event(&mut self, limit: Duration) -> Option<ThreadEvent> {
        match self.events.recv_timeout(limit) {
            Ok(ThreadEvent::Ended) => {
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

    /// Waits until all operations in flight have ended; only briefly after a failure or an
    /// interruption.
    pub(super) fn end(mut self, watch: &mut RunObserver<'_>) -> Vec<ThreadTotals> {
        let mut phase = LoadPhase::Stop;
        self.set(phase);
        let mut in_vain = None;
        while self.ended < self.threads.len() {
            if !self.goes_on(watch) {
                let since = *in_vain.get_or_insert_with(Instant::now);
                phase = if since.elapsed() > PATIENCE {
                    LoadPhase::Abandon
                } else {
                    LoadPhase::Cancel
                };
                self.set(phase);
            }
            // One that was late: it has to be told as well.
            if let Some(ThreadEvent::Ready(waker)) = self.event(SAMPLE) {
                self.wakers.extend(waker);
                self.set(phase);
            }
            (watch.live)(LiveFigures::Drain);
        }
        // A panic of a member is ours too.
        let joined = |thread: ScopedJoinHandle<'_, ThreadTotals>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        let threads = mem::take(&mut self.threads).into_iter();
        let mut reports: Vec<_> = threads.map(joined).collect();
        if let (Some(failure), Some(first)) = (self.failure.take(), reports.first_mut()) {
            first.failure.get_or_insert(failure);
        }
        reports
    }
}

/// How often the counters are looked at, at the most.
pub(super) const SAMPLE: Duration = Duration::from_millis(100);

/// How long others may be without a session once one has one.
const LATE: Duration = Duration::from_secs(10);

/// How long I/Os in flight may take after an interruption.
const PATIENCE: Duration = Duration::from_secs(2);
