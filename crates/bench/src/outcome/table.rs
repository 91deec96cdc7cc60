//! Outcomes as text for terminals and mail.

#[cfg(test)]
mod tests;

use comfy_table::{CellAlignment, Table, presets};

use super::race::{Contender, Quantity};
use super::spread::RatioSpread;
use super::{Load, Race, ResultRow, RunResult};
use crate::numbers::{block_size, digits, mb_per_s, or_dash, percent, time, whole};
use crate::series::{Series, VaryingFactor};

/// One line a measurement. Columns that would be the same or empty all the way down are left out.
/// Rows of several addresses have a table for each of fio's words, so that each fits a terminal.
#[must_use]
pub fn table(outcome: &RunResult) -> String {
    let rows = outcome.rows.iter().collect::<Vec<_>>();
    if !is_of_several(outcome) {
        return table_of(outcome, &rows);
    }
    let mut groups: Vec<Vec<&ResultRow>> = Vec::new();
    for row in rows {
        let word = row.load.word();
        let same = |group: &&mut Vec<&ResultRow>| group[0].load.word() == word;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let table = |rows: &Vec<&ResultRow>| format!("{}:\n{}", shared(rows), table_of(outcome, rows));
    let tables: Vec<_> = groups.iter().map(table).collect();
    legend(outcome) + &tables.join("\n\n")
}

fn table_of(outcome: &RunResult, rows: &[&ResultRow]) -> String {
    let columns = columns(outcome, rows);
    let lines = rows
        .iter()
        .map(|row| columns.iter().map(|column| (column.cell)(row)).collect());
    let head = columns.iter().map(|column| column.name.to_owned());
    draw(head.collect(), lines)
}

/// The addresses by their numbers.
fn legend(outcome: &RunResult) -> String {
    let addresses = outcome.addresses().into_iter().enumerate();
    addresses
        .map(|(at, address)| format!("{}: {address}\n", at + 1))
        .collect()
}

/// What rows of several addresses share: `randread, 4k, iodepth 32`. It has no column then, so that
/// the others fit a terminal.
pub(crate) fn shared(rows: &[&ResultRow]) -> String {
    let Some(load) = rows.first().map(|row| row.load) else {
        return String::new();
    };
    let mut facts = Vec::new();
    facts.extend(is_same(rows, Load::word).then(|| load.word().to_owned()));
    let block = is_same(rows, |load| load.block_bytes);
    facts.extend(block.then(|| block_size(load.block_bytes)));
    facts.push(format!("iodepth {}", load.depth));
    facts.extend((load.jobs > 1).then(|| format!("numjobs {}", load.jobs)));
    facts.join(", ")
}

/// Whether rows are of several addresses, and have numbers in place of them.
pub(crate) fn is_of_several(outcome: &RunResult) -> bool {
    let mut rows = outcome.rows.iter();
    rows.any(|row| row.address != outcome.rows[0].address)
}

/// Whether something is the same of all rows.
fn is_same<T: PartialEq>(rows: &[&ResultRow], of: impl Fn(&Load) -> T) -> bool {
    rows.iter().all(|row| of(&row.load) == of(&rows[0].load))
}

/// The number of an address, or what stands in its place.
fn number(outcome: &RunResult, address: &str) -> String {
    let addresses = outcome.addresses();
    let at = addresses.iter().position(|other| *other == address);
    at.map_or_else(|| address.to_owned(), |at| (at + 1).to_string())
}

/// Block sizes down; for each direction MB/s, IOPS and CPU across, as vendors print it. `None` when
/// rows differ in more than block size and direction.
#[must_use]
pub fn sweep(outcome: &RunResult) -> Option<String> {
    let series = Series::of(&outcome.rows);
    let first = &outcome.rows.first()?.load;
    let more = |row: &ResultRow| {
        let load = &row.load;
        (load.order, load.depth, load.jobs) != (first.order, first.depth, first.jobs)
            || row.address != outcome.rows[0].address
    };
    if series.across != VaryingFactor::BlockSize
        || !series.is_sweep()
        || outcome.rows.iter().any(more)
    {
        return None;
    }
    let mut head = vec!["bs".to_owned()];
    for line in &series.lines {
        head.extend([
            format!("{}\nMB/s", line.name),
            "\nIOPS".into(),
            "\nCPU (%)".into(),
        ]);
    }
    let lines = series.marks.iter().map(|block_bytes| {
        let mut cells = vec![block_size(*block_bytes)];
        for line in &series.lines {
            cells.extend(sweep_cells(series.at_mark(line, *block_bytes)));
        }
        cells
    });
    Some(draw(head, lines))
}

fn sweep_cells(row: Option<&ResultRow>) -> [String; 3] {
    [
        or_dash(row.map(|row| mb_per_s(row.mb_per_s()))),
        or_dash(row.map(|row| whole(row.iops()))),
        or_dash(row.and_then(ResultRow::cpu_percent).map(whole)),
    ]
}

/// How those that took turns compare with the first of them: a table with a line each, and what
/// may be said of it.
#[must_use]
pub fn races(outcome: &RunResult) -> String {
    let RaceComparison { head, lines } = compared(outcome);
    let table = draw(head, lines.into_iter());
    let said = outcome.races.iter().flat_map(Race::said);
    let said: String = said.map(|line| line + "\n").collect();
    format!("{TIMES_THE_FIRST}:\n{table}\n\n{said}")
}

/// What the numbers of [`races`] are.
pub(crate) const TIMES_THE_FIRST: &str =
    "Times that of address 1: median of all rounds (lowest to highest)";

/// What [`races`] tells.
pub(crate) struct RaceComparison {
    pub(crate) head: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
}

pub(crate) fn compared(outcome: &RunResult) -> RaceComparison {
    let races = || outcome.races.iter();
    let pairs = || races().flat_map(|race| race.others().map(move |lane| (race, lane)));
    let mut quantities = vec![
        ("IOPS", Quantity::Iops),
        ("CPU/IO", Quantity::Cpu),
        ("target CPU/IO", Quantity::TargetCpu),
    ];
    let told = |quantity| pairs().any(|(race, lane)| race.ratio(lane, quantity).is_some());
    quantities.retain(|(_, quantity)| told(*quantity));
    let names = quantities.iter().map(|(name, _)| *name);
    let head = ["#", "rw", "bs", "rounds"].into_iter().chain(names);
    let line = |(race, lane): (&Race, &Contender)| {
        let mut cells = vec![
            number(outcome, &lane.address),
            race.load.word().to_owned(),
            block_size(race.load.block_bytes),
            lane.turns.len().to_string(),
        ];
        let ratio = |(_, quantity): &(_, Quantity)| race.ratio(lane, *quantity);
        let ratios = quantities.iter().map(ratio);
        cells.extend(ratios.map(|ratio| or_dash(ratio.map(spread))));
        cells
    };
    RaceComparison {
        head: head.map(str::to_owned).collect(),
        lines: pairs().map(line).collect(),
    }
}

/// `1.12 (0.97 to 1.31)`.
fn spread(spread: RatioSpread) -> String {
    let [median, lowest, highest] = [spread.median, spread.lowest, spread.highest].map(digits);
    format!("{median} ({lowest} to {highest})")
}

/// A column of [`table`].
pub(crate) struct Column<'a> {
    pub(crate) name: &'static str,
    pub(crate) cell: Box<dyn Fn(&ResultRow) -> String + 'a>,
}

