//! What was measured, as a table and as JSON.

use std::fmt;

use serde::Serialize;

use super::load::{Job, Measured};

/// A side is saturated from this share of its CPU on.
const SATURATED: f64 = 0.95;

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Finished>,
    pub(crate) footprint: Option<Footprint>,
}

/// The rounds of one load.
pub(crate) struct Row {
    name: &'static str,
    required: Option<f64>,
    pub(crate) lunar: Vec<Measured>,
    pub(crate) tgtd: Vec<Measured>,
    pub(crate) floor: Vec<Measured>,
}

/// The medians of one load.
#[derive(Debug, Serialize)]
pub(crate) struct Finished {
    name: &'static str,
    lunar: Option<Measured>,
    tgtd: Option<Measured>,
    floor: Option<Measured>,
    /// How many times less target CPU an I/O costs than with tgtd.
    ratio: Option<f64>,
    required: Option<f64>,
}

/// What is not about I/O.
#[derive(Debug, Serialize)]
pub(crate) struct Footprint {
    /// Seconds of CPU a second, with 100 idle sessions.
    pub(crate) idle_load: f64,
    /// Resident octets that one more idle session takes.
    pub(crate) session_octets: u64,
    /// How many sessions were held at once.
    pub(crate) sessions: usize,
    /// From the start to the ready line of `ram:50G`.
    pub(crate) start_ms: f64,
}

impl Row {
    pub(crate) fn new(job: &Job, required: Option<f64>) -> Self {
        Self {
            name: job.name,
            required,
            lunar: Vec::new(),
            tgtd: Vec::new(),
            floor: Vec::new(),
        }
    }

    pub(crate) fn finished(self) -> Finished {
        let (lunar, tgtd) = (median(self.lunar), median(self.tgtd));
        let ratio = tgtd
            .zip(lunar)
            .map(|(tgtd, lunar)| tgtd.cpu_us() / lunar.cpu_us());
        Finished {
            name: self.name,
            lunar,
            tgtd,
            floor: median(self.floor),
            ratio,
            required: self.required,
        }
    }
}

/// The round in the middle, by target CPU an I/O.
fn median(mut rounds: Vec<Measured>) -> Option<Measured> {
    rounds.sort_by(|a, b| a.cpu_us().total_cmp(&b.cpu_us()));
    rounds.get(rounds.len() / 2).copied()
}

impl Report {
    /// Whether something stayed short of what is required.
    pub(crate) fn missed(&self) -> bool {
        let low = |row: &Finished| row.reached() == Some(false);
        let footprint = self.footprint.as_ref();
        self.rows.iter().any(low) || footprint.is_some_and(|footprint| !footprint.good())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "{:<27}{:>24}{:>24}{:>11}  {:<18}{:<14}",
            "us of target CPU an I/O",
            "lunar (IOPS)",
            "tgtd (IOPS)",
            "floor",
            "ratio",
            "lunar p50/p99"
        )?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        if !self.rows.is_empty() {
            writeln!(f, "t: the target was saturated; g: the generator; gt: both")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<27}{:>24}{:>24}",
            self.name,
            cell(self.lunar),
            cell(self.tgtd)
        )?;
        let floor = self.floor.map(|floor| format!("{:.2}", floor.cpu_us()));
        write!(
            f,
            "{:>11}  {:<18}",
            floor.unwrap_or_default(),
            self.verdict()
        )?;
        match self.lunar {
            Some(Measured { p50_us, p99_us, .. }) => write!(f, "{p50_us:.0}/{p99_us:.0} us"),
            None => Ok(()),
        }
    }
}

impl Finished {
    /// Whether it costs as little as required, where both are known.
    fn reached(&self) -> Option<bool> {
        self.ratio
            .zip(self.required)
            .map(|(ratio, required)| ratio >= required)
    }

    /// `6.4x of 6.2x ok`
    fn verdict(&self) -> String {
        match (self.ratio, self.required) {
            (Some(ratio), Some(required)) => {
                let verdict = if self.reached() == Some(true) {
                    "ok"
                } else {
                    "LOW"
                };
                format!("{ratio:.1}x of {required:.1}x {verdict}")
            }
            (Some(ratio), None) => format!("{ratio:.1}x"),
            (None, _) => String::new(),
        }
    }
}

/// `2.29 (437k gt)`
fn cell(measured: Option<Measured>) -> String {
    let Some(measured) = measured else {
        return String::new();
    };
    let side = |load: f64, letter| if load >= SATURATED { letter } else { "" };
    let generator = side(measured.generator_load, "g");
    let target = side(measured.target_load, "t");
    let thousands = measured.iops / 1e3;
    format!(
        "{:.2} ({thousands:.1}k {generator}{target})",
        measured.cpu_us()
    )
}

impl Footprint {
    /// What it is, how much, the limit, and whether that was kept.
    fn lines(&self) -> [(&'static str, String, &'static str, bool); 4] {
        let Self {
            idle_load,
            session_octets,
            sessions,
            start_ms,
        } = *self;
        let idle = format!("{:.2} %", idle_load * 100.0);
        let memory = format!("{:.1} KiB", session_octets as f64 / 1024.0);
        let start = format!("{start_ms:.1} ms");
        [
            (
                "100 idle sessions, of a core",
                idle,
                "below 0.5 %",
                idle_load < 0.005,
            ),
            (
                "memory an idle session",
                memory,
                "below 64 KiB",
                session_octets < 64 << 10,
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

    fn good(&self) -> bool {
        self.lines().iter().all(|(.., good)| *good)
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
