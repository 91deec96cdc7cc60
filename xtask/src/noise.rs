//! `cargo xtask noise`: what the control plane costs those who do I/O, and what a daemon does when
//! there is nothing to do.
//!
//! `lunar bench` reads from one LUN, by turns with and without noise beside it, and the medians of
//! all turns are compared. Noise is changes of other rows, readers of the API, and scrapes of all
//! LUNs. Each turn has one session from its begin to its end, and one more that does nothing stays
//! through all turns. Then that one is alone, and the wake-ups of the daemon are counted.
//!
//! All of it runs in a network namespace of its own, as `cargo xtask bench` does. The generator is
//! on CPU 0 and the one core that serves on CPU 1, or it would be the scheduler that is measured:
//! both are busy then, and what the control plane takes is missing. With `--spare` the generator
//! is on CPU 1, too, as if a processor were left to the control plane. The threads of that are
//! where the kernel puts them. Who changes, reads and scrapes
//! gives way to all of them: outside a measurement they are on other machines.

mod idle;
mod noise_threads;
mod session;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use ::tests::client::Client;
use ::tests::process::switches;
use ::tests::server::ReadyLun;
use ::tests::tool;
use anyhow::{Context, Result, bail, ensure};
use bench::outcome::ResultRow;

use crate::bench::{
    GENERATOR_CPU, TARGET_CPU, Verdict, generate, generate_on, namespace, release_binary, rest,
    seconds, split,
};
use crate::daemon::{LUNS, NOTHING, RunningDaemon, many_luns, name, target};
use noise_threads::{NoiseCounts, NoiseThreads};

/// Measure what the control plane costs I/O, and how often an idle daemon wakes up
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often there is a turn with and one without noise; without any only the idle daemon is
    /// measured
    #[arg(long, default_value_t = 10)]
    rounds: u32,

    /// Seconds that each turn is measured
    #[arg(long, default_value = "20", value_parser = seconds)]
    seconds: Duration,

    /// Changes that are made in each turn
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    applies: u32,

    /// Readers of the API
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=48))]
    readers: u32,

    /// Seconds that a reader waits after each answer
    #[arg(long, default_value = "0.25", value_parser = seconds)]
    pause: Duration,

    /// Targets that are not read from, each with 10 LUNs on null:
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    targets: u32,

    /// Leave a processor to the control plane: the generator shares that of the core
    #[arg(long)]
    spare: bool,

    /// Seconds for which the wake-ups of an idle daemon are counted
    #[arg(long, default_value = "60", value_parser = seconds)]
    idle: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "setpriv", "taskset", "unshare"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    namespace::prepare()?;
    let verdicts = Setup::start(arguments)?.with_idle_session(Setup::measure)?;
    Verdict::tell_all(&verdicts)
}

/// The target that is read from.
const LOAD: &str = "iqn.2026-11.org.example:load";

/// Bytes of its volume.
const VOLUME: u64 = 512 << 20;

/// A daemon that serves what is read from, and what is changed meanwhile.
struct Setup<'a> {
    arguments: &'a Arguments,
    binary: PathBuf,
    daemon: RunningDaemon,
    load: ReadyLun,
}

/// What a turn has yielded.
struct Turn {
    iops: f64,
    p999_us: f64,
    /// What went on beside it, if that was a noisy one.
    noise: Option<NoiseCounts>,
}

impl<'a> Setup<'a> {
    /// Starts it. Each LUN is read once, so that the metrics have all series of it, and the volume
    /// of the load is filled.
    fn start(arguments: &'a Arguments) -> Result<Self> {
        let binary = release_binary()?;
        let one_core = format!("{NOTHING}[daemon]\nthreads = 1\n");
        let daemon = RunningDaemon::start(&binary, "noise", &one_core)?;
        pin_core(daemon.pid())?;
        let portal = daemon.portal;
        let load = target(LOAD, portal, "0 = \"load\"");
        let load = format!("\n[volume.load]\naddress = \"ram:{VOLUME}\"\n{load}");
        let luns = many_luns(arguments.targets, portal);
        daemon.serve(luns.replacen(NOTHING, &one_core, 1) + &load)?;
        for number in 0..arguments.targets {
            for index in 0..LUNS {
                let lun = lun(portal, &name(number), index as u16);
                Client::log_in(&lun, number)?.read(0, 1)?;
            }
        }
        let load = lun(portal, LOAD, 0);
        let words = format!("{} --fill --runtime 10ms --ramp-time 0s", load.address);
        generate(&binary, "bench", &split(&words))?;
        rest(daemon.pid())?;
        Ok(Self {
            arguments,
            binary,
            daemon,
            load,
        })
    }

    /// Has a session all the while that does nothing.
    fn with_idle_session<T>(&self, measure: impl FnOnce(&Self, u16) -> Result<T>) -> Result<T> {
        let (over, (tell, told)) = (AtomicBool::new(false), channel());
        thread::scope(|scope| {
            let held = scope.spawn(|| hold(&self.load, tell, &over));
            let measured = told.recv().context("no session");
            let measured = measured.and_then(|id| measure(self, id));
            over.store(true, Relaxed);
            // If it has ended before, that is why nothing else went well.
            joined(held)?;
            measured
        })
    }

