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

use super::Finished;
use super::figures::{Column, Figures};

/// The medians of a run, and what they hold for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Committed {
    /// What figures depend on, beside the tree: load generator, processor and kernel.
    kind: String,
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
    pub(super) fn read() -> Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The medians of a run.
    pub(super) fn of(machine: &HostFacts, rows: &[Finished]) -> Self {
        let HostFacts {
            processor,
            cores,
            kernel,
            ..
        } = machine;
        let medians = |column: &Column| Some((column.contender.to_string(), Medians::of(column)?));
        let row = |finished: &Finished| {
            let columns = finished.columns.iter().filter_map(medians).collect();
            (finished.name.clone(), columns)
        };
        let measured = rows.iter().filter(|row| !row.columns.is_empty());
        Self {
            kind: format!("lunar race, {processor}, {cores} CPUs, {kernel}"),
            rows: measured.map(row).collect(),
        }
    }

    /// Puts it into the tree; rows that were not measured stay if they are of this kind.
    pub(super) fn renew(mut self) -> Result<()> {
        if let Ok(before) = Self::read()
            && before.kind == self.kind
        {
            for (name, row) in before.rows {
                self.rows.entry(name).or_insert(row);
            }
        }
        let text = serde_json::to_string_pretty(&self)? + "\n";
        fs::write(path(), text).context("docs/measured.json")
    }

    /// What has changed from this to `now`, a line for each of both.
    pub(super) fn changes(&self, now: &Self) -> String {
        if self.kind != now.kind {
            return format!(
                "docs/measured.json is of another kind ({}; this is {}): not compared\n",
                self.kind, now.kind
            );
        }
        let mut text = "Target CPU us an I/O, and IOPS, against docs/measured.json\n".to_owned();
        for (name, row) in &now.rows {
            for (contender, after) in row {
                if let Some(before) = self.rows.get(name).and_then(|row| row.get(contender)) {
                    let change = before.to(after);
                    let _ = writeln!(text, "  {name:<44}{contender:<18}{change}");
                }
            }
        }
        text
    }
}

/// More CPU time or fewer IOPS count as worse from this share on: less is noise.
const NOISE: f64 = 0.1;

impl Medians {
    fn of(column: &Column) -> Option<Self> {
        let median = |figure: fn(&Figures) -> Option<f64>| column.median(figure).map(rounded);
        Some(Self {
            cpu_us: median(|round| round.target_us),
            iops: median(|round| Some(round.iops))?,
            p50_us: median(|round| Some(round.p50_us))?,
            p99_us: median(|round| Some(round.p99_us))?,
        })
    }

    /// In percent, and a mark where it got worse.
    fn to(&self, after: &Self) -> String {
        let change = |before: f64, after: f64| after / before - 1.0;
        let percent = |change: f64| format!("{:+.0} %", change * 100.0);
        let iops = change(self.iops, after.iops);
        let mut is_worse = iops < -NOISE;
        let both = self.cpu_us.zip(after.cpu_us);
        let cpu = both.map(|(before, after)| {
            let cpu = change(before, after);
            is_worse |= cpu > NOISE;
            format!("{before:>8.2} -> {after:<8.2}{:>7}", percent(cpu))
        });
        let worse = if is_worse { "  WORSE" } else { "" };
        format!(
            "{:>28}{:>10}{worse}",
            cpu.unwrap_or_default(),
            percent(iops)
        )
    }
}

/// To four digits: more are noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
