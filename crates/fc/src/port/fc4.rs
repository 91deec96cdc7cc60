//! What stands above an N_Port.

use std::convert::Infallible;

use scsi::medium::Now;

use crate::frames::FrameSink;
use crate::initiator::IdleInitiator;
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::wire::fcoe::ReceivedFrame;

/// A machine of level FC-4: what exchanges with other N_Ports are for.
pub trait Fc4Layer {
    /// What it tells.
    type Event;

    /// What it is.
    const ROLE: Role;

    /// Its own exchanges are numbered from here on. Peers may still know those of a port before it
    /// that had its names, and must not take new ones for them.
    fn number_from(&mut self, _random: u32) {}

    /// There is a nexus with a remote port.
    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer);

    /// There is none any more: nothing more is sent of what was in flight, and nothing is left of
    /// it here. An initiator's commands fail. A target's device server has to be told of the loss
    /// of the nexus; what it still calls for exchanges of that is passed over.
    fn peer_down(&mut self, remote: RemoteId);

    /// Takes a frame from a remote port that is up. What belongs to nothing here is passed over.
    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>);

    /// Frames that were lost as too many waited for the machine of their nexus.
    fn dropped(&self) -> u64 {
        0
    }

    /// What to do next; to be asked until `None` after each call of another function.
    fn poll(&mut self) -> Option<Self::Event>;

    /// Puts what is to be sent into `out`, until that is full; returns whether there was anything.
    fn transmit(&mut self, out: &mut impl FrameSink) -> bool;

    /// Bytes of data that others were asked for, and that have not come.
    fn expected(&self) -> u64;

    /// When [`Self::expire`] wants to be called.
    fn next_deadline(&self) -> Option<Now>;

    /// The deadline passed.
    fn expire(&mut self, now: Now);

    /// Whose exchanges can be ended only by ending the login, if an event says that.
    fn stuck(_: &Self::Event) -> Option<RemoteId> {
        None
    }
}

/// Between two uses, nothing but the end of logins is of interest.
impl Fc4Layer for IdleInitiator {
    type Event = Infallible;
    const ROLE: Role = Role::Initiator;

    fn peer_up(&mut self, _: RemoteId, _: FcpPeer) {}

    fn peer_down(&mut self, remote: RemoteId) {
        self.peer_down(remote);
    }

    fn receive(&mut self, _: Now, _: RemoteId, _: &ReceivedFrame<'_>) {}

    fn poll(&mut self) -> Option<Infallible> {
        None
    }

    fn transmit(&mut self, _: &mut impl FrameSink) -> bool {
        false
    }

    fn next_deadline(&self) -> Option<Now> {
        None
    }

    fn expire(&mut self, _: Now) {}

    fn expected(&self) -> u64 {
        0
    }
}
