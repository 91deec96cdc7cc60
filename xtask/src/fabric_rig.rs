//! What chores about fabrics have in common: interfaces, and switches that end with the chore.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::tool;

use crate::bench::split;

/// Runs `ip`.
pub(crate) fn ip(words: &str) -> Result<()> {
    tool::must(Command::new("ip").args(split(words))).map(drop)
}

/// Joins these by one Ethernet.
pub(crate) fn bridge(places: &[&str]) -> Result<()> {
    ip("link add bridge mtu 2500 up type bridge")?;
    for place in places {
        ip(&format!(
            "link add {place} mtu 2500 up type veth peer name to-{place} mtu 2500"
        ))?;
        ip(&format!("link set to-{place} master bridge up"))?;
    }
    Ok(())
}

/// A process that is killed when this is dropped.
pub(crate) struct BackgroundProcess(Child);

impl BackgroundProcess {
    /// Starts it, without what it prints.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        started.map(Self).context("cannot start lunar")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A switch, which ends with the chore.
pub(crate) struct SwitchProcess {
    process: BackgroundProcess,
}

impl SwitchProcess {
    /// Starts it at these places, with a log in this folder behind that of others. It is ready
    /// then.
    pub(crate) fn start(binary: &Path, dir: &Path, places: &[&str], options: &str) -> Result<Self> {
        let mut log = File::options();
        log.create(true).append(true);
        let mut child = Command::new(binary)
            .args(["switch", "--open"])
            .args(places)
            .args(split(options))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.open(dir.join(SWITCH_LOG))?)
            .spawn()
            .context("cannot start lunar switch")?;
        let said = child.stdout.take().context("no pipe")?;
        let mut ready = String::new();
        BufReader::new(said).read_line(&mut ready)?;
        let process = BackgroundProcess(child);
        let switch = Self { process };
        ensure!(
            !ready.is_empty(),
            "the switch was not ready: see switch.log"
        );
        Ok(switch)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends it by this signal, and waits for that.
    pub(crate) fn end(&mut self, signal: &str) -> Result<()> {
        let pid = self.pid().to_string();
        tool::must(Command::new("kill").args([signal, &pid]))?;
        let status = self.process.0.wait()?;
        let is_good = signal == "-KILL" || status.success();
        ensure!(is_good, "lunar switch ended with {status}: see switch.log");
        Ok(())
    }
}

/// The log of all switches of a chore, in its folder.
pub(crate) const SWITCH_LOG: &str = "switch.log";

/// When a log says something for so many times, counted from its begin.
pub(crate) fn said(log: &Path, words: &str, times: usize) -> Result<Instant> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(log)?;
        if text.matches(words).count() >= times {
            return Ok(Instant::now());
        }
        ensure!(
            Instant::now() < until,
            "{words:?} is not {times} times in {}",
            log.display()
        );
        thread::sleep(LOOK);
    }
}

/// How long is waited for what takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(2);
