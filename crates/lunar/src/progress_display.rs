//! Long work: how far it is, as a bar or, of a measurement, as a line on a terminal; and ^C.

use std::fs;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use bench::LiveFigures;
use bench::numbers::{block_size, mb_per_s, whole};
use client::pair::CopyProgress;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::units::human_size;
use crate::{VerbError, log};

/// What a second ^C says where nothing can be gone on with.
pub(crate) const ENDED: &str = "interrupted again: stopped at once";

/// What a script is told that was interrupted: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Watches long work.
pub(crate) struct ProgressDisplay {
    /// What is said when a second ^C ends it.
    ended: String,
    /// From the first time that progress was told: opening may take a while.
    started: Option<(ProgressBar, Speed)>,
    interrupted: Arc<AtomicBool>,
    /// When that was seen first.
    since: Option<Instant>,
    /// It was told that it takes a while.
    told: bool,
}

impl ProgressDisplay {
    /// `ended` is said when a second ^C ends it where it stands.
    pub(crate) fn new(ended: String) -> Self {
        Self {
            ended,
            started: None,
            interrupted: Arc::default(),
            since: None,
            told: false,
        }
    }

    /// Shows progress, and says whether to go on.
    pub(crate) fn look(&mut self, progress: &CopyProgress) -> bool {
        let (bar, speed) = self.started.get_or_insert_with(|| {
            // Until now ^C ended the process, as nothing had been begun.
            heed_signals(Arc::clone(&self.interrupted), self.ended.clone());
            (bar(progress), Speed::new(Instant::now()))
        });
        bar.set_position(progress.done());
        if let Some(text) = speed.look(Instant::now(), progress) {
            bar.set_message(text);
        }
        let interrupted = self.was_interrupted();
        if interrupted {
            self.tell_patience();
        }
        !interrupted
    }

    /// A remote volume that is away may be waited for longer than a user who interrupts expects.
    fn tell_patience(&mut self) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if !self.told && since.elapsed() >= SAME_ORDER {
            self.told = true;
            tracing::warn!(
                "interrupted: waiting for operations in flight; another ^C stops at once"
            );
        }
    }

    /// The bar goes away.
    pub(crate) fn finish(&self) {
        if let Some((bar, _)) = &self.started {
            bar.finish_and_clear();
        }
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.load(SeqCst)
    }
}

/// On standard error where that is a terminal, and nowhere else.
fn bar(progress: &CopyProgress) -> ProgressBar {
    let template = "{wide_bar} {binary_bytes} of {binary_total_bytes}  {msg}";
    let bar = ProgressBar::new(progress.total);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_position(progress.done());
    bar
}

/// How fast data goes. Holes take no time, and what an earlier run did says nothing of this one.
pub(crate) struct Speed {
    since: Instant,
    /// Bytes of data at that time.
    before: u64,
    /// Bytes a second, of late.
    rate: Option<f64>,
}

impl Speed {
    pub(crate) const fn new(since: Instant) -> Self {
        Self {
            since,
            before: 0,
            rate: None,
        }
    }

    /// What there is to say, if it is time to say it anew. How much of the rest is holes
    /// is not known, so the time left is the longest.
    pub(crate) fn look(&mut self, now: Instant, progress: &CopyProgress) -> Option<String> {
        let time = now.saturating_duration_since(self.since);
        if time < SAMPLE {
            return None;
        }
        let moved = progress.data + progress.again;
        let latest = moved.saturating_sub(self.before) as f64 / time.as_secs_f64();
        // Half of it is of the last second or two.
        let rate = self.rate.map_or(latest, |rate| rate * 0.75 + latest * 0.25);
        (self.since, self.before, self.rate) = (now, moved, Some(rate));
        let shown = format!("{}/s", human_size(rate as u64));
        if rate < 1.0 {
            return Some(shown);
        }
        let rest = progress.total.saturating_sub(progress.done());
        let left = HumanDuration(Duration::from_secs_f64(rest as f64 / rate));
        Some(format!("{shown}  at most {left:#} left"))
    }
}

/// How often the rate is looked at.
const SAMPLE: Duration = Duration::from_millis(500);

/// One line on standard error that says how it goes, where that is a terminal.
pub(crate) struct StatusLine {
    line: ProgressBar,
    /// What is measured.
    what: String,
    race: Option<RaceStatus>,
    runtime: Duration,
}

/// How a race stands.
struct RaceStatus {
    lane: usize,
    round: u32,
    rounds: u32,
    end: Instant,
    /// What the last turn gave that was measured, kept while the next one begins.
    figure: Option<String>,
}

