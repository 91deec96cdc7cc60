//! A session of iSCSI, and what carries it: TCP alone, or iSER over software iWARP.
//!
//! Over iSER a queue pair stands between the session and the socket. It is made by the first
//! exchange on the connection, before which the session sends nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use address::SessionOptions;
use block::lease::BlockLease;
use iscsi::initiator::config::{InitiatorConfig, Misconfigured};
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::initiator::{
    ClientCommand, Initiator, InitiatorEvent, IscsiRefusal, IscsiRefused, LoginOutcome,
    RestingSession,
};
use iscsi::wire::iser::private_data;
use rdma::iwarp::startup::{
    Agreed, FrameKind, FrameReader, StartupConfig, StartupError, StartupFrame,
};
use rdma::iwarp::stream::{RestingStream, Stream, StreamConfig};
use runtime::batch::BatchSink;
use scsi::medium::Now;

/// What an address says of iSER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IserOptions {
    /// CRCs are asked for (RFC 5044 §4.4). They are used if either end asks.
    pub crc: bool,
}

impl IserOptions {
    /// What an address says, or what is usual.
    #[must_use]
    pub fn of(session: &SessionOptions) -> Self {
        Self {
            crc: session.crc.unwrap_or(true),
        }
    }
}

/// What a connection needs to become a queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct IserConnection {
    options: IserOptions,
    /// Bytes of a segment of TCP.
    segment_size: usize,
    /// Random bytes that the target does not know.
    random: [u8; 32],
}

/// A session and its carrier.
#[expect(clippy::large_enum_variant, reason = "it stands in a box of its own")]
pub(super) enum ClientSession {
    Tcp(Initiator<BlockLease>),
    Iser(Box<IserSession>),
}

/// A session over iSER, and its end of the connection.
pub(super) struct IserSession {
    initiator: Initiator<BlockLease, InitiatorIserMover>,
    end: IwarpEnd,
    /// Nothing is sent before this instant.
    held: Option<Now>,
}

enum IwarpEnd {
    /// Request and Reply of MPA are exchanged.
    Startup(Box<IwarpStartup>),
    Up(Box<Stream<BlockLease>>),
}

struct IwarpStartup {
    connection: IserConnection,
    is_asked: bool,
    reader: FrameReader,
}

/// How long after the Reply of MPA the first FPDU is sent. siw, as a responder, sends its Reply
/// first and begins to listen for FPDUs then: of one that comes in between it learns when more
/// comes, which is never, as the initiator waits for an answer. On a slow guest it met half of the
/// logins of an initiator that took 0.1 ms.
const FIRST_FPDU_DELAY: Now = Now::from_millis(50);

/// RDMA Reads of the target that may be under way.
const READS: u16 = 32;

impl IserConnection {
    /// Of a connection that was just made.
    pub(super) fn new(
        options: IserOptions,
        socket: &OwnedFd,
        fill: fn(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut random = [0; 32];
        fill(&mut random)?;
        Ok(Self {
            options,
            segment_size: ::io::tcp::segment_size(socket),
            random,
        })
    }

    /// Linux asks for one read of its own, too, which it never makes.
    const fn startup(&self) -> StartupConfig {
        StartupConfig {
            crc: self.options.crc,
            long_fpdus: true,
            ird: READS,
            ord: 1,
        }
    }

    fn stream(&self, agreed: Agreed) -> Stream<BlockLease> {
        let config = StreamConfig {
            segment_size: self.segment_size,
            max_receive: MAX_MESSAGE,
            can_invalidate: false,
            random: self.random,
        };
        Stream::new(agreed, &config)
    }
}

impl IwarpStartup {
    fn request(&mut self) -> Option<StartupFrame> {
        let is_first = !std::mem::replace(&mut self.is_asked, true);
        is_first.then(|| self.connection.startup().request(&private_data(true)))
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Option<Stream<BlockLease>>, StartupError> {
        let Some(reply) = self.reader.receive(bytes)? else {
            return Ok(None);
        };
        let agreed = self.connection.startup().agree(&reply)?;
        Ok(Some(self.connection.stream(agreed)))
    }
}

impl IserSession {
    fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        if !bytes.is_empty() {
            self.initiator.heard(now);
        }
        match &mut self.end {
            IwarpEnd::Startup(startup) => match startup.receive(bytes) {
                Ok(Some(stream)) => {
                    let goes_on = stream.agreed().refused.is_none();
                    self.held = goes_on.then(|| now + FIRST_FPDU_DELAY);
                    self.end = IwarpEnd::Up(Box::new(stream));
                }
                Ok(None) => {}
                Err(StartupError::Rejected) => {
                    self.initiator.no_pair("the target rejects the connection");
                }
                Err(error) => self.initiator.no_pair(error.violation().rule),
            },
            IwarpEnd::Up(stream) => {
                if !self.initiator.receive(now, &mut **stream) {
                    return 0;
                }
                let used = stream.receive(bytes);
                self.initiator.receive(now, &mut **stream);
                return used;
            }
        }
        bytes.len()
    }

