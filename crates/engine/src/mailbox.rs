//! Messages between cores. They are rare: nothing on the I/O path crosses cores.

use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use ::io::memory::drain_stores;
use ::io::ring::Waker;
use fc::remote::RemoteId;
use fc::wire::names::Wwn;
use iscsi::parameters::{SessionProof, Transport};
use iscsi::target::{Endpoints, InitiatorPort};
use scsi::medium::Now;
use scsi::nexus::{AttentionHistory, Nexus};
use scsi::owner::{OwnerRequest, Publication};
use scsi::task::CommandFailure;
use scsi::unit::{CoreId, UnitId, UnitState};

use crate::change::{Change, ChangeError, Preparation, Retirement, Switch};
use crate::core::{BranchOrder, FcPortKey, RestingLogin};
use crate::survey::CoreSurvey;
use runtime::n_port::Attachment;

/// What one core tells another.
pub enum CoreMessage {
    /// A connection whose login has ended, for the core that its session shall live on.
    Session(Box<NewSession>),
    /// End the session with this TSIH: its port logs in again, or it was told to go.
    End(u16),
    /// The session with this TSIH loses its nexus, and its port had heard this.
    Heard(u16, AttentionHistory),
    /// The session with this TSIH has ended, at the medium too.
    Ended {
        /// Which session.
        tsih: u16,
    },
    /// The session with this TSIH has reset its target: all others of that target end.
    ColdReset(u16),
    /// For the owner of a unit.
    Ask(UnitId, OwnerRequest),
    /// For the owner of a unit: this core works by that version.
    Acknowledge(UnitId, CoreId, u64),
    /// From the owner of a unit.
    Publish(UnitId, Publication),
    /// From the owner of a unit.
    Reply(UnitId, u64, Result<(), CommandFailure>),
    /// Change what is served; for core 0.
    Change(Box<Change>),
    /// From core 0: the first step of a change.
    Prepare(Arc<Preparation>),
    /// From core 0: the second step.
    Switch(Arc<Switch>),
    /// From core 0: the last step.
    Retire(Arc<Retirement>),
    /// For core 0: this core has taken the step with that number.
    Stepped(CoreId, u64, Result<(), ChangeError>),
    /// Make a Fibre Channel port of this.
    OpenFcPort(Box<Attachment>),
    /// The port of this name logs out, and goes.
    CloseFcPort(Wwn),
    /// From a Fibre Channel port to a core that has a part of its nexuses.
    FcBranch(FcPortKey, Box<BranchOrder>),
    /// For the core of the Fibre Channel port of this number: nothing is left of a nexus, and its
    /// initiator had heard this.
    FcEnded(u32, RemoteId, Option<AttentionHistory>),
    /// Tell which sessions there are; for core 0.
    Sessions(Sender<Vec<SessionInfo>>),
    /// Tell the state of each unit; for core 0.
    UnitStates(Sender<Vec<(UnitId, Arc<UnitState>)>>),
    /// End the session with this TSIH, and tell when it has ended; for core 0.
    Drop(u16, Sender<()>),
    /// Tell what was counted.
    Survey(Sender<CoreSurvey>),
    /// Ask every initiator to log out, and stop when they have or their time is over.
    Stop,
    /// The core has no sessions any more.
    Stopped(CoreId),
    /// All have stopped and volumes are flushed: leave the loop.
    Leave,
}

/// A session, as its users are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// TSIH, by which it is named.
    pub tsih: u16,
    /// The initiator's port.
    pub initiator: InitiatorPort,
    /// The target's name; `None` for discovery.
    pub target: Option<String>,
    /// The CHAP user that was proven, if one was asked for.
    pub user: Option<String>,
    /// How it was proven.
    pub proof: SessionProof,
    /// What carries it.
    pub transport: Transport,
    /// The RDMA device that it came by.
    pub device: Option<String>,
    /// PDUs have a header digest (CRC32C).
    pub header_digest: bool,
    /// Data segments have a digest (CRC32C).
    pub data_digest: bool,
    /// The two ends of its connection.
    pub endpoints: Endpoints,
    /// The core that it lives on.
    pub core: CoreId,
    /// Since when, by the clock of the server.
    pub since: Now,
}

/// A session that begins.
pub struct NewSession {
    /// Its connection; `None` over a device, whose queue pair is in the login.
    pub socket: Option<OwnedFd>,
    /// Its login, with the final response still to be sent.
    pub login: RestingLogin,
    /// The I_T nexus; `None` for a discovery session.
    pub nexus: Option<Nexus>,
    /// What its port had heard by its last session, since the target started.
    pub heard: Option<AttentionHistory>,
    /// Its TSIH.
    pub tsih: u16,
    /// Bytes that came after the last login request.
    pub early: Vec<u8>,
}

/// A core's way to the others.
pub trait Mailer {
    /// Leaves a message for a core, possibly this one.
    fn send(&mut self, to: CoreId, message: CoreMessage);

    /// The next message for this core; to be asked after [`io::ring::RingEvent::Woken`].
    fn receive(&mut self) -> Option<CoreMessage>;

    /// How many cores there are.
    fn cores(&self) -> u16;
}

/// The mailboxes of a process's cores.
#[derive(Clone)]
pub struct Mailboxes {
    boxes: Arc<[Mailbox]>,
}

struct Mailbox {
    messages: Mutex<Vec<CoreMessage>>,
    waker: Waker,
}

impl Mailboxes {
    /// Mailboxes for cores whose rings have these wakers, in the order of their ids.
    #[must_use]
    pub fn new(wakers: Vec<Waker>) -> Self {
        let mailbox = |waker| Mailbox {
            messages: Mutex::default(),
            waker,
        };
        Self {
            boxes: wakers.into_iter().map(mailbox).collect(),
        }
    }

    /// Leaves a message for a core and wakes it.
    pub fn send(&self, to: CoreId, message: CoreMessage) {
        let mailbox = &self.boxes[usize::from(to.0)];
        // The message may say that a write is over.
        drain_stores();
        mailbox
            .messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message);
        mailbox.waker.wake();
    }

    /// One core's mailbox, and its way to those of the others.
    #[must_use]
    pub fn for_core(&self, core: CoreId) -> CoreMailbox {
        CoreMailbox {
            mailboxes: self.clone(),
            core,
            arrived: Vec::new(),
        }
    }
}

/// One core's mailbox, and its way to those of the others.
pub struct CoreMailbox {
    mailboxes: Mailboxes,
    core: CoreId,
    arrived: Vec<CoreMessage>,
}

impl Mailer for CoreMailbox {
    fn send(&mut self, to: CoreId, message: CoreMessage) {
        self.mailboxes.send(to, message);
    }

    fn receive(&mut self) -> Option<CoreMessage> {
        if self.arrived.is_empty() {
            let mailbox = &self.mailboxes.boxes[usize::from(self.core.0)];
            let mut messages = mailbox
                .messages
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut *messages, &mut self.arrived);
            self.arrived.reverse();
        }
        self.arrived.pop()
    }

    fn cores(&self) -> u16 {
        self.mailboxes.boxes.len() as u16
    }
}
