//! Rows that belong together: those that differ in nothing but block size, depth or jobs.

use crate::numbers;
use crate::outcome::{AccessOrder, DataDirection, Load, ResultRow};

/// What changes along a line of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VaryingFactor {
    BlockSize,
    Depth,
    Jobs,
}

impl VaryingFactor {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BlockSize => "block size",
            Self::Depth => "depth",
            Self::Jobs => "jobs",
        }
    }

    pub(crate) fn of(self, load: &Load) -> u32 {
        match self {
            Self::BlockSize => load.block_bytes,
            Self::Depth => load.depth,
            Self::Jobs => load.jobs,
        }
    }

    pub(crate) fn word(self, value: u32) -> String {
        match self {
            Self::BlockSize => numbers::block_size(value),
            Self::Depth | Self::Jobs => value.to_string(),
        }
    }

    /// The load without what changes.
    fn rest(self, load: &Load) -> Load {
        let mut rest = *load;
        match self {
            Self::BlockSize => rest.block_bytes = 0,
            Self::Depth => rest.depth = 0,
            Self::Jobs => rest.jobs = 0,
        }
        rest
    }
}

/// Rows along which one thing changes.
pub(crate) struct ResultSeries<'a> {
    /// What tells it from the other lines.
    pub(crate) name: String,
    pub(crate) rows: Vec<&'a ResultRow>,
}

/// All rows, as lines.
pub(crate) struct Series<'a> {
    pub(crate) across: VaryingFactor,
    /// The values of what changes, upwards.
    pub(crate) marks: Vec<u32>,
    pub(crate) lines: Vec<ResultSeries<'a>>,
}

impl<'a> Series<'a> {
    /// Whatever takes the most values is what changes; the rest tells lines apart.
    pub(crate) fn of(rows: &'a [ResultRow]) -> Self {
        let values = |across: VaryingFactor| distinct(rows.iter().map(|row| across.of(&row.load)));
        let mut across = VaryingFactor::BlockSize;
        for other in [VaryingFactor::Depth, VaryingFactor::Jobs] {
            if values(other).len() > values(across).len() {
                across = other;
            }
        }
        Self {
            across,
            marks: values(across),
            lines: lines(rows, across),
        }
    }

    /// The place of a row among the marks.
    pub(crate) fn mark(&self, row: &ResultRow) -> usize {
        let value = self.across.of(&row.load);
        let mut marks = self.marks.iter();
        marks.position(|mark| *mark == value).unwrap_or(0)
    }

    /// How its mark is written.
    pub(crate) fn word(&self, row: &ResultRow) -> String {
        self.across.word(self.across.of(&row.load))
    }

    /// The last row of a line that has this mark.
    pub(crate) fn at_mark(&self, line: &ResultSeries<'a>, mark: u32) -> Option<&'a ResultRow> {
        let mut rows = line.rows.iter().copied();
        rows.rfind(|row| self.across.of(&row.load) == mark)
    }

    /// Whether there is anything to draw a line along.
    pub(crate) fn is_sweep(&self) -> bool {
        self.marks.len() > 1
    }
}

fn lines(rows: &[ResultRow], across: VaryingFactor) -> Vec<ResultSeries<'_>> {
    let all: Vec<_> = rows.iter().map(|row| facts(row, across)).collect();
    let differ = |at: usize| all.iter().any(|facts| facts[at] != all[0][at]);
    let named: Vec<_> = (0..FACTS).filter(|at| *at == 0 || differ(*at)).collect();
    let mut lines: Vec<ResultSeries<'_>> = Vec::new();
    for row in rows {
        let own = facts(row, across);
        let alike = |line: &&mut ResultSeries<'_>| facts(line.rows[0], across) == own;
        if let Some(line) = lines.iter_mut().find(alike) {
            line.rows.push(row);
            continue;
        }
        let name: Vec<_> = named.iter().map(|at| own[*at].as_str()).collect();
        lines.push(ResultSeries {
            name: name.join(", "),
            rows: vec![row],
        });
    }
    for line in &mut lines {
        line.rows.sort_by_key(|row| across.of(&row.load));
    }
    lines
}

const FACTS: usize = 6;

/// What may tell a row from others, in words. Its direction always names it; what changes along a
/// line is the same here for all.
fn facts(row: &ResultRow, across: VaryingFactor) -> [String; FACTS] {
    let load = across.rest(&row.load);
    [
        direction(load.direction).to_owned(),
        order(load.order).to_owned(),
        numbers::block_size(load.block_bytes),
        format!("depth {}", load.depth),
        format!("jobs {}", load.jobs),
        row.address.clone(),
    ]
}

/// The names that vendors' tables have.
fn direction(direction: DataDirection) -> &'static str {
    match direction {
        DataDirection::Read => "READ",
        DataDirection::Write => "WRITE",
        DataDirection::Mixed => "READ/WRITE",
    }
}

fn order(order: AccessOrder) -> &'static str {
    match order {
        AccessOrder::Sequential => "sequential",
        AccessOrder::Random => "random",
    }
}

fn distinct(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}
