//! Ethernet ports that a switch has: the F_Port side of FCoE.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::io::ether::{EtherMac, EtherOpenError, EtherOptions, EtherPort, Place};
use fc::wire::ethernet::Mac;
use fc::wire::names::FcId;

use super::attachment::{filters_vlans, open_ether};
use super::{LinkProblem, NoPort, PortNames, PortOwner, problems};

/// An Ethernet port of a switch. Frames to its own address come in, and those to
/// [`FcfAttachment::GROUPS`].
#[derive(Debug)]
pub struct FcfAttachment {
    /// The interface or cable.
    pub place: Place,
    /// The port itself.
    pub ether: EtherPort,
    /// The right to the interface's own address, for as long as this lives.
    names: Arc<PortNames>,
}

impl FcfAttachment {
    /// What an FCF listens to beside its own address (FC-BB-6, FIP addresses): its own group; that
    /// of ENodes, to which other FCFs advertise; and the F_Port's address as a VN_Port would have
    /// it, to which a Linux kernel sends an FLOGI without FIP once it has heard no FCF for 8 s.
    pub const GROUPS: [Mac; 3] = [
        Mac::ALL_FCF,
        Mac::ALL_ENODE,
        Mac::of_port(Mac::FC_MAP, FcId::FABRIC_F),
    ];

    /// Opens an Ethernet port for a switch whose frames carry tags of this VLAN, if of one.
    ///
    /// # Errors
    ///
    /// See [`NoPort`]. Where the network card drops frames of the VLAN it is refused: nothing else
    /// would tell of it.
    pub fn open(place: &Place, vlan: Option<u16>) -> Result<Self, NoPort> {
        if let (Some(interface), Some(vid)) = (place.interface(), vlan)
            && problems::drops_vlan(Path::new(problems::VLANS), interface, vid, filters_vlans)
        {
            return Err(NoPort::VlanFilter(place.clone(), vid));
        }
        let failed = |cause: io::Error| NoPort::Io(place.clone(), cause);
        let mut ether = open_ether(place).map_err(|cause| match cause {
            NoPort::Ether(EtherOpenError::Occupied(_)) => occupant(place).unwrap_or(cause),
            cause => cause,
        })?;
        let names = PortNames::claim(place, ether.mac(), &PortOwner::Switch).map_err(failed)?;
        for mac in Self::GROUPS {
            ether.join(mac.0).map_err(failed)?;
        }
        Ok(Self {
            place: place.clone(),
            ether,
            names,
        })
    }

    /// An attachment at the same place that only sends: for another core.
    ///
    /// # Errors
    ///
    /// See [`NoPort`].
    pub fn sender(&self) -> Result<Self, NoPort> {
        Ok(Self {
            place: self.place.clone(),
            ether: self.ether.sender(&EtherOptions::default())?,
            names: Arc::clone(&self.names),
        })
    }

    /// What is in the way of frames, or of full ones.
    pub fn obstacle(&self) -> Option<LinkProblem> {
        LinkProblem::at(&self.place, self.ether.link())
    }

    /// Whether frames can pass.
    pub fn is_usable(&self) -> bool {
        !self
            .obstacle()
            .is_some_and(|obstacle| obstacle.is_barrier())
    }
}

/// Who has an interface that cannot be opened, if it is a program of this make and user, and the
/// way out.
fn occupant(place: &Place) -> Option<NoPort> {
    let claim = PortNames::claim(place, EtherMac::default(), &PortOwner::Switch);
    let taken = claim.err()?;
    Some(NoPort::Io(place.clone(), taken))
}