    fn transmit(&mut self, out: &mut BatchSink<'_>) {
        if self.held.is_some() {
            return;
        }
        match &mut self.end {
            IwarpEnd::Startup(startup) => {
                if let Some(request) = startup.request() {
                    out.0.bytes(&request.encode());
                }
            }
            IwarpEnd::Up(stream) => {
                self.initiator.transmit(&mut **stream);
                stream.transmit(out);
            }
        }
    }

    fn has_more(&self) -> bool {
        match &self.end {
            IwarpEnd::Startup(_) => false,
            IwarpEnd::Up(stream) => stream.has_completions() && !self.initiator.is_stalled(),
        }
    }
}

/// What does not depend on the transport.
macro_rules! each {
    ($self:expr, $session:ident => $call:expr) => {
        match $self {
            ClientSession::Tcp($session) => $call,
            ClientSession::Iser(over) => {
                let $session = &mut over.initiator;
                $call
            }
        }
    };
}

impl ClientSession {
    /// A session on a connection that was just made.
    pub(super) fn new(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
        iser: Option<IserConnection>,
    ) -> Result<Self, Misconfigured> {
        let Some(connection) = iser else {
            return Initiator::new(config, now, random).map(Self::Tcp);
        };
        Ok(Self::Iser(Box::new(IserSession {
            initiator: Initiator::over_rdma(config, now, random)?,
            end: IwarpEnd::Startup(Box::new(IwarpStartup {
                connection,
                is_asked: false,
                reader: FrameReader::new(FrameKind::Reply),
            })),
            held: None,
        })))
    }

    /// Takes bytes, as many as can be used now.
    pub(super) fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        match self {
            Self::Tcp(session) => session.receive(now, bytes),
            Self::Iser(over) => over.receive(now, bytes),
        }
    }

