//! FCP target: the exchanges that initiators begin with FCP_CMND (FCP-4).
//!
//! Above it is a device server, to which it presents SAM's protocol services; below it a port,
//! which hands it the frames of remote ports that are logged in. One machine serves all initiators
//! of a port. It is split by duty: `command` takes commands in and ends them, `data_in` and
//! `data_out` carry their data, `manage` task management, `abort` ABTS, `recovery` REC, SRR and
//! FCP_CONF, `transmit` is the way out; `exchanges` holds the exchanges. [`divided`] and [`branch`]
//! have the initiators of one port on several machines, one a core, and `limits` what all of them
//! may use.
//!
//! | stage | what the initiator may send | where it leads |
//! |---|---|---|
//! | executing | data that was asked for, ABTS, REC, SRR | answered, aborting |
//! | managing | ABTS, REC | answered, aborted |
//! | answered | SRR, REC, ABTS, FCP_CONF | confirming, ended |
//! | confirming | FCP_CONF, SRR, REC, ABTS, another command | ended, answered |
//! | ended | SRR, REC, ABTS, another command | answered, forgotten |
//! | aborting | | aborted |
//! | aborted | RRQ | forgotten |
//!
//! What is lost is the initiator's to notice, as FCP-4 has it, with one exception: where both ends
//! have agreed upon task retry identifiers, write data missing at the end of its sequence is
//! asked for again at once. A command that comes twice is carried out once: the second one finds
//! its exchange, in flight or remembered.

mod abort;
pub mod branch;
mod command;
mod data_in;
mod data_out;
pub mod divided;
mod exchanges;
mod limits;
mod manage;
mod recovery;
mod transmit;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use scsi::medium::{Lease, Now};
use scsi::task::{Command, Completed, Function, FunctionResult, Tag};
use scsi::wire::lun::Lun;

use self::data_out::DataOutTimeout;
use self::exchanges::Exchanges;
pub use self::limits::{FcpLimits, LimitShare};
use self::recovery::{AbortedExchanges, Confirming};
use self::transmit::ExchangeQueue;
use crate::frames::FrameSink;
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FrameType, RCtl};

/// What a target wants done. The `nexus` of a [`Command`] is filled in by the caller, which joins
/// the two.
#[derive(Debug)]
pub enum FcpTargetEvent<L> {
    /// *Execute Command*.
    Execute {
        /// From which initiator.
        remote: RemoteId,
        /// The command.
        command: Command,
    },
    /// Data-Out that was asked for has come.
    DataOut {
        /// From which initiator.
        remote: RemoteId,
        /// For which command.
        tag: Tag,
        /// Where in its data.
        offset: u32,
        /// The lease that was given to be filled.
        data: L,
    },
    /// *Task management*, to be answered by [`FcpTarget::managed`].
    Manage {
        /// For which initiator.
        remote: RemoteId,
        /// Names the answer.
        id: u32,
        /// On which LUN.
        lun: Lun,
        /// The task management function.
        function: Function,
    },
}

impl<L> FcpTargetEvent<L> {
    const fn remote(&self) -> RemoteId {
        match self {
            Self::Execute { remote, .. }
            | Self::DataOut { remote, .. }
            | Self::Manage { remote, .. } => *remote,
        }
    }
}

/// The target side of FCP at one port.
#[derive(Debug)]
pub struct FcpTarget<L> {
    limits: LimitShare,
    now: Now,
    /// By [`RemoteId`].
    nexuses: Vec<Option<InitiatorNexus>>,
    tasks: Exchanges<L>,
    /// Commands and functions that have not ended.
    open: u32,
    queue: ExchangeQueue<L>,
    /// Bytes of Data-Out that were asked for and have not come.
    asked: u64,
    owed: DataOutTimeout,
    confirming: Confirming,
    plugs: AbortedExchanges,
    events: VecDeque<FcpTargetEvent<L>>,
}

/// An initiator that is logged in.
#[derive(Debug)]
struct InitiatorNexus {
    peer: FcpPeer,
    /// Bytes of Data-Out that it was asked for and that have not come.
    asked: u64,
    /// Bytes of Data-In that wait to be transmitted.
    queued: usize,
}

impl<L: Lease> FcpTarget<L> {
    /// A target without initiators, which has its port to itself.
    #[must_use]
    pub fn new(limits: FcpLimits) -> Self {
        Self::sharing(LimitShare::of(limits))
    }

