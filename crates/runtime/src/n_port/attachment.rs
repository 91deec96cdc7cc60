//! Ethernet ports that are opened for an N_Port.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use ::io::ether::dcb::DcbUse;
use ::io::ether::{EtherOptions, EtherPort, PRIORITY, Place, survey};
use fc::port::{PortConfig, PortMode};
use fc::wire::ethernet::VlanTag;

use super::branch::BranchCounts;
use super::dcb::{self, DcbGate};
use super::further::FurtherLogin;
use super::problems::{self, LinkProblem, NoPort};
use super::queries::QuerySocket;
use super::vlan_answers::VlanAnswers;
use super::{PortBranch, PortNames, PortOwner, StatusKind, StatusSocket};

/// An Ethernet port that is to have an N_Port.
#[derive(Debug)]
pub struct Attachment {
    pub(super) place: Place,
    /// The place that was asked for: that of a VLAN may have an interface of its own.
    pub(super) asked: Place,
    pub(super) ether: EtherPort,
    /// What the N_Port will be like.
    pub config: PortConfig,
    /// What it is called.
    pub names: Arc<PortNames>,
    pub(super) random: [u8; 8],
    /// What tells other programs of the port.
    pub(super) status: Option<StatusSocket>,
    /// What sends queries of theirs.
    pub(super) queries: Option<QuerySocket>,
    /// What has to open before there is a link.
    pub(super) gate: Option<DcbGate>,
    /// What answers VLAN Requests, if it is to.
    pub(super) vlan_answers: Option<VlanAnswers>,
    /// What it lives by, if it is a further port of its ENode.
    pub(super) further: Option<FurtherLogin>,
    /// Ways of other cores, and what they will have counted.
    pub(super) branches: Vec<PortBranch>,
    pub(super) branch_counts: Vec<Arc<BranchCounts>>,
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
        let status = watched(place, &ether, StatusSocket::open(StatusKind::Port));
        let queries = status.as_ref().map(QuerySocket::open);
        let queries = queries.and_then(|opened| watched(place, &ether, opened));
        Ok(Self {
            place: place.clone(),
            asked: place.clone(),
            ether,
            config,
            names,
            random,
            status,
            queries,
            gate: None,
            vlan_answers: None,
            further: None,
            branches: Vec::new(),
            branch_counts: Vec::new(),
        })
    }

    /// The same for a port that finds others in this way, by frames with this tag: at the interface
    /// that the kernel has for the VLAN, if there is one, after which it is named, too.
    ///
    /// # Errors
    ///
    /// Besides those of [`Self::open`], the network card drops frames of the VLAN.
    pub fn open_by(
        asked: &Place,
        owner: &PortOwner,
        (mode, tag): (PortMode, Option<VlanTag>),
    ) -> Result<Self, NoPort> {
        let (place, tag) = of_vlan(Path::new(problems::VLANS), asked, tag);
        if place != *asked {
            tracing::info!("{asked}: uses {place}, the interface of the VLAN");
        }
        if let (Some(interface), Some(VlanTag { vid, .. })) = (place.interface(), tag)
            && filters_vlans(interface)
        {
            return Err(NoPort::VlanFilter(place, vid));
        }
        let mut site = Self::open(&place, owner)?;
        site.asked = asked.clone();
        site.find_by(mode, tag)?;
        Ok(site)
    }

    fn find_by(&mut self, mode: PortMode, tag: Option<VlanTag>) -> Result<(), NoPort> {
        let failed = |cause| NoPort::Io(self.place.clone(), cause);
        let (before, now) = (self.config.mode.groups(), mode.groups());
        for mac in now.iter().filter(|mac| !before.contains(mac)) {
            self.ether.join(mac.0).map_err(failed)?;
        }
        for mac in before.iter().filter(|mac| !now.contains(mac)) {
            self.ether.leave(mac.0).map_err(failed)?;
        }
        (self.config.mode, self.config.tag) = (mode, tag);
        if let Some(interface) = self.place.interface()
            && matches!(mode, PortMode::Fabric(fabric) if fabric.discovers_vlan)
            && filters_vlans(interface)
        {
            tracing::warn!("{}", problems::filters_any(interface));
        }
        // All of the fabric see it: the path of a cable is of this machine alone.
        let place = self.place.interface().unwrap_or("a cable");
        let own = PortConfig::new(self.names.mac, 0).symbolic_name;
        self.config.symbolic_name = format!("{own} over {place}");
        Ok(())
    }

    /// Has the port wait for lossless Ethernet, or sets the network card so.
    ///
    /// # Errors
    ///
    /// The card has none, or cannot be set.
    pub fn use_dcb(&mut self, what: DcbUse) -> Result<(), NoPort> {
        self.gate = dcb::make_use(&self.place, what)?;
        Ok(())
    }

    /// Has VLAN Requests be answered beside the port, which is one of VN2VN at an interface.
    ///
    /// # Errors
    ///
    /// The interface below a VLAN cannot be had.
    pub fn answer_vlan_requests(&mut self) -> Result<(), NoPort> {
        let Some(interface) = self.place.interface() else {
            return Ok(());
        };
        let answers = VlanAnswers::open(interface)?;
        let waited = self.ether.wait_for(answers.waited());
        waited.map_err(|cause| NoPort::Io(self.place.clone(), cause))?;
        self.vlan_answers = Some(answers);
        Ok(())
    }

    /// What the port waits for, if it does, so that another one of its ENode waits for the same.
    pub fn gate(&self) -> Option<DcbGate> {
        self.gate.clone()
    }

    /// Has the port wait for that.
    pub fn wait_for(&mut self, gate: Option<DcbGate>) {
        self.gate = gate;
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
fn watched<S: AsFd>(place: &Place, ether: &EtherPort, opened: io::Result<S>) -> Option<S> {
    let opened = opened.and_then(|socket| {
        ether.wait_for(&socket)?;
        Ok(socket)
    });
    let told = opened.inspect_err(|cause| {
        tracing::debug!("{place}: fcoeadm and fcping will not do for this port: {cause}");
    });
    told.ok()
}

/// Where a port with this tag is: at the interface of the VLAN, whose frames have none, if the
/// kernel lists one there.
fn of_vlan(vlans: &Path, asked: &Place, tag: Option<VlanTag>) -> (Place, Option<VlanTag>) {
    let found = asked
        .interface()
        .zip(tag)
        .and_then(|(interface, tag)| problems::vlan_interface(vlans, interface, tag.vid));
    match found {
        Some(interface) => (Place::Interface(interface), None),
        None => (asked.clone(), tag),
    }
}

/// Whether frames with a tag do not get through, as far as the driver tells.
pub(super) fn filters_vlans(interface: &str) -> bool {
    matches!(survey::filters_vlans(interface), Ok(Some(true)))
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
    match ether.is_zero_copy() {
        Some(true) => tracing::debug!("{place}: zero-copy: the driver receives into our memory"),
        Some(false) => tracing::debug!("{place}: no zero-copy: the kernel copies"),
        None => {}
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

#[cfg(test)]
mod tests;
