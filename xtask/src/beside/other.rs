//! The target that was given: whether it is what it is said to be, and that it is never left
//! stopped.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use address::{Address, ParseError, UnitAddress};
use anyhow::{Context, Result, ensure};

use super::wake;

pub(super) fn iscsi(text: &str) -> Result<UnitAddress, String> {
    match text.parse() {
        Ok(Address::Iscsi(unit)) => Ok(unit),
        Ok(_) => Err("give iscsi://HOST[:PORT]/IQN/LUN: only iSCSI is measured".to_owned()),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

/// Whether the process is there, and listens at the port.
pub(super) fn check(port: u16, pid: u32) -> Result<()> {
    let process = format!("/proc/{pid}");
    ensure!(
        Path::new(&process).exists(),
        "--pid {pid}: no such process, give that of the target (such as `pidof iscsi_tgt`)"
    );
    let listening = listening(port)?;
    let files = fs::read_dir(format!("{process}/fd"))
        .with_context(|| format!("--pid {pid}: run this as root or as its user"))?;
    let mut links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    ensure!(
        links.any(|link| listening.iter().any(|socket| link == Path::new(socket))),
        "--pid {pid} does not listen at port {port} here: give the process that serves it, \
         and run this in its network namespace"
    );
    Ok(())
}

/// The sockets that listen at a port in this network namespace, as links in `/proc/PID/fd` name
/// them.
fn listening(port: u16) -> Result<Vec<String>> {
    let end = format!(":{port:04X}");
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        // Without IPv6 there is no second table.
        let table = fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default();
        for line in table.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // The address, the state, of which 0A is LISTEN, and the inode.
            if let [_, own, _, "0A", _, _, _, _, _, inode, ..] = words[..]
                && own.ends_with(&end)
            {
                sockets.push(format!("socket:[{inode}]"));
            }
        }
    }
    Ok(sockets)
}

/// Wakes the given target at the end, even when this program is killed: a shell waits until its
/// input ends, and does it then.
pub(super) struct OtherTarget {
    pid: u32,
    shell: Child,
}

impl OtherTarget {
    pub(super) fn guard(pid: u32) -> Result<Self> {
        // Ctrl-C reaches it as well.
        let script = format!("trap '' HUP INT TERM; read _; kill -CONT {pid}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sh")?;
        Ok(Self { pid, shell })
    }
}

impl Drop for OtherTarget {
    fn drop(&mut self) {
        // It may have ended. Waiting closes the shell's input.
        let _ = wake(self.pid);
        let _ = self.shell.wait();
    }
}
