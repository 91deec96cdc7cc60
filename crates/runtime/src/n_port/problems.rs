//! What keeps frames of Fibre Channel from passing at an interface, and the command that mends it;
//! and the frames that were lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::io::ether::dcb::DcbError;
use ::io::ether::{Drops, EtherOpenError, LinkStatus, PRIORITY, Place};
use fc::port::config::payload_max;
use fc::wire::frame::{MAX_PAYLOAD, MIN_PAYLOAD};
use scsi::medium::Now;

use super::dcb;
use crate::journal::QUIET;

/// What is in the way at an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkProblem {
    /// Its frames are too short for anybody to log in.
    #[error(
        "{0}: an MTU of {1} is too small for the {MIN_PAYLOAD} bytes of payload that every Fibre \
         Channel port needs: ip link set {0} mtu {MTU}"
    )]
    Narrow(String, u32),
    /// It is down, or there is nothing at its other end.
    #[error("{0}: the link is down: ip link set {0} up, or check its cable")]
    Down(String),
    /// It was deleted or renamed.
    #[error(
        "{0}: this interface is gone: it is used again once there is one of this name, see ip link"
    )]
    Gone(String),
    /// What its port waits for.
    #[error(
        "{0}: PFC is not in use for priority {PRIORITY}, which dcb=required waits for: an agent of \
         LLDP sets it (lldpad, lldpd, or the NIC's own), or dcb=apply does; lunar dcb {0} shows \
         what both ends have"
    )]
    NoPfc(String),
    /// Its frames are shorter than they could be.
    #[error(
        "{0}: an MTU of {1} limits frames to {payload} of {MAX_PAYLOAD} bytes of payload, which \
         costs speed: ip link set {0} mtu {MTU}",
        payload = payload_max(*.1 as usize)
    )]
    Short(String, u32),
}

/// What is proposed: room for full frames, by custom.
pub(crate) const MTU: u32 = 2500;

impl LinkProblem {
    /// The worst at a place, whose link is so. A cable has none.
    pub fn at(place: &Place, link: LinkStatus) -> Option<Self> {
        let interface = place.interface()?.to_owned();
        let payload = payload_max(link.mtu as usize);
        if link.is_gone {
            Some(Self::Gone(interface))
        } else if payload < MIN_PAYLOAD {
            Some(Self::Narrow(interface, link.mtu))
        } else if !link.up {
            Some(Self::Down(interface))
        } else if usize::from(payload) < MAX_PAYLOAD {
            Some(Self::Short(interface, link.mtu))
        } else {
            None
        }
    }

    /// That PFC is waited for at a place.
    pub(super) fn no_pfc(place: &Place) -> Self {
        let interface = place.interface().unwrap_or_default();
        Self::NoPfc(dcb::carrier(Path::new(SYSFS), interface))
    }

    /// Whether no frame passes.
    pub const fn is_barrier(&self) -> bool {
        !matches!(self, Self::Short(..))
    }
}

