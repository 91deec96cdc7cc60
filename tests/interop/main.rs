//! Stories with the initiators that people have: libiscsi's tools, QEMU's block layer; with
//! tshark as a witness; and with peers that behave badly on purpose. The ring is that of
//! `$LUNAR_RING`.
#![forbid(unsafe_code)]
#![cfg(test)]

mod access;
mod admins_day;
mod bad_peers;
mod bench;
mod copies;
mod crashes;
mod daemon;
mod discovery;
mod fcoe;
mod fcoe_cores;
mod fcoe_switch;
mod fcoe_trace;
mod growth;
mod identity;
mod imports;
mod lifecycle;
mod live;
mod lldp;
mod own_initiator;
mod qemu;
mod remote;
mod rig;
mod trace;
mod transcripts;
mod waiting;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::server::{self, Server};
use tests::tool::{self, Ran};

/// How long a tool may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a tool that may fail.
fn run(program: &str, args: &[&str]) -> Ran {
    tool::run(Command::new(program).args(args), LIMIT).unwrap()
}

/// Runs a tool that must not fail; gives what it said.
#[track_caller]
fn must(program: &str, args: &[&str]) -> String {
    let ran = run(program, args);
    let Ran { status, output } = &ran;
    assert!(ran.good(), "{program} {args:?}: {status:?}\n{output}");
    ran.output
}

/// `lunar` with these arguments.
fn lunar(args: &[&str]) -> Command {
    let mut command = Command::new(server::binary().unwrap());
    command.args(args);
    command
}

/// Runs `lunar`, which must not fail; gives what it said.
#[track_caller]
fn lunar_says(args: &[&str]) -> String {
    tool::must(&mut lunar(args)).unwrap_or_else(|cause| panic!("{cause:#}"))
}

/// Runs a command that must be refused; gives what it said.
#[track_caller]
fn refused(command: &mut Command) -> String {
    let ran = tool::run(command, LIMIT).unwrap();
    assert_eq!(ran.code(), Some(1), "{command:?}: {}", ran.output);
    ran.output
}

/// The words of a command line that has no quotes.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// All of these stand in a text.
#[track_caller]
fn says(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

/// The address of a file in a folder.
fn file(dir: &Path, name: &str) -> String {
    format!("file:{}", dir.join(name).display())
}

/// A file with a secret, for its owner only.
fn secret(dir: &Path, name: &str, secret: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, format!("{secret}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.to_string_lossy().into_owned()
}

/// A loop device, until this is dropped.
struct LoopDevice(String);

impl LoopDevice {
    /// Of a file, where the machine lets us make one.
    fn new(file: &Path) -> Option<Self> {
        let mut command = Command::new("losetup");
        let made = tool::must(command.args(["--find", "--show"]).arg(file));
        let made = made.inspect_err(|cause| eprintln!("SKIPPED: no loop device: {cause:#}"));
        made.ok().map(|node| Self(node.trim().to_owned()))
    }

    fn address(&self) -> String {
        format!("block:{}", self.0)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let mut command = Command::new("losetup");
        let _ = tool::must(command.args(["--detach", &self.0]));
    }
}

/// A server that asks alice for CHAP, and proves itself.
fn proving(name: &str, volume: &str) -> Server {
    let dir = tests::scratch(&format!("{name}-secrets")).unwrap();
    let theirs = secret(&dir, "theirs", SECRETS[0]);
    let ours = secret(&dir, "ours", SECRETS[1]);
    let options = [
        ["--chap", "alice"],
        ["--secret-file", &theirs],
        ["--mutual-user", "target"],
        ["--mutual-secret-file", &ours],
    ];
    Server::start(name, &[volume], &options.concat()).unwrap()
}

/// What proves each side: alice, and the target.
const SECRETS: [&str; 2] = ["aliceknowsthis", "targetknowsthis"];
