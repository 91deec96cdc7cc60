//! When a reactor spins in place of sleeping.
//!
//! It does so where that costs no more than sleeping, as something arrives soon enough; and where
//! more gets done, which trials tell.

mod trials;

use std::time::Duration;

use scsi::medium::Now;

use self::trials::Trials;

/// When a reactor spins in place of sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// Never.
    Never,
    /// For as long as it pays.
    #[default]
    Adaptive,
    /// Always; it takes a whole core each.
    Always,
}

impl PollMode {
    /// The policy for `threads` threads that share a quota of `quota` processors. A reactor that
    /// uses up the quota by spinning is stopped for the rest of the period, about 50 ms, which is
    /// worse than any sleep.
    pub fn within(self, quota: Option<f64>, threads: u16) -> Self {
        match self {
            Self::Adaptive if quota.is_some_and(|quota| quota < f64::from(threads)) => Self::Never,
            mode => mode,
        }
    }
}

/// Decides before each wait for how long the ring may sleep.
#[derive(Clone, Debug)]
pub struct Polling {
    mode: PollMode,
    /// For how long spinning pays.
    worth: Duration,
    rest: IdleAction,
    /// For how long there is nothing to do, on average.
    idle: Duration,
    trials: Trials,
    /// There is nothing to do since then.
    idle_since: Option<Now>,
}

/// What is done while there is nothing to do.
#[derive(Clone, Copy, Debug)]
enum IdleAction {
    None,
    /// Spinning since then, for so long at the most.
    Spins(Now, Duration),
    /// Sleeping since then.
    Sleeps(Now),
    /// Sleeping, after spinning in vain.
    GivenUp,
}

/// What a sleep costs: the sleeper wakes a few microseconds late on bare metal, some twenty in a
/// virtual machine, where rousing its CPU takes whoever wakes it as many again. Spinning for longer
/// costs more than it saves.
pub const OF_A_SERVER: Duration = Duration::from_micros(50);

/// A thread that waits for answers sleeps as long as the other end takes to wake and to work. If
/// neither slept the answers would come in half the time, so he is the one to begin with it.
pub const OF_A_CLIENT: Duration = Duration::from_micros(100);

/// The longest idle time that is tried: it is longer than two wakeups take in a virtual machine. A
/// thread that is idle for longer gets little more done by spinning.
const IDLE_MAX: Duration = Duration::from_micros(400);

/// The CPU time of this thread.
#[must_use]
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Polling {
    /// A thread that spins for `worth` at the most where that is up to it.
    pub fn new(mode: PollMode, worth: Duration) -> Self {
        Self {
            mode,
            worth,
            rest: IdleAction::None,
            idle: 4 * worth,
            trials: Trials::new(IDLE_MAX),
            idle_since: None,
        }
    }

    /// For how long to spin, if at all.
    fn limit(&self) -> Option<Duration> {
        match self.trials.wants() {
            Some(spins) => spins.then_some(IDLE_MAX),
            None if self.trials.pays() => Some(IDLE_MAX),
            None => self.is_cheap().then_some(self.worth),
        }
    }

    /// Whether spinning costs no more than sleeping.
    fn is_cheap(&self) -> bool {
        self.idle < self.worth
    }

    /// For how long to wait, at most `patience`, when there is nothing to do at `now`.
    pub fn timeout(&mut self, now: Now, patience: Option<Duration>) -> Option<Duration> {
        self.idle_since.get_or_insert(now);
        self.rest = match self.rest {
            IdleAction::None => match self.limit() {
                Some(limit) => IdleAction::Spins(now, limit),
                None => IdleAction::Sleeps(now),
            },
            IdleAction::Spins(since, limit) if now.saturating_sub(since) >= limit => {
                IdleAction::GivenUp
            }
            rest => rest,
        };
        let spins = match self.mode {
            PollMode::Never => false,
            PollMode::Always => true,
            PollMode::Adaptive => matches!(self.rest, IdleAction::Spins(..)),
        };
        if spins {
            Some(Duration::ZERO)
        } else {
            patience
        }
    }

    /// Something to do has arrived by `now`. `done` is how many commands were carried out in all,
    /// and `busy` tells the CPU time of this thread: [`thread_time`].
    pub fn arrived(&mut self, now: Now, done: u64, busy: impl FnOnce() -> Duration) {
        let since = self.idle_since.take().unwrap_or(now);
        let is_trial = self.trials.wants().is_some();
        let idle = now.saturating_sub(since);
        if self.mode == PollMode::Adaptive && self.trials.arrived(now, idle) {
            self.trials.end_window(now, done, busy(), self.is_cheap());
        }
        let idle = match std::mem::replace(&mut self.rest, IdleAction::None) {
            IdleAction::None => return,
            IdleAction::Spins(since, _) => now.saturating_sub(since),
            // Half of what a sleep costs is that it ends late.
            IdleAction::Sleeps(since) => now.saturating_sub(since + self.worth / 2),
            IdleAction::GivenUp => Duration::MAX,
        };
        if is_trial {
            // It is idle as the trial wants.
            return;
        }
        self.idle = (self.idle * 7 + idle.min(4 * self.worth)) / 8;
    }
}

#[cfg(test)]
mod tests;