/// Why there is no N_Port.
#[derive(Debug, thiserror::Error)]
pub enum NoPort {
    /// The Ethernet port cannot be had.
    #[error(transparent)]
    Ether(#[from] EtherOpenError),
    /// No frame of Fibre Channel can pass there.
    #[error(transparent)]
    Narrow(LinkProblem),
    /// The kernel's fcoe has the same names there.
    #[error(
        "{0}: the kernel has an FCoE port on {1} with the same names: remove it first with echo \
         {1} > /sys/module/libfcoe/parameters/destroy"
    )]
    Kernel(Place, String),
    /// The network card drops frames of VLANs that have no interface.
    #[error(
        "{0}: the NIC drops frames of VLAN {1}, which has no interface: {make}",
        make = vlan_made(.0, *.1)
    )]
    VlanFilter(Place, u16),
    /// Ethernet is not lossless there, and cannot be made so.
    #[error(transparent)]
    Dcb(#[from] DcbError),
    /// It cannot be used as is needed.
    #[error("{0}: {1}")]
    Io(Place, #[source] io::Error),
}

/// The commands that make the interface of a VLAN.
fn vlan_made(place: &Place, vid: u16) -> String {
    let below = place.interface().unwrap_or_default();
    let usual = format!("{below}.{vid}-fcoe");
    let name = match usual.len() {
        0..=NAME_MAX => usual,
        _ => format!("fcoe.{vid}"),
    };
    format!(
        "ip link add link {below} name {name} type vlan id {vid} egress-qos-map \
         {PRIORITY}:{PRIORITY}, ip link set {name} up"
    )
}

/// IFNAMSIZ without its NUL (netdevice(7)).
const NAME_MAX: usize = 15;

/// Where the kernel shows its devices.
pub(crate) const SYSFS: &str = "/sys";

/// Where the kernel lists VLAN interfaces of the network namespace, if it has any.
pub(super) const VLANS: &str = "/proc/net/vlan/config";

/// What is to be said where VLANs are yet to be found, and the network card drops their frames.
pub(super) fn filters_any(interface: &str) -> String {
    format!(
        "{interface}: the NIC drops frames of VLANs that have no interface, so vlan=auto may find \
         no FCF there: ethtool -K {interface} rx-vlan-filter off"
    )
}

/// The VLAN interface that `interface` has for a VLAN: the kernel takes the tag off its frames.
pub(super) fn vlan_interface(vlans: &Path, interface: &str, vid: u16) -> Option<String> {
    let mut all = vlan_interfaces(vlans).into_iter();
    let (name, ..) = all.find(|(_, id, lower)| *id == vid && lower == interface)?;
    Some(name)
}

/// Whether the network card at an interface drops frames with the tag of a VLAN: it filters VLANs,
/// as `filters` tells, and learns of one by an interface of it.
pub(super) fn drops_vlan(
    vlans: &Path,
    interface: &str,
    vid: u16,
    filters: impl Fn(&str) -> bool,
) -> bool {
    // At the interface of a VLAN the kernel puts in the tag.
    let is_known =
        vlan_interface(vlans, interface, vid).is_some() || vlan_of(vlans, interface).is_some();
    !is_known && filters(interface)
}

/// The interface below that of a VLAN, and which VLAN that is.
pub(super) fn vlan_of(vlans: &Path, interface: &str) -> Option<(String, u16)> {
    let mut all = vlan_interfaces(vlans).into_iter();
    let (_, vid, lower) = all.find(|(name, ..)| name == interface)?;
    Some((lower, vid))
}

/// The interface below that of a VLAN of this network namespace, and which VLAN that is. `None` for
/// another interface.
#[must_use]
pub fn interface_below_vlan(interface: &str) -> Option<(String, u16)> {
    vlan_of(Path::new(VLANS), interface)
}

/// All interfaces of VLANs: their names, VLANs, and what is below them.
fn vlan_interfaces(vlans: &Path) -> Vec<(String, u16, String)> {
    let list = fs::read_to_string(vlans).unwrap_or_default();
    let interfaces = list.lines().filter_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let (name, id, lower) = (columns.next()?, columns.next()?, columns.next()?);
        Some((name.to_owned(), id.parse().ok()?, lower.to_owned()))
    });
    interfaces.collect()
}

