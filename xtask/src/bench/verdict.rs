//! What is required of rows, and whether it was reached.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Serialize, Serializer};

use super::lineup::Who;
use super::meter::Measured;

/// What a target gave in each round.
#[derive(Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) who: Who,
    pub(crate) rounds: Vec<Measured>,
}

/// A figure of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` where there is none. Of two in the middle the higher one is the median.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        Some(Self {
            min: *values.first()?,
            median: values[values.len() / 2],
            max: *values.last()?,
        })
    }
}

impl Column {
    /// A figure of each round.
    pub(crate) fn spread(&self, figure: impl Fn(&Measured) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(figure))
    }

    /// The median of a figure.
    pub(crate) fn median(&self, figure: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }
}

/// Something that is required of the first column of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Want {
    /// At most this many times the target CPU an I/O of another column.
    Cpu(Who, f64),
    /// Beyond that of fio on the same backend, at most this many times that of another column.
    Beyond(Who, Who, f64),
    /// At least this many times less than that.
    TimesLess(Who, f64),
    /// At most this many times the median time of another column.
    Time(Who, f64),
    /// A median time of this many microseconds at the most.
    P50(f64),
    /// This many microseconds at the most for 99 of 100.
    P99(f64),
    /// Every session within this share of the mean.
    Fair(f64),
}

/// Whether something was reached.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    value: f64,
    what: String,
    limit: f64,
    pub(crate) good: bool,
}

impl Want {
    /// `None` where one side was not measured.
    pub(crate) fn judge(self, columns: &[Column]) -> Option<Verdict> {
        let first = columns.first()?;
        let other = |who| columns.iter().find(|column| column.who == who);
        let ratio = |who, figure: fn(&Measured) -> Option<f64>| {
            Some(first.median(figure)? / other(who)?.median(figure)?)
        };
        let (value, what, limit) = match self {
            Self::Cpu(who, limit) => {
                let value = ratio(who, Measured::cpu_us)?;
                (value, format!("times the CPU an I/O of {who}"), limit)
            }
            Self::Beyond(fio, who, limit) => {
                let beyond =
                    first.median(Measured::cpu_us)? - other(fio)?.median(Measured::cpu_us)?;
                let value = beyond / other(who)?.median(Measured::cpu_us)?;
                (
                    value,
                    format!("times the CPU an I/O of {who} beyond that of {fio}"),
                    limit,
                )
            }
            Self::TimesLess(who, limit) => {
                let value = 1.0 / ratio(who, Measured::cpu_us)?;
                (value, format!("times less CPU an I/O than {who}"), limit)
            }
            Self::Time(who, limit) => {
                let value = ratio(who, |measured| Some(measured.p50_us))?;
                (value, format!("times the p50 of {who}"), limit)
            }
            Self::P50(limit) => {
                let value = first.median(|measured| Some(measured.p50_us))?;
                (value, "us p50".to_owned(), limit)
            }
            Self::P99(limit) => {
                let value = first.median(|measured| Some(measured.p99_us))?;
                (value, "us p99".to_owned(), limit)
            }
            Self::Fair(limit) => {
                let value = first.median(|measured| Some(measured.unfairness()))? * 100.0;
                let what = "% from the mean to the session furthest off";
                (value, what.to_owned(), limit * 100.0)
            }
        };
        let good = match self {
            Self::TimesLess(..) => value >= limit,
            _ => value <= limit,
        };
        Some(Verdict {
            value,
            what,
            limit,
            good,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.good { "ok" } else { "MISSED" };
        let Self {
            value, what, limit, ..
        } = self;
        write!(f, "{word:<8}{value:.2} {what}, required {limit}")
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
