//! What is required of rows, and whether it was reached.

#[cfg(test)]
mod tests;

use std::fmt;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::contenders::Contender;
use super::figures::{Column, Figures};

/// A requirement on the first column of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Want {
    /// At most this many times the target CPU an I/O of another column.
    Cpu(Contender, f64),
    /// Beyond that of the first of these, which is fio on the same backend, at most this many
    /// times that of the second.
    Beyond(Contender, Contender, f64),
    /// At least this many times less than that.
    TimesLess(Contender, f64),
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

impl Verdict {
    /// Of a value that shall not exceed its limit.
    pub(crate) fn at_most(value: f64, what: impl Into<String>, limit: f64) -> Self {
        Self {
            value,
            what: what.into(),
            limit,
            good: value <= limit,
        }
    }

    /// Prints them.
    ///
    /// # Errors
    ///
    /// When one of them is missed.
    pub(crate) fn tell_all(verdicts: &[Self]) -> Result<()> {
        for verdict in verdicts {
            println!("{verdict}");
        }
        let all_good = verdicts.iter().all(|verdict| verdict.good);
        ensure!(all_good, "not all that is required was reached");
        Ok(())
    }

    /// Of a value that shall not stay below its limit.
    pub(crate) fn at_least(value: f64, what: impl Into<String>, limit: f64) -> Self {
        Self {
            good: value >= limit,
            ..Self::at_most(value, what, limit)
        }
    }
}

impl Want {
    /// `None` where one side was not measured.
    pub(super) fn judge(self, columns: &[Column]) -> Option<Verdict> {
        let first = columns.first()?;
        let cpu_us = |contender| {
            let mut others = columns.iter();
            let other = others.find(|column| column.contender == contender)?;
            other.median(|round| round.target_us)
        };
        let own = |figure: fn(&Figures) -> Option<f64>| first.median(figure);
        let own_us = || own(|round| round.target_us);
        Some(match self {
            Self::Cpu(other, limit) => {
                let what = format!("times the CPU an I/O of {other}");
                Verdict::at_most(own_us()? / cpu_us(other)?, what, limit)
            }
            Self::Beyond(fio, other, limit) => {
                let what = format!("times the CPU an I/O of {other} beyond that of {fio}");
                let beyond = own_us()? - cpu_us(fio)?;
                Verdict::at_most(beyond / cpu_us(other)?, what, limit)
            }
            Self::TimesLess(other, limit) => {
                let value = cpu_us(other)? / own_us()?;
                let what = format!("times less CPU an I/O than {other}");
                Verdict::at_least(value, what, limit)
            }
            Self::P50(limit) => Verdict::at_most(own(|round| Some(round.p50_us))?, "us p50", limit),
            Self::P99(limit) => Verdict::at_most(own(|round| Some(round.p99_us))?, "us p99", limit),
            Self::Fair(limit) => {
                let value = own(|round| round.unfairness)? * 100.0;
                let what = "% from the mean to the session furthest off";
                Verdict::at_most(value, what, limit * 100.0)
            }
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
