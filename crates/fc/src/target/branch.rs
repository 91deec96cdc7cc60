//! The part of a port's nexuses that another machine has, and which frames are theirs.
//!
//! Where the kernel hands the frames of an initiator right to this machine, they come whole, and
//! are checked as a port checks them: from one that has a nexus here, to the port, by its VLAN,
//! with the right CRC. What comes by way of the port itself was checked there.
//!
//! Frames and what the port tells come by different ways, so the first command of an initiator may
//! be read before this machine hears of its nexus. Such frames are kept until it does.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::{FcpTarget, LimitShare};
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId};
use crate::wire::ethernet::{self, EthernetHeader, VlanTag};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::frame::FrameHeader;
use crate::wire::names::FcId;

/// A part of a port's nexuses.
#[derive(Debug)]
pub struct FcpBranch<L> {
    target: FcpTarget<L>,
    /// Those that have a nexus here.
    initiators: BTreeMap<FcId, RemoteId>,
    /// Frames of initiators that have no nexus here yet, the oldest first.
    early: VecDeque<EarlyFrame>,
    /// Frames from no initiator that has a nexus here, or not to the port, or that cannot be read.
    unknown: u64,
}

#[derive(Debug)]
struct EarlyFrame {
    came: Now,
    s_id: FcId,
    vlan: Option<u16>,
    bytes: Box<[u8]>,
}

/// Frames that are kept before there is a nexus: what some initiators send before the first answer.
pub const EARLY_MAX: usize = 64;

/// How long they are kept: an initiator has given up what a core answers later than that.
const EARLY_AGE: Duration = Duration::from_secs(1);

impl<L: Lease> FcpBranch<L> {
    /// A part without nexuses yet.
    #[must_use]
    pub fn new(limits: LimitShare) -> Self {
        Self {
            target: FcpTarget::sharing(limits),
            initiators: BTreeMap::new(),
            early: VecDeque::new(),
            unknown: 0,
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

    /// Frames that were dropped since this was asked before, as they belong to no nexus of this
    /// part.
    pub fn take_unknown(&mut self) -> u64 {
        std::mem::take(&mut self.unknown)
    }

    /// There is a nexus. Frames of it that came before are taken now.
    pub fn up(&mut self, now: Now, remote: RemoteId, peer: &FcpPeer) {
        self.down(remote);
        let s_id = peer.address.fc_id;
        self.initiators.insert(s_id, remote);
        self.target.peer_up(remote, *peer);
        let early = std::mem::take(&mut self.early);
        let (own, others) = early.into_iter().partition(|frame| frame.s_id == s_id);
        self.early = others;
        for frame in own {
            if now.saturating_sub(frame.came) <= EARLY_AGE {
                self.receive_ethernet(now, &frame.bytes, frame.vlan);
            } else {
                self.unknown += 1;
            }
        }
    }

    /// There is none any more. What came of it is to be taken before.
    pub fn down(&mut self, remote: RemoteId) {
        if let Some(peer) = self.target.peer(remote) {
            let s_id = peer.address.fc_id;
            self.initiators.remove(&s_id);
            self.target.peer_down(remote);
        }
    }

    /// Takes a frame that the port has checked.
    pub fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        self.target.receive(now, remote, frame);
    }

    /// Takes a whole Ethernet frame; `vlan` is as for [`crate::port::Port::receive`].
    pub fn receive_ethernet(&mut self, now: Now, bytes: &[u8], vlan: Option<u16>) {
        let tag = vlan.map(VlanTag::decode);
        let parsed = EthernetHeader::parse_received(bytes, tag).ok();
        let fcoe = parsed.filter(|(ethernet, _)| ethernet.ethertype == ethernet::FCOE);
        let read = fcoe.and_then(|(ethernet, payload)| {
            let frame = fcoe::decode(payload).ok()?;
            Some((ethernet, frame))
        });
        let Some((ethernet, frame)) = read else {
            self.unknown += 1;
            return;
        };
        let s_id = frame.header.s_id;
        match self.sender(&ethernet, &frame.header) {
            Some(remote) => self.target.receive(now, remote, &frame),
            None if self.initiators.contains_key(&s_id) => self.unknown += 1,
            None => self.keep(EarlyFrame {
                came: now,
                s_id,
                vlan,
                bytes: bytes.into(),
            }),
        }
    }

    /// Keeps a frame, for which the oldest one may have to go.
    fn keep(&mut self, frame: EarlyFrame) {
        if self.early.len() >= EARLY_MAX {
            self.early.pop_front();
            self.unknown += 1;
        }
        self.early.push_back(frame);
    }

    /// Which initiator a frame is from, if it has a nexus here and the frame is to the port.
    fn sender(&self, ethernet: &EthernetHeader, header: &FrameHeader) -> Option<RemoteId> {
        let remote = *self.initiators.get(&header.s_id)?;
        let peer = self.target.peer(remote)?;
        let is_ours = header.d_id == peer.own.fc_id
            && (ethernet.dst, ethernet.src) == (peer.own.mac, peer.address.mac)
            && ethernet.vid() == peer.tag.map_or(0, |tag| tag.vid);
        is_ours.then_some(remote)
    }
}
