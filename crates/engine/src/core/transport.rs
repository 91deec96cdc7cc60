//! What carries a connection: TCP alone, iSER over software iWARP, or iSER over an RDMA device.
//! Here is what a core does with a login and a session whichever it is.
//!
//! Over TCP a machine is fed with bytes and filled into a batch. Over software iWARP a queue pair
//! stands between: bytes go into it and come out of it, and the machine speaks with it. Over a
//! device there are no bytes and no socket: the queue pair is polled (`rdma_carrier.rs`).

use ::io::rdma::{RdmaError, RdmaMemory};
use block::lease::BlockLease;
use iscsi::datamover::iser::IserMover;
use iscsi::login::{Login, LoginEvent};
use iscsi::parameters::Parameters;
use iscsi::session::{Session, SessionEvent};
use iscsi::wire::iser::longest_message;
use rdma::iwarp::stream::RestingStream;
use rdma::verbs::{Completion, QueuePair as _};
use runtime::batch::BatchSink;
use runtime::device_pair::{DevicePair, DevicePairInTransit};
use scsi::medium::Now;
use scsi::unit::CoreId;
use scsi::violation::Violation;

use super::iwarp::{BlockStream, DATA_SEGMENT, IwarpOffer, IwarpStartup};
use super::rdma_carrier::{self, DeviceLogin, DeviceSession};

/// A login, and what carries its PDUs.
pub(super) struct CoreLogin {
    pub(super) login: Box<Login<BlockLease>>,
    carrier: LoginCarrier,
    /// Where its packets come in.
    near: Option<CoreId>,
}

enum LoginCarrier {
    /// TCP.
    Tcp,
    /// Nothing has come: the first byte tells. Without an offer iSER is not taken.
    Undecided(Option<Box<IwarpOffer>>),
    /// The Request of MPA is coming.
    Startup(Box<IwarpStartup>),
    /// A queue pair, and bytes that leave before anything of it.
    Iwarp(Box<BlockStream>, Vec<u8>),
    /// A queue pair of a device. No bytes come.
    Device(Box<DeviceLogin>),
}

/// The first byte of the key of MPA. No PDU that a login may begin with has it.
const MPA: u8 = b'M';

const NOT_TAKEN: Violation = Violation {
    rule: "iSER at a portal that does not take it",
    clause: "--iser=soft, iser = true",
};

impl CoreLogin {
    /// A connection that was just accepted, whose packets come in near a core; over iSER too if
    /// there is an offer.
    pub(super) fn new(
        login: Login<BlockLease>,
        offer: Option<IwarpOffer>,
        near: Option<CoreId>,
    ) -> Self {
        Self {
            login: Box::new(login),
            carrier: LoginCarrier::Undecided(offer.map(Box::new)),
            near,
        }
    }

    /// A connection by a device that was just taken.
    pub(super) fn over_device(mut login: Login<BlockLease>, pair: DevicePair) -> Self {
        login.set_transport(rdma_carrier::TRANSPORT);
        Self {
            login: Box::new(login),
            carrier: LoginCarrier::Device(Box::new(DeviceLogin::new(pair))),
            near: None,
        }
    }

    /// The core near which its packets come in.
    pub(super) const fn near(&self) -> Option<CoreId> {
        self.near
    }

