//! A lane: the networks of one cell at a time, apart from those of the others.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;
use tests::tool;

use crate::cells::Link;
use crate::guest::Nic;

/// Two networks of TAP interfaces, a bridge, and a cable.
pub(crate) struct Lane {
    number: u8,
    /// Why there are no TAP interfaces.
    without_taps: Option<String>,
    without_bridge: Option<String>,
    /// For the sockets of the cable, whose paths may have 107 bytes only.
    sockets: Option<TempDir>,
}

/// The network of the bridge; those before it have one guest each. Its TAPs count from here, too.
pub(crate) const BRIDGE: usize = 2;
const NETWORKS: usize = BRIDGE + 1;

/// A full frame of Fibre Channel fits.
pub(crate) const BRIDGE_MTU: &str = "2500";

impl Lane {
    pub(crate) fn new(number: u8) -> Self {
        let mut lane = Self {
            number,
            without_taps: None,
            without_bridge: None,
            sockets: tempfile::tempdir().ok(),
        };
        lane.without_taps = lane.make_taps().err().map(|cause| format!("{cause:#}"));
        lane.without_bridge = lane.make_bridge().err().map(|cause| format!("{cause:#}"));
        lane
    }

    fn make_taps(&self) -> Result<()> {
        for network in 0..BRIDGE {
            let (tap, host) = (self.tap(network), self.host(network));
            ip(&["tuntap", "add", &tap, "mode", "tap"])?;
            ip(&["address", "add", &format!("{host}/24"), "dev", &tap])?;
            ip(&["link", "set", &tap, "up"])?;
        }
        Ok(())
    }

    fn make_bridge(&self) -> Result<()> {
        let (bridge, host) = (self.bridge(), self.host(BRIDGE));
        ip(&["link", "add", &bridge, "type", "bridge"])?;
        for guest in 0..Link::Bridge.guests() {
            let tap = self.tap(BRIDGE + guest);
            ip(&["tuntap", "add", &tap, "mode", "tap"])?;
            ip(&[
                "link", "set", &tap, "mtu", BRIDGE_MTU, "master", &bridge, "up",
            ])?;
        }
        ip(&["address", "add", &format!("{host}/24"), "dev", &bridge])?;
        ip(&["link", "set", &bridge, "mtu", BRIDGE_MTU, "up"])
    }

    /// What is not there of what such a cell needs.
    pub(crate) fn missing(&self, link: Link) -> Option<String> {
        match link {
            Link::Taps(_) => self.without_taps.clone(),
            Link::Cable | Link::Cables => self
                .sockets
                .is_none()
                .then(|| "no folder for sockets".to_owned()),
            Link::Bridge => self.without_bridge.clone(),
        }
    }

    /// Joins what an earlier cell has cut.
    pub(crate) fn mend(&self, link: Link) -> Result<()> {
        match link {
            Link::Taps(count) => (0..count).try_for_each(|network| self.cut(network, false)),
            Link::Cable | Link::Cables => Ok(()),
            Link::Bridge => (0..2).try_for_each(|guest| self.cut(BRIDGE + guest, false)),
        }
    }

    /// The interfaces of a guest in this lane, by its number in the cell.
    pub(crate) fn nics(&self, link: Link, guest: usize) -> Vec<Nic> {
        let ends = match link {
            Link::Taps(count) => (0..count).map(|network| self.tap_end(network)).collect(),
            Link::Cable | Link::Cables => vec![self.cable_end(guest)],
            Link::Bridge => vec![self.tap_end(BRIDGE + guest)],
        };
        let nic = |(at, netdev)| Nic {
            netdev,
            mac: self.mac(guest + at),
        };
        ends.into_iter().enumerate().map(nic).collect()
    }

    fn tap_end(&self, network: usize) -> String {
        let tap = self.tap(network);
        format!("tap,ifname={tap},script=no,downscript=no,vnet_hdr=off")
    }

    /// One datagram is one frame. `lunar` has the other end.
    fn cable_end(&self, guest: usize) -> String {
        let path = self.cable_of(guest);
        let path = path.display();
        format!("dgram,local.type=unix,local.path={path}.peer,remote.type=unix,remote.path={path}")
    }

    /// The cable of the first guest.
    pub(crate) fn cable(&self) -> PathBuf {
        self.cable_of(0)
    }

    /// That of a guest, by its number in the cell.
    pub(crate) fn cable_of(&self, guest: usize) -> PathBuf {
        let dir = self
            .sockets
            .as_ref()
            .map(TempDir::path)
            .unwrap_or_else(|| "/nowhere".as_ref());
        let name = ["cable", "cable-2"][guest];
        dir.join(name)
    }

    /// The MAC address of a guest's interface, which its WWPN follows from. On the bridge, each
    /// guest has one, by its number.
    pub(crate) fn mac(&self, nic: usize) -> String {
        format!("52:54:00:00:{:02x}:{:02x}", self.number, nic + 1)
    }

    fn tap(&self, network: usize) -> String {
        format!("vm{}-{network}", self.number)
    }

    fn subnet(&self, network: usize) -> usize {
        usize::from(self.number) * NETWORKS + network
    }

    /// The address of this machine in a network.
    pub(crate) fn host(&self, network: usize) -> String {
        format!("10.9.{}.1", self.subnet(network))
    }

    /// The address of the guest there.
    pub(crate) fn guest(&self, network: usize) -> String {
        format!("10.9.{}.2", self.subnet(network))
    }

    /// That of a guest on the bridge, by its number.
    pub(crate) fn on_bridge(&self, guest: usize) -> String {
        format!("10.9.{}.{}", self.subnet(BRIDGE), 2 + guest)
    }

    /// The interface of this machine there.
    pub(crate) fn bridge(&self) -> String {
        format!("vm{}-bridge", self.number)
    }

    /// An end of a veth pair whose other end is in the bridge, by its number. It is made when it is
    /// first asked for.
    pub(crate) fn veth(&self, number: usize) -> Result<String> {
        let (own, bridged) = (
            format!("vm{}-own-{number}", self.number),
            self.bridged(number),
        );
        if ip(&["link", "show", &own]).is_err() {
            ip(&[
                "link", "add", &own, "mtu", BRIDGE_MTU, "type", "veth", "peer", &bridged, "mtu",
                BRIDGE_MTU,
            ])?;
            ip(&["link", "set", &own, "up"])?;
            ip(&["link", "set", &bridged, "master", &self.bridge(), "up"])?;
        }
        Ok(own)
    }

    /// Its end in the bridge.
    pub(crate) fn bridged(&self, number: usize) -> String {
        format!("vm{}-port-{number}", self.number)
    }

    /// Has longer frames to a guest be lost.
    pub(crate) fn tap_has_mtu(&self, network: usize, mtu: &str) -> Result<()> {
        ip(&["link", "set", &self.tap(network), "mtu", mtu])
    }

    /// Cuts a network, or joins it again. What is sent meanwhile is lost; neither end sees its link
    /// go down. On the bridge, that of one guest (`BRIDGE` and its number) is cut.
    pub(crate) fn cut(&self, network: usize, cut: bool) -> Result<()> {
        ip(&[
            "link",
            "set",
            &self.tap(network),
            if cut { "down" } else { "up" },
        ])
    }
}

fn ip(args: &[&str]) -> Result<()> {
    tool::must(Command::new("ip").args(args)).map(drop)
}