/// How often a second: no eye needs more.
const REFRESH: u8 = 4;

impl StatusLine {
    pub(crate) fn new(runtime: Duration) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(REFRESH);
        let line = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            line.set_style(style);
        }
        Self {
            line,
            what: String::new(),
            race: None,
            runtime,
        }
    }

    pub(crate) fn show(&mut self, live: LiveFigures) {
        let now = Instant::now();
        self.note(live, now);
        if !matches!(live, LiveFigures::Begin(_)) && !self.line.is_hidden() {
            self.line.set_message(self.text(live, now));
        }
    }

    /// Keeps what later lines tell. Turns are short: most of their figures come between two lines.
    fn note(&mut self, live: LiveFigures, now: Instant) {
        match live {
            LiveFigures::Begin(load) => {
                self.what = format!("{} {}", load.word(), block_size(load.block_bytes));
                self.race = None;
            }
            LiveFigures::Turn {
                lane,
                round,
                rounds,
                left,
            } => {
                let figure = self.race.take().and_then(|race| race.figure);
                let end = now + left;
                self.race = Some(RaceStatus {
                    lane,
                    round,
                    rounds,
                    end,
                    figure,
                });
            }
            LiveFigures::Measure { iops, mb_per_s, .. } => {
                if let Some(race) = &mut self.race {
                    let lane = race.lane;
                    race.figure = Some(format!("address {lane}: {}", figure(iops, mb_per_s)));
                }
            }
            _ => {}
        }
    }

    fn text(&self, live: LiveFigures, now: Instant) -> String {
        let how = match (live, &self.race) {
            (LiveFigures::Fill { done, total }, _) => {
                format!("filling, {} of {}", human_size(done), human_size(total))
            }
            (LiveFigures::Drain, _) => "waiting for I/O in flight".to_owned(),
            (_, Some(race)) => race.text(now),
            (LiveFigures::Begin(_) | LiveFigures::Meet, None) => "connecting".to_owned(),
            (LiveFigures::Turn { .. } | LiveFigures::Ramp, None) => "warming up".to_owned(),
            (
                LiveFigures::Measure {
                    elapsed,
                    iops,
                    mb_per_s,
                },
                None,
            ) => format!(
                "{:.0} of {:.0} s  {}",
                elapsed.as_secs_f64(),
                self.runtime.as_secs_f64(),
                figure(iops, mb_per_s)
            ),
        };
        format!("{}  {how}", self.what)
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.line.finish_and_clear();
    }
}

impl RaceStatus {
    fn text(&self, now: Instant) -> String {
        let left = self.end.saturating_duration_since(now).as_secs_f64().ceil();
        let (lane, round, rounds) = (self.lane, self.round, self.rounds);
        let place = match round {
            0 => format!("warming up address {lane}"),
            _ => format!("round {round} of {rounds}"),
        };
        let figure = self.figure.as_ref().map(|figure| format!("  {figure}"));
        format!("{place}{}  {left:.0} s left", figure.unwrap_or_default())
    }
}

fn figure(iops: f64, mb: f64) -> String {
    format!("{} IOPS  {} MB/s", whole(iops), mb_per_s(mb))
}

/// Becomes true when a signal orders a measurement to end.
pub(crate) fn stop_on_signal() -> Arc<AtomicBool> {
    let stop = Arc::default();
    heed_signals(Arc::clone(&stop), ENDED.to_owned());
    stop
}

/// The first signal ends the work gracefully. Those soon after it are the same order; a later
/// one ends the process where it stands, with the line `ended`.
fn heed_signals(interrupted: Arc<AtomicBool>, ended: String) {
    let signals = Signals::new(orders_to_stop()).map_err(VerbError::signals);
    let mut signals = match signals {
        Ok(signals) => signals,
        Err(failure) => return tracing::warn!("{}", failure.line),
    };
    thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            let again = first.is_some_and(|first| first.elapsed() >= SAME_ORDER);
            if again {
                log::say(&ended);
                process::exit(INTERRUPTED.into());
            }
            first.get_or_insert_with(Instant::now);
            interrupted.store(true, SeqCst);
        }
    });
}

/// The signals that order to end: SIGTERM, SIGINT (^C) and SIGHUP, which comes when the terminal is
/// closed. Where SIGHUP is ignored, as after `nohup`, it stays so.
pub(crate) fn orders_to_stop() -> Vec<i32> {
    let mut signals = vec![SIGTERM, SIGINT];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether the parent process set this signal to be ignored (proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
}

/// Longer than one order takes to arrive by two ways.
pub(crate) const SAME_ORDER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
