//! Two network namespaces, with a pair of virtual Ethernet interfaces between them.
//!
//! So nothing else is on the wire, and what the kernel counts in either namespace is of the race. A
//! process may leave its namespace only before it has threads: it begins as `unshare`, which
//! becomes this very program.

use std::env;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::client::own_program;
use crate::{VerbError, log};

/// The name of the interface at either end, so that what is ready at the target's is also how it is
/// reached from the other one.
pub(super) const INTERFACE: &str = "san0";

/// Of the addresses for benchmarks (RFC 2544 appendix C.2.2).
pub(super) const TARGET: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// In the environment of the program that `unshare` has become.
const INSIDE: &str = "LUNAR_RACE_INSIDE";

/// Whether this process is in a namespace of its own. It becomes this program anew in one, where
/// that can be had, and does not return then.
pub(super) fn enter() -> Result<bool, VerbError> {
    if env::var_os(INSIDE).is_some() {
        return Ok(true);
    }
    // As root, and as root of a user namespace.
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let mut reason = String::new();
    for way in ways {
        let unshare = || {
            let mut unshare = Command::new("unshare");
            unshare.args(way).arg("--");
            unshare
        };
        // All that is needed is tried, as namespaces may be allowed, and interfaces in them not.
        match ran(unshare().args(["ip", "link", "add", INTERFACE, "type", "veth"])) {
            Ok(()) => {
                let mut itself = unshare();
                itself.arg(own_program()?).args(env::args_os().skip(1));
                let cause = itself.env(INSIDE, "").exec();
                return Err(VerbError::failed(format!("cannot run unshare: {cause}")));
            }
            Err(cause) => reason = cause,
        }
    }
    log::say(&format!(
        "no private network ({reason}): the race uses loopback and a cable of Unix sockets instead"
    ));
    Ok(false)
}

/// What becomes a program in another namespace, once [`lay`] has put its interface there. It says
/// by an empty line that it waits for that, and is told by one that it may go on.
pub(super) fn beyond() -> Command {
    let enter = "echo && read _ && ip addr add \"$1/30\" dev \"$2\" && ip link set \"$2\" up && \
                 shift 2 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", enter, "sh"]);
    command.args([&TARGET.to_string(), INTERFACE]);
    command
}

/// Lays the wire from here to the namespace of a process.
pub(super) fn lay(pid: u32, mtu: u32) -> Result<(), VerbError> {
    let (mtu, netns, own) = (mtu.to_string(), pid.to_string(), format!("{CLIENT}/30"));
    let end = ["name", INTERFACE, "mtu", &mtu];
    let pair = [
        &["link", "add"],
        &end[..],
        &["type", "veth", "peer"],
        &end,
        &["netns", &netns],
    ];
    ip(&pair.concat())?;
    ip(&["addr", "add", &own, "dev", INTERFACE])?;
    ip(&["link", "set", INTERFACE, "up"])
}

fn ip(args: &[&str]) -> Result<(), VerbError> {
    ran(Command::new("ip").args(args))
        .map_err(|cause| VerbError::failed(format!("ip {}: {cause}", args.join(" "))))
}

/// Runs a command to its end, and gives the last line that it says of why it failed.
fn ran(command: &mut Command) -> Result<(), String> {
    let ran = command.output().map_err(|cause| cause.to_string())?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() {
        Ok(())
    } else {
        Err(said
            .lines()
            .last()
            .unwrap_or("it gave no reason")
            .to_owned())
    }
}
