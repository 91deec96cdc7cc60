//! A `lunar serve` of our own, on a free port of the loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

/// How long it may take to be ready: debug builds under a sanitizer are slow.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// A ready line, as `--json` prints it.
#[derive(Clone, Debug, Deserialize)]
pub struct ReadyLun {
    /// The connect address.
    pub address: String,
    /// Every portal.
    pub portals: Vec<String>,
    /// The target's name.
    pub target: String,
    /// Its number.
    pub lun: u16,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// The volume's address.
    pub volume: String,
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// What it said to be ready, in the order of its volumes.
    pub luns: Vec<ReadyLun>,
    log: PathBuf,
}

/// The server under test: `$LUNAR`, else what `cargo build` makes of the tree.
///
/// # Errors
/// When it cannot be built.
pub fn binary() -> Result<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = std::env::var_os("LUNAR") {
        return Ok(path.into());
    }
    if let Some(path) = BUILT.get() {
        return Ok(path.clone());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // As the tests of the whole workspace are built, beside which it is, and not all of it anew.
    let build = Command::new(cargo)
        .args(["test", "-q", "--workspace", "--test", "program", "--no-run"])
        .current_dir(crate::top())
        .status();
    if !build.context("cannot start cargo")?.success() {
        bail!("lunar does not build");
    }
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).context("not in a target folder")?;
    Ok(BUILT.get_or_init(|| folder.join("lunar")).clone())
}

impl Server {
    /// Starts one that serves `volumes` with more `options`, on the ring of `$LUNAR_RING`. `name`
    /// is that of its folder, for state and log.
    ///
    /// # Errors
    /// When it does not become ready, with its log.
    pub fn start(name: &str, volumes: &[&str], options: &[&str]) -> Result<Self> {
        let dir = crate::scratch(name)?;
        Self::start_in(&dir, volumes, options)
    }

    /// The same with a folder that is there already, such as that of a server before it.
    ///
    /// # Errors
    /// When it does not become ready, with its log.
    pub fn start_in(dir: &Path, volumes: &[&str], options: &[&str]) -> Result<Self> {
        let command = binary()?.to_string_lossy().into_owned();
        Self::start_as(&[command], dir, volumes, options)
    }

    /// The same by another command, such as one that pins it to a CPU. It must become the server,
    /// not start it.
    ///
    /// # Errors
    /// When it does not become ready, with its log.
    pub fn start_as(
        command: &[String],
        dir: &Path,
        volumes: &[&str],
        options: &[&str],
    ) -> Result<Self> {
        let (program, before) = command.split_first().context("no command")?;
        let log = dir.join("log");
        let mut child = Command::new(program)
            .args(before)
            .arg("serve")
            .args(volumes)
            .args(["--json", "--state-dir"])
            .arg(dir.join("state"))
            .args(usual(options))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::options().create(true).append(true).open(&log)?)
            .spawn()
            .context("cannot start lunar")?;
        match ready_lines(&mut child, volumes.len()) {
            Ok(luns) => Ok(Self { child, luns, log }),
            Err(cause) => {
                child.kill()?;
                child.wait()?;
                let log = fs::read_to_string(&log).unwrap_or_default();
                Err(cause.context(format!("lunar serve {volumes:?} {options:?} said: {log}")))
            }
        }
    }

    /// The connect address of a LUN.
    #[must_use]
    pub fn address(&self, lun: usize) -> &str {
        &self.luns[lun].address
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it logs.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Waits until it has logged these words. It writes its log in a thread of its own, so a line
    /// may arrive after the answer to a command that caused it.
    ///
    /// # Errors
    /// When it has not done so within a minute.
    pub fn has_logged(&self, words: &str) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.log().contains(words) {
            if Instant::now() > end {
                bail!("{words}: {}", self.log());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Sends it a signal, such as `-TERM`.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.pid().to_string();
        crate::tool::must(Command::new("kill").args([signal, &pid]))?;
        Ok(())
    }

    /// Has it stand still, until `-CONT`.
    ///
    /// # Errors
    /// When it has ended.
    pub fn freeze(&self) -> Result<()> {
        crate::tool::freeze(self.pid())
    }

    /// Asks it to stop (SIGTERM) and waits for its end.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(self) -> Result<ExitStatus> {
        self.signal("-TERM")?;
        self.wait()
    }

    /// The same, and it must end well; gives its log.
    ///
    /// # Errors
    /// When it does not.
    pub fn stop_well(self) -> Result<String> {
        let log = self.log.clone();
        let status = self.stop()?;
        let log = fs::read_to_string(log)?;
        if !status.success() {
            bail!("{status}: {log}");
        }
        Ok(log)
    }

    /// Waits for its end, 15 s at the most.
    ///
    /// # Errors
    /// When it does not end.
    pub fn wait(mut self) -> Result<ExitStatus> {
        let end = Instant::now() + Duration::from_secs(15);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("told to stop, it goes on: {}", self.log())
    }

    /// Ends it as a power cut would (SIGKILL).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is not among `options`: a free port, and the ring of `$LUNAR_RING`.
fn usual(options: &[&str]) -> Vec<String> {
    let ring = std::env::var("LUNAR_RING").unwrap_or_else(|_| "auto".to_owned());
    let usual = [("--listen", "127.0.0.1:0"), ("--ring", ring.as_str())];
    // Where there are ports of Fibre Channel alone, there is nothing to listen to.
    let without = |option: &str| option == "--listen" && options.contains(&"--fcoe");
    let missing = usual
        .iter()
        .filter(|(option, _)| !options.contains(option) && !without(option));
    missing
        .flat_map(|(option, value)| [(*option).to_owned(), (*value).to_owned()])
        .collect()
}

/// Reads a line for each volume, on a thread so that the wait can end.
fn ready_lines(child: &mut Child, count: usize) -> Result<Vec<ReadyLun>> {
    let out = child
        .stdout
        .take()
        .ok_or_else(|| anyhow!("no standard output"))?;
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + READY_LIMIT;
    let mut luns = Vec::new();
    while luns.len() < count {
        let rest = end.saturating_duration_since(Instant::now());
        let line = told.recv_timeout(rest).context("not ready")?;
        luns.push(serde_json::from_str(&line).with_context(|| line)?);
    }
    Ok(luns)
}
