//! Whether more gets done while a thread spins, found out by trial.
//!
//! How long a thread is idle does not tell what it would gain by spinning. Peers that wait for
//! answers are done with them later where each answer has to wake its thread first, and then wake
//! ours: with as many commands in flight the two may get half as much done. Peers that come when
//! they like get no more done however fast they are answered. So the two ways take turns for a
//! moment, and what was carried out and what it took are measured.
//!
//! The way with the lesser product of CPU time and time of a command (energy-delay product) wins.
//! Twice the rate is worth twice the CPU time of a command, and no more: a thread that sleeps for
//! three quarters of the time has to get twice as much done by spinning, which peers at their own
//! pace never let it, even while they catch up.

use std::time::Duration;

use scsi::medium::Now;

/// Arrivals of a window, at the least. Fewer would tell a busy moment from a gain less well.
const WINDOW: u32 = 32;

/// How long it is, at the least. Where many commands are in flight, it takes both ends some round
/// trips until their answers come as they do the other way.
const WINDOW_TIME: Duration = Duration::from_millis(2);

/// Pairs of windows of a trial, one of either way; spinning is the first of one and the second of
/// the next, so that a load that grows favours neither.
const PAIRS: u32 = 8;

/// Pairs that have to show a gain. Where arrivals come by chance so many do in one trial of thirty.
const GAINS: u32 = PAIRS - 1;

/// A verdict stands for this multiple of the time that its trial took. Half of a trial is spent the
/// worse way, so that is less than a hundredth of the time.
const STANDS: u32 = 64;

/// The same of a gain that was not seen before, of a trial whose pairs do not agree, and where the
/// load has become twice what it was, or half, for some windows. Where they do not agree the two
/// ways cost about the same, so another trial costs little; and a moment in which others had the
/// CPUs does not decide for long.
const STANDS_BRIEFLY: u32 = 8;
const UNLIKE: u32 = 4;

/// What happened in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    arrivals: u32,
    done: u64,
    idle: Duration,
    time: Duration,
    /// CPU time of the thread.
    busy: Duration,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.arrivals += other.arrivals;
        self.done += other.done;
        self.idle += other.idle;
        self.time += other.time;
        self.busy += other.busy;
    }

    /// Time of a command, in seconds.
    fn delay(self) -> f64 {
        self.time.as_secs_f64() / self.done as f64
    }

    /// CPU time of a command times the time of a command.
    fn cost(self) -> f64 {
        self.busy.as_secs_f64() / self.done as f64 * self.delay()
    }

    /// Whether twice as much is done as in the other, or half.
    fn is_unlike(self, other: Self) -> bool {
        let ratio = self.delay() / other.delay();
        !(0.5..=2.0).contains(&ratio)
    }
}

/// The trials of a thread.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    /// A thread that is idle for longer at a time gains nothing that shows.
    idle_max: Duration,
    /// The window that is under way, its begin, and what had been done by then in what CPU time.
    window: Count,
    since: Now,
    done: u64,
    busy: Duration,
    trial: Option<Trial>,
    /// What the last trial found, and the load that it found it with.
    pays: bool,
    load: Count,
    /// Windows on end that were unlike it.
    unlike: u32,
    /// The next one is due then; where the load is unlike that one, earlier.
    due: Now,
    due_unlike: Now,
}

#[derive(Clone, Debug, Default)]
struct Trial {
    windows: u32,
    /// Of windows of sleeping, and of spinning.
    counts: [Count; 2],
    /// The first window of the pair.
    first: Count,
    /// Pairs in which spinning cost less.
    gains: u32,
}

impl Trials {
    pub(super) fn new(idle_max: Duration) -> Self {
        Self {
            idle_max,
            window: Count::default(),
            since: Now::ZERO,
            done: 0,
            busy: Duration::ZERO,
            trial: None,
            pays: false,
            load: Count::default(),
            unlike: 0,
            due: Now::ZERO,
            due_unlike: Now::ZERO,
        }
    }

    /// Which way a trial wants, if there is one.
    pub(super) fn wants(&self) -> Option<bool> {
        self.trial.as_ref().map(Trial::spins)
    }

    /// Whether spinning pays, as far as is known.
    pub(super) const fn pays(&self) -> bool {
        self.pays
    }

    /// Something to do has arrived by `now` after `idle`. Returns whether that ends the window.
    pub(super) fn arrived(&mut self, now: Now, idle: Duration) -> bool {
        self.window.arrivals += 1;
        self.window.idle += idle;
        self.window.arrivals >= WINDOW && now.saturating_sub(self.since) >= WINDOW_TIME
    }

    /// The window ends: so many commands were carried out since the thread began, in `busy` CPU
    /// time. No trial begins where the thread spins anyway.
    pub(super) fn end_window(&mut self, now: Now, done: u64, busy: Duration, spins_anyway: bool) {
        let mut window = std::mem::take(&mut self.window);
        window.time = now.saturating_sub(self.since);
        window.done = done - self.done;
        window.busy = busy.saturating_sub(self.busy);
        (self.since, self.done, self.busy) = (now, done, busy);
        if window.idle > self.idle_max * window.arrivals {
            if let Some(trial) = self.trial.take() {
                self.rest(now, STANDS, trial.took() + window.time);
            } else if self.pays {
                // It may have been a pause.
                self.due = now;
            }
            self.pays = false;
        } else if let Some(trial) = &mut self.trial {
            trial.count(window);
            if trial.windows == 2 * PAIRS {
                self.judge(now);
            }
        } else if !spins_anyway && window.done > 0 {
            let is_unlike = window.is_unlike(self.load);
            self.unlike = if is_unlike { self.unlike + 1 } else { 0 };
            if now >= self.due || now >= self.due_unlike && self.unlike >= UNLIKE {
                self.trial = Some(Trial::default());
            }
        }
    }

    fn judge(&mut self, now: Now) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        let [sleeping, spinning] = trial.counts;
        let costs_less = spinning.cost() < sleeping.cost();
        let pays = trial.gains >= GAINS && costs_less;
        let is_no_gain = trial.gains <= PAIRS - GAINS && !costs_less;
        let is_certain = pays && self.pays || is_no_gain;
        self.pays = pays;
        self.load = trial.counts[usize::from(pays)];
        let times = if is_certain { STANDS } else { STANDS_BRIEFLY };
        self.rest(now, times, trial.took());
    }

    /// No trial for so many times as long as the last one took, without pauses.
    fn rest(&mut self, now: Now, times: u32, took: Duration) {
        let took = took.min(2 * PAIRS * WINDOW * self.idle_max);
        self.due_unlike = now + STANDS_BRIEFLY * took;
        self.due = now + times * took;
    }
}

impl Trial {
    fn spins(&self) -> bool {
        matches!(self.windows % 4, 0 | 3)
    }

    fn took(&self) -> Duration {
        self.counts.iter().map(|count| count.time).sum()
    }

    fn count(&mut self, window: Count) {
        let spins = self.spins();
        if self.windows.is_multiple_of(2) {
            self.first = window;
        } else {
            let (spinning, sleeping) = if spins {
                (window, self.first)
            } else {
                (self.first, window)
            };
            self.gains += u32::from(spinning.cost() < sleeping.cost());
        }
        self.counts[usize::from(spins)].add(window);
        self.windows += 1;
    }
}
