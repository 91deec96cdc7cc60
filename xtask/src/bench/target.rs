//! The targets that are measured, each pinned to its CPU.

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench::floor::{CONNECTIONS_MAX, LocalFloor, room};
use tests::server::Server;
use tests::{process, tool};

use super::VOLUME;
use super::media::Medium;

/// The CPU that generates load, as `taskset` takes it.
pub(crate) const GENERATOR_CPU: &str = "0";

/// The CPU that targets run on.
pub(crate) const TARGET_CPU: &str = "1";

/// What is measured, with a volume of [`VOLUME`] bytes.
pub(crate) struct Target {
    /// How it is reached.
    pub(crate) address: String,
    /// The process of a `lunar serve`.
    pub(crate) pid: Option<u32>,
    /// Ends it when dropped.
    _held: Box<dyn Any>,
}

/// The release binary, which is built unless `$LUNAR` names one.
pub(crate) fn release_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LUNAR") {
        return Ok(path.into());
    }
    let top = tests::top();
    let build = Command::new("cargo")
        .args(["build", "-q", "--release", "-p", "lunar"])
        .current_dir(&top)
        .status()?;
    ensure!(build.success(), "lunar does not build");
    Ok(top.join("target/release/lunar"))
}

/// The begin of a target's command: pins it, and ends it when we are ended. Each program becomes
/// the next one, so the process id stays.
const PINNED: [&str; 6] = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "taskset",
    "-c",
    TARGET_CPU,
];

pub(super) fn pinned() -> Command {
    let mut command = Command::new(PINNED[0]);
    command.args(&PINNED[1..]);
    command
}

/// A `lunar serve` on the CPU of targets.
pub(super) fn serve(binary: &Path, folder: &str, volume: &str, options: &[&str]) -> Result<Server> {
    let dir = tests::scratch(folder).context("cannot make a folder in target/tests")?;
    let binary = binary.to_string_lossy();
    let command = PINNED.into_iter().chain([&*binary]);
    let command: Vec<_> = command.map(str::to_owned).collect();
    Server::start_as(&command, &dir, &[volume], options)
}

impl Target {
    /// What is there as long as `held`.
    pub(crate) fn new(address: String, held: impl Any) -> Self {
        Self {
            address,
            pid: None,
            _held: Box::new(held),
        }
    }

    /// `lunar serve` with a volume on a medium, or in RAM.
    pub(crate) fn lunar(
        binary: &Path,
        name: &str,
        medium: Option<Medium>,
        options: &str,
    ) -> Result<Self> {
        let folder = format!("bench-{name}").replace(' ', "-");
        let volume = medium
            .as_ref()
            .map_or(format!("ram:{VOLUME}"), Medium::address);
        let options: Vec<_> = options.split_whitespace().collect();
        let server = serve(binary, &folder, &volume, &options)?;
        Ok(Self {
            pid: Some(server.pid()),
            ..Self::new(server.address(0).to_owned(), (server, medium))
        })
    }

    /// tgtd with a file in memory.
    pub(super) fn tgtd() -> Result<Self> {
        let address = format!("iscsi://127.0.0.1:{TGTD_PORT}/{TGTD_IQN}/1");
        Ok(Self::new(address, Tgtd::start()?))
    }

    /// The other end of bare TCP.
    pub(super) fn floor(binary: &Path) -> Result<Self> {
        // Connections may still be there whose other end has gone: memory for several.
        let size = room(4 * VOLUME, CONNECTIONS_MAX).to_string();
        let mut command = pinned();
        command
            .arg(binary)
            .args(["floor", "--listen", "127.0.0.1:0"]);
        let command = command.args(["--with-input", "--size", &size]);
        let floor = LocalFloor::start(command, false)?;
        Ok(Self::new(floor.place().address.to_string(), floor))
    }

    /// Waits until it has done what it does by itself, as [`rest`] does.
    pub(super) fn rest(&self) -> Result<()> {
        self.pid.map_or(Ok(()), rest)
    }
}

/// Waits until a server has done what it does by itself after its volume was filled: a thread of it
/// gives a RAM disk huge pages, and pauses for a second at a time. Others of its threads may spin.
pub(crate) fn rest(pid: u32) -> Result<()> {
    const WINDOW: Duration = Duration::from_secs(2);
    let mut before = pauses(pid)?;
    for _ in 0..30 {
        if before.is_none() {
            break;
        }
        thread::sleep(WINDOW);
        let now = pauses(pid)?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(())
}

/// How often that thread has paused, if there is one.
fn pauses(pid: u32) -> Result<Option<u64>> {
    let mut threads = process::switches(pid)?.into_values();
    let pages = threads.find(|thread| thread.name == "lunar-pages");
    Ok(pages.map(|thread| thread.waits))
}

const TGTD_PORT: u16 = 3270;
const TGTD_IQN: &str = "iqn.2026-11.org.lunar.test:tgtd";

#[derive(Debug)]
struct Tgtd {
    child: Child,
    file: PathBuf,
    /// Keeps it apart from another tgtd on the machine.
    control: String,
}

impl Tgtd {
    fn start() -> Result<Self> {
        tool::present(&["tgtd", "tgtadm"])?;
        let file = PathBuf::from(format!("/dev/shm/lunar-bench-{}", std::process::id()));
        fs::File::create(&file)?.set_len(VOLUME)?;
        // tgtadm takes no number above 32,767.
        let control = (std::process::id() % 32_000).to_string();
        let child = pinned()
            .args(["tgtd", "-f", "-C", &control])
            .args(["--iscsi", &format!("portal=127.0.0.1:{TGTD_PORT}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let tgtd = Self {
            child,
            file,
            control,
        };
        tgtd.configure()?;
        Ok(tgtd)
    }

    fn configure(&self) -> Result<()> {
        // It takes a moment until it answers.
        let mut tries = 0;
        let target = format!("--op new --mode target --tid 1 -T {TGTD_IQN}");
        while let Err(cause) = self.tgtadm(&target) {
            tries += 1;
            if tries == 50 {
                return Err(cause);
            }
            thread::sleep(Duration::from_millis(100));
        }
        let file = self.file.display();
        self.tgtadm(&format!(
            "--op new --mode logicalunit --tid 1 --lun 1 -b {file}"
        ))?;
        self.tgtadm("--op bind --mode target --tid 1 -I ALL")
    }

    fn tgtadm(&self, words: &str) -> Result<()> {
        let mut command = Command::new("tgtadm");
        command.args(["-C", &self.control, "--lld", "iscsi"]);
        tool::must(command.args(words.split(' '))).map(drop)
    }
}

impl Drop for Tgtd {
    fn drop(&mut self) {
        // It ignores SIGTERM while it has targets; nothing to be done if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.file);
    }
}
