//! What the device server asks of the transport of a nexus: SAM's protocol services.

use ::io::ring::Ring;
use block::lease::Lease;
use iscsi::session::Session;
use scsi::medium::Now;
use scsi::nexus::NexusId;
use scsi::task::{Completed, FunctionResult, Tag};
use scsi::wire::lun::Lun;

use super::Core;
use super::connection::{Phase, Place};
use crate::mail::Post;

/// The transport of one nexus.
pub(super) trait Services {
    /// *Send Data-In*.
    fn send_data_in(&mut self, tag: Tag, offset: u32, data: Lease);

    /// *Receive Data-Out*: fill `into`.
    fn receive_data_out(&mut self, tag: Tag, offset: u32, into: Lease);

    /// *Send Command Complete*.
    fn complete(&mut self, tag: Tag, completed: &Completed);

    /// The task was aborted.
    fn aborted(&mut self, tag: Tag);

    /// A task management function has ended.
    fn managed(&mut self, id: u32, result: FunctionResult);

    /// A unit attention became pending.
    fn attention(&mut self, lun: Lun, code: u16);
}

impl Services for Session<Lease> {
    fn send_data_in(&mut self, tag: Tag, offset: u32, data: Lease) {
        self.send_data_in(tag, offset, data);
    }

    fn receive_data_out(&mut self, tag: Tag, offset: u32, into: Lease) {
        self.receive_data_out(tag, offset, into);
    }

    fn complete(&mut self, tag: Tag, completed: &Completed) {
        self.complete(tag, completed);
    }

    fn aborted(&mut self, tag: Tag) {
        self.aborted(tag);
    }

    fn managed(&mut self, id: u32, result: FunctionResult) {
        self.managed(id, result);
    }

    fn attention(&mut self, lun: Lun, code: u16) {
        self.attention(lun, code);
    }
}

impl<R: Ring, P: Post> Core<R, P> {
    /// Lets the transport of a nexus act, then carries out what it wants in turn.
    pub(super) fn serve(&mut self, now: Now, nexus: NexusId, act: impl FnOnce(&mut dyn Services)) {
        match self.connections.place(nexus.0) {
            Some(&mut Place::Remote(remote)) => {
                if let Some(fabric) = self.fabrics.get_mut(remote.fabric as usize) {
                    act(&mut fabric.nexus(nexus.0, remote.id));
                    self.fabric_events(now, remote.fabric);
                }
            }
            Some(Place::Connection(connection)) => {
                let key = connection.key;
                let Phase::Session { session, .. } = &mut connection.phase else {
                    return;
                };
                act(&mut **session);
                let wants = session.has_events();
                if !connection.dirty {
                    connection.dirty = true;
                    self.dirty.push_back(key.slot);
                }
                if wants {
                    self.session_events(now, key);
                }
            }
            None => {}
        }
    }
}
