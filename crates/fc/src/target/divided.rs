//! A target whose nexuses are divided among several machines, as a rule one a core.
//!
//! Logins, link services and addresses stay with the port, and so do the nexuses of the first
//! place. A nexus of another place has its exchanges in an [`FcpTarget`] there, which sends by a
//! way of its own: the port hands on what comes in for it, in the order in which it came. What a
//! nexus has in common with others (reservations, unit attentions, task sets) is the device
//! servers' to tell each other.
//!
//! A new nexus goes to the place with the fewest, and stays there until it ends. It is handed on
//! frame by frame, so one busy initiator is one machine's; it gets more by more N_Ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use scsi::medium::{Lease, Now};

use super::{FcpLimits, FcpTarget, FcpTargetEvent};
use crate::frames::FrameSink;
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::frame::FrameHeader;

/// The nexuses of a port: those of this machine, and where the others are.
#[derive(Debug)]
pub struct DividedTarget<L> {
    here: FcpTarget<L>,
    /// By [`RemoteId`]: nexuses of other places.
    elsewhere: Vec<Option<PlacedNexus>>,
    /// Nexuses at each place, the first of which is here.
    loads: Vec<u32>,
    /// What came for each of the other places, and was not taken.
    dealt: Vec<DealtFrames>,
    /// There is some of it.
    has_dealt: bool,
    /// Frames for other places that found no room.
    dropped: u64,
}

/// A nexus of another place.
#[derive(Clone, Debug)]
pub struct PlacedNexus {
    /// Which place; none is 0.
    pub place: usize,
    /// The initiator.
    pub peer: FcpPeer,
}

/// Frames for the nexuses of another place, in the order in which they came. Their memory counts
/// until they are dropped, as nothing else keeps initiators from sending more.
#[derive(Debug, Default)]
pub struct DealtFrames {
    frames: Vec<DealtFrame>,
    /// Their payloads.
    bytes: Vec<u8>,
    /// Bytes of all frames that were dealt to this place and live.
    waiting: Arc<AtomicUsize>,
    /// Ours among them.
    counted: usize,
}

#[derive(Clone, Copy, Debug)]
struct DealtFrame {
    remote: RemoteId,
    sof: Sof,
    eof: Eof,
    header: FrameHeader,
    /// Where its payload begins and ends.
    payload: (usize, usize),
}

/// Bytes of frames that wait for one place: what the ring has that frames of an interface come
/// into. What comes beyond it is lost, as it is when that is full.
pub const DEALT_MAX: usize = 16 << 20;

impl FcpLimits {
    /// The part of each of so many machines, so that all of them together keep to these.
    #[must_use]
    pub fn divided(self, machines: usize) -> Self {
        let machines = machines.max(1);
        let commands = usize::from(self.commands).div_ceil(machines);
        Self {
            commands: commands as u16,
            unconfirmed: self.unconfirmed / machines,
            window: self.window / machines as u64,
        }
    }
}

impl<L: Lease> DividedTarget<L> {
    /// A target without initiators, divided among `places`, of which each keeps to `limits`.
    #[must_use]
    pub fn new(limits: FcpLimits, places: usize) -> Self {
        let others = places.saturating_sub(1);
        Self {
            here: FcpTarget::new(limits),
            elsewhere: Vec::new(),
            loads: vec![0; 1 + others],
            dealt: std::iter::repeat_with(DealtFrames::default)
                .take(others)
                .collect(),
            has_dealt: false,
            dropped: 0,
        }
    }

    /// The machine of the first place.
    #[must_use]
    pub const fn here(&self) -> &FcpTarget<L> {
        &self.here
    }

    /// The same, to be told something.
    pub const fn here_mut(&mut self) -> &mut FcpTarget<L> {
        &mut self.here
    }

    /// Where the nexus with an initiator is, unless it is here or there is none.
    #[must_use]
    pub fn placed(&self, remote: RemoteId) -> Option<&PlacedNexus> {
        self.elsewhere.get(remote.index())?.as_ref()
    }

