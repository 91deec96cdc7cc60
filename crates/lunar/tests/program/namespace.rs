//! Network namespaces of a test's own, and the program in them.

use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::rig::{LUNAR, PATIENCE, Run};

/// A network namespace, as long as this lives.
pub(crate) struct Namespace(Child);

impl Namespace {
    pub(crate) fn new() -> Self {
        let mut holder = Command::new("unshare");
        if !is_root() {
            holder.arg("--map-root-user");
        }
        Self::held_by(holder, "self")
    }

    /// Another one, which shares the users of this one: cables can go from one to the other.
    pub(crate) fn beside(&self) -> Self {
        Self::held_by(self.command("unshare"), self.id())
    }

    /// The holder leaves the network of a process.
    fn held_by(mut holder: Command, from: impl Display) -> Self {
        let holder = holder.args(["--net", "sleep", "600"]).spawn().unwrap();
        let namespace = Self(holder);
        let own = [&"self" as &dyn Display, &from]
            .map(|one| fs::read_link(format!("/proc/{one}/ns/net")).unwrap());
        let path = format!("/proc/{}/ns/net", namespace.0.id());
        let deadline = Instant::now() + PATIENCE;
        while fs::read_link(&path).map_or(true, |theirs| own.contains(&theirs)) {
            assert!(Instant::now() < deadline, "unshare (package util-linux)");
            thread::sleep(Duration::from_millis(5));
        }
        namespace
    }

    /// The process that holds it.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// A program in it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.0.id().to_string(), "-n"]);
        if !is_root() {
            command.args(["-U", "--preserve-credentials"]);
        }
        command.arg(program);
        command
    }

    /// Runs a line of a shell.
    #[track_caller]
    pub(crate) fn sh(&self, line: &str) {
        let ran = self.command("sh").args(["-c", line]).ran();
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    }

    /// The program in it, to be run to its end.
    pub(crate) fn lunar(&self, args: &str) -> Command {
        let mut command = self.command("timeout");
        command.args(["-k", "1", "60", LUNAR]);
        command.args(args.split_whitespace());
        command
    }

    /// A server of the program in it, which is ready once it has printed a line.
    pub(crate) fn start(&self, args: &str) -> Server {
        let mut server = self.command("setpriv");
        server.args(["--pdeathsig", "TERM", LUNAR]);
        let server = server.args(args.split_whitespace()).stdout(Stdio::piped());
        let mut child = server.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "lunar {args} has ended");
        Server(child)
    }

    pub(crate) fn serve(&self, interface: &str) -> Server {
        self.sh("ip link set lo up");
        self.start(&format!("serve ram:1M --fcoe {interface} --open"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of the program, as long as this lives.
pub(crate) struct Server(Child);

impl Server {
    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}
