//! The last result that is committed, and what has changed since.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use bench::outcome::HostFacts;
use serde::{Deserialize, Serialize};

use super::meter::Measured;
use super::report::{Finished, Report};
use super::verdict::Column;

/// The medians of a run, and the machine that they hold for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Committed {
    processor: String,
    cores: usize,
    kernel: String,
    /// By row and by contender.
    rows: BTreeMap<String, BTreeMap<String, Medians>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Medians {
    /// Target CPU an I/O, in microseconds.
    cpu_us: Option<f64>,
    iops: f64,
    p50_us: f64,
    p99_us: f64,
}

fn path() -> PathBuf {
    ::tests::top().join("docs/measured.json")
}

impl Committed {
    /// What is in the tree.
    pub(crate) fn read() -> Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The medians of a run.
    pub(crate) fn of(report: &Report) -> Self {
        let HostFacts {
            processor,
            cores,
            kernel,
            ..
        } = report.machine.clone();
        let medians = |column: &Column| Some((column.who.to_string(), Medians::of(column)?));
        let row = |row: &Finished| {
            let columns = row.columns.iter().filter_map(medians).collect();
            (row.name.clone(), columns)
        };
        Self {
            processor,
            cores,
            kernel,
            rows: report.rows.iter().map(row).collect(),
        }
    }

    /// Puts it into the tree; rows that were not measured stay if they are of this kind of machine.
    pub(crate) fn renew(mut self) -> Result<()> {
        if let Ok(before) = Self::read()
            && before.is_like(&self)
        {
            for (name, row) in before.rows {
                self.rows.entry(name).or_insert(row);
            }
        }
        let mut text = serde_json::to_string_pretty(&self)?;
        text.push('\n');
        fs::write(path(), text).context("docs/measured.json")
    }

    fn is_like(&self, other: &Self) -> bool {
        let kind = |of: &Self| (of.processor.clone(), of.cores, of.kernel.clone());
        kind(self) == kind(other)
    }

    fn kind(&self) -> String {
        format!("{}, {} CPUs, {}", self.processor, self.cores, self.kernel)
    }

    /// What has changed from this to `now`, a line for each of both.
    pub(crate) fn changes(&self, now: &Self) -> String {
        if !self.is_like(now) {
            return format!(
                "docs/measured.json is of another kind of machine ({}; this is {}): not compared\n",
                self.kind(),
                now.kind()
            );
        }
        let mut text = "Target CPU us an I/O, and IOPS, against docs/measured.json\n".to_owned();
        for (name, row) in &now.rows {
            for (who, after) in row {
                if let Some(before) = self.rows.get(name).and_then(|row| row.get(who)) {
                    let change = before.to(after);
                    let _ = writeln!(text, "  {name:<44}{who:<16}{change}");
                }
            }
        }
        text
    }
}

impl Medians {
    fn of(column: &Column) -> Option<Self> {
        let median = |figure: fn(&Measured) -> f64| column.median(|round| Some(figure(round)));
        Some(Self {
            cpu_us: column.median(Measured::cpu_us).map(rounded),
            iops: rounded(median(|round| round.iops)?),
            p50_us: rounded(median(|round| round.p50_us)?),
            p99_us: rounded(median(|round| round.p99_us)?),
        })
    }

    fn to(&self, after: &Self) -> String {
        let change = |before: f64, after: f64| format!("{:+.0} %", (after / before - 1.0) * 100.0);
        let both = self.cpu_us.zip(after.cpu_us);
        let cpu = both.map(|(before, after)| {
            format!("{before:>8.2} -> {after:<8.2}{:>7}", change(before, after))
        });
        format!(
            "{:>28}{:>10}",
            cpu.unwrap_or_default(),
            change(self.iops, after.iops)
        )
    }
}

/// To four digits: more are noise.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let one = 10f64.powf(value.abs().log10().floor() - 3.0);
    // Divided where that is exact: 0.1 is not a binary fraction.
    if one < 1.0 {
        (value / one).round() / (1.0 / one).round()
    } else {
        (value / one).round() * one
    }
}
