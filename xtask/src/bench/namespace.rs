//! A network namespace of our own, and others where they are wanted.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;
use tests::tool;

/// Set in the environment once we are inside.
const MARK: &str = "LUNAR_BENCH_NAMESPACE";

/// Whether this process runs in it.
pub(crate) fn entered() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs this very command again inside. Comes back only with an error.
pub(crate) fn enter() -> Result<()> {
    enter_kinds(&["--net"])
}

/// The same with these kinds of namespaces, as options of unshare(1). Root stays root: inside a
/// user namespace the kernel makes no loop devices.
pub(super) fn enter_kinds(kinds: &[&str]) -> Result<()> {
    let user = (!geteuid().is_root()).then_some("--map-root-user");
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(user).args(kinds);
        unshare
    };
    let ran = tool::run(unshare().arg("true"), Duration::from_secs(10))?;
    ensure!(
        ran.good(),
        "no namespace of its own, {} ({}): run it as root, or allow user namespaces",
        kinds.join(" "),
        ran.output.trim()
    );
    let own = std::env::current_exe()?;
    let error = unshare()
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .exec();
    Err(error).context("cannot start unshare (package util-linux)")
}

const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Brings the loopback up and takes bbr, which paces even that, away.
pub(crate) fn prepare() -> Result<()> {
    tool::must(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    fs::write(CONGESTION, "reno").context("cannot choose reno")
}

/// Where it is not ours, all that can be done is to say so.
pub(crate) fn look() -> Result<()> {
    let control = fs::read_to_string(CONGESTION)?;
    let control = control.trim();
    if !["reno", "cubic"].contains(&control) {
        eprintln!("TCP is controlled by {control} here, which may pace even the loopback");
    }
    Ok(())
}
