//! The floor under all targets: bare TCP without iSCSI, as [`bench::floor`] has it.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use bench::RunObserver;
use bench::floor::{self, CONNECTIONS_MAX, FloorPeer, FloorServer, LocalFloor, ServerLifetime};
use bench::outcome::ResultRow;
use bench::plan::FioOptions;
use io::cpu;

use super::VOLUME;
use super::load::Job;
use super::meter::Measured;
use super::process::GENERATOR_CPU;
use super::target;

/// How the ends wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Both sleep.
    Asleep,
    /// The other end spins.
    Spinning,
    /// The one that asks spins, with one thread for all connections as the other end has.
    Shared,
    /// Both spin so.
    SharedSpinning,
}

/// Connections may be there still whose other end has gone: memory for several.
const MEMORY: u64 = floor::room(4 * VOLUME, CONNECTIONS_MAX);

/// The other end: answers until its standard input ends.
pub(crate) fn serve() -> Result<()> {
    let listener = FloorServer::new(&[([127, 0, 0, 1], 0).into()], MEMORY)?;
    println!("{}", listener.address()?);
    Ok(listener.run(ServerLifetime::WithInput)?)
}

/// The other end as a process, pinned as targets are.
pub(crate) struct Floor(LocalFloor);

impl Floor {
    pub(crate) fn start() -> Result<Self> {
        let [program, pinned @ ..] = &target::pinned()[..] else {
            bail!("no taskset")
        };
        let mut command = Command::new(program);
        command
            .args(pinned)
            .arg(std::env::current_exe()?)
            .arg("floor");
        Ok(Self(LocalFloor::start(&mut command, false)?))
    }

    /// A program that sleeps and one that spins are each better at some rows.
    pub(crate) fn best(&self, job: &Job, time: Duration) -> Result<Measured> {
        self.better(job, time, [Manner::Asleep, Manner::Spinning])
    }

    /// The same with one thread for all connections.
    pub(crate) fn best_shared(&self, job: &Job, time: Duration) -> Result<Measured> {
        self.better(job, time, [Manner::Shared, Manner::SharedSpinning])
    }

    fn better(&self, job: &Job, time: Duration, manners: [Manner; 2]) -> Result<Measured> {
        let [sleeping, spinning] = manners.map(|manner| self.measure(job, time, manner));
        let (sleeping, spinning) = (sleeping?, spinning?);
        Ok(if sleeping.cpu_us() < spinning.cpu_us() {
            sleeping
        } else {
            spinning
        })
    }

    /// Runs a load for a while, after a short warm-up.
    pub(crate) fn measure(&self, job: &Job, time: Duration, manner: Manner) -> Result<Measured> {
        cpu::pin(GENERATOR_CPU).context("cannot pin to a CPU")?;
        let place = FloorPeer {
            spin: matches!(manner, Manner::Spinning | Manner::SharedSpinning),
            together: matches!(manner, Manner::Shared | Manner::SharedSpinning),
            ..self.0.place()
        };
        let words = FioOptions {
            depth: job.depth as u32,
            jobs: job.sessions,
            ramp: time / 10,
            runtime: time,
            ..FioOptions::preset(None, false)?
        };
        let rw = if job.write { "randwrite" } else { "randread" };
        let load = words.load(rw.parse().map_err(Error::msg)?, job.size);
        let (stop, live) = (AtomicBool::new(false), &mut |_| {});
        let watch = &mut RunObserver { stop: &stop, live };
        let measured = floor::measure(place, &words, load, VOLUME, watch)?;
        if let Some(failure) = measured.failure {
            bail!(failure);
        }
        measured
            .rows
            .first()
            .map(told)
            .context("nothing was measured")
    }
}

fn told(row: &ResultRow) -> Measured {
    let share = |cpu_us: u64| cpu_us as f64 / row.runtime_us as f64;
    let measured = Measured {
        iops: row.iops(),
        target_load: row.target_cpu_us.map(share),
        generator_load: row.cpu_us.map_or(0.0, share),
        ..Measured::default()
    };
    measured.with(row.latency())
}
