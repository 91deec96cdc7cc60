//! The Ethernet interfaces of this machine, and changes of them, over rtnetlink(7).

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::link::{
    HEADER, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_VLAN_EGRESS_QOS, INFO, MESSAGE_MAX,
    attributes, part, socket,
};
use super::{EtherMac, PRIORITY};

/// An interface of Ethernet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtherInterface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its address.
    pub mac: EtherMac,
    /// Whether it is to be up; whether its link is, too, an open port tells.
    pub is_up: bool,
    /// Whether it stands for others that are bonded, on which frames are sent and received.
    pub is_bond: bool,
    /// Where it is the interface of a VLAN: the number of the interface below, and the VLAN.
    pub vlan: Option<(u32, u16)>,
}

/// All interfaces of Ethernet.
///
/// # Errors
///
/// When the kernel does not tell.
pub fn interfaces() -> io::Result<Vec<EtherInterface>> {
    let socket = socket(0)?;
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
    let request = LinkMessage::new(libc::RTM_GETLINK, flags, 0);
    send(&socket, &request.finish(), SendFlags::empty())?;
    let mut all = Vec::new();
    while !part_of_dump(&socket, &mut all)? {}
    Ok(all)
}

/// Takes the next messages of an answer that has several. Returns whether it has ended.
fn part_of_dump(socket: &OwnedFd, all: &mut Vec<EtherInterface>) -> io::Result<bool> {
    let mut answer = vec![0; MESSAGE_MAX];
    let (len, _) = recv(socket, &mut *answer, RecvFlags::empty())?;
    for message in messages(&answer[..len]) {
        match part(message, 4).map(u16::from_ne_bytes) {
            Some(DONE) => return Ok(true),
            Some(ERROR) => return acknowledged(message).map(|()| true),
            _ => all.extend(interface(message)),
        }
    }
    Ok(false)
}

/// The messages of a datagram.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(part(rest, 0)?) as usize;
        let message = rest.get(..len).filter(|message| message.len() >= HEADER)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    })
}

/// What a message of RTM_NEWLINK tells, if it is about Ethernet.
pub(super) fn interface(message: &[u8]) -> Option<EtherInterface> {
    let info = message.get(HEADER..)?;
    if u16::from_ne_bytes(part(info, 2)?) != libc::ARPHRD_ETHER {
        return None;
    }
    let flags = u32::from_ne_bytes(part(info, 8)?);
    let mut interface = EtherInterface {
        index: u32::from_ne_bytes(part(info, 4)?),
        is_up: flags & libc::IFF_UP as u32 != 0,
        is_bond: flags & libc::IFF_MASTER as u32 != 0,
        ..EtherInterface::default()
    };
    let (mut below, mut vid) = (None, None);
    for (kind, value) in attributes(info.get(INFO..)?) {
        match kind {
            libc::IFLA_IFNAME => {
                let name = value.strip_suffix(&[0]).unwrap_or(value);
                interface.name = String::from_utf8_lossy(name).into_owned();
            }
            libc::IFLA_ADDRESS => interface.mac = part(value, 0).unwrap_or_default(),
            libc::IFLA_LINK => below = part(value, 0).map(u32::from_ne_bytes),
            IFLA_LINKINFO => vid = vlan_id(value),
            _ => {}
        }
    }
    interface.vlan = below.zip(vid);
    Some(interface)
}

/// The VLAN that an interface is of, by its IFLA_LINKINFO.
fn vlan_id(link_info: &[u8]) -> Option<u16> {
    let find =
        |nest, wanted| attributes(nest).find_map(|(kind, it)| (kind == wanted).then_some(it));
    if find(link_info, IFLA_INFO_KIND)? != b"vlan\0" {
        return None;
    }
    let id = find(find(link_info, IFLA_INFO_DATA)?, IFLA_VLAN_ID)?;
    part(id, 0).map(u16::from_ne_bytes)
}

/// Sets an interface up or down.
///
/// # Errors
///
/// When the kernel refuses: it takes CAP_NET_ADMIN.
pub fn set_up(index: u32, up: bool) -> io::Result<()> {
    let mut message = LinkMessage::new(libc::RTM_SETLINK, ACKNOWLEDGED, index);
    message.flags(if up { libc::IFF_UP } else { 0 }, libc::IFF_UP);
    change(message)
}

/// Makes an interface for a VLAN of another one, by its number. Tags of frames whose priority is
/// [`PRIORITY`] carry that too.
///
/// # Errors
///
/// When the kernel refuses: it takes CAP_NET_ADMIN, and a name of at most 15 bytes that is free.
pub fn add_vlan(below: u32, vid: u16, name: &str) -> io::Result<()> {
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    let flags = ACKNOWLEDGED | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut message = LinkMessage::new(libc::RTM_NEWLINK, flags, 0);
    message.attribute(libc::IFLA_LINK, &below.to_ne_bytes());
    message.attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    message.nest(IFLA_LINKINFO, |message| {
        message.attribute(IFLA_INFO_KIND, b"vlan\0");
        message.nest(IFLA_INFO_DATA, |message| {
            message.attribute(IFLA_VLAN_ID, &vid.to_ne_bytes());
            message.nest(IFLA_VLAN_EGRESS_QOS, |message| {
                let mapping = [PRIORITY.to_ne_bytes(), PRIORITY.to_ne_bytes()].concat();
                message.attribute(IFLA_VLAN_QOS_MAPPING, &mapping);
            });
        });
    });
    change(message)
}

/// Has the kernel carry out a change, which it answers before `send` returns.
fn change(message: LinkMessage) -> io::Result<()> {
    let socket = socket(0)?;
    send(&socket, &message.finish(), SendFlags::empty())?;
    let mut answer = vec![0; MESSAGE_MAX];
    let (len, _) = recv(&socket, &mut *answer, RecvFlags::empty())?;
    acknowledged(&answer[..len])
}

/// The code of a message of errors, 0 for none.
fn acknowledged(message: &[u8]) -> io::Result<()> {
    let is_answer = part(message, 4).map(u16::from_ne_bytes) == Some(ERROR);
    match part(message, HEADER).map(i32::from_ne_bytes) {
        Some(0) if is_answer => Ok(()),
        Some(code) if is_answer => Err(Errno::from_raw_os_error(-code).into()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A message about links that is being written.
struct LinkMessage(Vec<u8>);

impl LinkMessage {
    fn new(kind: u16, flags: i32, index: u32) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags as u16).to_ne_bytes());
        bytes.resize(HEADER + INFO, 0);
        bytes[HEADER + 4..][..4].copy_from_slice(&index.to_ne_bytes());
        Self(bytes)
    }

    /// Which flags of the interface are to change, and to what.
    fn flags(&mut self, flags: i32, change: i32) {
        self.0[HEADER + 8..][..4].copy_from_slice(&flags.to_ne_bytes());
        self.0[HEADER + 12..][..4].copy_from_slice(&change.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |message| message.0.extend(value));
    }

    /// An attribute whose value is written by `fill`.
    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let begin = self.0.len();
        self.0.extend([0, 0]);
        self.0.extend(kind.to_ne_bytes());
        fill(self);
        let len = (self.0.len() - begin) as u16;
        self.0[begin..][..2].copy_from_slice(&len.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

const ACKNOWLEDGED: i32 = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
const DONE: u16 = libc::NLMSG_DONE as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;

/// Of the interface of a VLAN (linux/if_link.h).
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_QOS_MAPPING: u16 = 1;
