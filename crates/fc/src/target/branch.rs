//! The part of a port's nexuses that another machine has, and which frames are theirs.
//!
//! Where the kernel hands the frames of an initiator right to this machine, they come whole, and
//! are checked as a port checks them: from one that has a nexus here, to the port, by its VLAN,
//! with the right CRC. What comes by way of the port itself was checked there.

use std::collections::BTreeMap;

use scsi::medium::{Lease, Now};

use super::{FcpLimits, FcpTarget};
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId};
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::frame::FrameHeader;
use crate::wire::names::FcId;

/// A part of a port's nexuses.
#[derive(Debug)]
pub struct FcpBranch<L> {
    target: FcpTarget<L>,
    /// Those that have a nexus here.
    initiators: BTreeMap<FcId, RemoteId>,
    /// Frames that were none of their own, or cannot be read.
    strangers: u64,
}

impl<L: Lease> FcpBranch<L> {
    /// A part without nexuses yet.
    #[must_use]
    pub fn new(limits: FcpLimits) -> Self {
        Self {
            target: FcpTarget::new(limits),
            initiators: BTreeMap::new(),
            strangers: 0,
        }
    }

    /// Its exchanges.
    #[must_use]
    pub const fn target(&self) -> &FcpTarget<L> {
        &self.target
    }

    /// The same, to be told something.
    pub const fn target_mut(&mut self) -> &mut FcpTarget<L> {
        &mut self.target
    }

    /// Frames that were dropped as they belong to no nexus of this part.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// There is a nexus.
    pub fn up(&mut self, remote: RemoteId, peer: &FcpPeer) {
        self.down(remote);
        self.initiators.insert(peer.address.fc_id, remote);
        self.target.peer_up(remote, *peer);
    }

    /// There is none any more.
    pub fn down(&mut self, remote: RemoteId) {
        if let Some(peer) = self.target.peer(remote) {
            self.initiators.remove(&peer.address.fc_id);
            self.target.peer_down(remote);
        }
    }

    /// Takes a frame that the port has checked.
    pub fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        self.target.receive(now, remote, frame);
    }

    /// Takes a whole Ethernet frame; `vlan` is as for [`crate::port::Port::receive`].
    pub fn receive_ethernet(&mut self, now: Now, bytes: &[u8], vlan: Option<u16>) {
        let parsed = EthernetHeader::parse(bytes).ok();
        let fcoe = parsed.filter(|(ethernet, _)| ethernet.ethertype == ethernet::FCOE);
        let read = fcoe.and_then(|(ethernet, payload)| {
            let frame = fcoe::decode(payload).ok()?;
            let remote = self.sender(&ethernet, vlan, &frame.header)?;
            Some((remote, frame))
        });
        match read {
            Some((remote, frame)) => self.target.receive(now, remote, &frame),
            None => self.strangers += 1,
        }
    }

    /// Which initiator a frame is from, if it has a nexus here and the frame is to the port.
    fn sender(
        &self,
        ethernet: &EthernetHeader,
        vlan: Option<u16>,
        header: &FrameHeader,
    ) -> Option<RemoteId> {
        let remote = *self.initiators.get(&header.s_id)?;
        let peer = self.target.peer(remote)?;
        let came = vlan.or(ethernet.vlan.map(|tag| tag.vid)).unwrap_or(0);
        let is_ours = header.d_id == peer.own.fc_id
            && (ethernet.dst, ethernet.src) == (peer.own.mac, peer.address.mac)
            && came == peer.tag.map_or(0, |tag| tag.vid);
        is_ours.then_some(remote)
    }
}
