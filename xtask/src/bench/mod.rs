//! Measures `lunar serve` and tgtd side by side, in one run, on one machine: ratios mean more than
//! figures.
//!
//! All of it runs in a network namespace of its own with `reno`, since some hosts pace even the
//! loopback. Targets are pinned to CPU 1, the generator to CPU 0, which it does not leave: see
//! `Load::rest`. Volumes are filled before: one
//! that was never written reads from a shared zero page and flatters.

mod changes;
mod copy;
pub(crate) mod floor;
mod footprint;
mod lineup;
mod load;
mod media;
mod meter;
mod model;
mod namespace;
mod page;
mod process;
mod report;
mod rows;
mod session;
mod target;
mod verdict;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use address::{Address, ParseError, UnitAddress};
use anyhow::{Context, Result, bail};
use bench::numbers;
use bench::outcome::HostFacts;
use bench::report::{ReportTable, write_article};
use changes::Committed;
use clap::{Args, ValueEnum};
use lineup::{Lineup, Who};
use meter::Measured;
use model::Way;
use report::{Finished, Report};
use rows::Row;
use verdict::Column;

/// Measure lunar side by side with tgtd
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seconds that each measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// How often each is taken, or more often where little tells two apart; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Only rows whose name contains this
    #[arg(long, default_value = "")]
    only: String,

    /// Only this target; may be repeated
    #[arg(long = "target", value_enum)]
    targets: Vec<Which>,

    /// Also iscsi://HOST[:PORT]/IQN/LUN, of which 512 MiB are overwritten; may be repeated. It is
    /// reached where this command runs, so nothing gets a network namespace of its own
    #[arg(long, value_name = "ADDR", value_parser = unit)]
    beside: Vec<UnitAddress>,

    /// Leave out memory, idle load and start time
    #[arg(long)]
    speed_only: bool,

    /// Write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a report with charts to this file, and each chart beside it as SVG and PNG
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Put the medians into docs/measured.json, against which later runs are compared
    #[arg(long)]
    renew: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// `lunar serve`
    Lunar,
    /// tgtd
    Tgtd,
    /// Bare TCP
    Floor,
}

impl Arguments {
    fn wants(&self, who: Who) -> bool {
        let which = match who {
            Who::Tgtd => Which::Tgtd,
            Who::Floor | Who::SleepingFloor | Who::SharedFloor => Which::Floor,
            Who::Beside(_) | Who::Fio(_) => return true,
            Who::Lunar | Who::Digests | Who::Asleep | Who::TwoThreads | Who::On(_) => Which::Lunar,
        };
        self.targets.is_empty() || self.targets.contains(&which)
    }

    /// The contenders of a row that are wanted; one given by address does what `lunar serve` does.
    fn by(&self, row: &Row) -> Vec<Who> {
        let beside = (1..=self.beside.len()).map(Who::Beside);
        let beside = beside.filter(|_| row.by.first() == Some(&Who::Lunar));
        let by = row.by.iter().copied().chain(beside);
        by.filter(|who| self.wants(*who)).collect()
    }
}

fn unit(text: &str) -> Result<UnitAddress, String> {
    match text.parse() {
        Ok(Address::Iscsi(unit)) => Ok(unit),
        Ok(_) => Err("only iscsi:// can be measured beside".to_owned()),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

/// The bytes of the volume, all of which are used.
pub(crate) const VOLUME: u64 = 512 << 20;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.beside[..] {
        [] if !namespace::entered() => return namespace::enter(),
        [] => namespace::prepare()?,
        _ => namespace::look()?,
    }
    let report = measure(arguments)?;
    for table in &report.model {
        println!("\n{table}");
    }
    compare(arguments, &report)?;
    write(arguments, &report)?;
    let missed = report.missed();
    if !missed.is_empty() {
        bail!(
            "not all that is required was reached:\n{}",
            missed.join("\n")
        );
    }
    Ok(())
}

/// Tells what has changed since the result that is committed, and puts this one in its place.
fn compare(arguments: &Arguments, report: &Report) -> Result<()> {
    let now = Committed::of(report);
    match Committed::read() {
        Ok(before) => print!("\n{}", before.changes(&now)),
        Err(cause) => println!("\nnothing to compare with: {cause:#}"),
    }
    if arguments.renew {
        now.renew()?;
    }
    Ok(())
}

fn write(arguments: &Arguments, report: &Report) -> Result<()> {
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &arguments.html {
        let since = SystemTime::UNIX_EPOCH.elapsed()?;
        let article = page::article(report, &numbers::date(since.as_secs()));
        write_article(&article, path)?;
    }
    Ok(())
}

/// What the model makes of what was measured both ways.
fn modelled(rows: &[Finished]) -> Vec<ReportTable> {
    let way = |(name, write)| {
        let cpu_us = |row: &Finished| row.columns.first()?.median(Measured::cpu_us);
        let rows = page::plain(rows, write).into_iter();
        let points = rows.filter_map(|row| Some((row.job.size, cpu_us(row)?)));
        Way {
            name,
            points: points.collect(),
        }
    };
    model::tables(
        &[("read", false), ("write", true)].map(way),
        copy::measure_gb_s(),
    )
}

/// Measures everything, and prints it as it comes.
fn measure(arguments: &Arguments) -> Result<Report> {
    let mut report = Report {
        machine: HostFacts::here(),
        rows: Vec::new(),
        footprint: None,
        model: Vec::new(),
    };
    let mut lineup = Lineup::new(&arguments.beside);
    println!("{}", report::head());
    let rows = rows::all();
    for row in rows.iter().filter(|row| row.name.contains(&arguments.only)) {
        match rounds(arguments, &mut lineup, row).with_context(|| row.name.clone()) {
            Ok(row) => {
                print!("{row}");
                report.rows.push(row);
            }
            Err(cause) if row.may_lack => println!("not measured: {cause:#}"),
            Err(cause) => return Err(cause),
        }
    }
    drop(lineup);
    report.model = modelled(&report.rows);
    if arguments.wants(Who::Lunar) && !arguments.speed_only {
        let footprint = footprint::measure()?;
        print!("{footprint}");
        report.footprint = Some(footprint);
    }
    Ok(report)
}

/// The contenders one after the other, round by round: what the machine does beside it hits
/// all of them.
fn rounds(arguments: &Arguments, lineup: &mut Lineup, row: &Row) -> Result<Finished> {
    let time = Duration::from_secs_f64(arguments.seconds);
    let column = |who| Column {
        who,
        rounds: Vec::new(),
    };
    let mut columns: Vec<_> = arguments.by(row).into_iter().map(column).collect();
    for _ in 0..arguments.rounds * row.patience {
        for column in &mut columns {
            let measured = lineup.measure(column.who, &row.job, time)?;
            column.rounds.push(measured);
        }
    }
    Ok(Finished::new(row, columns))
}
