//! What the kernel tells of an interface, over rtnetlink.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::netlink::NetlinkRequest;
use super::{EtherMac, LinkStatus, PRIORITY, raw};

/// An interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) index: i32,
    pub(super) ethernet: bool,
    pub(super) mac: EtherMac,
    pub(super) link: LinkStatus,
    pub(super) counters: LinkCounters,
    /// What stands in the tags of our frames, where it is the interface of a VLAN.
    pub(super) tag_priority: Option<u32>,
}

/// Of what it has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkCounters {
    pub(super) received: u64,
    pub(super) transmitted: u64,
    pub(super) missed: u64,
    pub(super) fcs: u64,
    pub(super) framing: u64,
}

/// Asks for an interface by its name.
pub(super) fn look(name: &str) -> io::Result<Interface> {
    let socket = socket(0)?;
    send(&socket, &request(name)?.finish(), SendFlags::empty())?;
    let mut answer = vec![0; MESSAGE_MAX];
    // The kernel answers before `send` returns.
    let (len, _) = recv(&socket, &mut *answer, RecvFlags::empty())?;
    parse(&answer[..len]).unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
}

/// A socket that becomes readable when any interface has changed.
pub(super) fn watch() -> io::Result<OwnedFd> {
    socket(libc::RTMGRP_LINK as u32)
}

/// What was told of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkChange {
    /// It is like this now.
    Is(Interface),
    /// No interface has this name.
    Gone,
}

/// What was told since this was asked before.
#[derive(Debug, Default)]
pub(super) struct LinkNews {
    /// The last of it about the interface in question.
    pub(super) last: Option<LinkChange>,
    /// More was told than could be kept.
    pub(super) is_overrun: bool,
}

