//! Connections that have not logged in, and whose place a new one may take.
//!
//! Such a connection costs its peer nothing but an address, so their number is bounded; were the
//! places for the first comer, one host without credentials could hold all of them and keep
//! every other out. They are shared between addresses: when all are taken, a connection from an
//! address that holds at least two fewer than the one that holds the most takes the place of the
//! oldest of those. Where the difference is smaller, the swap would only undo logins that make
//! progress, as when all hosts come back at once.
//!
//! An address stands for a host, which must not have more places for having more addresses. A host
//! has all of an IPv6 /64 to choose from (RFC 4291 §2.5.1), so all of it counts as one; a whole
//! network of hosts, too, as it cannot be told apart. Link-local addresses are counted one by one:
//! all links have the same /64.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use super::event_key::SlotKey;

/// The connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Logins {
    waiting: VecDeque<(IpAddr, SlotKey)>,
}

/// Where a new connection finds its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// There is a free one.
    Free,
    /// It takes the place of this connection, which is to be closed.
    InPlaceOf(IpAddr, SlotKey),
    /// No slot is free.
    Full,
}

impl Logins {
    /// Where a connection from `peer` finds a place, when there may be `most` at once.
    pub(super) fn admission(&self, peer: IpAddr, most: usize) -> Admission {
        if self.waiting.len() < most {
            return Admission::Free;
        }
        let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (peer, _) in &self.waiting {
            *held.entry(host(*peer)).or_default() += 1;
        }
        let own = held.get(&host(peer)).copied().unwrap_or(0);
        let Some((&fullest, &count)) = held.iter().max_by_key(|(_, count)| **count) else {
            return Admission::Full;
        };
        let oldest = self.waiting.iter().find(|(peer, _)| host(*peer) == fullest);
        match oldest {
            Some(&(peer, key)) if count >= own + 2 => Admission::InPlaceOf(peer, key),
            _ => Admission::Full,
        }
    }

    pub(super) fn insert(&mut self, peer: IpAddr, key: SlotKey) {
        self.waiting.push_back((peer, key));
    }

    /// A connection has logged in, or is gone.
    pub(super) fn remove(&mut self, key: SlotKey) {
        if let Some(at) = self.waiting.iter().position(|(_, one)| *one == key) {
            self.waiting.remove(at);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// What all addresses of a host have in common.
fn host(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_unicast_link_local() => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
