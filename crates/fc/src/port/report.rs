//! What an N_Port tells, and what it counts.

use super::{Fc4Layer, Port};
use crate::fip::enode::FabricNotice;
use crate::remote::{NexusEnd, PeerAddress, RemoteId};
use crate::wire::ethernet::Mac;
use crate::wire::fcoe::FcoeError;
use crate::wire::names::Wwn;
use scsi::violation::Violation;

/// What an N_Port tells. `E` is what the machine above it tells.
#[derive(Debug)]
pub enum PortEvent<E> {
    /// The port has an address; frames to that are to be received too.
    Online(PeerAddress),
    /// It has none any more. The end of all nexuses has been told before.
    Offline,
    /// There is an I_T nexus with a remote port; [`super::Port::remote`] tells of it.
    Up(RemoteId),
    /// There is none any more, and the machine above has let go all that was of it. At a target,
    /// [`super::Port::ended`] has to follow.
    Down(RemoteId, NexusEnd),
    /// What the machine above tells.
    Fc4(E),
    /// News of the fabric, each worth a line in the log.
    Fabric(FabricNotice),
    /// Worth a line in the log, though all goes on.
    Remark {
        /// From which Ethernet address it came.
        from: Mac,
        /// From the port of which name, if that is known.
        wwpn: Option<Wwn>,
        /// The rule that was broken.
        violation: Violation,
    },
}

/// Counted since the port was made. Frames are those of FCoE and FIP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatistics {
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes of them, from the Ethernet header on.
    pub sent_bytes: u64,
    /// Frames received.
    pub received_frames: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// FCoE frames whose CRC is wrong.
    pub bad_crc: u64,
    /// FCoE frames that cannot be read.
    pub malformed: u64,
    /// Frames of another VLAN, from a port that is not a neighbour, or not to us.
    pub unknown: u64,
    /// Frames of FCP from a port that there is no nexus with.
    pub unexpected: u64,
    /// Link services that were neither answered nor sent, as too many waited.
    pub dropped: u64,
    /// Nexuses that came up.
    pub nexuses: u64,
}

impl<F: Fc4Layer> Port<F> {
    /// How many records are kept of others, of all kinds, and what waits to be told and sent: what
    /// a frame costs depends on this, not on how many came before it. What the machine above keeps
    /// is not counted.
    #[must_use]
    pub fn records(&self) -> usize {
        let client = self.name_client.as_ref();
        let of_fabric = client.map_or(0, |client| client.records());
        let waiting = self.controls.len() + self.outputs.len() + self.events.len();
        let of_others = self.remotes.iter().count() + self.queries.records();
        self.fip.records() + of_fabric + of_others + waiting
    }
}

impl PortStatistics {
    pub(super) const fn spoiled(&mut self, error: FcoeError) {
        match error {
            FcoeError::Crc => self.bad_crc += 1,
            _ => self.malformed += 1,
        }
    }
}

impl<F: Fc4Layer> Port<F> {
    pub(super) fn remark_on(&mut self, id: RemoteId, violation: Violation) {
        if let Some(remote) = self.remotes.get(id) {
            let (from, wwpn) = (remote.neighbour().enode, remote.wwpn());
            self.remark(from, Some(wwpn), violation);
        }
    }

    pub(super) fn remark(&mut self, from: Mac, wwpn: Option<Wwn>, violation: Violation) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(PortEvent::Remark {
                from,
                wwpn,
                violation,
            });
        }
    }
}

/// Remarks are left out beyond this many events that were not taken.
const MAX_EVENTS: usize = 1024;