    /// Takes bytes from the wire, as many as can be used now.
    pub(super) fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        self.choose(bytes);
        match &mut self.carrier {
            LoginCarrier::Tcp | LoginCarrier::Undecided(_) => self.login.receive(now, bytes),
            LoginCarrier::Startup(startup) => {
                match startup.receive(bytes) {
                    Ok(None) => {}
                    Ok(Some(accepted)) => {
                        self.login.set_transport(accepted.transport);
                        self.carrier = LoginCarrier::Iwarp(accepted.stream, accepted.reply);
                    }
                    Err(violation) => self.login.close(violation),
                }
                bytes.len()
            }
            LoginCarrier::Iwarp(stream, _) => {
                let used = stream.receive(bytes);
                hear(&mut self.login, now, stream);
                used
            }
            LoginCarrier::Device(_) => 0,
        }
    }

    /// Looks at the first byte.
    fn choose(&mut self, bytes: &[u8]) {
        let (LoginCarrier::Undecided(offer), Some(&first)) = (&mut self.carrier, bytes.first())
        else {
            return;
        };
        self.carrier = match offer.take() {
            Some(offer) if first == MPA => {
                LoginCarrier::Startup(Box::new(IwarpStartup::new(*offer)))
            }
            None if first == MPA => {
                self.login.close(NOT_TAKEN);
                LoginCarrier::Tcp
            }
            _ => LoginCarrier::Tcp,
        };
    }

    pub(super) fn poll(&mut self) -> Option<LoginEvent> {
        self.login.poll()
    }

    pub(super) fn transmit(&mut self, out: &mut BatchSink<'_>) {
        if let LoginCarrier::Iwarp(stream, reply) = &mut self.carrier {
            if !reply.is_empty() {
                out.0.bytes(&std::mem::take(reply));
            }
            self.login.post(&mut **stream);
            stream.transmit(out);
        } else {
            self.login.transmit(out);
        }
    }

    /// The queue pair of a device, if there is one.
    pub(super) const fn device(&self) -> Option<&DeviceLogin> {
        match &self.carrier {
            LoginCarrier::Device(device) => Some(device),
            _ => None,
        }
    }

    /// The same with the login that it is of.
    pub(super) fn device_mut(&mut self) -> Option<(&mut DeviceLogin, &mut Login<BlockLease>)> {
        match &mut self.carrier {
            LoginCarrier::Device(device) => Some((device, &mut self.login)),
            _ => None,
        }
    }

    /// Has what a session needs beside its login.
    pub(super) fn reserve(&mut self) -> Result<(), RdmaError> {
        match &mut self.carrier {
            LoginCarrier::Device(device) => device.reserve(),
            _ => Ok(()),
        }
    }

    /// Lets it rest, after its last response has left; `None` if there is no queue pair any more.
    pub(super) fn rest(self) -> Option<RestingLogin> {
        let carrier = match self.carrier {
            LoginCarrier::Iwarp(stream, _) => RestingCarrier::Iwarp(stream.rest().ok()?.into()),
            LoginCarrier::Device(device) => RestingCarrier::Device(device.rest()?),
            _ => RestingCarrier::Tcp,
        };
        let login = self.login;
        Some(RestingLogin { login, carrier })
    }
}

/// A login that has led to a session, on its way to the core of that.
pub struct RestingLogin {
    pub(super) login: Box<Login<BlockLease>>,
    carrier: RestingCarrier,
}

enum RestingCarrier {
    Tcp,
    Iwarp(Box<RestingStream>),
    Device(DevicePairInTransit),
}

impl RestingLogin {
    /// The session, on the core that the memory is of.
    pub(super) fn into_session(self, now: Now, memory: &RdmaMemory) -> Option<CoreSession> {
        match self.carrier {
            RestingCarrier::Tcp => self.login.into_session(now).map(CoreSession::Tcp),
            RestingCarrier::Iwarp(stream) => {
                let session = self.login.into_session_over(now)?;
                let mut stream = stream.wake();
                stream.set_max_receive(longest_message(DATA_SEGMENT));
                let over = IwarpSession { session, stream };
                Some(CoreSession::Rdma(RdmaSession::Iwarp(Box::new(over))))
            }
            RestingCarrier::Device(pair) => {
                let over = DeviceSession::new(*self.login, now, pair.attach(memory))?;
                Some(CoreSession::Rdma(RdmaSession::Device(Box::new(over))))
            }
        }
    }
}

/// Has a login hear a message. What comes behind its last one is the session's.
fn hear(login: &mut Login<BlockLease>, now: Now, stream: &mut BlockStream) {
    while login.takes_requests()
        && let Some(completion) = stream.poll()
    {
        match completion {
            Completion::Received { bytes, .. } => {
                login.receive_message(now, &bytes);
                stream.recycle(bytes);
            }
            Completion::Ended(why) => login.close(why.violation()),
            _ => {}
        }
    }
}

/// A session, and what carries it.
#[expect(clippy::large_enum_variant, reason = "it stands in a box of its own")]
pub(super) enum CoreSession {
    Tcp(Session<BlockLease>),
    Rdma(RdmaSession),
}

/// A session over iSER, and what carries that.
pub(super) enum RdmaSession {
    /// Software iWARP.
    Iwarp(Box<IwarpSession>),
    /// A queue pair of a device.
    Device(Box<DeviceSession>),
}

/// A session over software iWARP, and its end of the connection.
pub(super) struct IwarpSession {
    session: Session<BlockLease, IserMover<BlockLease>>,
    stream: BlockStream,
}

/// What does not depend on the transport. `$get` is `session` or `session_mut`, by which a session
/// over RDMA is reached.
macro_rules! each {
    ($self:ident.$get:ident, $session:ident => $call:expr) => {
        match $self {
            CoreSession::Tcp($session) => $call,
            CoreSession::Rdma(over) => {
                let $session = over.$get();
                $call
            }
        }
    };
}