    /// One of several targets without initiators that share a port.
    #[must_use]
    pub fn sharing(limits: LimitShare) -> Self {
        Self {
            now: Now::ZERO,
            nexuses: Vec::new(),
            tasks: Exchanges::new(limits.commands_max()),
            limits,
            open: 0,
            queue: ExchangeQueue::new(),
            asked: 0,
            owed: DataOutTimeout::default(),
            confirming: Confirming::default(),
            plugs: AbortedExchanges::default(),
            events: VecDeque::new(),
        }
    }

    /// *Receive Data-Out* of the device server: fill `into`.
    pub fn receive_data_out(&mut self, remote: RemoteId, tag: Tag, offset: u32, into: L) {
        if let Some(slot) = self.tasks.by_tag(remote, tag) {
            self.grant(slot, offset, into);
        }
    }

    /// *Send Data-In*.
    pub fn send_data_in(&mut self, remote: RemoteId, tag: Tag, offset: u32, data: L) {
        if let Some(slot) = self.tasks.by_tag(remote, tag) {
            self.queue_data_in(slot, offset, data);
        }
    }

    /// *Send Command Complete*.
    pub fn complete(&mut self, remote: RemoteId, tag: Tag, completed: &Completed) {
        if let Some(slot) = self.tasks.by_tag(remote, tag) {
            self.device_ended(slot, completed);
        }
    }

    /// The device server aborted the task.
    pub fn aborted(&mut self, remote: RemoteId, tag: Tag) {
        if let Some(slot) = self.tasks.by_tag(remote, tag) {
            self.device_aborted(slot);
        }
    }

    /// The answer to [`FcpTargetEvent::Manage`].
    pub fn managed(&mut self, remote: RemoteId, id: u32, result: FunctionResult) {
        if let Some(slot) = self.tasks.by_tag(remote, Tag(id)) {
            self.function_done(slot, result);
        }
    }

    /// Bytes of Data-In of an initiator that wait to be transmitted, for the device server to know
    /// by.
    #[must_use]
    pub fn data_in_queued(&self, remote: RemoteId) -> usize {
        let nexus = self.nexuses.get(remote.index()).and_then(Option::as_ref);
        nexus.map_or(0, |nexus| nexus.queued)
    }

    fn peer(&self, remote: RemoteId) -> Option<&FcpPeer> {
        let nexus = self.nexuses.get(remote.index())?.as_ref()?;
        Some(&nexus.peer)
    }
}

impl<L: Lease> Fc4Layer for FcpTarget<L> {
    type Event = FcpTargetEvent<L>;
    const ROLE: Role = Role::Target;

    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer) {
        self.peer_down(remote);
        let at = remote.index();
        if self.nexuses.len() <= at {
            self.nexuses.resize_with(at + 1, || None);
        }
        self.nexuses[at] = Some(InitiatorNexus {
            peer,
            asked: 0,
            queued: 0,
        });
        self.limits.nexus_up();
    }

    fn peer_down(&mut self, remote: RemoteId) {
        let Some(nexus) = self.nexuses.get_mut(remote.index()) else {
            return;
        };
        if nexus.take().is_none() {
            return;
        }
        self.limits.nexus_down();
        self.queue.remove_remote(&self.tasks, remote);
        for slot in self.tasks.slots() {
            if self.tasks[slot].remote == remote {
                self.forget(slot);
            }
        }
        self.events.retain(|event| event.remote() != remote);
    }

    /// Takes a frame of type FCP, an ABTS, or a REC or RRQ, that an initiator sent as originator of
    /// the exchange. Everything else is passed over.
    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        self.now = now;
        let header = &frame.header;
        if self.peer(remote).is_none() || header.f_ctl.exchange_responder() {
            return;
        }
        match (header.kind, header.r_ctl) {
            (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) => self.command(remote, frame),
            (FrameType::FCP, RCtl::SOLICITED_DATA) => self.data(remote, frame),
            (FrameType::FCP, RCtl::SOLICITED_CONTROL) => self.confirmed(remote, header),
            (FrameType::FCP, RCtl::FC4_REQUEST) | (FrameType::ELS, RCtl::ELS_REQUEST) => {
                self.link_service(remote, frame);
            }
            (FrameType::BLS, RCtl::ABTS) => self.abts(remote, header),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<FcpTargetEvent<L>> {
        self.events.pop_front()
    }

    fn transmit(&mut self, out: &mut impl FrameSink) -> bool {
        self.send_queue(out)
    }

    fn expected(&self) -> u64 {
        self.asked
    }

    fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.owed.look,
            self.confirming.deadline(),
            self.plugs.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn expire(&mut self, now: Now) {
        self.now = now;
        self.check_owed();
        self.check_confirming();
        self.check_plugs();
    }
}
