//! Rows that belong together: those that differ in nothing but block size, depth or jobs.

use crate::numbers;
use crate::outcome::{Direction, Load, Order, Row};

/// What changes along a line of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    BlockSize,
    Depth,
    Jobs,
}

impl Across {
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
pub(crate) struct Line<'a> {
    /// What tells it from the other lines.
    pub(crate) name: String,
    pub(crate) rows: Vec<&'a Row>,
}

/// All rows, as lines.
pub(crate) struct Series<'a> {
    pub(crate) across: Across,
    /// The values of what changes, upwards.
    pub(crate) marks: Vec<u32>,
    pub(crate) lines: Vec<Line<'a>>,
}

impl<'a> Series<'a> {
    /// Whatever takes the most values is what changes; the rest tells lines apart.
    pub(crate) fn of(rows: &'a [Row]) -> Self {
        let values = |across: Across| distinct(rows.iter().map(|row| across.of(&row.load)));
        let (depths, jobs) = (values(Across::Depth), values(Across::Jobs));
        let mut most = (Across::BlockSize, values(Across::BlockSize));
        for other in [(Across::Depth, depths), (Across::Jobs, jobs)] {
            if other.1.len() > most.1.len() {
                most = other;
            }
        }
        let (across, marks) = most;
        let lines = lines(rows, across);
        Self {
            across,
            marks,
            lines,
        }
    }

    /// The place of a row among the marks.
    pub(crate) fn mark(&self, row: &Row) -> usize {
        let value = self.across.of(&row.load);
        self.marks
            .iter()
            .position(|mark| *mark == value)
            .unwrap_or(0)
    }

    /// Whether there is anything to draw a line along.
    pub(crate) fn is_sweep(&self) -> bool {
        self.marks.len() > 1
    }
}

fn lines(rows: &[Row], across: Across) -> Vec<Line<'_>> {
    let naming = Naming::of(rows, across);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows {
        let alike = |line: &&mut Line<'_>| {
            let first = line.rows[0];
            first.address == row.address && across.rest(&first.load) == across.rest(&row.load)
        };
        match lines.iter_mut().find(alike) {
            Some(line) => line.rows.push(row),
            None => lines.push(Line {
                name: naming.name(row),
                rows: vec![row],
            }),
        }
    }
    for line in &mut lines {
        line.rows.sort_by_key(|row| across.of(&row.load));
    }
    lines
}

/// Which properties must be named to tell rows apart.
struct Naming {
    addresses: bool,
    orders: bool,
    blocks: bool,
    depths: bool,
    jobs: bool,
}

impl Naming {
    fn of(rows: &[Row], across: Across) -> Self {
        let several =
            |of: fn(&Load) -> u32| distinct(rows.iter().map(|row| of(&row.load))).len() > 1;
        Self {
            addresses: rows.iter().any(|row| row.address != rows[0].address),
            orders: rows.iter().any(|row| row.load.order != rows[0].load.order),
            blocks: across != Across::BlockSize && several(|load| load.block_bytes),
            depths: across != Across::Depth && several(|load| load.depth),
            jobs: across != Across::Jobs && several(|load| load.jobs),
        }
    }

    fn name(&self, row: &Row) -> String {
        let load = &row.load;
        let mut parts = vec![direction(load.direction).to_owned()];
        if self.orders {
            parts.push(order(load.order).to_owned());
        }
        if self.blocks {
            parts.push(numbers::block_size(load.block_bytes));
        }
        if self.depths {
            parts.push(format!("depth {}", load.depth));
        }
        if self.jobs {
            parts.push(format!("jobs {}", load.jobs));
        }
        if self.addresses {
            parts.push(row.address.clone());
        }
        parts.join(", ")
    }
}

/// The names that vendors' tables have.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "READ",
        Direction::Write => "WRITE",
        Direction::Mixed => "READ/WRITE",
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Sequential => "sequential",
        Order::Random => "random",
    }
}

fn distinct(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}