    /// Whether something has come, other than bytes.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Iser(over) => over.has_more(),
        }
    }

    pub(super) fn transmit(&mut self, out: &mut BatchSink<'_>) {
        match self {
            Self::Tcp(session) => {
                session.transmit(out);
            }
            Self::Iser(over) => over.transmit(out),
        }
    }

    /// What is to leave before the connection is closed: why the queue pair has ended.
    pub(super) fn transmit_end(&mut self, out: &mut BatchSink<'_>) {
        if let Self::Iser(over) = self
            && let IwarpEnd::Up(stream) = &mut over.end
        {
            stream.transmit(out);
        }
    }

    pub(super) fn outcome(&self) -> Option<&LoginOutcome> {
        match self {
            Self::Tcp(session) => session.outcome(),
            Self::Iser(over) => over.initiator.outcome(),
        }
    }

    /// What became of the queue pair, once there is one.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        match self {
            Self::Iser(over) => match &over.end {
                IwarpEnd::Up(stream) => Some(stream.agreed()),
                IwarpEnd::Startup(_) => None,
            },
            Self::Tcp(_) => None,
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        match self {
            Self::Tcp(session) => session.is_stalled(),
            Self::Iser(over) => over.initiator.is_stalled(),
        }
    }

    pub(super) fn room(&self) -> usize {
        match self {
            Self::Tcp(session) => session.room(),
            Self::Iser(over) => over.initiator.room(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        match self {
            Self::Tcp(session) => session.next_deadline(),
            Self::Iser(over) => over.held.or_else(|| over.initiator.next_deadline()),
        }
    }

    pub(super) fn poll(&mut self) -> Option<InitiatorEvent<BlockLease>> {
        each!(self, session => session.poll())
    }

    pub(super) fn execute(
        &mut self,
        now: Now,
        command: ClientCommand<BlockLease>,
    ) -> Result<(), IscsiRefused<BlockLease>> {
        each!(self, session => session.execute(now, command))
    }

    pub(super) fn send_targets(&mut self, now: Now, of: &str) -> Result<(), IscsiRefusal> {
        each!(self, session => session.send_targets(now, of))
    }

    pub(super) fn logout(&mut self, now: Now) -> Result<(), IscsiRefusal> {
        each!(self, session => session.logout(now))
    }

    pub(super) fn give_up(&mut self) {
        each!(self, session => session.give_up());
    }

    pub(super) fn expire(&mut self, now: Now) {
        match self {
            Self::Tcp(session) => session.expire(now),
            Self::Iser(over) => over.expire(now),
        }
    }

    pub(super) fn lost(&mut self) {
        match self {
            Self::Tcp(session) => session.lost(),
            Self::Iser(over) if matches!(over.end, IwarpEnd::Startup(_)) => {
                over.initiator.no_pair("the target closed the connection");
            }
            Self::Iser(over) => over.initiator.lost(),
        }
    }

    /// Lays it down, if nothing is in flight; else gives it back.
    pub(super) fn rest(self) -> Result<RestingClientSession, Box<Self>> {
        match self {
            Self::Tcp(session) => {
                let resting = session.rest().map(RestingClientSession::Tcp);
                resting.map_err(|session| Box::new(Self::Tcp(*session)))
            }
            Self::Iser(over) => over.rest(),
        }
    }
}

impl IserSession {
    /// The deadline of the login is that of the startup, too.
    fn expire(&mut self, now: Now) {
        self.held.take_if(|until| *until <= now);
        let is_due = self.initiator.next_deadline().is_some_and(|at| at <= now);
        match &mut self.end {
            IwarpEnd::Startup(_) if is_due => self.initiator.no_pair("the target does not answer"),
            IwarpEnd::Startup(_) => {}
            IwarpEnd::Up(stream) => {
                self.initiator.expire(now);
                stream.trim();
            }
        }
    }

    fn rest(self) -> Result<RestingClientSession, Box<ClientSession>> {
        let back = |initiator, end| {
            let over = Self {
                initiator,
                end,
                held: None,
            };
            Err(Box::new(ClientSession::Iser(Box::new(over))))
        };
        let IwarpEnd::Up(stream) = self.end else {
            return back(self.initiator, self.end);
        };
        let initiator = match self.initiator.rest() {
            Ok(initiator) => initiator,
            Err(initiator) => return back(*initiator, IwarpEnd::Up(stream)),
        };
        match stream.rest() {
            Ok(stream) => Ok(RestingClientSession::Iser(initiator, Box::new(stream))),
            // Its answers have come, so it has nothing to do; were it not so, it would go on.
            Err(stream) => back(initiator.resume(Now::ZERO), IwarpEnd::Up(stream)),
        }
    }
}

/// A session between two holders, so that a target sees one login of whoever opens a volume and
/// then uses it. Nothing answers its pings meanwhile, so it does not last long.
#[derive(Debug)]
pub(super) struct RestingConnection {
    pub(super) socket: OwnedFd,
    pub(super) session: RestingClientSession,
    pub(super) since: Instant,
}

/// Targets give up a session that is silent after 15 s or more.
const LASTS: Duration = Duration::from_secs(10);

impl RestingConnection {
    /// Whether the target may have given it up. A new login replaces it then.
    pub(super) fn is_stale(&self) -> bool {
        self.since.elapsed() > LASTS
    }
}

/// The session of that.
#[derive(Debug)]
pub(super) enum RestingClientSession {
    Tcp(RestingSession),
    Iser(RestingSession<InitiatorIserMover>, Box<RestingStream>),
}

impl RestingClientSession {
    pub(super) fn resume(self, now: Now) -> ClientSession {
        match self {
            Self::Tcp(session) => ClientSession::Tcp(Initiator::resume(session, now)),
            Self::Iser(session, stream) => ClientSession::Iser(Box::new(IserSession {
                initiator: session.resume(now),
                end: IwarpEnd::Up(Box::new(stream.wake())),
                held: None,
            })),
        }
    }
}