impl CoreSession {
    /// Takes bytes from the wire, as many as can be used now.
    pub(super) fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        match self {
            Self::Tcp(session) => session.receive(now, bytes),
            Self::Rdma(RdmaSession::Iwarp(over)) => over.receive(now, bytes),
            Self::Rdma(RdmaSession::Device(_)) => 0,
        }
    }

    pub(super) fn transmit(&mut self, out: &mut BatchSink<'_>) {
        match self {
            Self::Tcp(session) => {
                session.transmit(out);
            }
            Self::Rdma(RdmaSession::Iwarp(over)) => over.transmit(out),
            Self::Rdma(RdmaSession::Device(_)) => {}
        }
    }

    /// What waits to be sent, or for what has to be over before it is.
    pub(super) fn queued(&self) -> usize {
        match self {
            Self::Tcp(session) => session.queued(),
            Self::Rdma(over) => over.queued(),
        }
    }

    /// Whether there is something to be received that has come, other than bytes.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Rdma(over) => over.has_more(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<SessionEvent<BlockLease>> {
        each!(self.session_mut, session => session.poll())
    }

    pub(super) fn has_events(&self) -> bool {
        each!(self.session, session => session.has_events())
    }

    pub(super) fn parameters(&self) -> &Parameters {
        each!(self.session, session => session.parameters())
    }

    /// Whether data that is read leaves from where it lies, and nothing but the kernel looks at it.
    pub(super) fn sends_by_kernel(&self) -> bool {
        match self {
            Self::Tcp(session) => !session.parameters().keys.data_digest,
            Self::Rdma(_) => false,
        }
    }

    pub(super) fn has_told(&self) -> bool {
        each!(self.session, session => session.has_told())
    }

    pub(super) fn is_stalled(&self) -> bool {
        each!(self.session, session => session.is_stalled())
    }

    pub(super) fn data_in_queued(&self) -> usize {
        each!(self.session, session => session.data_in_queued())
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        each!(self.session, session => session.next_deadline())
    }

    pub(super) fn timeout(&mut self, now: Now) {
        match self {
            Self::Tcp(session) => session.timeout(now),
            Self::Rdma(over) => over.timeout(now),
        }
    }

    pub(super) fn request_logout(&mut self, now: Now, seconds: u16) {
        each!(self.session_mut, session => session.request_logout(now, seconds));
    }
}

impl RdmaSession {
    fn session(&self) -> &Session<BlockLease, IserMover<BlockLease>> {
        match self {
            Self::Iwarp(over) => &over.session,
            Self::Device(over) => &over.session,
        }
    }

    pub(super) fn session_mut(&mut self) -> &mut Session<BlockLease, IserMover<BlockLease>> {
        match self {
            Self::Iwarp(over) => &mut over.session,
            Self::Device(over) => &mut over.session,
        }
    }

    /// Gives up the reads of aborted commands, before anybody is told that these are over.
    pub(super) fn settle(&mut self) {
        match self {
            Self::Iwarp(over) => drop(over.session.settle(&mut over.stream)),
            Self::Device(over) => over.settle(),
        }
    }

    fn queued(&self) -> usize {
        match self {
            Self::Iwarp(over) if over.stream.is_over() => 0,
            Self::Device(over) if over.has_ended() => 0,
            _ => self.session().queued(),
        }
    }

    fn has_more(&self) -> bool {
        let has_completions = match self {
            Self::Iwarp(over) => over.stream.has_completions(),
            Self::Device(_) => false,
        };
        has_completions || self.session().has_message()
    }

    fn timeout(&mut self, now: Now) {
        self.session_mut().timeout(now);
        match self {
            Self::Iwarp(over) => over.stream.trim(),
            Self::Device(over) => over.trim(),
        }
    }
}

impl IwarpSession {
    /// What has come goes first, and reads that were given up: nothing may be placed for them any
    /// more.
    fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        let settled = self.session.settle(&mut self.stream);
        let is_due = settled || self.stream.has_completions() || self.session.has_waiting();
        if is_due && (!self.session.receive(now, &mut self.stream) || self.session.has_events()) {
            return 0;
        }
        let used = self.stream.receive(bytes);
        self.session.receive(now, &mut self.stream);
        used
    }

    fn transmit(&mut self, out: &mut BatchSink<'_>) {
        self.session.transmit(&mut self.stream);
        let more = self.stream.transmit(out);
        self.session.has_put_out(more);
    }
}
