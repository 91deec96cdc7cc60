//! What holds for the process: how many cores it has, what it is called, and how it is asked.

use std::net::SocketAddr;

use ::io::memory::GRANULE;
use address::{HostPort, Size, Time};
use engine::serve::options::{BUSY_POLL, CpuList, MOST_THREADS};

use super::Findings;
use crate::tree::{DaemonRow, Tree};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    daemon(tree, findings);
    discovery(tree, findings);
    api(tree, findings);
}

fn daemon(tree: &Tree, findings: &mut Findings) {
    let row = &tree.daemon;
    let may_be = |threads: &u16| (1..=MOST_THREADS).contains(threads);
    if let Some(threads) = row.threads.filter(|threads| !may_be(threads)) {
        findings.problem(
            "daemon.threads",
            format_args!("{threads} is not a number of cores that can serve"),
            &format!("give 1 to {MOST_THREADS}, or leave it out"),
        );
    }
    pin(row, findings);
    if let Some(time) = row.busy_poll.filter(|time| !BUSY_POLL.contains(&time.0)) {
        let (least, most) = (Time(*BUSY_POLL.start()), Time(*BUSY_POLL.end()));
        findings.problem(
            "daemon.busy-poll",
            format_args!("{time} is not a time that network cards can be polled for"),
            &format!("give {least} to {most}, such as \"50us\", or leave it out"),
        );
    }
    if let Some(limit) = row.memory_limit.filter(|limit| limit.0 < GRANULE) {
        findings.problem(
            "daemon.memory-limit",
            format_args!("{limit} is less than the least that a RAM volume takes"),
            &format!("give at least {}, or leave it out", Size(GRANULE)),
        );
    }
    if let Some(name) = &row.initiator_name
        && let Err(cause) = iscsi::names::normalise(name)
    {
        findings.problem(
            "daemon.initiator-name",
            format_args!("{name:?} is not an iSCSI name: {cause}"),
            "write an IQN, as in iqn.2026-11.org.example:san, or leave it out",
        );
    }
}

/// The server checks whether the CPUs are there, when it starts its threads.
fn pin(row: &DaemonRow, findings: &mut Findings) {
    let Some(written) = &row.pin else { return };
    let listed = match written.parse::<CpuList>() {
        Ok(list) => list.numbers().len(),
        Err(cause) => {
            return findings.problem("daemon.pin", cause, "or leave it out");
        }
    };
    if let Some(threads) = row
        .threads
        .filter(|threads| usize::from(*threads) != listed)
    {
        findings.problem(
            "daemon.pin",
            format_args!("{written:?} has {listed} CPUs, and daemon.threads is {threads}"),
            "leave daemon.threads out, or list a CPU for each thread",
        );
    }
}

fn discovery(tree: &Tree, findings: &mut Findings) {
    for written in &tree.discovery.advertise {
        let portal = written.parse::<HostPort>();
        if !portal.is_ok_and(|portal| portal.check_reachable().is_ok()) {
            findings.problem(
                "discovery.advertise",
                format_args!("{written:?} is not where hosts can connect to"),
                "write HOST:PORT, as in \"san.example:3260\"",
            );
        }
    }
}

fn api(tree: &Tree, findings: &mut Findings) {
    for written in &tree.api.listen {
        let address = written.parse::<SocketAddr>();
        match address {
            Err(_) => findings.problem(
                "api.listen",
                format_args!("{written:?} is not an address"),
                "write IP:PORT, as in \"127.0.0.1:8443\" or \"[::]:8443\"",
            ),
            Ok(address) if tree.api.tls.is_none() && !address.ip().is_loopback() => findings
                .problem(
                    "api.listen",
                    format_args!("{written} can be reached by other machines without TLS"),
                    "give api.tls a certificate and a key, or listen on a loopback address",
                ),
            Ok(_) => {}
        }
    }
}
