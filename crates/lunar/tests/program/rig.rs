//! The program as a test runs it, and what came of that.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use serde_json::Value;

pub(crate) const LUNAR: &str = env!("CARGO_BIN_EXE_lunar");

/// How long a test waits for what a busy machine does within a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program with the words of this line. `timeout` ends it where it does not end by itself,
/// which no test expects.
pub(crate) fn lunar(line: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", LUNAR]);
    command.args(line.split_whitespace());
    command.env_remove("LUNAR_SECRET");
    command
}

/// What a run of the program gave.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// What it printed with `--json`.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// It was a success, and nothing was said on standard error.
    #[track_caller]
    pub(crate) fn is_silent_success(&self) {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""));
    }
}

pub(crate) trait Run {
    /// Runs it to its end.
    fn ran(&mut self) -> Ran;

    /// Runs it with what cannot work, and gives the line that it answers with.
    fn refused(&mut self, code: i32) -> String;

    /// The same, where the line tells something.
    fn refused_with(&mut self, code: i32, told: &str);
}

impl Run for Command {
    fn ran(&mut self) -> Ran {
        self.output().unwrap().into()
    }

    #[track_caller]
    fn refused(&mut self, code: i32) -> String {
        let Ran {
            code: ended,
            out,
            err,
        } = self.ran();
        assert_eq!(ended, Some(code), "{self:?}: {err}");
        assert_eq!(out, "", "{self:?}");
        assert_eq!(err.lines().count(), 1, "{self:?}: {err}");
        assert!(!err.contains("os error"), "{self:?}: {err}");
        err.trim_end().to_owned()
    }

    #[track_caller]
    fn refused_with(&mut self, code: i32, told: &str) {
        let line = self.refused(code);
        assert!(line.contains(told), "{self:?}: {line}");
    }
}

/// The first line that a process prints.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    line
}

/// Sends a signal to a process or, by a number with a dash in front, to a group.
#[track_caller]
pub(crate) fn signal(name: &str, pid: impl Display) {
    let sent = Command::new("kill")
        .args(["-s", name, "--", &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// The path of a file of a test's own, which is not there.
pub(crate) fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

/// An empty folder of a test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The path of a new file of this mode.
pub(crate) fn file_of_mode(name: &str, text: &str, mode: u32) -> String {
    let path = file(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

/// A pipe that only its owner can read.
pub(crate) fn pipe(name: &str) -> String {
    let pipe = file(name).display().to_string();
    let made = Command::new("mkfifo").args(["-m", "600", &pipe]).status();
    assert!(made.unwrap().success());
    pipe
}

/// A portal that is in use as long as the listener is there.
pub(crate) fn taken_portal() -> (TcpListener, String) {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = holder.local_addr().unwrap().to_string();
    (holder, portal)
}
