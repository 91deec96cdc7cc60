//! What the driver of an interface tells: its rings, and whether it pauses a sender (ethtool(8)).

use std::io;

use super::super::link::{attributes, part, socket};
use super::super::netlink::{NetlinkRequest, ask, attribute};
use super::super::raw::{self, EthtoolQuery};

/// Frames that the rings of an interface hold, and could hold (`ethtool -g`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSizes {
    /// Of receiving.
    pub rx: u32,
    /// Of receiving, at the most.
    pub rx_max: u32,
    /// Of sending.
    pub tx: u32,
    /// Of sending, at the most.
    pub tx_max: u32,
}

/// Link flow control (IEEE 802.3 PAUSE, `ethtool -a`): all priorities wait together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseReading {
    /// It is agreed upon with the other end.
    pub is_negotiated: bool,
    /// This end waits when it is told to.
    pub rx: bool,
    /// This end has the other one wait.
    pub tx: bool,
    /// How many such frames there were, if the driver counts them.
    pub frames: Option<PauseFrames>,
}

/// Frames that have an end wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseFrames {
    /// Sent to the other end.
    pub sent: u64,
    /// Received from it.
    pub received: u64,
}

/// The rings of an interface; `None` where it has none, or the driver does not tell.
///
/// # Errors
///
/// When there is no such interface.
pub fn ring_sizes(interface: &str) -> io::Result<Option<RingSizes>> {
    let told = known(raw::ethtool(&socket(0)?, interface, EthtoolQuery::Rings))?;
    // The most of receiving, mini, jumbo and sending, then the same as they are.
    Ok(told.map(|[rx_max, _, _, tx_max, rx, _, _, tx]| RingSizes {
        rx,
        rx_max,
        tx,
        tx_max,
    }))
}

/// Link flow control of an interface; `None` where the driver does not tell.
///
/// # Errors
///
/// When there is no such interface.
pub fn pause(interface: &str) -> io::Result<Option<PauseReading>> {
    let told = known(raw::ethtool(&socket(0)?, interface, EthtoolQuery::Pause))?;
    Ok(told.map(|[negotiated, rx, tx, ..]| PauseReading {
        is_negotiated: negotiated != 0,
        rx: rx != 0,
        tx: tx != 0,
        // A kernel before 5.9, or a driver that does not count.
        frames: pause_frames(interface).ok().flatten(),
    }))
}

/// The answer, unless the driver does not know the question.
fn known<T>(told: io::Result<T>) -> io::Result<Option<T>> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// The statistics of ETHTOOL_MSG_PAUSE_GET (linux/ethtool_netlink.h).
fn pause_frames(interface: &str) -> io::Result<Option<PauseFrames>> {
    let socket = raw::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC)?;
    let Some(family) = ethtool_family(&socket)? else {
        return Ok(None);
    };
    let name = [interface.as_bytes(), &[0]].concat();
    let device = [
        attribute(HEADER_DEV_NAME, &name),
        attribute(HEADER_FLAGS, &FLAG_STATS.to_ne_bytes()),
    ];
    let request = NetlinkRequest::new(family, 0, &[MSG_PAUSE_GET, 1, 0, 0])
        .attribute(PAUSE_HEADER | NESTED, &device.concat());
    let mut frames = None;
    ask(&socket, request, |_, body| {
        frames = body.get(GENERIC_HEADER..).and_then(counted);
    })?;
    Ok(frames)
}

fn counted(answer: &[u8]) -> Option<PauseFrames> {
    let find = |nest, wanted| {
        attributes(nest).find_map(|(kind, it)| (kind & !NESTED == wanted).then_some(it))
    };
    let statistics = find(answer, PAUSE_STATS)?;
    let counter = |kind| Some(u64::from_ne_bytes(part(find(statistics, kind)?, 0)?));
    Some(PauseFrames {
        sent: counter(PAUSE_TX_FRAMES)?,
        received: counter(PAUSE_RX_FRAMES)?,
    })
}

/// Whether an interface drops frames of VLANs that it has no interface for (`ethtool -k`,
/// rx-vlan-filter). `None` where the driver does not tell.
///
/// # Errors
///
/// No such interface, or no answer.
pub fn filters_vlans(interface: &str) -> io::Result<Option<bool>> {
    known(has_feature(interface, b"rx-vlan-filter"))
}

/// Whether a feature is on (ETHTOOL_MSG_FEATURES_GET).
pub(in super::super) fn has_feature(interface: &str, feature: &[u8]) -> io::Result<bool> {
    let unknown = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    let socket = raw::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC)?;
    let family = ethtool_family(&socket)?.ok_or_else(unknown)?;
    let name = [interface.as_bytes(), &[0]].concat();
    let request = NetlinkRequest::new(family, 0, &[MSG_FEATURES_GET, 1, 0, 0])
        .attribute(FEATURES_HEADER | NESTED, &attribute(HEADER_DEV_NAME, &name));
    let mut told = None;
    ask(&socket, request, |_, body| {
        let answer = body.get(GENERIC_HEADER..).unwrap_or_default();
        told = Some(lists_feature(answer, feature));
    })?;
    told.ok_or_else(unknown)
}

/// Whether a feature is among those that are on, which are listed by name.
fn lists_feature(answer: &[u8], feature: &[u8]) -> bool {
    let inside = |nest, wanted: u16| {
        let all = attributes(nest);
        all.filter_map(move |(kind, it)| (kind & !NESTED == wanted).then_some(it))
    };
    let sets = inside(answer, FEATURES_ACTIVE);
    let lists = sets.flat_map(|set| inside(set, BITSET_BITS));
    let mut bits = lists.flat_map(|list| inside(list, BITSET_BIT));
    bits.any(|bit| inside(bit, BIT_NAME).any(|name| name.strip_suffix(&[0]) == Some(feature)))
}

/// The number of the family "ethtool" of generic netlink (linux/genetlink.h).
fn ethtool_family(socket: &std::os::fd::OwnedFd) -> io::Result<Option<u16>> {
    let request = NetlinkRequest::new(GENL_ID_CTRL, 0, &[CTRL_CMD_GETFAMILY, 1, 0, 0])
        .attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let mut family = None;
    ask(socket, request, |_, body| {
        let told = body.get(GENERIC_HEADER..).unwrap_or_default();
        let number = attributes(told).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        family = number.and_then(|(_, value)| Some(u16::from_ne_bytes(part(value, 0)?)));
    })?;
    Ok(family)
}

/// Bytes of `genlmsghdr`: command, version, reserved.
const GENERIC_HEADER: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The flag of attributes that hold others (NLA_F_NESTED).
const NESTED: u16 = 0x8000;

const MSG_PAUSE_GET: u8 = 21;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_STATS: u32 = 4;
const PAUSE_HEADER: u16 = 1;
const PAUSE_STATS: u16 = 5;
const PAUSE_TX_FRAMES: u16 = 2;
const PAUSE_RX_FRAMES: u16 = 3;

/// Names stand in a bitset unless it is asked for without.
const MSG_FEATURES_GET: u8 = 11;
const FEATURES_HEADER: u16 = 1;
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BITSET_BIT: u16 = 1;
const BIT_NAME: u16 = 2;

#[cfg(test)]
mod tests;
