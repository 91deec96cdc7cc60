//! What is committed: a line for each tool, then one for each benchmark.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use anyhow::{Context, Error, Result, ensure};

/// What may be added before it counts as growth; layout and inlining move by 1 or 2 %.
const GROWTH: f64 = 1.03;

/// Counts, and what they were counted with.
#[derive(Debug, PartialEq)]
pub(super) struct Baseline {
    /// The versions of the tools, the compiler's first.
    pub(super) made_by: Vec<String>,
    /// Instructions by benchmark, each time.
    pub(super) counts: BTreeMap<String, f64>,
}

impl Baseline {
    /// Counts of another compiler say nothing.
    pub(super) fn check_compiler(&self, now: &[String]) -> Result<()> {
        let (then, now) = (self.made_by.first(), now.first());
        ensure!(
            then == now,
            "the baseline is of {}, and this is {}: renew it, in a commit of its own, with cargo \
             xtask instructions --renew",
            then.map_or("no compiler", String::as_str),
            now.map_or("none", String::as_str),
        );
        Ok(())
    }

    /// A table of both, and how many rows are bad: they have grown, or are on one side only.
    pub(super) fn compare(&self, now: &BTreeMap<String, f64>) -> (String, usize) {
        let (mut table, mut bad) = (String::new(), 0);
        let gone = self.counts.keys().filter(|name| !now.contains_key(*name));
        for name in gone {
            bad += 1;
            let _ = writeln!(table, "{name:<32} was not counted");
        }
        for (name, count) in now {
            let _ = write!(table, "{name:<32} {count:>10.1}");
            let Some(then) = self.counts.get(name) else {
                bad += 1;
                table += " has no row in the baseline\n";
                continue;
            };
            let change = count / then;
            let remark = match change {
                _ if change > GROWTH => " GREW",
                _ if change * GROWTH < 1.0 => " less: renew the baseline",
                _ => "",
            };
            bad += usize::from(change > GROWTH);
            let _ = writeln!(table, " {:>+7.2} %{remark}", (change - 1.0) * 100.0);
        }
        (table, bad)
    }

    /// Which tools have changed, as the end of a sentence.
    pub(super) fn other_tools(&self, now: &[String]) -> String {
        let pairs = self
            .made_by
            .iter()
            .zip(now)
            .filter(|(then, now)| then != now);
        let changes =
            pairs.map(|(then, now)| format!("; the baseline is of {then}, this is {now}"));
        changes.collect()
    }
}

const HEAD: &str = "# Instructions, each time: written by cargo xtask instructions --renew\n";

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for tool in &self.made_by {
            writeln!(f, "# {tool}")?;
        }
        for (name, count) in &self.counts {
            writeln!(f, "{name:<32} {count:>10.1}")?;
        }
        Ok(())
    }
}

impl FromStr for Baseline {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let tools = text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix("# "));
        let made_by: Vec<_> = tools.map(str::to_owned).collect();
        let row = |line: &str| {
            let (name, count) = line.split_once(' ').with_context(|| line.to_owned())?;
            let count = count.trim().parse().with_context(|| line.to_owned())?;
            Ok((name.to_owned(), count))
        };
        let rows = text.lines().skip(1 + made_by.len());
        Ok(Self {
            counts: rows.map(row).collect::<Result<_>>()?,
            made_by,
        })
    }
}
