//! `cargo xtask forwarding`: what a full frame costs `lunar switch` beside a bare relay.
//!
//! `lunar floor --relay` and the switch are in turns between the same two pairs of veth, in a
//! network namespace of their own. The relay carries the blast of `lunar floor`, the switch reads
//! of 256 KiB by a host that is logged in to it. What counts is the CPU time of the process, with
//! what the kernel does on its behalf, for each frame that came in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use io::cpu;
use tests::server::Server;
use tests::tool;

use crate::bench::{Verdict, namespace, release_binary, split};
use crate::fabric_rig::{BackgroundProcess, SwitchProcess, ip};

/// Measure what a full frame costs a switch beside a bare relay
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each has its turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "kill", "unshare"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    let scene = Scene::start()?;
    let mut costs = SWITCHES.map(|_| Vec::new());
    for _ in 0..arguments.rounds {
        let relay = scene.relay()?;
        println!("relay: {relay}");
        for ((what, options), costs) in SWITCHES.iter().zip(&mut costs) {
            let switch = scene.switch(options)?;
            println!("switch, {what}: {switch}");
            costs.push(switch.each() / relay.each());
        }
    }
    let verdicts = SWITCHES.iter().zip(&mut costs).map(|((what, _), costs)| {
        costs.sort_unstable_by(f64::total_cmp);
        let what = format!("times the CPU a frame of a bare relay, {what}, median");
        Verdict::at_most(costs[costs.len() / 2], what, LIMIT)
    });
    Verdict::tell_all(&verdicts.collect::<Vec<_>>())
}

/// Which switches are measured, and their options: the kernel forwards for none.
const SWITCHES: [(&str, &str); 2] = [
    ("a core for each port", "--fast-path off"),
    ("one core", "--fast-path off --threads 1"),
];

/// How much more than a relay a switch may take.
const LIMIT: f64 = 1.15;

/// What a turn took.
struct Cost {
    cpu: Duration,
    frames: u64,
}

impl Cost {
    /// Of each frame, in microseconds.
    fn each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.frames as f64
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.3} us for each of {} frames",
            self.each(),
            self.frames
        )
    }
}

/// Where the stations are; relay or switch are at the other ends.
const STATIONS: [&str; 2] = ["host", "target"];
const ENDS: [&str; 2] = ["to-host", "to-target"];

struct Scene {
    binary: PathBuf,
    dir: PathBuf,
}

impl Scene {
    fn start() -> Result<Self> {
        for (station, end) in STATIONS.iter().zip(ENDS) {
            ip(&format!(
                "link add {station} mtu 2500 up type veth peer name {end} mtu 2500"
            ))?;
            ip(&format!("link set {end} up"))?;
        }
        Ok(Self {
            binary: release_binary()?,
            dir: tests::scratch("forwarding")?,
        })
    }

    fn relay(&self) -> Result<Cost> {
        let [host, target] = STATIONS;
        let [to_host, to_target] = ENDS;
        let ends = format!("floor --relay fcoe://{to_host} fcoe://{to_target} --open");
        let start =
            |words: &str| BackgroundProcess::start(Command::new(&self.binary).args(split(words)));
        let relay = start(&ends)?;
        let listen = format!("floor --listen fcoe://{target} --open");
        let _listener = start(&listen)?;
        thread::sleep(OPENING);
        let blast = format!("floor fcoe://{host} --runtime {RUNTIME}");
        self.cost(relay.pid(), &blast)
    }

    fn switch(&self, options: &str) -> Result<Cost> {
        let [host, target] = STATIONS;
        let switch = SwitchProcess::start(&self.binary, &self.dir, &ENDS, options)?;
        let command = [self.binary.display().to_string()];
        let port = format!("{target},mode=fabric");
        let options = ["--fcoe", &port, "--open"];
        let server = Server::start_as(&command, &self.dir, &["ram:256M"], &options)?;
        let unit = &server.luns[0].target;
        thread::sleep(OPENING);
        let reads = "--rw read --bs 256k --iodepth 32 --ramp-time 0s";
        let address = format!("fcoe://{host}/{unit}/0?mode=fabric");
        self.cost(
            switch.pid(),
            &format!("bench {address} {reads} --runtime {RUNTIME}"),
        )
    }

    /// What a process takes while that runs.
    fn cost(&self, pid: u32, load: &str) -> Result<Cost> {
        let (cpu, frames) = (cpu::time_of(pid)?, received()?);
        tool::must(Command::new(&self.binary).args(split(load)))?;
        Ok(Cost {
            cpu: cpu::time_of(pid)? - cpu,
            frames: received()? - frames,
        })
    }
}

/// How long a load runs.
const RUNTIME: &str = "3s";

/// For both ends to be ready, and logged in.
const OPENING: Duration = Duration::from_secs(2);

/// Frames that have come in at both ends.
fn received() -> Result<u64> {
    let devices = fs::read_to_string("/proc/self/net/dev")?;
    let of = |end: &str| {
        let mut lines = devices.lines();
        let counts = lines.find_map(|line| line.trim_start().strip_prefix(end)?.strip_prefix(':'));
        let packets = counts.and_then(|counts| counts.split_whitespace().nth(1));
        packets.with_context(|| format!("no counts of {end}"))
    };
    ENDS.iter().map(|end| Ok(of(end)?.parse::<u64>()?)).sum()
}
