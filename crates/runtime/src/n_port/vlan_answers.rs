//! Answers to VLAN Requests of FIP, beside a port of VN2VN (`fip-resp=yes`): hosts ask at the
//! interface below the VLAN, where frames have no tag, so that is opened too.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use ::io::ether::{EtherOptions, EtherPort, Place};
use fc::fip::responder::VlanResponder;
use fc::wire::ethernet::{EthernetHeader, FIP, Mac};
use scsi::medium::Now;

use super::problems::{self, NoPort};
use super::transmit::{SentFrames, TransmitFrames};

/// An Ethernet port at which VLAN Requests are answered.
#[derive(Debug)]
pub(super) struct VlanAnswers {
    place: Place,
    ether: EtherPort,
    responder: VlanResponder,
}

impl VlanAnswers {
    /// For a port at an interface: of a VLAN, or of none.
    pub(super) fn open(interface: &str) -> Result<Self, NoPort> {
        let (below, vid) = below(Path::new(problems::VLANS), interface);
        let place = Place::Interface(below);
        let mut ether = EtherPort::open(&place, &EtherOptions::default())?;
        let failed = |cause| NoPort::Io(place.clone(), cause);
        let mac = Mac(ether.mac());
        for group in VlanResponder::groups().iter().chain([&mac]) {
            ether.join(group.0).map_err(failed)?;
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|cause| failed(io::Error::other(cause)))?;
        Ok(Self {
            responder: VlanResponder::new(mac, vid, random),
            ether,
            place,
        })
    }

    /// What becomes readable when there is something to answer.
    pub(super) fn waited(&self) -> &Arc<OwnedFd> {
        self.ether.waited()
    }

    /// Answers what has come.
    pub(super) fn turn(&mut self, now: Now) {
        let (place, responder) = (&self.place, &mut self.responder);
        self.ether.receive(|frame, tci| {
            let Ok((header, payload)) = EthernetHeader::parse(frame) else {
                return;
            };
            let is_untagged = header.vlan.is_none() && tci.is_none();
            if header.ethertype == FIP
                && is_untagged
                && let Err(violation) = responder.receive(now, &header, payload)
            {
                tracing::debug!("{place}: {}: {violation}", header.src);
            }
        });
        // The port itself tells of the link.
        let _ = self.ether.news();
        self.responder.transmit(&mut TransmitFrames {
            ether: &mut self.ether,
            sent: &mut SentFrames::default(),
            is_full: false,
        });
        if let Err(cause) = self.ether.flush() {
            tracing::error!("{place}: cannot send: {cause}");
        }
    }
}

/// The interface below that of a VLAN, and which VLAN that is; 0 for another interface.
fn below(vlans: &Path, interface: &str) -> (String, u16) {
    problems::vlan_of(vlans, interface).unwrap_or_else(|| (interface.to_owned(), 0))
}
