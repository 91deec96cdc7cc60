//! What contenders gave: the figures of each round, and their medians.

#[cfg(test)]
mod tests;

use std::fmt;

use bench::outcome::ResultRow;
use serde::Serialize;

use super::contenders::Contender;

/// What one round yields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) iops: f64,
    /// CPU time of the target for each I/O; `None` if its process is not known.
    pub(crate) target_us: Option<f64>,
    /// The same of the load generator.
    pub(crate) generator_us: Option<f64>,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The distance from the mean to the session furthest off, as a share of the mean.
    pub(crate) unfairness: Option<f64>,
}

impl Figures {
    pub(crate) fn of(row: &ResultRow) -> Self {
        let latency = row.latency();
        let percentile_us = |percent| latency.percentile_ns(percent) as f64 / 1e3;
        Self {
            iops: row.iops(),
            target_us: row.target_cpu_us_per_io(),
            generator_us: row.cpu_us_per_io(),
            p50_us: percentile_us(50.0),
            p99_us: percentile_us(99.0),
            unfairness: None,
        }
    }

    /// With what each of several sessions gave.
    pub(crate) fn with_sessions(self, sessions: &[ResultRow]) -> Self {
        let done: Vec<_> = sessions.iter().map(|row| row.ios() as f64).collect();
        let mean = done.iter().sum::<f64>() / done.len() as f64;
        let off = done.iter().map(|done| (done / mean - 1.0).abs());
        Self {
            unfairness: off.reduce(f64::max),
            ..self
        }
    }
}

/// What a contender gave in each round.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) contender: Contender,
    pub(crate) rounds: Vec<Figures>,
}

impl Column {
    /// The median of a figure; `None` if no round has it.
    pub(crate) fn median(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|(_, median, _)| median)
    }

    /// The lowest, the median and the highest. Of two in the middle the higher one is the median.
    fn spread(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<(f64, f64, f64)> {
        let mut values: Vec<_> = self.rounds.iter().filter_map(figure).collect();
        values.sort_by(f64::total_cmp);
        Some((*values.first()?, values[values.len() / 2], *values.last()?))
    }
}

/// What stands above the rows.
pub(crate) fn head() -> String {
    format!(
        "{:<18}{:>26}{:>30}{:>13}{:>15}",
        "", "target CPU us an I/O", "IOPS", "generator", "p50/p99 us"
    )
}

/// Median, and in brackets the lowest and the highest of all rounds.
impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |figure: fn(&Figures) -> Option<f64>, digits: usize, unit: &str| {
            self.spread(figure)
                .map_or(String::new(), |(min, median, max)| {
                    format!("{median:.digits$}{unit} ({min:.digits$}..{max:.digits$})")
                })
        };
        let median = |figure: fn(&Figures) -> Option<f64>| self.median(figure).unwrap_or_default();
        let (p50, p99) = (
            median(|round| Some(round.p50_us)),
            median(|round| Some(round.p99_us)),
        );
        write!(
            f,
            "  {:<16}{:>26}{:>30}{:>10.2} us{:>15}",
            self.contender,
            cell(|round| round.target_us, 2, ""),
            cell(|round| Some(round.iops / 1e3), 1, "k"),
            median(|round| round.generator_us),
            format!("{p50:.0}/{p99:.0}"),
        )
    }
}
