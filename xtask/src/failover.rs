//! `cargo xtask failover`: how long I/O of ours stands still when the active one of two switches
//! ends.
//!
//! Two `lunar switch --standby`, a server and `lunar bench --verify` are at one bridge, in a
//! network namespace of their own. In each turn the active switch is ended while the load runs, and
//! started again as the standby of the other. What counts is the longest I/O of the turn: 200 are
//! begun in a second, so it was begun within 5 ms of the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench::outcome::RunResult;
use tests::server::Server;
use tests::tool;

use crate::bench::{Verdict, namespace, release_binary, split};

/// Measure how long I/O stands still when the active one of two switches ends
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often the active switch is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,

    /// How often it is told to end, by SIGTERM
    #[arg(long, default_value_t = 10)]
    terms: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["ip", "kill", "unshare"])?;
    if !namespace::entered() {
        return namespace::enter();
    }
    let mut scene = Scene::start()?;
    let after_kill = scene.turns("-KILL", arguments.kills)?;
    let after_term = scene.turns("-TERM", arguments.terms)?;
    scene.check_ids()?;
    let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    let silence = 2.5 * FKA.as_secs_f64();
    let verdicts = [
        Verdict::at_most(longest(&after_kill), "s after kill -9", silence + 1.0),
        Verdict::at_most(longest(&after_term), "s after SIGTERM", 2.0),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    let all_good = verdicts.iter().all(|verdict| verdict.good);
    ensure!(all_good, "not all that is required was reached");
    Ok(())
}

/// FKA_ADV_PERIOD of the switches.
const FKA: Duration = Duration::from_secs(1);

/// Where the two switches, the server and the load are.
const PLACES: [&str; 4] = ["switch-0", "switch-1", "server", "host"];

struct Scene {
    binary: PathBuf,
    dir: PathBuf,
    active: SwitchProcess,
    standby: SwitchProcess,
    server: Server,
}

impl Scene {
    fn start() -> Result<Self> {
        let (binary, dir) = (release_binary()?, tests::scratch("failover")?);
        make_bridge()?;
        let active = SwitchProcess::start(&binary, &dir, PLACES[0])?;
        // It listens for 2.5 periods before it is the active one.
        thread::sleep(3 * FKA);
        let standby = SwitchProcess::start(&binary, &dir, PLACES[1])?;
        let command = [binary.display().to_string()];
        let port = format!("{},mode=fabric", PLACES[2]);
        let options = ["--fcoe", &port, "--open"];
        let server = Server::start_as(&command, &dir, &["ram:64M"], &options)?;
        Ok(Self {
            binary,
            dir,
            active,
            standby,
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
        let output = load.wait_with_output()?;
        let time = longest(&output)?;
        self.standby = SwitchProcess::start(&self.binary, &self.dir, self.standby.place)?;
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

    /// Each port has had one N_Port_ID, whichever switch gave it.
    fn check_ids(&self) -> Result<()> {
        let log = fs::read_to_string(self.dir.join("switch.log"))?;
        let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for line in log.lines() {
            let Some((before, id)) = line.split_once(" has logged in as ") else {
                continue;
            };
            let wwpn = before.split_whitespace().rev().nth(1).unwrap_or_default();
            ids.entry(wwpn).or_default().insert(id);
        }
        let all_same = ids.values().all(|ids| ids.len() == 1);
        ensure!(
            all_same && ids.len() == 2,
            "N_Port_IDs have changed: {ids:?}"
        );
        Ok(())
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

/// Joins the places by one Ethernet.
fn make_bridge() -> Result<()> {
    ip("link add bridge mtu 2500 up type bridge")?;
    for place in PLACES {
        let bridged = format!("to-{place}");
        ip(&format!(
            "link add {place} mtu 2500 up type veth peer name {bridged} mtu 2500"
        ))?;
        ip(&format!("link set {bridged} master bridge up"))?;
    }
    Ok(())
}

fn ip(words: &str) -> Result<()> {
    tool::must(Command::new("ip").args(split(words))).map(drop)
}

/// One of the pair, which ends with the chore.
struct SwitchProcess {
    child: Child,
    place: &'static str,
}

impl SwitchProcess {
    /// Starts it; it is ready then, and listens.
    fn start(binary: &Path, dir: &Path, place: &'static str) -> Result<Self> {
        let mut log = File::options();
        log.create(true).append(true);
        let names = "--switch-name 10:00:02:00:00:00:00:01 --fabric-name 20:00:02:00:00:00:00:01";
        let mut child = Command::new(binary)
            .args(["switch", place, "--open", "--standby"])
            .args(split(names))
            .args(["--fka", &format!("{}ms", FKA.as_millis()), "--state"])
            .arg(dir.join("n-port-ids"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.open(dir.join("switch.log"))?)
            .spawn()
            .context("cannot start lunar switch")?;
        let said = child.stdout.take().context("no pipe")?;
        let mut ready = String::new();
        BufReader::new(said).read_line(&mut ready)?;
        let switch = Self { child, place };
        ensure!(
            !ready.is_empty(),
            "the switch was not ready: see switch.log"
        );
        Ok(switch)
    }

    fn end(&mut self, signal: &str) -> Result<()> {
        let pid = self.child.id().to_string();
        tool::must(Command::new("kill").args([signal, &pid]))?;
        let status = self.child.wait()?;
        let is_good = signal == "-KILL" || status.success();
        ensure!(is_good, "lunar switch ended with {status}: see switch.log");
        Ok(())
    }
}

impl Drop for SwitchProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
