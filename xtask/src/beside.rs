//! `cargo xtask beside`: `lunar serve` side by side with a target that spins, such as SPDK's.
//!
//! All targets are on CPU 1, and only the one whose turn it is runs: the others are stopped, since
//! one that spins would take half of the CPU from them. The client on CPU 0 is `lunar bench`, once
//! sleeping, as initiators of kernels do, and once spinning. This runs where the given target is
//! reached, so it gets no network namespace of its own.

mod judge;
mod other;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use address::{Address, UnitAddress};
use anyhow::{Context, Result, ensure};
use io::cpu;
use rustix::process::{Pid, Signal, kill_process};
use tests::tool;

use crate::bench::{
    Column, Contender, Extent, Figures, GENERATOR_CPU, Row, TARGET_CPU, Target, VOLUME, Verdict,
    generate_on, namespace, release_binary, rest, row, split,
};
use judge::judge;
use other::OtherTarget;

/// Measure lunar side by side with a target that spins
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// iscsi://HOST[:PORT]/IQN/LUN of the target, of which 512 MiB are overwritten
    #[arg(value_name = "ADDR", value_parser = other::iscsi)]
    address: UnitAddress,

    /// Its process, which is on CPU 1, and is stopped while others have their turn
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
    pid: u32,

    #[command(flatten)]
    extent: Extent,
}

/// The load generator: whether it sleeps or spins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LoadClient {
    Sleeping,
    Spinning,
}

impl LoadClient {
    const ALL: [Self; 2] = [Self::Sleeping, Self::Spinning];

    fn name(self) -> &'static str {
        match self {
            Self::Sleeping => "a client that sleeps",
            Self::Spinning => "a client that spins",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Self::Sleeping => "--poll never --ring epoll",
            Self::Spinning => "--poll always",
        }
    }
}

/// The given target, by which the others are judged.
const OTHER: Contender = Contender::Beside(1);
const SIZES: [u32; 4] = [512, 4096, 65_536, 262_144];
const DEPTHS: [u32; 3] = [1, 32, 128];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rows = arguments.extent.choose(rows())?;
    tool::present(&["kill", "setpriv", "sh", "taskset"])?;
    let allowed = cpu::allowed()?;
    ensure!(
        [0, 1].iter().all(|cpu| allowed.contains(cpu)),
        "targets need CPU {TARGET_CPU}, the client CPU {GENERATOR_CPU}: run it where both may be \
         used"
    );
    other::check(arguments.address.portal.port, arguments.pid)?;
    namespace::look()?;
    let mut lanes = Lanes::start(arguments)?;
    let mut missed = Vec::new();
    for row in &rows {
        for client in LoadClient::ALL {
            let columns = lanes.measure(row, client, arguments)?;
            let verdicts = judge(row.depth, client, &columns);
            let name = format!("{}, {}", row.name, client.name());
            print!("{}", told(&name, &columns, &verdicts));
            let failed = verdicts.iter().filter(|verdict| !verdict.good);
            missed.extend(failed.map(|verdict| format!("{name}: {verdict}")));
        }
    }
    ensure!(
        missed.is_empty(),
        "not all that is required was reached:\n{}",
        missed.join("\n")
    );
    Ok(())
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for depth in DEPTHS {
        for size in SIZES {
            rows.extend([false, true].map(|write| row(size, write, depth, "", &[], Vec::new())));
        }
    }
    rows
}

/// A row for each target, and what is required below.
fn told(name: &str, columns: &[Column], verdicts: &[Verdict]) -> String {
    let mut text = format!("{name}\n");
    let other = columns.iter().find(|column| column.contender == OTHER);
    for column in columns {
        let median =
            |figure: fn(&Figures) -> Option<f64>| column.median(figure).unwrap_or_default();
        let _ = write!(
            text,
            "  {:<12}{:>8.1}k IOPS{:>8.2} us CPU{:>8.1} us p50",
            column.contender,
            median(judge::iops) / 1e3,
            median(judge::cpu_us),
            median(judge::p50_us),
        );
        if let Some(other) = other.filter(|_| column.contender != OTHER) {
            let ratio = |figure: fn(&Figures) -> Option<f64>| {
                judge::ratio(column, other, figure).unwrap_or_default()
            };
            let (iops, cpu) = (ratio(judge::iops), ratio(judge::cpu_us));
            let p50 = ratio(judge::p50_us);
            let _ = write!(text, "   x {iops:.2} IOPS, {cpu:.2} CPU, {p50:.2} p50");
        }
        text.push('\n');
    }
    for verdict in verdicts {
        let _ = writeln!(text, "  {verdict}");
    }
    text
}

