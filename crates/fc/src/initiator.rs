//! FCP initiator: the exchanges that begin with FCP_CMND here (FCP-4).
//!
//! One machine serves all targets of a port, each known by its [`RemoteId`]. It is split by duty:
//! `command` takes commands in and ends them, `data_in` and `data_out` carry their data, `manage`
//! task management, `abort` ABTS and RRQ, `recovery` REC and SRR, `late` what is overdue,
//! `patience` when it is, `transmit` is the way out; `tasks` holds the exchanges.
//!
//! | stage | what comes from the target | where it leads |
//! |---|---|---|
//! | ready | nothing: it has not left | open |
//! | open | data, FCP_XFER_RDY, FCP_RSP | done; aborting |
//! | aborting | BA_ACC, BA_RJT | failed |
//!
//! What is lost is noticed
//!
//! - at once, where the peer sends again what it is asked for and names commands by task retry
//!   identifiers: by data beyond a gap;
//! - by a response whose data is not all there;
//! - by silence, after which REC asks how far the target has got: for a few round trips where
//!   the target tells commands apart by task retry identifiers, else for REC_TOV.
//!
//! Then SRR asks for what is missing, if the target can send again; else ABTS ends the exchange,
//! and the command fails as [`Fate::Aborted`], which is over at the target. A command that the
//! target does not let be aborted either leaves but one way out, [`FcpInitiatorEvent::Stuck`]: the
//! port has to end the login. The machine repeats no command by itself.

mod abort;
mod command;
mod data;
mod event;
mod exchanges;
mod idle;
mod late;
mod manage;
mod patience;
mod recovery;
mod transmit;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub use scsi::client::{ClientCommand, Data, Done, Fate};
use scsi::medium::{Lease, Now};

use self::abort::HeldOxId;
pub use self::event::{
    CommandRefusal, FcpCause, FcpFailed, FcpInitiatorEvent, FcpRefused, FcpTmf, FcpWhy,
};
use self::exchanges::{InitiatorExchanges, InitiatorSlot};
pub use self::idle::IdleInitiator;
use self::manage::PendingFcpFunction;
use self::patience::Patience;
use self::recovery::PendingLinkService;
use crate::exchange::{self, data::DataSequence};
use crate::frames::{FrameSink, Single};
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId, Role};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FrameType, RCtl};

/// What an initiator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcpInitiatorConfig {
    /// Commands at once, of all targets; 1 to [`MAX_TASKS`].
    pub tasks: usize,
    /// How long a command may take that has no deadline of its own.
    pub command: Duration,
    /// For the answer to a task management function.
    pub function: Duration,
    /// Bytes that targets are asked for at once: what certainly fits where frames are received,
    /// as there is nothing between that would hold a sender back. A longer read goes alone.
    pub window: u64,
}

/// The most commands that one port has at once.
pub const MAX_TASKS: usize = 32_768;

impl Default for FcpInitiatorConfig {
    /// As many commands as one session of iSCSI has; times as hosts commonly give them a disk.
    fn default() -> Self {
        Self {
            tasks: 1024,
            command: Duration::from_secs(30),
            function: Duration::from_secs(15),
            window: exchange::WINDOW,
        }
    }
}

/// The initiator side of FCP at one port.
#[derive(Debug)]
pub struct FcpInitiator<L> {
    config: FcpInitiatorConfig,
    now: Now,
    /// By [`RemoteId`].
    nexuses: Vec<Option<TargetNexus>>,
    tasks: InitiatorExchanges<L>,
    /// Bytes of Data-In that targets were asked for by commands that have not ended.
    awaited: u64,
    /// Of these, those that have not come.
    expected: u64,
    /// Commands that have not left.
    ready: VecDeque<InitiatorSlot>,
    /// Data-Out that was asked for.
    sequences: VecDeque<(InitiatorSlot, DataSequence<L>)>,
    controls: VecDeque<(RemoteId, Single)>,
    /// Link services that have not been answered.
    services: Vec<PendingLinkService>,
    functions: Vec<PendingFcpFunction>,
    held: VecDeque<HeldOxId>,
    /// When commands are looked at for those that are silent or late.
    look: Option<Now>,
    events: VecDeque<FcpInitiatorEvent<L>>,
}

/// A target that is logged in.
#[derive(Debug)]
struct TargetNexus {
    peer: FcpPeer,
    patience: Patience,
    /// It has said that it does not know REC.
    knows_no_rec: bool,
    /// [`FcpInitiatorEvent::Stuck`] was told.
    is_stuck: bool,
}

