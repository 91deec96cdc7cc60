//! The Ethernet interfaces of this machine, and changes of them, over rtnetlink(7).

use std::io;

use super::link::{
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_VLAN_EGRESS_QOS, INFO,
    attributes, part, socket,
};
use super::netlink::{NetlinkRequest, ask, attribute};
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
    /// Where it is the interface of a VLAN: the number of the interface below, and the VLAN. `None`
    /// where that interface is in another network namespace.
    pub vlan: Option<(u32, u16)>,
}

/// All interfaces of Ethernet.
///
/// # Errors
///
/// When the kernel does not tell.
pub fn interfaces() -> io::Result<Vec<EtherInterface>> {
    let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; INFO]);
    let mut all = Vec::new();
    ask(&socket(0)?, request, |kind, body| {
        if kind == libc::RTM_NEWLINK {
            all.extend(interface(body));
        }
    })?;
    Ok(all)
}

/// What a message of RTM_NEWLINK tells, from `ifinfomsg` on, if it is about Ethernet.
pub(super) fn interface(info: &[u8]) -> Option<EtherInterface> {
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
    let (mut below, mut vid, mut is_elsewhere) = (None, None, false);
    for (kind, value) in attributes(info.get(INFO..)?) {
        match kind {
            libc::IFLA_IFNAME => {
                let name = value.strip_suffix(&[0]).unwrap_or(value);
                interface.name = String::from_utf8_lossy(name).into_owned();
            }
            libc::IFLA_ADDRESS => interface.mac = part(value, 0).unwrap_or_default(),
            libc::IFLA_LINK => below = part(value, 0).map(u32::from_ne_bytes),
            // Its number is of that network namespace, where another interface here may have it.
            IFLA_LINK_NETNSID => is_elsewhere = true,
            IFLA_LINKINFO => vid = vlan_id(value),
            _ => {}
        }
    }
    interface.vlan = below.filter(|_| !is_elsewhere).zip(vid);
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
    let flags = if up { libc::IFF_UP } else { 0 };
    let info = info(index, flags, libc::IFF_UP);
    let request = NetlinkRequest::new(libc::RTM_SETLINK, libc::NLM_F_ACK, &info);
    ask(&socket(0)?, request, |_, _| {})
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
    let mapping = [PRIORITY.to_ne_bytes(), PRIORITY.to_ne_bytes()].concat();
    let egress = attribute(IFLA_VLAN_QOS_MAPPING, &mapping);
    let vlan = [
        attribute(IFLA_VLAN_ID, &vid.to_ne_bytes()),
        attribute(IFLA_VLAN_EGRESS_QOS, &egress),
    ];
    let kind = [
        attribute(IFLA_INFO_KIND, b"vlan\0"),
        attribute(IFLA_INFO_DATA, &vlan.concat()),
    ];
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &[0; INFO])
        .attribute(libc::IFLA_LINK, &below.to_ne_bytes())
        .attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())
        .attribute(IFLA_LINKINFO, &kind.concat());
    ask(&socket(0)?, request, |_, _| {})
}

/// `ifinfomsg` of an interface by its number, with which of its flags are to change, and to what.
fn info(index: u32, flags: i32, change: i32) -> [u8; INFO] {
    let mut info = [0; INFO];
    info[4..8].copy_from_slice(&index.to_ne_bytes());
    info[8..12].copy_from_slice(&flags.to_ne_bytes());
    info[12..].copy_from_slice(&change.to_ne_bytes());
    info
}

/// Of the interface of a VLAN (linux/if_link.h).
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_QOS_MAPPING: u16 = 1;