/// The interface on which the kernel has an FCoE port that is in the way of one at `interface`:
/// there, or on a VLAN of it, as Linux hears FIP without a tag there too.
///
/// Linux gives its port the same names, MAC address and N_Port_ID as a server's here. Neither hears
/// the other, as both leave frames of their own machine alone, and each answers what is meant for
/// the other: a command would be carried out by two targets.
pub(crate) fn kernel_port(sysfs: &Path, interface: &str) -> Option<String> {
    let controllers = fs::read_dir(sysfs.join("bus/fcoe/devices")).ok()?;
    // One of another network namespace does not resolve.
    let ports = controllers
        .flatten()
        .filter_map(|controller| fs::canonicalize(controller.path()).ok())
        .filter_map(|controller| controller.parent().map(Path::to_owned));
    let own = fs::canonicalize(sysfs.join("class/net").join(interface)).ok()?;
    let mut in_the_way = ports.filter(|port| *port == own || is_vlan_of(port, interface));
    let port: PathBuf = in_the_way.next()?;
    Some(port.file_name()?.to_string_lossy().into_owned())
}

fn is_vlan_of(port: &Path, interface: &str) -> bool {
    let kind = fs::read_to_string(port.join("uevent")).unwrap_or_default();
    kind.lines().any(|line| line == "DEVTYPE=vlan")
        && port.join(format!("lower_{interface}")).exists()
}

/// Frames that were lost at an Ethernet port. What the interface itself drops on receipt is left
/// out: those are frames of protocols that are not spoken here, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameLosses(pub(super) Drops);

/// A place where frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLoss {
    /// Its name.
    pub place: &'static str,
    /// How many frames.
    pub frames: u64,
    /// Why they were lost.
    pub fate: &'static str,
}

impl FrameLosses {
    /// What a port tells of them.
    #[must_use]
    pub const fn new(drops: Drops) -> Self {
        Self(drops)
    }

    /// The same with so many more that found no room on their way to the core of their nexus,
    /// which are as those that found none in the ring.
    pub(super) const fn and_dropped(mut self, frames: u64) -> Self {
        self.0.ring_full += frames;
        self
    }

    /// The same with what another port at the same place has not sent, which only sends.
    #[must_use]
    pub const fn and_unsent(mut self, sender: &Drops) -> Self {
        self.0.oversize += sender.oversize;
        self.0.unsent += sender.unsent;
        self.0.refused += sender.refused;
        self
    }

    /// Each place, whether or not frames were lost there.
    #[must_use]
    pub fn places(&self) -> [FrameLoss; 7] {
        let Self(drops) = self;
        let unsent = "link down";
        [
            ("ring", drops.ring_full, "receive ring full"),
            ("nic", drops.missed, "no memory in the interface"),
            ("too_long", drops.too_long, "too long to receive"),
            ("oversize", drops.oversize, "too long to send"),
            ("link_down", drops.unsent, unsent),
            ("refused", drops.refused, "refused for too long"),
            ("sending", drops.transmitted, "not sent by the interface"),
        ]
        .map(|(place, frames, fate)| FrameLoss {
            place,
            frames,
            fate,
        })
    }

    /// In words, if there are any.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        self.told_since(&Self::default())
    }

    /// In words those that were lost since then, if any were.
    pub fn told_since(&self, before: &Self) -> Option<String> {
        let places = self.places().into_iter().zip(before.places());
        let words: Vec<_> = places
            .filter(|(now, before)| now.frames > before.frames)
            .map(|(now, before)| format!("{} ({})", now.frames - before.frames, now.fate))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Frames that were lost at an Ethernet port, as far as the log has told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoggedLosses {
    lost: FrameLosses,
    /// When they were looked at last.
    since: Now,
}

impl LoggedLosses {
    /// When they are to be looked at again.
    pub(super) fn next_look(&self) -> Now {
        self.since + QUIET
    }

    /// What the log is to be told: frames that were lost since this was asked before, at most once
    /// a minute. `lost` gives all that were lost, if it is known.
    pub(super) fn news(
        &mut self,
        now: Now,
        lost: impl FnOnce() -> Option<FrameLosses>,
    ) -> Option<String> {
        if now < self.next_look() {
            return None;
        }
        self.since = now;
        let lost = lost()?;
        let before = std::mem::replace(&mut self.lost, lost);
        lost.told_since(&before)
    }
}

#[cfg(test)]
mod tests;
