//! The line on a terminal that says how a measurement goes.

#[cfg(test)]
mod tests;

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use bench::Live;
use bench::numbers::{block_size, mb_per_s, whole};

use crate::units::human_size;

/// One line on standard error that says how it goes, where that is a terminal.
pub(crate) struct Line {
    shown: bool,
    /// What is measured.
    what: String,
    race: Option<Race>,
    runtime: Duration,
    last: Option<Instant>,
}

/// How a race stands.
struct Race {
    lane: usize,
    round: u32,
    rounds: u32,
    end: Instant,
    /// What the last turn gave that was measured, kept while the next one begins.
    figure: Option<String>,
}

/// No eye needs more.
const REFRESH: Duration = Duration::from_millis(250);

impl Line {
    pub(crate) fn new(runtime: Duration) -> Self {
        Self {
            shown: stderr().is_terminal(),
            what: String::new(),
            race: None,
            runtime,
            last: None,
        }
    }

    pub(crate) fn show(&mut self, live: Live) {
        let now = Instant::now();
        self.note(live, now);
        let is_due = self
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= REFRESH);
        if self.shown && is_due && !matches!(live, Live::Begin(_)) {
            self.last = Some(now);
            let text = self.text(live, now);
            self.write(&format!("\r{text}\x1b[K"));
        }
    }

    /// Keeps what later lines tell. Turns are short: most of their figures come between two lines.
    fn note(&mut self, live: Live, now: Instant) {
        match live {
            Live::Begin(load) => {
                self.what = format!("{} {}", load.word(), block_size(load.block_bytes));
                (self.race, self.last) = (None, None);
            }
            Live::Turn {
                lane,
                round,
                rounds,
                left,
            } => {
                let figure = self.race.take().and_then(|race| race.figure);
                let end = now + left;
                self.race = Some(Race {
                    lane,
                    round,
                    rounds,
                    end,
                    figure,
                });
            }
            Live::Measure { iops, mb_per_s, .. } => {
                if let Some(race) = &mut self.race {
                    let lane = race.lane;
                    race.figure = Some(format!("address {lane}: {}", figure(iops, mb_per_s)));
                }
            }
            _ => {}
        }
    }

    fn text(&self, live: Live, now: Instant) -> String {
        let how = match (live, &self.race) {
            (Live::Fill { done, total }, _) => {
                format!("filling, {} of {}", human_size(done), human_size(total))
            }
            (Live::Drain, _) => "waiting for I/O in flight".to_owned(),
            (_, Some(race)) => race.text(now),
            (Live::Begin(_) | Live::Meet, None) => "connecting".to_owned(),
            (Live::Turn { .. } | Live::Ramp, None) => "warming up".to_owned(),
            (
                Live::Measure {
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
        if self.shown {
            self.write("\r\x1b[K");
        }
    }

    fn write(&self, text: &str) {
        let mut out = stderr().lock();
        // A terminal that has gone away does not end a measurement.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl Race {
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
