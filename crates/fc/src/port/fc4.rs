//! What stands above an N_Port.

use std::convert::Infallible;

use scsi::medium::{Lease, Now};

use crate::frames::FrameSink;
use crate::initiator::{FcpInitiator, FcpInitiatorEvent, IdleInitiator};
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::target::{FcpTarget, FcpTargetEvent};
use crate::wire::fcoe::ReceivedFrame;

/// A machine of level FC-4: what exchanges with other N_Ports are for.
pub trait Fc4Layer {
    /// What it tells.
    type Event;

    /// What it is.
    const ROLE: Role;

    /// There is a nexus with a remote port.
    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer);

    /// There is none any more: nothing more is sent of what was in flight.
    fn peer_down(&mut self, remote: RemoteId);

    /// Takes a frame from a remote port that is up.
    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>);

    /// What to do next.
    fn poll(&mut self) -> Option<Self::Event>;

    /// Puts what is to be sent into `out`; returns whether there was anything.
    fn transmit(&mut self, out: &mut impl FrameSink) -> bool;

    /// Bytes of data that others were asked for, and that have not come.
    fn expected(&self) -> u64;

    /// When [`Self::expire`] wants to be called.
    fn next_deadline(&self) -> Option<Now>;

    /// The deadline passed.
    fn expire(&mut self, now: Now);

    /// Whose exchanges can be ended only by ending the login, if an event says that.
    fn stuck(event: &Self::Event) -> Option<RemoteId>;
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

    fn stuck(_: &Infallible) -> Option<RemoteId> {
        None
    }
}

macro_rules! fc4 {
    ($machine:ident as $role:ident, $event:path, stuck: $stuck:expr) => {
        impl<L: Lease> Fc4Layer for $machine<L> {
            type Event = $event;
            const ROLE: Role = Role::$role;

            fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer) {
                self.peer_up(remote, peer);
            }

            fn peer_down(&mut self, remote: RemoteId) {
                self.peer_down(remote);
            }

            fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
                self.receive(now, remote, frame);
            }

            fn poll(&mut self) -> Option<Self::Event> {
                self.poll()
            }

            fn transmit(&mut self, out: &mut impl FrameSink) -> bool {
                self.transmit(out)
            }

            fn expected(&self) -> u64 {
                self.expected()
            }

            fn next_deadline(&self) -> Option<Now> {
                self.next_deadline()
            }

            fn expire(&mut self, now: Now) {
                self.expire(now);
            }

            fn stuck(event: &Self::Event) -> Option<RemoteId> {
                $stuck(event)
            }
        }
    };
}

fc4!(FcpTarget as Target, FcpTargetEvent<L>, stuck: |_| None);
fc4!(FcpInitiator as Initiator, FcpInitiatorEvent<L>, stuck: |event: &Self::Event| match event {
    FcpInitiatorEvent::Stuck(remote) => Some(*remote),
    _ => None,
});