/// Reads what the kernel has told of all interfaces, and picks out what is about the one that has
/// this name, or had it and has this index. It asks nothing, so it never waits.
pub(super) fn news(watch: &OwnedFd, name: &str, index: i32) -> io::Result<LinkNews> {
    let mut news = LinkNews::default();
    let mut message = [0; NOTICE_MAX];
    loop {
        match recv(watch, &mut message, RecvFlags::TRUNC) {
            Ok((here, len)) if here == len => {
                news.last = change(&message[..len], name, index).or(news.last);
            }
            Ok(_) | Err(Errno::NOBUFS) => news.is_overrun = true,
            Err(Errno::AGAIN) => return Ok(news),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a message tells of an interface, if it is about that.
pub(super) fn change(message: &[u8], name: &str, index: i32) -> Option<LinkChange> {
    let kind = u16::from_ne_bytes(part(message, 4)?);
    let info = message.get(HEADER..)?;
    let [family] = part(info, 0)?;
    // Bridges tell of their ports by the same messages, of another family.
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    let is_ours = i32::from_ne_bytes(part(info, 4)?) == index;
    if kind == libc::RTM_DELLINK {
        return is_ours.then_some(LinkChange::Gone);
    }
    let told = (kind == libc::RTM_NEWLINK).then(|| parse(message)?.ok())??;
    let mut attributes = attributes(info.get(INFO..)?);
    let named = attributes.find(|(kind, _)| *kind == libc::IFLA_IFNAME)?.1;
    let has_name = named.strip_suffix(&[0]) == Some(name.as_bytes());
    if has_name {
        // Some drivers report other things by messages without a state.
        (told.link.mtu > 0).then_some(LinkChange::Is(told))
    } else {
        // The interface was renamed.
        is_ours.then_some(LinkChange::Gone)
    }
}

pub(super) fn socket(groups: u32) -> io::Result<OwnedFd> {
    let socket = raw::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    // Of family, padding, the sender's number (chosen by the kernel) and groups.
    let address = [u32::from_ne_bytes(family()), 0, groups];
    raw::bind(&socket, &address)?;
    Ok(socket)
}

fn family() -> [u8; 4] {
    let [a, b] = (libc::AF_NETLINK as u16).to_ne_bytes();
    [a, b, 0, 0]
}

/// RTM_GETLINK (rtnetlink(7)) with the interface's name.
fn request(name: &str) -> io::Result<NetlinkRequest> {
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &[0; INFO]);
    Ok(request.attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat()))
}

/// The interface that an answer tells of, or the error.
pub(super) fn parse(answer: &[u8]) -> Option<io::Result<Interface>> {
    let kind = u16::from_ne_bytes(part(answer, 4)?);
    if kind == libc::NLMSG_ERROR as u16 {
        let code = i32::from_ne_bytes(part(answer, HEADER)?);
        return Some(Err(io::Error::from_raw_os_error(-code)));
    }
    let info = answer.get(HEADER..)?;
    let mut interface = Interface {
        ethernet: u16::from_ne_bytes(part(info, 2)?) == libc::ARPHRD_ETHER,
        index: i32::from_ne_bytes(part(info, 4)?),
        ..Interface::default()
    };
    let flags = u32::from_ne_bytes(part(info, 8)?);
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    interface.link.up = flags & up == up;
    for (kind, value) in attributes(info.get(INFO..)?) {
        interface.learn(kind, value)?;
    }
    Some(Ok(interface))
}

/// Kinds and values.
pub(super) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(part(rest, 0)?));
        let kind = u16::from_ne_bytes(part(rest, 2)?);
        let value = rest.get(ATTRIBUTE..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// What a VLAN's interface makes of our [`PRIORITY`] in a tag, by its egress map; 0 where that does
/// not tell. None for other interfaces.
pub(super) fn tag_priority(link_info: &[u8]) -> Option<u32> {
    let find =
        |nest, wanted| attributes(nest).find_map(|(kind, it)| (kind == wanted).then_some(it));
    if find(link_info, IFLA_INFO_KIND)? != b"vlan\0" {
        return None;
    }
    let map = find(link_info, IFLA_INFO_DATA).and_then(|data| find(data, IFLA_VLAN_EGRESS_QOS));
    let mapped = attributes(map.unwrap_or_default()).find_map(|(_, mapping)| {
        let word = |at| part(mapping, at).map(u32::from_ne_bytes);
        (word(0)? == PRIORITY).then(|| word(4))?
    });
    Some(mapped.unwrap_or(0))
}

impl Interface {
    /// Takes an attribute of rtnetlink.
    fn learn(&mut self, kind: u16, value: &[u8]) -> Option<()> {
        match kind {
            // Those that are not Ethernet have longer and shorter ones.
            libc::IFLA_ADDRESS => self.mac = part(value, 0).unwrap_or_default(),
            libc::IFLA_MTU => self.link.mtu = u32::from_ne_bytes(part(value, 0)?),
            IFLA_LINKINFO => self.tag_priority = tag_priority(value),
            IFLA_STATS64 => {
                let counter = |number: usize| part(value, 8 * number).map(u64::from_ne_bytes);
                self.counters = LinkCounters {
                    received: counter(6)?,
                    transmitted: counter(7)?,
                    missed: counter(14)?.saturating_add(counter(15)?),
                    fcs: counter(12)?,
                    framing: counter(13)?,
                };
            }
            _ => {}
        }
        Some(())
    }
}

pub(super) fn part<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Bytes of `nlmsghdr`, of `ifinfomsg`, and before the value of an attribute.
pub(super) const HEADER: usize = 16;
pub(super) const INFO: usize = 16;
pub(super) const ATTRIBUTE: usize = 4;

/// More than the kernel tells of one interface without being asked for its virtual functions.
pub(super) const MESSAGE_MAX: usize = 32 << 10;

/// More than the kernel tells unasked of most interfaces. What is longer is asked for.
const NOTICE_MAX: usize = 8 << 10;

/// `struct rtnl_link_stats64`: rx_dropped is its number 6, tx_dropped 7, rx_crc_errors 12,
/// rx_frame_errors 13, rx_fifo_errors 14, rx_missed_errors 15 (linux/if_link.h).
pub(super) const IFLA_STATS64: u16 = 23;

/// What kind of interface it is (linux/if_link.h).
pub(super) const IFLA_LINKINFO: u16 = 18;
pub(super) const IFLA_INFO_KIND: u16 = 1;
pub(super) const IFLA_INFO_DATA: u16 = 2;
pub(super) const IFLA_VLAN_EGRESS_QOS: u16 = 3;

/// The network namespace of the interface below, if that is another one (linux/if_link.h).
pub(super) const IFLA_LINK_NETNSID: u16 = 37;
