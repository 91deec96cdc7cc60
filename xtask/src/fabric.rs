//! `cargo xtask fabric`: how soon ports of ours are where they belong in a fabric.
//!
//! A server, `lunar bench` and `lunar ls` are at a port of `lunar switch` each, by pairs of veth in
//! a network namespace of their own. In each round the link of the server goes down and up, and
//! then `ls` looks:
//!
//! | figure | from | to |
//! |---|---|---|
//! | departure | the link of the target is down | the initiator has lost it, by RSCN |
//! | online | the link is up | the target has logged in to the fabric |
//! | arrival | that login | the initiator has its nexus again, by RSCN |
//! | ls | `lunar ls` starts | it has shown all ports and units, and has logged out |

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::server::Server;
use tests::tool;

use crate::bench::{Verdict, namespace, release_binary, split};
use crate::fabric_rig::{BackgroundProcess, SWITCH_LOG, SwitchProcess, ip, said};

/// Measure how soon ports of ours are online, seen and missed in a fabric
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often the target leaves and comes back
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "kill", "unshare"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    let scene = Scene::start()?;
    let mut rounds = Vec::new();
    for number in 1..=arguments.rounds as usize {
        let round = scene.round(number)?;
        let told = round.iter().zip(&FIGURES);
        let told: Vec<_> = told
            .map(|(time, (what, _))| format!("{what} {:.3} s", time.as_secs_f64()))
            .collect();
        println!("{number}: {}", told.join(", "));
        rounds.push(round);
    }
    let verdicts: Vec<_> = (FIGURES.iter().enumerate())
        .map(|(at, (what, limit))| {
            let mut times: Vec<_> = rounds.iter().map(|round| round[at]).collect();
            times.sort_unstable();
            let median = times[times.len() / 2].as_secs_f64();
            Verdict::at_most(median, format!("s {what}, median"), *limit)
        })
        .collect();
    Verdict::tell_all(&verdicts)
}

/// What a round measures, and how many seconds each may take.
const FIGURES: [(&str, f64); 4] = [
    ("departure", 2.0),
    ("online", 1.5),
    ("arrival", 2.0),
    ("ls", 3.0),
];

type Round = [Duration; FIGURES.len()];

/// The places of the stations; the switch is at the other ends.
const PLACES: [&str; 3] = ["target", "host", "third"];

struct Scene {
    binary: PathBuf,
    dir: PathBuf,
    server: Server,
    /// What keeps the initiator at work.
    _load: BackgroundProcess,
    _switch: SwitchProcess,
}

impl Scene {
    fn start() -> Result<Self> {
        let (binary, dir) = (release_binary()?, tests::scratch("fabric")?);
        for place in PLACES {
            ip(&format!(
                "link add {place} mtu 2500 up type veth peer name to-{place} mtu 2500"
            ))?;
            ip(&format!("link set to-{place} up"))?;
        }
        let ends = PLACES.map(|place| format!("to-{place}"));
        let switch = SwitchProcess::start(&binary, &dir, &ends.each_ref().map(|end| &**end), "")?;
        let command = [binary.display().to_string()];
        let port = format!("{},mode=fabric", PLACES[0]);
        let server = Server::start_as(&command, &dir, &["ram:64M"], &["--fcoe", &port, "--open"])?;
        let unit = &server.luns[0].target;
        let load = load(
            &binary,
            &dir,
            &format!("fcoe://{}/{unit}/0?mode=fabric", PLACES[1]),
        )?;
        said(&dir.join(SWITCH_LOG), "has logged in as", 2)?;
        // From there on it opens the unit, which has to be there for that.
        thread::sleep(OPENING);
        Ok(Self {
            binary,
            dir,
            server,
            _load: load,
            _switch: switch,
        })
    }

    /// The round of this number, from 1 on.
    fn round(&self, number: usize) -> Result<Round> {
        let load = self.dir.join(LOAD_LOG);
        let begun = Instant::now();
        ip(&format!("link set {} down", PLACES[0]))?;
        let departure = said(&load, "connecting again", number)? - begun;
        let begun = Instant::now();
        ip(&format!("link set {} up", PLACES[0]))?;
        // It has logged in once at its start.
        let online = said(self.server.log_path(), "logged in to fabric", number + 1)?;
        let arrival = said(&load, "connected again", number)?.saturating_duration_since(online);
        Ok([departure, online - begun, arrival, self.ls()?])
    }

    /// How long `lunar ls` takes to show the ports of all three.
    fn ls(&self) -> Result<Duration> {
        let begun = Instant::now();
        let place = format!("fcoe://{}?mode=fabric", PLACES[2]);
        let told = tool::must(Command::new(&self.binary).args(["ls", &place]))?;
        let took = begun.elapsed();
        let ports = told.matches("  FCP ").count();
        ensure!(
            ports == PLACES.len() && told.contains("LUNAR VOLUME"),
            "ls does not show all: {told}"
        );
        Ok(took)
    }
}

const LOAD_LOG: &str = "bench.log";

/// For the load to be at work after its port has logged in.
const OPENING: Duration = Duration::from_secs(3);

/// `lunar bench`, which always has something to do.
fn load(binary: &Path, dir: &Path, unit: &str) -> Result<BackgroundProcess> {
    let options = "--rw randread --bs 4k --iodepth 1 --rate-iops 200 --runtime 10000s";
    let mut bench = Command::new(binary);
    bench.args(["bench", unit]).args(split(options));
    bench.env("LUNAR_LOG", "info");
    bench.stderr(File::create(dir.join(LOAD_LOG))?);
    BackgroundProcess::start(&mut bench)
}