/// Those that have something to tell.
pub(crate) fn columns<'a>(outcome: &'a RunResult, rows: &[&ResultRow]) -> Vec<Column<'a>> {
    let mut columns = Vec::new();
    let mut add = |there: bool, name, cell: Box<dyn Fn(&ResultRow) -> String + 'a>| {
        if there {
            columns.push(Column { name, cell });
        }
    };
    let several = is_of_several(outcome);
    let number = |row: &ResultRow| number(outcome, &row.address);
    add(several, "#", Box::new(number));
    let words = !several || !is_same(rows, Load::word);
    add(words, "rw", Box::new(|row| row.load.word().to_owned()));
    let blocks = !several || !is_same(rows, |load| load.block_bytes);
    let block = |row: &ResultRow| block_size(row.load.block_bytes);
    add(blocks, "bs", Box::new(block));
    let depth = |row: &ResultRow| row.load.depth.to_string();
    add(!several, "iodepth", Box::new(depth));
    let jobs = !several && rows.iter().any(|row| row.load.jobs > 1);
    add(jobs, "numjobs", Box::new(|row| row.load.jobs.to_string()));
    add(true, "IOPS", Box::new(|row| whole(row.iops())));
    add(true, "MB/s", Box::new(|row| mb_per_s(row.mb_per_s())));
    let timed = rows.iter().any(|row| row.latency().max_ns() > 0);
    add(timed, "mean", Box::new(|row| time(row.latency().mean_ns())));
    add(timed, "p50", Box::new(|row| at(row, 50.0)));
    add(timed, "p99", Box::new(|row| at(row, 99.0)));
    add(timed, "p99.9", Box::new(|row| at(row, 99.9)));
    let max = |row: &ResultRow| time(row.latency().max_ns() as f64);
    add(timed, "max", Box::new(max));
    let cpu = |row: &ResultRow| or_dash(row.cpu_us_per_io().map(us));
    let there = rows.iter().any(|row| row.cpu_us.is_some());
    add(there, "CPU/IO", Box::new(cpu));
    let target = |row: &ResultRow| or_dash(row.target_cpu_us_per_io().map(us));
    let there = rows.iter().any(|row| row.target_cpu_us.is_some());
    add(there, "target CPU/IO", Box::new(target));
    let failed = rows.iter().any(|row| row.errors() > 0);
    add(failed, "errors", Box::new(|row| row.errors().to_string()));
    let there = rows.iter().any(|row| outcome.floor_of(row).is_some());
    let share = |row: &ResultRow| or_dash(outcome.share_of_floor(row).map(percent));
    add(there, "of bare TCP", Box::new(share));
    columns
}

fn at(row: &ResultRow, percentile: f64) -> String {
    time(row.latency().percentile_ns(percentile) as f64)
}

fn us(value: f64) -> String {
    format!("{} us", digits(value))
}

/// Pipes and dashes, which are a table in Markdown too.
pub(crate) fn draw(head: Vec<String>, lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_header(head)
        .add_rows(lines);
    table
        .column_iter_mut()
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}
