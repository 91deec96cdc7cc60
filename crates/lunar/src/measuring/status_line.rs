//! The line on a terminal that says how a measurement goes.

#[cfg(test)]
mod tests;

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use bench::LiveFigures;
use bench::numbers::{block_size, mb_per_s, whole};

use crate::units::human_size;

/// One line on standard error that says how it goes, where that is a terminal.
pub(crate) struct StatusLine {
    shown: bool,
    /// What is measured.
    what: String,
    race: Option<RaceStatus>,
    runtime: Duration,
    last: Option<Instant>,
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

/// No eye needs more.
const REFRESH: Duration = Duration::from_millis(250);

impl StatusLine {
    pub(crate) fn new(runtime: Duration) -> Self {
        Self {
            shown: stderr().is_terminal(),
            what: String::new(),
            race: None,
            runtime,
            last: None,
        }
    }

    pub(crate) fn show(&mut self, live: LiveFigures) {
        let now = Instant::now();
        self.note(live, now);
        let is_due = self
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= REFRESH);
        if self.shown && is_due && !matches!(live, LiveFigures::Begin(_)) {
            self.last = Some(now);
            let text = self.text(live, now);
            self.write(&format!("\r{text}\x1b[K"));
        }
    }

    /// Keeps what later lines tell. Turns are short: most of their figures come between two lines.
    fn note(&mut self, live: LiveFigures, now: Instant) {
        match live {
            LiveFigures::Begin(load) => {
                self.what = format!("{} {}", load.word(), block_size(load.block_bytes));
                (self.race, self.last) = (None, None);
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
