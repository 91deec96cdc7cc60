//! Interfaces, how they hang together, and what they have lost (RTM_GETLINK, rtnetlink(7)).

use std::io;

use super::super::EtherMac;
use super::super::link::{
    IFLA_INFO_KIND, IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_STATS64, INFO, attributes, part, socket,
    tag_priority,
};
use super::super::netlink::{NetlinkRequest, ask};

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkReading {
    /// Its number in this network namespace.
    pub index: i32,
    /// Its name.
    pub name: String,
    /// `veth`, `bridge`, `vlan`, …; empty for hardware.
    pub kind: String,
    /// Whether it carries Ethernet frames.
    pub is_ethernet: bool,
    /// Whether frames can go both ways.
    pub is_up: bool,
    /// Its address.
    pub mac: EtherMac,
    /// Bytes that may follow a frame's Ethernet header.
    pub mtu: u32,
    /// Frames that its queueing discipline may hold, where that goes by it (txqueuelen).
    pub queue_len: u32,
    /// The interface below it, or the other end of a veth pair, if that is in this network
    /// namespace.
    pub lower: Option<i32>,
    /// The bridge or bond that it is a port of.
    pub master: Option<i32>,
    /// What a VLAN's interface makes of the priority of our frames.
    pub tag_priority: Option<u32>,
    /// What it has lost since it was made.
    pub losses: LossCounters,
}

/// Frames that an interface has lost, by cause (linux/if_link.h, `struct rtnl_link_stats64`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounters {
    /// That came in while its rings were full (`rx_missed` and `rx_fifo`).
    pub missed: u64,
    /// That came in longer than it takes (`rx_length_errors` and `rx_over_errors`).
    pub too_long: u64,
    /// That came in damaged (`rx_crc_errors` and `rx_frame_errors`).
    pub damaged: u64,
    /// That came in and were dropped otherwise, among them those of protocols that no program
    /// takes (`rx_dropped`).
    pub received: u64,
    /// That were to be sent and were dropped (`tx_dropped`).
    pub transmitted: u64,
}

/// All interfaces of this network namespace.
///
/// # Errors
///
/// When the kernel does not tell.
pub fn links() -> io::Result<Vec<LinkReading>> {
    let socket = socket(0)?;
    let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; INFO]);
    let mut links = Vec::new();
    ask(&socket, request, |kind, body| {
        if kind == libc::RTM_NEWLINK {
            links.extend(parse(body));
        }
    })?;
    Ok(links)
}

/// One that is told of, from `ifinfomsg` on.
fn parse(body: &[u8]) -> Option<LinkReading> {
    let flags = u32::from_ne_bytes(part(body, 8)?);
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    let mut link = LinkReading {
        is_ethernet: u16::from_ne_bytes(part(body, 2)?) == libc::ARPHRD_ETHER,
        index: i32::from_ne_bytes(part(body, 4)?),
        is_up: flags & up == up,
        ..LinkReading::default()
    };
    let mut is_elsewhere = false;
    for (kind, value) in attributes(body.get(INFO..)?) {
        is_elsewhere |= kind == IFLA_LINK_NETNSID;
        link.learn(kind, value);
    }
    if is_elsewhere {
        link.lower = None;
    }
    // The physical ones tell that they are below themselves.
    link.lower = link.lower.filter(|lower| *lower != link.index);
    Some(link)
}

impl LinkReading {
    fn learn(&mut self, kind: u16, value: &[u8]) {
        let word = || part(value, 0).map(u32::from_ne_bytes);
        let number = || part(value, 0).map(i32::from_ne_bytes);
        match kind {
            libc::IFLA_IFNAME => self.name = text(value),
            libc::IFLA_ADDRESS => self.mac = part(value, 0).unwrap_or_default(),
            libc::IFLA_MTU => self.mtu = word().unwrap_or_default(),
            libc::IFLA_TXQLEN => self.queue_len = word().unwrap_or_default(),
            libc::IFLA_LINK => self.lower = number().filter(|index| *index > 0),
            libc::IFLA_MASTER => self.master = number(),
            IFLA_LINKINFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                self.kind = kind.map(|(_, name)| text(name)).unwrap_or_default();
                self.tag_priority = tag_priority(value);
            }
            IFLA_STATS64 => self.losses = LossCounters::parse(value),
            _ => {}
        }
    }
}

impl LossCounters {
    fn parse(value: &[u8]) -> Self {
        let counter = |number: usize| part(value, 8 * number).map_or(0, u64::from_ne_bytes);
        let both = |a, b| counter(a).saturating_add(counter(b));
        Self {
            missed: both(14, 15),
            too_long: both(10, 11),
            damaged: both(12, 13),
            received: counter(6),
            transmitted: counter(7),
        }
    }
}

/// A string of the kernel's, which ends with a zero.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&value[..end.unwrap_or(value.len())]).into_owned()
}
