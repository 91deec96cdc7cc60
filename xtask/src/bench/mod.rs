//! Measures `lunar serve` and tgtd side by side, in one run, on one machine: ratios mean more than
//! figures.
//!
//! All of it runs in a network namespace of its own with `reno`, since some hosts pace even the
//! loopback. Targets are pinned to CPU 1, the generator to CPU 0, which it does not leave: see
//! `Load::rest`. Volumes are filled before: one
//! that was never written reads from a shared zero page and flatters.

pub(crate) mod floor;
mod footprint;
mod load;
mod namespace;
mod process;
mod report;
mod session;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use load::{Job, Measured};
use report::{Report, Row};
use target::Target;

/// Measure lunar side by side with tgtd
#[derive(Args)]
pub(crate) struct Arguments {
    /// Seconds that each measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// How often each is taken; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Only rows whose name contains this
    #[arg(long, default_value = "")]
    only: String,

    /// Only this target; may be repeated
    #[arg(long = "target", value_enum)]
    targets: Vec<Which>,

    /// Leave out memory, idle load and start time
    #[arg(long)]
    speed_only: bool,

    /// Write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
    fn wants(&self, which: Which) -> bool {
        self.targets.is_empty() || self.targets.contains(&which)
    }
}

/// The octets of the volume, all of which are used.
pub(crate) const VOLUME: u64 = 512 << 20;

/// What is measured, with the ratio of target CPU against tgtd that has to be reached.
const ROWS: &[(Job, Option<f64>)] = &[
    (Job::new("512 B read, depth 32", 512, false, 32), Some(7.5)),
    (Job::new("512 B write, depth 32", 512, true, 32), None),
    (Job::new("512 B read, depth 128", 512, false, 128), None),
    (Job::new("512 B write, depth 128", 512, true, 128), None),
    (Job::new("4 KiB read, depth 32", 4096, false, 32), Some(6.2)),
    (Job::new("4 KiB write, depth 32", 4096, true, 32), Some(5.4)),
    (Job::new("4 KiB read, depth 128", 4096, false, 128), None),
    (Job::new("4 KiB write, depth 128", 4096, true, 128), None),
    (
        Job::new("64 KiB read, depth 32", 65_536, false, 32),
        Some(2.2),
    ),
    (
        Job::new("64 KiB write, depth 32", 65_536, true, 32),
        Some(2.4),
    ),
    (Job::new("256 KiB read, depth 32", 262_144, false, 32), None),
    (Job::new("256 KiB write, depth 32", 262_144, true, 32), None),
    (Job::new("4 KiB read, depth 1", 4096, false, 1), None),
    (
        Job::new("4 KiB read, 4 sessions", 4096, false, 32).sessions(4),
        None,
    ),
    (
        Job::new("4 KiB write, 4 sessions", 4096, true, 32).sessions(4),
        None,
    ),
    (
        Job::new("4 KiB read, client sleeps", 4096, false, 32).sleeping(),
        None,
    ),
    (
        Job::new("4 KiB write, client sleeps", 4096, true, 32).sleeping(),
        None,
    ),
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !namespace::entered() {
        return namespace::enter();
    }
    namespace::prepare()?;
    let mut report = Report::default();
    speed(arguments, &mut report)?;
    print!("{report}");
    if arguments.wants(Which::Lunar) && !arguments.speed_only {
        let footprint = footprint::measure()?;
        print!("\n{footprint}");
        report.footprint = Some(footprint);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if report.missed() {
        bail!("not everything that is required was reached");
    }
    Ok(())
}

fn speed(arguments: &Arguments, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs_f64(arguments.seconds);
    let lunar = arguments
        .wants(Which::Lunar)
        .then(Target::lunar)
        .transpose()?;
    let tgtd = arguments
        .wants(Which::Tgtd)
        .then(Target::tgtd)
        .transpose()?;
    for target in [&lunar, &tgtd].into_iter().flatten() {
        load::fill(target).with_context(|| format!("filling {}", target.name))?;
    }
    for (job, required) in ROWS
        .iter()
        .filter(|(job, _)| job.name.contains(&arguments.only))
    {
        eprintln!("{}", job.name);
        let mut row = Row::new(job, *required);
        for _ in 0..arguments.rounds {
            for (target, rounds) in [(&lunar, &mut row.lunar), (&tgtd, &mut row.tgtd)] {
                if let Some(target) = target {
                    rounds.push(load::measure(target, job, time)?);
                }
            }
            if arguments.wants(Which::Floor) && job.has_floor() {
                row.floor.push(best_floor(job, time)?);
            }
        }
        report.rows.push(row.finished());
    }
    Ok(())
}

/// A program that sleeps and one that spins are each better at some rows.
fn best_floor(job: &Job, time: Duration) -> Result<Measured> {
    let sleeping = floor::measure(job, time, false)?;
    let spinning = floor::measure(job, time, true)?;
    Ok(if sleeping.cpu_us() < spinning.cpu_us() {
        sleeping
    } else {
        spinning
    })
}
