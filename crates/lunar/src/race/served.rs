//! The volume that is served for a race alone, by a process of its own.

use std::error::Error;
use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{env, thread};

use bench::race::losses::Losses;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;

use super::transport::{RacedTransport, serve_options};
use super::{RaceArgs, network};
use crate::client::own_program;
use crate::serve::args::RINGS;
use crate::{VerbError, log};

/// A target that serves until this is dropped.
pub(super) struct Served {
    child: Child,
    /// How the volume is reached, in the order of `--over`.
    pub(super) addresses: Vec<String>,
    /// Whether there is a network namespace at each end.
    private: bool,
    _folder: TempDir,
}

impl Served {
    /// Serves a volume, and waits until it can be reached. `stop` becomes true when that ends.
    pub(super) fn start(
        args: &RaceArgs,
        volume: &str,
        private: bool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, VerbError> {
        let folder = state_dir()?;
        let mut command = command(args, volume, private, folder.path())?;
        let child = command.spawn().map_err(|cause| {
            VerbError::failed(format!("cannot run setpriv (util-linux): {cause}"))
        })?;
        let mut served = Self {
            child,
            addresses: Vec::new(),
            private,
            _folder: folder,
        };
        let failed =
            |cause: io::Error| VerbError::failed(format!("the target did not start: {cause}"));
        let broken = || failed(io::ErrorKind::BrokenPipe.into());
        let mut out = BufReader::new(served.child.stdout.take().ok_or_else(broken)?);
        if private && out.read_line(&mut String::new()).map_err(failed)? > 0 {
            network::lay(served.pid(), args.mtu.unwrap_or(MTU))?;
            let mut input = served.child.stdin.take().ok_or_else(broken)?;
            input.write_all(b"\n").map_err(failed)?;
        }
        match ready(&mut out, &args.over).map_err(failed)? {
            Some(addresses) => served.addresses = addresses,
            None => return Err(ended(served.child.wait().map_err(failed)?)),
        }
        tell_of_end(out, Arc::clone(stop));
        Ok(served)
    }

    /// Whose CPU time is the target's.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where frames may be lost.
    pub(super) fn losses(&self) -> Losses {
        if self.private {
            Losses::between(self.pid())
        } else {
            Losses::here()
        }
    }

    /// Whether it still serves.
    pub(super) fn check(&mut self) -> Result<(), VerbError> {
        let status = self.child.try_wait().ok().flatten();
        status.map_or(Ok(()), |status| Err(ended(status)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// A child that fails by itself has said why.
fn ended(status: ExitStatus) -> VerbError {
    match status.code() {
        Some(code) if code > 0 => VerbError::told(code),
        _ => VerbError::failed(format!("the target exited before the race: {status}")),
    }
}

/// Full frames of FCoE need 2158.
const MTU: u32 = 2500;

/// The target, which never outlives us, and is not asked to end by the ^C that is for us: it is
/// needed until we have logged out.
fn command(
    args: &RaceArgs,
    volume: &str,
    private: bool,
    folder: &Path,
) -> Result<Command, VerbError> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]);
    if private {
        let beyond = network::beyond();
        command.arg(beyond.get_program()).args(beyond.get_args());
    }
    let mut rings = RINGS.iter();
    let ring = rings.find(|(.., ring)| *ring == args.means.ring);
    let ring = ring.map_or("auto", |(word, ..)| word);
    command.arg(own_program()?);
    command.args(["serve", volume, "--json", "--open", "--ring", ring]);
    command.arg("--state-dir").arg(folder);
    command.args(serve_options(&args.over, private, folder));
    if env::var_os(log::VARIABLE).is_none() {
        command.env(log::VARIABLE, "warn");
    }
    command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Ok(command)
}

/// What is needed of a ready line.
#[derive(Deserialize)]
struct Ready {
    address: String,
}

/// The addresses by these ways, in their order; `None` if the target ends before it has told all.
fn ready(out: &mut impl BufRead, over: &[RacedTransport]) -> io::Result<Option<Vec<String>>> {
    let mut told: Vec<String> = Vec::new();
    loop {
        let by = |way: &RacedTransport| told.iter().find_map(|told| way.address(told));
        if let Some(addresses) = over.iter().map(by).collect() {
            return Ok(Some(addresses));
        }
        let mut line = String::new();
        if out.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Ready { address } = serde_json::from_str(&line)?;
        told.push(address);
    }
}

/// Stops the race when the target closes its standard output, which it does when it ends.
fn tell_of_end(mut out: BufReader<ChildStdout>, stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let _ = io::copy(&mut out, &mut io::sink());
        stop.store(true, Relaxed);
    });
}

/// The state directory of the target, which others cannot look into, removed after the race.
fn state_dir() -> Result<TempDir, VerbError> {
    let parent = env::temp_dir();
    let mut builder = tempfile::Builder::new();
    let owner_only = Permissions::from_mode(0o700);
    let made = builder.prefix("lunar-race-").permissions(owner_only);
    made.tempdir_in(&parent).map_err(|cause| {
        // Without the name that it was to have.
        let plain = cause.get_ref().and_then(Error::source);
        let plain = plain.map_or(cause.to_string(), ToString::to_string);
        VerbError::failed(format!(
            "cannot create a directory for the target in {}: {plain}; set TMPDIR",
            parent.display()
        ))
    })
}
