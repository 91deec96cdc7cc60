//! Ethernet ports that are opened for an N_Port.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::io::ether::{EtherOptions, EtherPort, PRIORITY, Place};
use fc::port::{PortConfig, PortMode};
use fc::wire::ethernet::VlanTag;

use super::problems::{self, LinkProblem, NoPort};
use super::{PortNames, PortOwner, StatusKind, StatusSocket};

/// An Ethernet port that is to have an N_Port.
#[derive(Debug)]
pub struct Attachment {
    pub(super) place: Place,
    pub(super) ether: EtherPort,
    /// What the N_Port will be like.
    pub config: PortConfig,
    /// What it is called.
    pub names: Arc<PortNames>,
    pub(super) random: [u8; 8],
    /// What tells other programs of the port.
    pub(super) status: Option<StatusSocket>,
}

impl Attachment {
    /// Opens an Ethernet port for an N_Port of this owner.
    ///
    /// # Errors
    ///
    /// See [`NoPort`].
    pub fn open(place: &Place, owner: &PortOwner) -> Result<Self, NoPort> {
        let failed = |cause| NoPort::Io(place.clone(), cause);
        let mut ether = open_ether(place)?;
        let names = PortNames::claim(place, ether.mac(), owner).map_err(failed)?;
        let mut config = PortConfig::new(names.mac, ether.link().mtu as usize);
        for mac in config.mode.groups().iter().chain([&names.mac]) {
            ether.join(mac.0).map_err(failed)?;
        }
        (config.wwpn, config.wwnn) = (names.wwpn, names.wwnn);
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|cause| failed(io::Error::other(cause)))?;
        let status = status_socket(place, &ether);
        Ok(Self {
            place: place.clone(),
            ether,
            config,
            names,
            random,
            status,
        })
    }

    /// Has the port find others in this way, by frames with this tag.
    ///
    /// # Errors
    ///
    /// The Ethernet port cannot receive what that takes, or the kernel takes the frames of the
    /// VLAN.
    pub fn find_by(&mut self, mode: PortMode, tag: Option<VlanTag>) -> Result<(), NoPort> {
        if let (Some(interface), Some(tag)) = (self.place.interface(), tag)
            && let Some(other) =
                problems::vlan_interface(Path::new(problems::VLANS), interface, tag.vid)
        {
            return Err(NoPort::Vlan(self.place.clone(), tag.vid, other));
        }
        let failed = |cause| NoPort::Io(self.place.clone(), cause);
        let (before, now) = (self.config.mode.groups(), mode.groups());
        for mac in now.iter().filter(|mac| !before.contains(mac)) {
            self.ether.join(mac.0).map_err(failed)?;
        }
        for mac in before.iter().filter(|mac| !now.contains(mac)) {
            self.ether.leave(mac.0).map_err(failed)?;
        }
        (self.config.mode, self.config.tag) = (mode, tag);
        // All of the fabric see it: the path of a cable is of this machine alone.
        let place = self.place.interface().unwrap_or("a cable");
        let own = PortConfig::new(self.names.mac, 0).symbolic_name;
        self.config.symbolic_name = format!("{own} over {place}");
        Ok(())
    }

    /// The Ethernet port, for a machine other than an N_Port, and fresh random bytes for that.
    pub(crate) fn into_ether(self) -> (EtherPort, [u8; 8]) {
        (self.ether, self.random)
    }

    /// What is in the way of frames, or of full ones.
    pub fn obstacle(&self) -> Option<LinkProblem> {
        LinkProblem::at(&self.place, self.ether.link())
    }
}

/// A socket that the Ethernet port waits for. A port goes on without one.
fn status_socket(place: &Place, ether: &EtherPort) -> Option<StatusSocket> {
    let opened = StatusSocket::open(StatusKind::Port).and_then(|socket| {
        ether.wait_for(&socket)?;
        Ok(socket)
    });
    let told = opened.inspect_err(|cause| {
        tracing::debug!("{place}: fcoeadm will not show this port: {cause}");
    });
    told.ok()
}

/// Opens an Ethernet port for Fibre Channel, unless the kernel's fcoe is there or no frame fits.
pub(super) fn open_ether(place: &Place) -> Result<EtherPort, NoPort> {
    let kernels = |interface| problems::kernel_port(Path::new(problems::SYSFS), interface);
    if let Some(port) = place.interface().and_then(kernels) {
        return Err(NoPort::Kernel(place.clone(), port));
    }
    let ether = EtherPort::open(place, &EtherOptions::default())?;
    if let Some(narrow @ LinkProblem::Narrow(..)) = LinkProblem::at(place, ether.link()) {
        return Err(NoPort::Narrow(narrow));
    }
    if let Some(line) = no_priority(place, ether.tag_priority()) {
        tracing::warn!("{line}");
    }
    Ok(ether)
}

/// What is to be said of a VLAN whose tags do not carry the priority that frames leave with.
fn no_priority(place: &Place, in_tags: Option<u32>) -> Option<String> {
    let in_tags = in_tags.filter(|priority| *priority != PRIORITY)?;
    let name = place.interface()?;
    Some(format!(
        "{place}: frames carry VLAN priority {in_tags}, so switches may drop them: ip link set \
         {name} type vlan egress-qos-map {PRIORITY}:{PRIORITY}"
    ))
}
