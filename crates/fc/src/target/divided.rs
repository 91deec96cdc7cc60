//! A target whose nexuses are divided among several machines, as a rule one a core.
//!
//! Logins, link services and addresses stay with the port, and so does a part of its nexuses. The
//! others are those of its branches. Each has their exchanges in an [`FcpTarget`] and sends by an
//! Ethernet port of its own; the port forwards what comes in for them, in the order in which it
//! came. What a nexus has in common with others (reservations, unit attentions, task sets) is the
//! device servers' to tell each other.
//!
//! A new nexus goes to the machine with the fewest, and stays there until it ends, so one busy
//! initiator is one machine's; it gets more by more N_Ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use scsi::medium::{Lease, Now};

use super::{FcpLimits, FcpTarget, FcpTargetEvent, LimitShare};
use crate::frames::FrameSink;
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::frame::FrameHeader;

/// The nexuses of a port: those of this machine, and which branches the others are at.
#[derive(Debug)]
pub struct DividedTarget<L> {
    here: FcpTarget<L>,
    /// By [`RemoteId`]: nexuses of branches.
    elsewhere: Vec<Option<BranchNexus>>,
    /// Nexuses of each machine, the first of which is this one.
    loads: Vec<u32>,
    /// What came for each of the branches, and was not taken.
    forwarded: Vec<ForwardedFrames>,
    /// There is some of it.
    has_forwarded: bool,
    /// Frames for branches that found no room.
    dropped: u64,
}

/// A nexus of a branch.
#[derive(Clone, Debug)]
pub struct BranchNexus {
    /// Which branch, from 1 on.
    pub branch: usize,
    /// The initiator.
    pub peer: FcpPeer,
}

/// Frames for the nexuses of a branch, in the order in which they came. Their memory counts until
/// they are dropped, as nothing else keeps initiators from sending more.
#[derive(Debug, Default)]
pub struct ForwardedFrames {
    frames: Vec<ForwardedFrame>,
    /// Their payloads.
    bytes: Vec<u8>,
    /// Bytes of all frames that were forwarded to this branch and live.
    waiting: Arc<AtomicUsize>,
    /// Ours among them.
    counted: usize,
}

#[derive(Clone, Copy, Debug)]
struct ForwardedFrame {
    remote: RemoteId,
    sof: Sof,
    eof: Eof,
    header: FrameHeader,
    /// Where its payload begins and ends.
    payload: (usize, usize),
}

/// Bytes of frames that wait for one branch: what the ring has that frames of an interface come
/// into. What comes beyond it is lost, as it is when that is full.
pub const FORWARDED_MAX: usize = 16 << 20;

impl<L: Lease> DividedTarget<L> {
    /// A target without initiators, with so many branches, all of which keep to `limits` together.
    #[must_use]
    pub fn new(limits: FcpLimits, branches: usize) -> Self {
        let forwarded = std::iter::repeat_with(ForwardedFrames::default);
        Self {
            here: FcpTarget::new(limits),
            elsewhere: Vec::new(),
            loads: vec![0; 1 + branches],
            forwarded: forwarded.take(branches).collect(),
            has_forwarded: false,
            dropped: 0,
        }
    }

    /// What a branch may use, whose window has `window_max` bytes at the most.
    #[must_use]
    pub fn share(&self, window_max: u64) -> LimitShare {
        self.here.limits.another(window_max)
    }

    /// The machine of the port.
    #[must_use]
    pub const fn here(&self) -> &FcpTarget<L> {
        &self.here
    }

    /// The same, to be told something.
    pub const fn here_mut(&mut self) -> &mut FcpTarget<L> {
        &mut self.here
    }

    /// The nexus with an initiator, unless it is here or there is none.
    #[must_use]
    pub fn at_branch(&self, remote: RemoteId) -> Option<&BranchNexus> {
        self.elsewhere.get(remote.index())?.as_ref()
    }

    /// Whether [`Self::take_forwarded`] would give something.
    #[must_use]
    pub const fn has_forwarded(&self) -> bool {
        self.has_forwarded
    }

    /// What came for branches, with their numbers.
    pub fn take_forwarded(&mut self) -> Vec<(usize, ForwardedFrames)> {
        self.has_forwarded = false;
        let forwarded = self.forwarded.iter_mut().enumerate();
        let taken = forwarded.filter(|(_, frames)| !frames.frames.is_empty());
        taken.map(|(at, frames)| (at + 1, frames.take())).collect()
    }

    /// The machine with the fewest nexuses, the first of several.
    fn least_loaded(&self) -> usize {
        let loads = self.loads.iter().enumerate();
        loads
            .min_by_key(|(_, load)| **load)
            .map_or(0, |(machine, _)| machine)
    }

    fn forward(&mut self, remote: RemoteId, branch: usize, frame: &ReceivedFrame<'_>) {
        if self.forwarded[branch - 1].push(remote, frame) {
            self.has_forwarded = true;
        } else {
            self.dropped += 1;
        }
    }
}

impl ForwardedFrames {
    /// Adds a frame; `false` if it has no room.
    fn push(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) -> bool {
        let len = size_of::<ForwardedFrame>() + frame.payload.len();
        if self.waiting.load(Relaxed) + len > FORWARDED_MAX {
            return false;
        }
        self.waiting.fetch_add(len, Relaxed);
        self.counted += len;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame.payload);
        self.frames.push(ForwardedFrame {
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

impl Drop for ForwardedFrames {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.counted, Relaxed);
    }
}

impl<L: Lease> Fc4Layer for DividedTarget<L> {
    type Event = FcpTargetEvent<L>;
    const ROLE: Role = Role::Target;

    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer) {
        self.peer_down(remote);
        let machine = self.least_loaded();
        self.loads[machine] += 1;
        if machine == 0 {
            return self.here.peer_up(remote, peer);
        }
        let at = remote.index();
        if self.elsewhere.len() <= at {
            self.elsewhere.resize_with(at + 1, || None);
        }
        let branch = machine;
        self.elsewhere[at] = Some(BranchNexus { branch, peer });
    }

    fn peer_down(&mut self, remote: RemoteId) {
        let nexus = self.elsewhere.get_mut(remote.index());
        if let Some(BranchNexus { branch, .. }) = nexus.and_then(Option::take) {
            self.loads[branch] -= 1;
            let frames = &mut self.forwarded[branch - 1].frames;
            frames.retain(|frame| frame.remote != remote);
        } else if self.here.peer(remote).is_some() {
            self.loads[0] -= 1;
            self.here.peer_down(remote);
        }
    }

    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        match self.at_branch(remote).map(|nexus| nexus.branch) {
            None => self.here.receive(now, remote, frame),
            Some(branch) => self.forward(remote, branch, frame),
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped
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