    /// Whether [`Self::take_dealt`] would give something.
    #[must_use]
    pub const fn has_dealt(&self) -> bool {
        self.has_dealt
    }

    /// What came for other places, with their numbers.
    pub fn take_dealt(&mut self) -> Vec<(usize, DealtFrames)> {
        self.has_dealt = false;
        let dealt = self.dealt.iter_mut().enumerate();
        let taken = dealt.filter(|(_, frames)| !frames.frames.is_empty());
        taken.map(|(at, frames)| (at + 1, frames.take())).collect()
    }

    /// Frames that were lost as too many waited for the place of their nexus.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The place with the fewest nexuses, the first of several.
    fn emptiest(&self) -> usize {
        let loads = self.loads.iter().enumerate();
        loads
            .min_by_key(|(_, load)| **load)
            .map_or(0, |(place, _)| place)
    }

    fn deal(&mut self, remote: RemoteId, place: usize, frame: &ReceivedFrame<'_>) {
        if self.dealt[place - 1].push(remote, frame) {
            self.has_dealt = true;
        } else {
            self.dropped += 1;
        }
    }
}

impl DealtFrames {
    /// Adds a frame; `false` if it has no room.
    fn push(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) -> bool {
        let len = size_of::<DealtFrame>() + frame.payload.len();
        if self.waiting.load(Relaxed) + len > DEALT_MAX {
            return false;
        }
        self.waiting.fetch_add(len, Relaxed);
        self.counted += len;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame.payload);
        self.frames.push(DealtFrame {
            remote,
            sof: frame.sof,
            eof: frame.eof,
            header: frame.header,
            payload: (start, self.bytes.len()),
        });
        true
    }

    /// All that there is; more is counted with it.
    fn take(&mut self) -> Self {
        let taken = std::mem::take(self);
        self.waiting = Arc::clone(&taken.waiting);
        taken
    }

    /// The frames, each with the remote port that it is from.
    pub fn iter(&self) -> impl Iterator<Item = (RemoteId, ReceivedFrame<'_>)> {
        self.frames.iter().map(|one| {
            let frame = ReceivedFrame {
                sof: one.sof,
                eof: one.eof,
                header: one.header,
                payload: &self.bytes[one.payload.0..one.payload.1],
            };
            (one.remote, frame)
        })
    }
}

impl Drop for DealtFrames {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.counted, Relaxed);
    }
}

impl<L: Lease> Fc4Layer for DividedTarget<L> {
    type Event = FcpTargetEvent<L>;
    const ROLE: Role = Role::Target;

    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer) {
        self.peer_down(remote);
        let place = self.emptiest();
        self.loads[place] += 1;
        if place == 0 {
            return self.here.peer_up(remote, peer);
        }
        let at = remote.index();
        if self.elsewhere.len() <= at {
            self.elsewhere.resize_with(at + 1, || None);
        }
        self.elsewhere[at] = Some(PlacedNexus { place, peer });
    }

    fn peer_down(&mut self, remote: RemoteId) {
        let placed = self.elsewhere.get_mut(remote.index());
        if let Some(PlacedNexus { place, .. }) = placed.and_then(Option::take) {
            self.loads[place] -= 1;
            let frames = &mut self.dealt[place - 1].frames;
            frames.retain(|frame| frame.remote != remote);
        } else if self.here.peer(remote).is_some() {
            self.loads[0] -= 1;
            self.here.peer_down(remote);
        }
    }

    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        match self.placed(remote).map(|nexus| nexus.place) {
            None => self.here.receive(now, remote, frame),
            Some(place) => self.deal(remote, place, frame),
        }
    }

    fn poll(&mut self) -> Option<FcpTargetEvent<L>> {
        self.here.poll()
    }

    fn transmit(&mut self, out: &mut impl FrameSink) -> bool {
        self.here.transmit(out)
    }

    fn expected(&self) -> u64 {
        self.here.expected()
    }

    fn next_deadline(&self) -> Option<Now> {
        self.here.next_deadline()
    }

    fn expire(&mut self, now: Now) {
        self.here.expire(now);
    }
}
