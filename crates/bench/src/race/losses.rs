//! Frames that were lost, by place, as the kernel counts them.
//!
//! Its counters are those of whole network namespaces: they tell of a race as far as nothing else
//! is in them. Only the receive backlog is counted for the machine as a whole.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::outcome::race::LossCount;

/// Namespaces that are looked at.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Each by its name, and the folder of its counters.
    sides: Vec<(&'static str, PathBuf)>,
}

/// What was lost until now, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossCounts(BTreeMap<String, u64>);

/// Files with counters of TCP, each with its group.
const SNMP: (&str, &str) = ("snmp", "Tcp:");
const NETSTAT: (&str, &str) = ("netstat", "TcpExt:");

/// Counters of TCP that stand for losses: where they are, and what they mean.
const TCP: [((&str, &str), &str, &str); 4] = [
    (SNMP, "InErrs", "segments received with errors"),
    (NETSTAT, "TCPBacklogDrop", "socket backlog full"),
    (NETSTAT, "TCPRcvQDrop", "socket receive queue full"),
    (NETSTAT, "TCPOFODrop", "socket out-of-order queue full"),
];

/// Counters of an interface: their place in a line of `dev`, and what they mean.
const INTERFACE: [(usize, &str); 6] = [
    (2, "receive errors"),
    (3, "receive drops (no receiver or no memory)"),
    (4, "receive ring full"),
    (10, "transmit errors"),
    (11, "transmit drops (a queue or the other end's ring full)"),
    (12, "transmit ring full"),
];

impl Losses {
    /// In the namespace of this process, and in that of the process that serves.
    #[must_use]
    pub fn between(target: u32) -> Self {
        let target = format!("/proc/{target}/net").into();
        Self {
            sides: vec![("client", "/proc/self/net".into()), ("target", target)],
        }
    }

    /// In the namespace of this process alone, where the other end is in it too.
    #[must_use]
    pub fn here() -> Self {
        Self {
            sides: vec![("machine", "/proc/self/net".into())],
        }
    }

    pub(crate) fn count(&self) -> LossCounts {
        let mut counts = LossCounts::default();
        for (side, folder) in &self.sides {
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
            counts.interfaces(side, &read("dev"));
            if let Some(count) = sent_again(&read("snmp"), &read("netstat")) {
                counts.add(format!("TCP of the {side}: retransmitted segments"), count);
            }
            for ((file, group), name, meaning) in TCP {
                if let Some(count) = counter(&read(file), group, name) {
                    counts.add(format!("TCP of the {side}: {meaning}"), count);
                }
            }
        }
        let softnet = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
        counts.add(BACKLOG.to_owned(), backlog(&softnet));
        counts
    }
}

const BACKLOG: &str = "receive backlog of the machine full (net.core.netdev_max_backlog)";

impl LossCounts {
    fn add(&mut self, place: String, count: u64) {
        *self.0.entry(place).or_default() += count;
    }

    /// The lines of `dev`: a name, then eight counters of each direction.
    fn interfaces(&mut self, side: &str, dev: &str) {
        for (name, counters) in dev.lines().filter_map(|line| line.split_once(':')) {
            let counters: Vec<u64> = counters
                .split_whitespace()
                .map(|counter| counter.parse().unwrap_or(0))
                .collect();
            for (at, meaning) in INTERFACE {
                let count = counters.get(at).copied().unwrap_or(0);
                self.add(format!("{} of the {side}: {meaning}", name.trim()), count);
            }
        }
    }

    /// Adds what was lost since `before`.
    pub(crate) fn add_since(&self, before: &Self, all: &mut Vec<LossCount>) {
        for (place, count) in &self.0 {
            let before = before.0.get(place).copied().unwrap_or(0);
            let count = count.saturating_sub(before);
            match all.iter_mut().find(|loss| loss.place == *place) {
                _ if count == 0 => {}
                Some(loss) => loss.count += count,
                None => all.push(LossCount {
                    place: place.clone(),
                    count,
                }),
            }
        }
    }
}

/// Segments that TCP sent again, without those of which it was told that they came twice
/// (RFC 2883): they had been late, or overtaken, and were not lost.
fn sent_again(snmp: &str, netstat: &str) -> Option<u64> {
    let twice = counter(netstat, "TcpExt:", "TCPDSACKRecvSegs").unwrap_or(0);
    Some(counter(snmp, "Tcp:", "RetransSegs")?.saturating_sub(twice))
}

/// Of a file with a line of names and a line of values for each group, one value.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(one, _)| *one == name)?;
    value.parse().ok()
}

/// A line a processor, of hexadecimal numbers; the second is what was dropped.
fn backlog(text: &str) -> u64 {
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}
