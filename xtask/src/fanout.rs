//! `cargo xtask fanout`: how evenly, and at which cost, two cores serve one FCoE port.
//!
//! A server whose port is on two cores by PACKET_FANOUT, and four initiators at a bridge, all by
//! veth in a network namespace of their own. The server has one CPU and the initiators the other:
//! one that shares a CPU with the core that serves it waits for the scheduler.
//!
//! Shares are those of the I/Os that each initiator gets. Instructions are those of the server
//! under callgrind, from its start to its end, on the epoll ring, as valgrind knows no io_uring.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tests::server::Server;
use tests::tool;

use crate::bench::{
    GENERATOR_CPU, TARGET_CPU, Verdict, generate_on, namespace, release_binary, split,
};
use crate::fabric_rig::bridge;

/// Measure how evenly, and at which cost, two cores serve one FCoE port
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often the shares are measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seconds that instructions are counted for, on one core and then on two
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "kill", "taskset", "unshare", "valgrind"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    let scene = Scene::start()?;
    let mut uneven = (0..arguments.rounds)
        .map(|_| scene.unevenness())
        .collect::<Result<Vec<_>>>()?;
    uneven.sort_unstable_by(f64::total_cmp);
    let one = scene.instructions("1", arguments.seconds)?;
    let two = scene.instructions(CORES, arguments.seconds)?;
    Verdict::tell_all(&[
        Verdict::at_most(
            uneven[uneven.len() / 2],
            "% that a share is from the mean at the most, median",
            10.0,
        ),
        Verdict::at_most(two / one, "times the instructions an I/O of one core", 1.05),
    ])
}

/// The interface of the server, and those of the initiators.
const TARGET: &str = "target";
const HOSTS: [&str; 4] = ["host1", "host2", "host3", "host4"];

/// Cores that serve the port, as `--threads` takes them.
const CORES: &str = "2";

/// What the server is told besides.
const OPTIONS: [&str; 3] = ["--fcoe", TARGET, "--open"];

struct Scene {
    binary: PathBuf,
    dir: PathBuf,
}

impl Scene {
    fn start() -> Result<Self> {
        bridge(&[&[TARGET], &HOSTS[..]].concat())?;
        Ok(Self {
            binary: release_binary()?,
            dir: tests::scratch("fanout")?,
        })
    }

    /// How far the share of an initiator is from the mean at the most, in percent of that.
    fn unevenness(&self) -> Result<f64> {
        let server = self.server(&[], &["--threads", CORES])?;
        let ios = self.load(&server, SHARES_SECONDS)?;
        let mean = ios.iter().sum::<u64>() as f64 / ios.len() as f64;
        let shares = ios.map(|ios| ios as f64 / mean);
        let told = shares.map(|share| format!("{:.1} %", share * 100.0 / HOSTS.len() as f64));
        println!("shares: {}", told.join(", "));
        let far = shares.map(|share| (share - 1.0).abs() * 100.0);
        Ok(far.into_iter().fold(0.0, f64::max))
    }

    /// What an I/O takes of the server.
    fn instructions(&self, threads: &str, seconds: u32) -> Result<f64> {
        let counts = self.dir.join(format!("callgrind.{threads}"));
        let out = format!("--callgrind-out-file={}", counts.display());
        let under = ["valgrind", "--tool=callgrind", "--fair-sched=yes", &out];
        let server = self.server(&under, &["--threads", threads, "--ring", "epoll"])?;
        let ios = self.load(&server, seconds)?.iter().sum::<u64>();
        server.stop_well()?;
        let text = fs::read_to_string(&counts)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        let total: u64 = total.context("callgrind says no total")?.trim().parse()?;
        let each = total as f64 / ios as f64;
        println!("instructions with --threads {threads}: {each:.0} for each of {ios} I/Os");
        Ok(each)
    }

    /// A server, started by this command if any.
    fn server(&self, under: &[&str], options: &[&str]) -> Result<Server> {
        let own = self.binary.display().to_string();
        let pinned = ["taskset", "-c", TARGET_CPU];
        let command = pinned.iter().chain(under).map(|word| (*word).to_owned());
        let command: Vec<_> = command.chain([own]).collect();
        let options = [&OPTIONS[..], options].concat();
        let server = Server::start_as(&command, &self.dir, &["ram:64M"], &options)?;
        thread::sleep(OPENING);
        Ok(server)
    }

    /// The I/Os that each initiator gets.
    fn load(&self, server: &Server, seconds: u32) -> Result<[u64; HOSTS.len()]> {
        let unit = &server.luns[0].target;
        let host = |host: &str| -> Result<u64> {
            let loads = "--rw randrw --bs 4k --iodepth 8 --ramp-time 1s";
            let words = format!("fcoe://{host}/{unit}/0 {loads} --runtime {seconds}s");
            let rows = generate_on(GENERATOR_CPU, &self.binary, "bench", &split(&words))?;
            Ok(rows.first().context("no rows")?.ios())
        };
        let mut ios = [0; HOSTS.len()];
        thread::scope(|scope| {
            let host = &host;
            let loads = HOSTS.map(|name| scope.spawn(move || host(name)));
            for (ios, load) in ios.iter_mut().zip(loads) {
                *ios = load.join().expect("a thread that does not panic")?;
            }
            Ok(ios)
        })
    }
}

/// How long shares are measured.
const SHARES_SECONDS: u32 = 4;

/// For the port to have claimed its N_Port_ID, under valgrind too.
const OPENING: Duration = Duration::from_secs(4);
