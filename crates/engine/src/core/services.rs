//! What the device server asks of the transport of a nexus: SAM's protocol services.

use ::io::ring::Ring;
use block::lease::BlockLease;
use iscsi::datamover::iser::IserMover;
use iscsi::session::Session;
use scsi::medium::Now;
use scsi::nexus::NexusId;
use scsi::task::{Completed, FunctionResult, Tag};
use scsi::wire::lun::Lun;

use super::Core;
use super::connection::ConnectionPhase;
use super::fc_nexuses::ToRemote;
use super::nexus_table::NexusOwner;
use super::transport::CoreSession;
use crate::mailbox::Mailer;

/// The transport of one nexus. Where it is known which, as below, nothing is left of the choice.
pub(super) enum NexusTransport<'a> {
    Session(&'a mut Session<BlockLease>),
    Iser(&'a mut Session<BlockLease, IserMover<BlockLease>>),
    Remote(ToRemote<'a>),
}

macro_rules! each {
    ($self:ident, $one:ident => $call:expr) => {
        match $self {
            Self::Session($one) => $call,
            Self::Iser($one) => $call,
            Self::Remote($one) => $call,
        }
    };
}

impl NexusTransport<'_> {
    /// *Send Data-In*.
    pub(super) fn send_data_in(&mut self, tag: Tag, offset: u32, data: BlockLease) {
        each!(self, one => one.send_data_in(tag, offset, data));
    }

    /// *Receive Data-Out*: fill `into`.
    pub(super) fn receive_data_out(&mut self, tag: Tag, offset: u32, into: BlockLease) {
        each!(self, one => one.receive_data_out(tag, offset, into));
    }

    /// *Send Command Complete*.
    #[inline]
    pub(super) fn complete(&mut self, tag: Tag, completed: &Completed) {
        each!(self, one => one.complete(tag, completed));
    }

    /// The task was aborted.
    pub(super) fn aborted(&mut self, tag: Tag) {
        each!(self, one => one.aborted(tag));
    }

    /// A task management function has ended.
    pub(super) fn managed(&mut self, id: u32, result: FunctionResult) {
        each!(self, one => one.managed(id, result));
    }

    /// A unit attention became pending, of which FCP tells by commands alone.
    pub(super) fn attention(&mut self, lun: Lun, code: u16) {
        match self {
            Self::Session(session) => session.attention(lun, code),
            Self::Iser(session) => session.attention(lun, code),
            Self::Remote(_) => {}
        }
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Lets the transport of a nexus act, then carries out what it wants in turn.
    pub(super) fn serve(
        &mut self,
        now: Now,
        nexus: NexusId,
        act: impl FnOnce(&mut NexusTransport<'_>),
    ) {
        match self.connections.place(nexus.0) {
            Some(&mut NexusOwner::Remote(remote)) => {
                if let Some(fc_port) = self.fc_ports.get_mut(remote.fc_port as usize) {
                    act(&mut NexusTransport::Remote(fc_port.nexus(remote.id)));
                    self.fc_port_events(now, remote.fc_port);
                }
            }
            Some(&mut NexusOwner::Branched(remote)) => {
                if let Some(branch) = self.fc_branches.get_mut(remote.fc_port as usize) {
                    act(&mut NexusTransport::Remote(branch.nexus(remote.id)));
                    self.fc_branch_events(remote.fc_port);
                }
            }
            Some(NexusOwner::Connection(connection)) => {
                let key = connection.key;
                let ConnectionPhase::Session { session, .. } = &mut connection.phase else {
                    return;
                };
                match &mut **session {
                    CoreSession::Tcp(session) => act(&mut NexusTransport::Session(session)),
                    CoreSession::Rdma(over) => {
                        act(&mut NexusTransport::Iser(over.session_mut()));
                        over.settle();
                    }
                }
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
