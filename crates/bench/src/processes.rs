//! CPU time of processes, and the peers of our sockets.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use io::cpu;

/// CPU time of several processes together; `None` where there are none, or one has ended.
#[must_use]
pub fn cpu_time_of(pids: &[u32]) -> Option<Duration> {
    let times = pids.iter().map(|pid| cpu::time_of(*pid).ok());
    let sum: Option<Duration> = times.sum::<Option<Duration>>();
    sum.filter(|_| !pids.is_empty())
}

/// The inodes of our own sockets.
#[must_use]
pub fn sockets() -> BTreeSet<u64> {
    sockets_of(std::process::id())
}

/// The processes of this machine that hold the other ends of our TCP connections over these
/// sockets, as far as we may see them.
#[must_use]
pub fn peers(ours: &BTreeSet<u64>) -> Vec<u32> {
    let own = std::process::id();
    let connections = connections();
    let ends = |connection: &TcpConnection| (connection.local, connection.remote);
    let inodes = connections.iter();
    let inodes: BTreeMap<_, _> = inodes.map(|one| (ends(one), one.inode)).collect();
    let own_ends = connections.iter().filter(|one| ours.contains(&one.inode));
    let others = own_ends.filter_map(|one| inodes.get(&(one.remote, one.local)));
    let others: BTreeSet<u64> = others.copied().collect();
    if others.is_empty() {
        return Vec::new();
    }
    let holds = |pid: &u32| *pid != own && !sockets_of(*pid).is_disjoint(&others);
    all().filter(holds).collect()
}

fn all() -> impl Iterator<Item = u32> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok())
}

/// The inodes of a process's sockets; none of a process that we may not look into.
fn sockets_of(pid: u32) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let inode = |file: fs::DirEntry| {
        let link = fs::read_link(file.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse().ok()
    };
    files.flatten().filter_map(inode).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct TcpConnection {
    local: SocketAddr,
    remote: SocketAddr,
    inode: u64,
}

fn connections() -> Vec<TcpConnection> {
    let read = |name| fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
    let tables = [read("tcp"), read("tcp6")];
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines.filter_map(connection).collect()
}

/// A row of /proc/net/tcp or tcp6.
fn connection(line: &str) -> Option<TcpConnection> {
    let mut fields = line.split_whitespace();
    let local = end(fields.nth(1)?)?;
    let remote = end(fields.next()?)?;
    let inode = fields.nth(6)?.parse().ok()?;
    Some(TcpConnection {
        local,
        remote,
        inode,
    })
}

/// `0100007F:0CBC`: the address is written as the machine's own 32-bit words. One of IPv4 in a
/// socket of IPv6 is the same as without.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        _ => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    Some((address, port).into())
}
