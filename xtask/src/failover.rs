//! `cargo xtask failover`: how long I/O of ours stands still when the active one of two switches
//! ends, or the only one begins anew.
//!
//! Two `lunar switch --standby`, a server and `lunar bench --verify` are at one bridge, in a
//! network namespace of their own. In each turn the active switch is ended while the load runs, and
//! started again as the standby of the other. What counts is the longest I/O of the turn: 200 are
//! begun in a second, so it was begun within 5 ms of the end.
//!
//! Then there is one switch, which is killed and started again at once. It tells each port that it
//! does not know it (Clear Virtual Links) when that port says something, as each does once a
//! period of keep alives, and no more often than once a second. So within one round of that the
//! ports have logged in, each once.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bench::outcome::RunResult;
use tests::server::Server;
use tests::{logins, tool};

use crate::bench::{Verdict, namespace, release_binary, split};
use crate::fabric_rig::{SWITCH_LOG, SwitchProcess, bridge};

/// Measure how long I/O stands still when a switch ends or begins anew
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often the active switch is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,

    /// How often it is told to end, by SIGTERM
    #[arg(long, default_value_t = 20)]
    terms: u32,

    /// How often the only switch is killed and started again
    #[arg(long, default_value_t = 20)]
    restarts: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "kill", "unshare"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    let mut scene = Scene::start()?;
    let after_kill = scene.turns("-KILL", arguments.kills)?;
    let after_term = scene.turns("-TERM", arguments.terms)?;
    scene.is_alone()?;
    let after_restart = scene.restarts(arguments.restarts)?;
    // Each has had one N_Port_ID, whichever switch gave it.
    logins::same_ids(&scene.log()?, 2)?;
    let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let silence = 2.5 * FKA.as_secs_f64();
    let verdicts = [
        Verdict::at_most(longest(&after_kill), "s after kill -9", silence + 1.0),
        Verdict::at_most(longest(&after_term), "s after SIGTERM", 2.0),
        Verdict::at_most(longest(&after_restart), "s after a restart", ROUND),
    ];
    Verdict::tell_all(&verdicts)
}

/// FKA_ADV_PERIOD of the switches.
const FKA: Duration = Duration::from_secs(1);

/// Seconds until each port has said something, and was told by Clear Virtual Links.
const ROUND: f64 = FKA.as_secs() as f64 + 1.0;

/// Where the two switches, the server and the load are.
const PLACES: [&str; 4] = ["switch-0", "switch-1", "server", "host"];

struct Scene {
    binary: PathBuf,
    dir: PathBuf,
    active: SwitchProcess,
    standby: SwitchProcess,
    /// Where these two are.
    places: [&'static str; 2],
    server: Server,
}

impl Scene {
    fn start() -> Result<Self> {
        let (binary, dir) = (release_binary()?, tests::scratch("failover")?);
        bridge(&PLACES)?;
        let active = start(&binary, &dir, PLACES[0], "--standby")?;
        // It listens for 2.5 periods before it is the active one.
        thread::sleep(3 * FKA);
        let standby = start(&binary, &dir, PLACES[1], "--standby")?;
        let command = [binary.display().to_string()];
        let port = format!("{},mode=fabric", PLACES[2]);
        let options = ["--fcoe", &port, "--open"];
        let server = Server::start_as(&command, &dir, &["ram:64M"], &options)?;
        Ok(Self {
            binary,
            dir,
            active,
            standby,
            places: [PLACES[0], PLACES[1]],
            server,
        })
    }

    /// The longest I/O of each turn, in seconds.
    fn turns(&mut self, signal: &str, count: u32) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for turn in 1..=count {
            let time = self.turn(signal, turn)?;
            println!("{} {turn}: {time:.3} s", signal.trim_start_matches('-'));
            times.push(time);
        }
        Ok(times)
    }

    fn turn(&mut self, signal: &str, turn: u32) -> Result<f64> {
        let load = self.load()?;
        // At another place between two Advertisements each time.
        thread::sleep(4 * FKA + FKA * (turn * 3 % 10) / 10);
        self.active.end(signal)?;
        mem::swap(&mut self.active, &mut self.standby);
        self.places.reverse();
        let output = load.wait_with_output()?;
        let time = longest(&output)?;
        self.standby = start(&self.binary, &self.dir, self.places[1], "--standby")?;
        Ok(time)
    }

    /// Leaves one switch in place of the pair. The server logs in to it.
    fn is_alone(&mut self) -> Result<()> {
        self.standby.end("-TERM")?;
        self.active.end("-TERM")?;
        self.active = start(&self.binary, &self.dir, self.places[0], "")?;
        Ok(())
    }

    /// The longest I/O of each turn, without the time that there was no switch, in seconds.
    fn restarts(&mut self, count: u32) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for turn in 1..=count {
            let time = self.restart(turn)?;
            println!("restart {turn}: {time:.3} s");
            times.push(time);
        }
        Ok(times)
    }

    fn restart(&mut self, turn: u32) -> Result<f64> {
        let load = self.load()?;
        thread::sleep(4 * FKA + FKA * (turn * 3 % 10) / 10);
        let begun = Instant::now();
        self.active.end("-KILL")?;
        let told = self.log()?.len();
        self.active = start(&self.binary, &self.dir, self.places[0], "")?;
        let away = begun.elapsed().as_secs_f64();
        let output = load.wait_with_output()?;
        let time = (longest(&output)? - away).max(0.0);
        let log = self.log()?;
        let again = logins::logins(&log[told..]).count();
        ensure!(
            again == 2,
            "two ports have logged in {again} times after turn {turn}"
        );
        Ok(time)
    }

    fn load(&self) -> Result<Child> {
        let unit = &self.server.luns[0].target;
        let options = "--rw randrw --bs 4k --iodepth 4 --rate-iops 200 --verify --size 16M \
                       --ramp-time 0s --runtime 11s";
        Command::new(&self.binary)
            .args(["bench", "--json"])
            .arg(format!("fcoe://{}/{unit}/0?mode=fabric", PLACES[3]))
            .args(split(options))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start lunar bench")
    }

    fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.dir.join(SWITCH_LOG))?)
    }
}

/// The longest I/O of a load that went well, in seconds.
fn longest(output: &Output) -> Result<f64> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "lunar bench: {}", said.trim());
    let printed: RunResult = serde_json::from_slice(&output.stdout)?;
    let longest = printed.rows.iter().map(|row| row.latency().max_ns()).max();
    Ok(longest.context("no rows")? as f64 / 1e9)
}

/// Starts a switch, with the names and N_Port_IDs of the one before it and of its partner.
fn start(binary: &Path, dir: &Path, place: &'static str, options: &str) -> Result<SwitchProcess> {
    let names = "--switch-name 10:00:02:00:00:00:00:01 --fabric-name 20:00:02:00:00:00:00:01";
    let state = dir.join("n-port-ids").display().to_string();
    let options = format!(
        "{names} --fka {}ms --state {state} {options}",
        FKA.as_millis()
    );
    SwitchProcess::start(binary, dir, &[place], &options)
}