/// All targets, stopped unless it is their turn.
struct Lanes {
    binary: PathBuf,
    lanes: Vec<Lane>,
    /// Last, so that it is woken when the others have ended.
    _other: OtherTarget,
}

/// A target and its process.
struct Lane {
    contender: Contender,
    target: Target,
    pid: u32,
}

impl Lanes {
    fn start(arguments: &Arguments) -> Result<Self> {
        let binary = release_binary()?;
        let other = OtherTarget::guard(arguments.pid)?;
        let target = Target::new(Address::Iscsi(arguments.address.clone()).to_string(), ());
        let mut lanes = vec![Lane::new(&binary, OTHER, target, arguments.pid)?];
        for (contender, options) in [
            (Contender::Lunar, ""),
            (Contender::Spinning, "--poll always"),
        ] {
            let name = format!("beside {contender}");
            let target = Target::lunar(&binary, &name, None, options)?;
            let pid = target.pid.context("lunar serve has no process")?;
            lanes.push(Lane::new(&binary, contender, target, pid)?);
        }
        Ok(Self {
            binary,
            lanes,
            _other: other,
        })
    }

    /// All targets in each round: what the machine does beside it hits all of them.
    fn measure(
        &mut self,
        row: &Row,
        client: LoadClient,
        arguments: &Arguments,
    ) -> Result<Vec<Column>> {
        let column = |lane: &Lane| Column {
            contender: lane.contender,
            rounds: Vec::new(),
        };
        let mut columns: Vec<_> = self.lanes.iter().map(column).collect();
        for _ in 0..arguments.extent.rounds {
            for (lane, column) in self.lanes.iter().zip(&mut columns) {
                let words = [row.words(arguments.extent.seconds), split(client.options())].concat();
                let figures = lane.turn(&self.binary, &words).with_context(|| {
                    format!("{}, {}: {}", row.name, client.name(), lane.contender)
                })?;
                column.rounds.push(figures);
            }
        }
        Ok(columns)
    }
}

impl Lane {
    /// Fills its volume, waits until it has nothing more to do, and stops it.
    fn new(binary: &Path, contender: Contender, target: Target, pid: u32) -> Result<Self> {
        let lane = Self {
            contender,
            target,
            pid,
        };
        let fill = format!("--fill --runtime 10ms --ramp-time 0s --size {VOLUME}");
        lane.load(binary, &split(&fill)).context(contender)?;
        rest(pid)?;
        tool::freeze(pid)?;
        Ok(lane)
    }

    /// Runs it for one load.
    fn turn(&self, binary: &Path, words: &[String]) -> Result<Figures> {
        /// For what has piled up while it was stopped.
        const WAKING: Duration = Duration::from_millis(50);
        wake(self.pid)?;
        thread::sleep(WAKING);
        let figures = self.load(binary, words);
        tool::freeze(self.pid)?;
        figures
    }

    fn load(&self, binary: &Path, words: &[String]) -> Result<Figures> {
        let place = format!("{} --target-pid {}", self.target.address, self.pid);
        let words = [split(&place), words.to_vec()].concat();
        let rows = generate_on(GENERATOR_CPU, binary, "bench", &words)?;
        Ok(Figures::of(rows.first().context("no row")?))
    }
}

/// Lets a process go on that was stopped.
fn wake(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("no process has this number")?;
    kill_process(pid, Signal::CONT).context("cannot wake a target")
}
