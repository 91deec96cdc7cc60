//! What was measured, as text and as JSON.

use std::fmt;

use bench::outcome::HostFacts;
use bench::report::ReportTable;
use serde::Serialize;

use super::load::Job;
use super::meter::Measured;
use super::rows::Row;
use super::verdict::{Column, Spread, Verdict};

/// A side is saturated from this share of its CPU on.
const SATURATED: f64 = 0.95;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: HostFacts,
    pub(crate) rows: Vec<Finished>,
    pub(crate) footprint: Option<Footprint>,
    /// What the model makes of it.
    pub(crate) model: Vec<ReportTable>,
}

/// A row with all its rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Finished {
    pub(crate) name: String,
    pub(crate) job: Job,
    pub(crate) columns: Vec<Column>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// What is not about I/O.
#[derive(Debug, Serialize)]
pub(crate) struct Footprint {
    /// Seconds of CPU a second, with 100 idle sessions.
    pub(crate) idle_load: f64,
    /// The same with all sessions of [`Self::sessions`], over the time in which each is asked for a
    /// sign of life once.
    pub(crate) many_idle_load: f64,
    /// Resident bytes that one more idle session takes.
    pub(crate) session_bytes: u64,
    /// How many sessions were held at once.
    pub(crate) sessions: usize,
    /// From the start to the ready line of `ram:50G`.
    pub(crate) start_ms: f64,
}

impl Report {
    /// What stayed short of what is required, each as a line.
    pub(crate) fn missed(&self) -> Vec<String> {
        let rows = self.rows.iter().flat_map(Finished::missed);
        let footprint = self.footprint.iter().flat_map(Footprint::missed);
        rows.chain(footprint).collect()
    }
}

impl Finished {
    pub(crate) fn new(row: &Row, columns: Vec<Column>) -> Self {
        // Without the one that it is about, a row is only looked at.
        let about = columns
            .first()
            .is_some_and(|column| Some(&column.who) == row.by.first());
        let judge = |want: &super::verdict::Want| want.judge(&columns).filter(|_| about);
        Self {
            name: row.name.clone(),
            job: row.job,
            verdicts: row.wants.iter().filter_map(judge).collect(),
            columns,
        }
    }

    fn missed(&self) -> impl Iterator<Item = String> {
        let missed = self.verdicts.iter().filter(|verdict| !verdict.good);
        missed.map(|verdict| format!("{}: {verdict}", self.name))
    }
}

/// What stands above the rows.
pub(crate) fn head() -> String {
    format!(
        "{:<18}{:>26}{:>30}{:>11}{:>15}{:>13}\n(t: the target was saturated; g: the generator)",
        "", "target CPU us an I/O", "IOPS", "generator", "p50/p99 us", "I/Os a sleep"
    )
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        for column in &self.columns {
            writeln!(f, "{column}")?;
        }
        for verdict in &self.verdicts {
            writeln!(f, "  {verdict}")?;
        }
        Ok(())
    }
}

/// Median, and in brackets the lowest and the highest of all rounds.
impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = |figure: fn(&Measured) -> f64| {
            let median = self.median(|measured| Some(figure(measured)));
            median.unwrap_or_default()
        };
        let cpu = self.spread(Measured::cpu_us);
        let iops = self.spread(|measured| Some(measured.iops / 1e3));
        let (p50, p99) = (
            median(|measured| measured.p50_us),
            median(|measured| measured.p99_us),
        );
        let sleeps = self.median(Measured::ios_a_sleep);
        write!(
            f,
            "  {:<16}{:>26}{:>30}{:>8.2} us{:>15}{:>13}",
            self.who,
            cpu.map(|cpu| spread(cpu, 2)).unwrap_or_default(),
            iops.map(|iops| spread(iops, 1) + "k").unwrap_or_default() + self.saturated(),
            median(Measured::generator_us),
            format!("{p50:.0}/{p99:.0}"),
            sleeps.map(|ios| format!("{ios:.1}")).unwrap_or_default(),
        )
    }
}

impl Column {
    fn saturated(&self) -> &'static str {
        let busy = |load: Option<f64>| load.is_some_and(|load| load >= SATURATED);
        let target = busy(self.median(|measured| measured.target_load));
        let generator = busy(self.median(|measured| Some(measured.generator_load)));
        match (generator, target) {
            (false, false) => "   ",
            (true, false) => " g ",
            (false, true) => " t ",
            (true, true) => " gt",
        }
    }
}

/// `2.29 (2.20..2.41)`
fn spread(spread: Spread, digits: usize) -> String {
    let Spread { min, median, max } = spread;
    format!("{median:.digits$} ({min:.digits$}..{max:.digits$})")
}

impl Footprint {
    /// What it is, how much, the limit, and whether that was kept.
    fn lines(&self) -> [(&'static str, String, &'static str, bool); 5] {
        let Self {
            idle_load,
            many_idle_load,
            session_bytes,
            sessions,
            start_ms,
        } = *self;
        let idle = format!("{:.2} %", idle_load * 100.0);
        let many_idle = format!("{:.2} %", many_idle_load * 100.0);
        let memory = format!("{:.1} KiB", session_bytes as f64 / 1024.0);
        let start = format!("{start_ms:.1} ms");
        [
            (
                "100 idle sessions, of a core",
                idle,
                "below 0.5 %",
                idle_load < 0.005,
            ),
            (
                "10000 idle sessions, of a core",
                many_idle,
                "below 1 %",
                many_idle_load < 0.01,
            ),
            (
                "memory an idle session",
                memory,
                "below 64 KiB",
                session_bytes < 64 << 10,
            ),
            (
                "sessions at once",
                sessions.to_string(),
                "10000",
                sessions >= 10_000,
            ),
            (
                "start of ram:50G to ready",
                start,
                "below 50 ms",
                start_ms < 50.0,
            ),
        ]
    }

    /// What it is, and the verdict.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Vec<String>> {
        self.lines().into_iter().map(|(what, value, limit, good)| {
            let verdict = if good { "ok" } else { "MISSED" };
            let verdict = format!("{verdict:<8}{value}, required {limit}");
            vec![what.to_owned(), verdict]
        })
    }

    fn missed(&self) -> impl Iterator<Item = String> {
        let missed = self.lines().into_iter().filter(|(.., good)| !good);
        missed.map(|(what, value, limit, _)| format!("{what}: MISSED  {value}, required {limit}"))
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, value, limit, good) in self.lines() {
            let verdict = if good { "ok" } else { "MISSED" };
            writeln!(f, "{what:<40}{value:>14}   {limit:<20}{verdict}")?;
        }
        Ok(())
    }
}
