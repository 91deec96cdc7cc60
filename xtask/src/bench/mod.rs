//! Measures `lunar serve` and tgtd side by side, in one run, on one machine: ratios mean more than
//! figures.
//!
//! The load is that of `lunar race --json`, bare TCP that of `lunar floor --json`. All of it runs
//! in a network namespace of its own with `reno`, since some hosts pace even the loopback. Targets
//! are pinned to CPU 1, the load generator to CPU 0. Volumes are filled before: one that was never
//! written reads from a shared zero page and flatters.

mod committed;
mod contenders;
mod figures;
mod fio;
mod footprint;
mod media;
pub(crate) mod namespace;
mod rows;
mod target;
mod verdict;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ::tests::tool;
use address::{Address, ParseError};
use anyhow::{Context, Result, ensure};
use bench::outcome::HostFacts;
use clap::Args;
use committed::Committed;
use contenders::Contenders;
pub(crate) use contenders::{Contender, generate, generate_on, split};
pub(crate) use figures::{Column, Figures};
pub(crate) use rows::{Row, row};
use serde::Serialize;
pub(crate) use target::{GENERATOR_CPU, TARGET_CPU, Target, release_binary, rest};
pub(crate) use verdict::Verdict;

/// What is measured, for how long and how often.
#[derive(Args)]
pub(crate) struct Extent {
    /// Seconds that each measurement takes
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub(crate) seconds: Duration,

    /// How often each is taken, or more often where little tells two apart; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,

    /// Only rows whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

impl Extent {
    /// The rows that are wanted, of which there must be one.
    pub(crate) fn choose(&self, mut rows: Vec<Row>) -> Result<Vec<Row>> {
        rows.retain(|row| row.name.contains(&self.only));
        ensure!(
            !rows.is_empty(),
            "no row's name contains {:?}: give a part of one, such as \"4 KiB read, depth 32\"",
            self.only
        );
        Ok(rows)
    }
}

/// Measure lunar side by side with tgtd
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    extent: Extent,

    /// Also iscsi://HOST[:PORT]/IQN/LUN, of which 512 MiB are overwritten; may be repeated. It is
    /// reached where this command runs, so nothing gets a network namespace of its own
    #[arg(long, value_name = "ADDR", value_parser = unit)]
    beside: Vec<String>,

    /// Leave out memory, idle load and start time
    #[arg(long)]
    speed_only: bool,

    /// Write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Put the medians into docs/measured.json, against which later runs are compared
    #[arg(long)]
    renew: bool,
}

impl Arguments {
    /// The contenders of a row; one given by address does what `lunar serve` does.
    fn by(&self, row: &Row) -> Vec<Contender> {
        let beside = (1..=self.beside.len()).map(Contender::Beside);
        let beside = beside.filter(|_| row.by.first() == Some(&Contender::Lunar));
        row.by.iter().copied().chain(beside).collect()
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds >= 0.01);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "give a time of 0.01 s or more, such as 0.4".to_owned())
}

fn unit(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(Address::Iscsi(_) | Address::Iser(_)) => Ok(text.to_owned()),
        Ok(_) => Err("only iscsi:// can be measured beside".to_owned()),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

/// The bytes of the volume, all of which are used.
pub(crate) const VOLUME: u64 = 512 << 20;

/// What was measured of a row, and what that says.
#[derive(Debug, Serialize)]
struct Finished {
    name: String,
    columns: Vec<Column>,
    verdicts: Vec<Verdict>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    machine: HostFacts,
    rows: Vec<Finished>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rows = arguments.extent.choose(rows::all())?;
    tool::present(&["ip", "mount", "setpriv", "taskset", "unshare"])?;
    if !namespace::entered() {
        let network = arguments.beside.is_empty().then_some("--net");
        let kinds: Vec<_> = network.into_iter().chain(["--mount"]).collect();
        return namespace::enter_kinds(&kinds);
    }
    media::prepare()?;
    match arguments.beside[..] {
        [] => namespace::prepare()?,
        _ => namespace::look()?,
    }
    let report = Report {
        machine: HostFacts::here(),
        rows: measure(arguments, &rows)?,
    };
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let now = Committed::of(&report.machine, &report.rows);
    match Committed::read() {
        Ok(before) => print!("\n{}", before.changes(&now)),
        Err(cause) => println!("\nnothing to compare with: {cause:#}"),
    }
    if arguments.renew {
        now.renew()?;
    }
    let missed: Vec<_> = report.rows.iter().flat_map(Finished::missed).collect();
    ensure!(
        missed.is_empty(),
        "not all that is required was reached:\n{}",
        missed.join("\n")
    );
    Ok(())
}

/// Measures everything, and prints it as it comes.
fn measure(arguments: &Arguments, rows: &[Row]) -> Result<Vec<Finished>> {
    let binary = release_binary()?;
    let mut contenders = Contenders::new(&binary, &arguments.beside);
    let mut finished = Vec::new();
    println!("{}", figures::head());
    for (at, row) in rows.iter().enumerate() {
        let coming = rows[at..].iter().flat_map(|row| arguments.by(row));
        contenders.keep(&coming.collect());
        match rounds(arguments, &mut contenders, row).with_context(|| row.name.clone()) {
            Ok(row) => {
                print!("{row}");
                finished.push(row);
            }
            Err(cause) if row.may_lack => println!("not measured: {cause:#}"),
            Err(cause) => return Err(cause),
        }
    }
    drop(contenders);
    if !arguments.speed_only {
        let footprint = Finished {
            name: "start and idle sessions".to_owned(),
            columns: Vec::new(),
            verdicts: footprint::measure(&binary)?,
        };
        print!("{footprint}");
        finished.push(footprint);
    }
    Ok(finished)
}

/// All contenders in each round: what the machine does beside it hits all of them.
fn rounds(arguments: &Arguments, contenders: &mut Contenders, row: &Row) -> Result<Finished> {
    let by = arguments.by(row);
    let column = |contender: &Contender| Column {
        contender: *contender,
        rounds: Vec::new(),
    };
    let mut columns: Vec<_> = by.iter().map(column).collect();
    for _ in 0..arguments.extent.rounds * row.patience {
        let round = contenders.round(row, &by, arguments.extent.seconds)?;
        for (column, figures) in columns.iter_mut().zip(round) {
            column.rounds.push(figures);
        }
    }
    let verdicts = row.wants.iter().filter_map(|want| want.judge(&columns));
    Ok(Finished {
        name: row.name.clone(),
        verdicts: verdicts.collect(),
        columns,
    })
}

impl Finished {
    /// What stayed short of what is required, each as a line.
    fn missed(&self) -> impl Iterator<Item = String> {
        let missed = self.verdicts.iter().filter(|verdict| !verdict.good);
        missed.map(|verdict| format!("{}: {verdict}", self.name))
    }
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