impl<L: Lease> FcpInitiator<L> {
    /// An initiator without targets.
    #[must_use]
    pub fn new(config: FcpInitiatorConfig) -> Self {
        Self {
            config,
            now: Now::ZERO,
            nexuses: Vec::new(),
            tasks: InitiatorExchanges::new(),
            awaited: 0,
            expected: 0,
            ready: VecDeque::new(),
            sequences: VecDeque::new(),
            controls: VecDeque::new(),
            services: Vec::new(),
            functions: Vec::new(),
            held: VecDeque::new(),
            look: None,
            events: VecDeque::new(),
        }
    }

    /// Whether nothing is in flight with a target.
    #[must_use]
    pub fn is_idle(&self, remote: RemoteId) -> bool {
        let commands = self.tasks.iter().any(|(_, task)| task.remote == remote);
        let functions = self.functions.iter().any(|known| known.remote == remote);
        !commands && !functions
    }

    /// How many commands may be given before [`CommandRefusal::Full`].
    #[must_use]
    pub fn room(&self) -> usize {
        self.config
            .tasks
            .min(MAX_TASKS)
            .saturating_sub(self.tasks.len())
    }

    /// Ends those commands whose names `which` picks, as if they were late: each is told by
    /// [`FcpInitiatorEvent::Failed`], at once if it was not sent, else when nothing of it happens
    /// any more.
    pub fn abandon(&mut self, now: Now, which: impl Fn(u64) -> bool) {
        self.now = now;
        let picked = self.tasks.iter().filter(|(_, task)| which(task.id));
        let slots: Vec<InitiatorSlot> = picked.map(|(slot, _)| slot).collect();
        for slot in slots {
            self.abort(slot, FcpWhy::Late);
        }
    }

    fn nexus(&mut self, remote: RemoteId) -> Option<&mut TargetNexus> {
        self.nexuses.get_mut(remote.index())?.as_mut()
    }

    fn peer(&self, remote: RemoteId) -> Option<&FcpPeer> {
        let nexus = self.nexuses.get(remote.index())?.as_ref()?;
        Some(&nexus.peer)
    }
}

impl<L: Lease> Fc4Layer for FcpInitiator<L> {
    type Event = FcpInitiatorEvent<L>;
    const ROLE: Role = Role::Initiator;

    fn number_from(&mut self, random: u32) {
        self.tasks.number_from(random);
    }

    fn peer_up(&mut self, remote: RemoteId, peer: FcpPeer) {
        self.peer_down(remote);
        let at = remote.index();
        if self.nexuses.len() <= at {
            self.nexuses.resize_with(at + 1, || None);
        }
        self.nexuses[at] = Some(TargetNexus {
            patience: Patience::of(&peer),
            peer,
            knows_no_rec: false,
            is_stuck: false,
        });
    }

    fn peer_down(&mut self, remote: RemoteId) {
        if self.nexus(remote).is_some() {
            self.end_nexus(remote);
            self.nexuses[remote.index()] = None;
        }
    }

    /// Takes a frame that a target sent as responder of an exchange whose OX_ID is below
    /// [`crate::exchange::FCP_OX_IDS`].
    fn receive(&mut self, now: Now, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        self.now = now;
        let header = &frame.header;
        if self.peer(remote).is_none() || !header.f_ctl.exchange_responder() {
            return;
        }
        match (header.kind, header.r_ctl) {
            (FrameType::FCP, RCtl::SOLICITED_DATA) => self.data_in(remote, frame),
            (FrameType::FCP, RCtl::DATA_DESCRIPTOR) => self.xfer_rdy(remote, frame),
            (FrameType::FCP, RCtl::COMMAND_STATUS) => self.response(remote, frame),
            (FrameType::FCP, RCtl::FC4_REPLY) | (FrameType::ELS, RCtl::ELS_REPLY) => {
                self.service_answered(remote, frame);
            }
            (FrameType::BLS, RCtl::BA_ACC | RCtl::BA_RJT) => self.abort_answered(remote, frame),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<FcpInitiatorEvent<L>> {
        self.events.pop_front()
    }

    fn transmit(&mut self, out: &mut impl FrameSink) -> bool {
        self.send(out)
    }

    fn expected(&self) -> u64 {
        self.expected
    }

    fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.look,
            self.services.iter().map(|service| service.deadline).min(),
            self.functions
                .iter()
                .map(|function| function.deadline)
                .min(),
            self.held.front().map(|held| held.until),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn expire(&mut self, now: Now) {
        self.now = now;
        self.check_services();
        self.check_functions();
        self.check_silent();
        self.check_held();
    }

    fn stuck(event: &Self::Event) -> Option<RemoteId> {
        match event {
            FcpInitiatorEvent::Stuck(remote) => Some(*remote),
            _ => None,
        }
    }
}