    fn measure(&self, idle_tsih: u16) -> Result<Vec<Verdict>> {
        let turns = self.turns(idle_tsih)?;
        let (time, applies) = (self.arguments.seconds, self.arguments.applies);
        let mut verdicts = judge(&turns, time, applies);
        let wakeups = idle::measure(self.daemon.pid(), self.arguments.idle)?;
        let what = "wake-ups a second of an idle daemon";
        verdicts.push(Verdict::at_most(wakeups, what, 2.0));
        session::is_there(&self.daemon, idle_tsih)?;
        Ok(verdicts)
    }

    fn turns(&self, idle_tsih: u16) -> Result<Vec<Turn>> {
        let noise = NoiseThreads::new(&self.daemon, self.arguments);
        let mut turns = Vec::new();
        for round in 0..self.arguments.rounds {
            // Each kind comes first as often as the other.
            let is_even = round.is_multiple_of(2);
            for noisy in [!is_even, is_even] {
                let turn = self.turn(noisy.then_some(&noise), idle_tsih)?;
                println!("{:>2}  {turn}", round + 1);
                turns.push(turn);
            }
        }
        Ok(turns)
    }

    fn turn(&self, noise: Option<&NoiseThreads<'_>>, idle_tsih: u16) -> Result<Turn> {
        let (over, (running, ended)) = (AtomicBool::new(false), channel());
        thread::scope(|scope| {
            let noise = noise.map(|noise| noise.start(scope, &over));
            let time = self.arguments.seconds;
            let looks = scope.spawn(move || session::stays(&self.daemon, idle_tsih, time, &ended));
            let row = self.read();
            over.store(true, Relaxed);
            drop(running);
            let noise: Option<Result<_>> =
                noise.map(|threads| threads.into_iter().map(joined).sum());
            let (row, looks) = (row?, joined(looks));
            looks.context("the session of the load")?;
            Ok(Turn {
                iops: row.iops(),
                p999_us: row.latency().percentile_ns(99.9) as f64 / 1e3,
                noise: noise.transpose().context("noise")?,
            })
        })
    }

    /// The load of a turn.
    fn read(&self) -> Result<ResultRow> {
        let (ms, address) = (self.arguments.seconds.as_millis(), &self.load.address);
        let words = format!(
            "{address} --rw randread --bs 4k --iodepth 32 --runtime {ms}ms --ramp-time {}ms",
            (ms / 10).max(1000)
        );
        let cpu = if self.arguments.spare {
            TARGET_CPU
        } else {
            GENERATOR_CPU
        };
        let rows = generate_on(cpu, &self.binary, "bench", &split(&words))?;
        rows.into_iter().next().context("no row")
    }
}

/// Puts the thread that serves on the CPU of targets.
fn pin_core(pid: u32) -> Result<()> {
    let threads = switches(pid)?;
    let mut cores = threads
        .iter()
        .filter(|(_, thread)| thread.name == "lunar-0");
    let (id, _) = cores.next().context("no thread serves")?;
    let mut taskset = Command::new("taskset");
    let pinned = taskset
        .args(["-cp", TARGET_CPU, &id.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&pinned.stderr);
    ensure!(pinned.status.success(), "taskset: {}", said.trim());
    Ok(())
}

/// Holds a session until it is told to stop; tells its TSIH.
fn hold(lun: &ReadyLun, tell: Sender<u16>, over: &AtomicBool) -> Result<()> {
    let mut client = Client::log_in(lun, u32::MAX)?;
    tell.send(client.initiator.tsih)?;
    drop(tell);
    while !over.load(Relaxed) {
        client.exchange(Duration::from_millis(100))?;
    }
    Ok(())
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    let ended = thread.join();
    ended.unwrap_or_else(|_| bail!("a thread panicked"))
}

fn lun(portal: u16, target: &str, lun: u16) -> ReadyLun {
    ReadyLun {
        address: format!("iscsi://127.0.0.1:{portal}/{target}/{lun}"),
        portals: vec![format!("127.0.0.1:{portal}")],
        target: target.to_owned(),
        lun,
        size_bytes: 0,
        block_size: 512,
        volume: String::new(),
    }
}

/// Prints the medians, and says whether they are as they should be.
fn judge(turns: &[Turn], time: Duration, applies: u32) -> Vec<Verdict> {
    let of = |noisy: bool, figure: &dyn Fn(&Turn) -> f64| {
        let turns = turns.iter().filter(|turn| turn.noise.is_some() == noisy);
        median(turns.map(figure).collect())
    };
    let both = |figure: &dyn Fn(&Turn) -> f64| Some((of(false, figure)?, of(true, figure)?));
    let made = |turn: &Turn| {
        let noise = turn.noise.as_ref();
        noise.map_or(0.0, |noise| noise.applies_in(time))
    };
    let (Some(iops), Some(p999), Some(made)) = (
        both(&|turn| turn.iops),
        both(&|turn| turn.p999_us),
        of(true, &made),
    ) else {
        return Vec::new();
    };
    println!(
        "medians without noise: {:.0} IOPS, {:.0} us p99.9",
        iops.0, p999.0
    );
    println!(
        "medians with noise: {:.0} IOPS, {:.0} us p99.9",
        iops.1, p999.1
    );
    vec![
        Verdict::at_least(iops.1 / iops.0, "times the IOPS", 0.95),
        Verdict::at_most(p999.1 / p999.0, "times the p99.9", 1.5),
        Verdict::at_least(made, "applies in the time of a turn", f64::from(applies)),
    ]
}

/// `None` where there is nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.0} IOPS {:>7.0} us p99.9", self.iops, self.p999_us)?;
        match &self.noise {
            Some(noise) => write!(f, "  beside {noise}"),
            None => Ok(()),
        }
    }
}
