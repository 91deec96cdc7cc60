//! iSCSI: one connection after the other to the same target.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ring::{BlockingLane, FileOp, SendBatch, SocketId};
use block::identity::DetailGroup as Particular;
use block::lease::BlockLease;
use block::volume::{Context, HandleId};
use iscsi::initiator::config::{InitiatorConfig, InitiatorPurpose};
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{
    ClientCommand, Initiator, InitiatorEvent, IscsiRefusal, RestingSession, TargetNotice,
};
use scsi::client::UnitRequest;
use scsi::medium::Now;
use scsi::wire::lun::Lun;

use super::link::{self, Link, LinkEvent};
use super::resting_connection::RestingConnection;
use super::seek_history::SeekHistory;
use super::{RemoteError, RemoteSettings, SessionEnvironment, TransportAddress, details};
use runtime::batch::BatchSink;

/// Where a target of iSCSI is, and how sessions with it are.
#[derive(Clone, Debug)]
pub struct TargetPortal {
    /// A host name or an address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The two ends of a session and its parameters. The last two bytes of the ISID are those of
    /// the core.
    pub config: InitiatorConfig,
}

/// `HOST:PORT/TARGET`, with an IPv6 address in brackets.
impl fmt::Display for TargetPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)?;
        } else {
            write!(f, "{}:{}", self.host, self.port)?;
        }
        match &self.config.purpose {
            InitiatorPurpose::Normal(target) => write!(f, "/{target}"),
            InitiatorPurpose::Discovery => Ok(()),
        }
    }
}

/// A connection that is there, or is to be.
pub(super) struct InitiatorConnection {
    node: HandleId,
    config: Arc<InitiatorConfig>,
    outside: SessionEnvironment,
    /// How the unit is called in the log.
    name: String,
    sessions: u16,
    /// Where to: a redirection changes it.
    host: String,
    port: u16,
    /// The address to try when no connection was ever made.
    home: (String, u16),
    /// Where there were sessions: the portal group, if that was told, else the portal.
    groups: SeekHistory<TargetGroup>,
    /// DefaultTime2Wait of the session that is there, or has just ended.
    wait: Duration,
    state: SocketState,
    /// Tells the events of this connection from those of earlier ones.
    generation: u32,
    batch: Option<Box<SendBatch>>,
}

#[derive(PartialEq)]
enum TargetGroup {
    Tag(u16),
    Portal(String, u16),
}

enum SocketState {
    Down,
    /// A session is to be taken up.
    Resting(RestingConnection),
    /// A thread connects.
    Connecting(ConnectedSocket),
    Up(Box<LiveConnection>),
}

/// Where a thread leaves the socket.
type ConnectedSocket = Arc<Mutex<Option<OwnedFd>>>;

struct LiveConnection {
    socket: SocketId,
    session: Initiator<BlockLease>,
    receiving: bool,
    sending: bool,
    /// Bytes that could not be used yet.
    early: Vec<u8>,
}

impl LiveConnection {
    const fn new(socket: SocketId, session: Initiator<BlockLease>) -> Self {
        Self {
            socket,
            session,
            receiving: false,
            sending: false,
            early: Vec::new(),
        }
    }
}

/// How long connecting may take for each address.
const CONNECT: Duration = Duration::from_secs(5);

impl InitiatorConnection {
    pub(super) fn new(
        node: HandleId,
        settings: &RemoteSettings,
        portal: &TargetPortal,
        number: u16,
    ) -> Self {
        let mut config = portal.config.clone();
        config.isid[4..].copy_from_slice(&number.to_be_bytes());
        Self {
            node,
            config: Arc::new(config),
            outside: settings.outside,
            name: settings.name(),
            sessions: settings.sessions,
            host: portal.host.clone(),
            port: portal.port,
            home: (portal.host.clone(), portal.port),
            groups: SeekHistory::default(),
            wait: Duration::ZERO,
            state: SocketState::Down,
            generation: 0,
            batch: None,
        }
    }

    fn session(&self) -> Option<&Initiator<BlockLease>> {
        match &self.state {
            SocketState::Up(up) => Some(&up.session),
            _ => None,
        }
    }

    fn session_mut(&mut self) -> Option<&mut Initiator<BlockLease>> {
        match &mut self.state {
            SocketState::Up(up) => Some(&mut up.session),
            _ => None,
        }
    }

    /// A session has just logged in. Returns whether that ended the one before at the target, as
    /// there is the same portal group. The first one has none before it.
    fn logged_in(&mut self) -> bool {
        let outcome = self.session().and_then(Initiator::outcome);
        let wait = outcome.map_or(0, |outcome| outcome.keys.time2wait);
        let group = match outcome.and_then(|outcome| outcome.portal_group) {
            Some(tag) => TargetGroup::Tag(tag),
            None => TargetGroup::Portal(self.host.clone(), self.port),
        };
        self.wait = Duration::from_secs(wait.into());
        self.groups.come_to(group)
    }

    /// Turns an event of the session into one of the link.
    fn session_event(
        &mut self,
        cx: &mut Context<'_>,
        event: InitiatorEvent<BlockLease>,
    ) -> Option<LinkEvent> {
        Some(match event {
            InitiatorEvent::LoggedIn => LinkEvent::LoggedIn {
                same: self.logged_in(),
            },
            InitiatorEvent::Done(done) => LinkEvent::Answered(done),
            InitiatorEvent::Failed(failed) => LinkEvent::failed(&failed),
            InitiatorEvent::Ended(end) => {
                self.close(cx);
                LinkEvent::Ended(link::LinkEnd::Session(end))
            }
            InitiatorEvent::Notice(TargetNotice::LogoutWanted(_)) => {
                // Refused only when it is leaving already.
                let _ = self.session_mut().map(|session| session.logout(cx.now));
                return None;
            }
            InitiatorEvent::Managed { .. }
            | InitiatorEvent::Targets(_)
            | InitiatorEvent::TargetsRefused(_)
            | InitiatorEvent::Notice(_) => return None,
        })
    }
}

impl Link for InitiatorConnection {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_down(&self) -> bool {
        matches!(self.state, SocketState::Down | SocketState::Resting(_))
    }

    fn is_logged_in(&self) -> bool {
        matches!(&self.state, SocketState::Up(up) if up.session.outcome().is_some())
    }

    fn awaited(&self) -> String {
        let Self { host, port, .. } = self;
        let portal = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        match self.is_up() {
            false => format!("{portal} to accept the connection"),
            true if !self.is_logged_in() => format!("{portal} to answer the login"),
            true => format!("{} to answer", self.name),
        }
    }

    fn group(&self) -> usize {
        self.groups.last()
    }

    fn is_up(&self) -> bool {
        self.session().is_some()
    }

    fn has_room(&self) -> bool {
        self.session().is_some_and(|session| session.room() > 0)
    }

    fn execute(&mut self, now: Now, lun: Lun, request: UnitRequest<BlockLease>) -> bool {
        let (command, session) = (ClientCommand::of(request, lun), self.session_mut());
        session.is_some_and(|session| session.execute(now, command).is_ok())
    }

    fn log_out(&mut self, now: Now) -> bool {
        let asked = self.session_mut().map(|session| session.logout(now));
        !matches!(asked, None | Some(Err(IscsiRefusal::NotYet)))
    }

    fn rest(&mut self) -> Option<(SocketId, RestingSession)> {
        let up = match std::mem::replace(&mut self.state, SocketState::Down) {
            SocketState::Up(up) if !up.sending && !up.receiving && up.early.is_empty() => up,
            state => {
                self.state = state;
                return None;
            }
        };
        let socket = up.socket;
        match up.session.rest() {
            Ok(session) => Some((socket, session)),
            Err(session) => {
                self.state = SocketState::Up(Box::new(LiveConnection::new(socket, *session)));
                None
            }
        }
    }

    fn take_up(&mut self, resting: RestingConnection) {
        self.state = SocketState::Resting(resting);
    }

    fn is_resting(&self) -> bool {
        matches!(self.state, SocketState::Resting(_))
    }

    fn give_up(&mut self, _: Now) {
        let _ = self.session_mut().map(Initiator::give_up);
    }

    fn expire(&mut self, now: Now) {
        if let Some(session) = self.session_mut()
            && session.next_deadline().is_some_and(|at| at <= now)
        {
            session.expire(now);
        }
    }

    fn next_deadline(&self) -> Option<Now> {
        match &self.state {
            SocketState::Up(up) => up.session.next_deadline(),
            _ => None,
        }
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        if let SocketState::Resting(resting) = std::mem::replace(&mut self.state, SocketState::Down)
            && let Some((socket, session)) = resting.take()
            && let Ok(socket) = cx.ring.adopt(socket)
        {
            let session = Initiator::resume(session, cx.now);
            self.state = SocketState::Up(Box::new(LiveConnection::new(socket, session)));
            return;
        }
        let socket = ConnectedSocket::default();
        let (place, host, port) = (Arc::clone(&socket), self.host.clone(), self.port);
        let connect = self.outside.connect;
        let connect = move || {
            let socket = connect(&host, port, CONNECT)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
            Ok(0)
        };
        self.state = SocketState::Connecting(socket);
        let op = FileOp::Apart {
            lane: BlockingLane::Connect,
            call: Box::new(connect),
        };
        cx.file(self.node, self.generation, op);
    }

    fn connected(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        result: io::Result<u64>,
    ) -> Result<(), RemoteError> {
        let SocketState::Connecting(socket) = &self.state else {
            return Ok(());
        };
        if generation != self.generation {
            return Ok(());
        }
        let socket = Arc::clone(socket);
        self.state = SocketState::Down;
        result.map_err(RemoteError::Connect)?;
        let socket = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let socket = socket.ok_or_else(|| RemoteError::Connect(io::ErrorKind::NotConnected.into()));
        let socket = cx.ring.adopt(socket?).map_err(RemoteError::Connect)?;
        let mut random = [0; 37];
        (self.outside.random)(&mut random).map_err(RemoteError::Connect)?;
        match Initiator::new(Arc::clone(&self.config), cx.now, random) {
            Ok(session) => {
                self.state = SocketState::Up(Box::new(LiveConnection::new(socket, session)));
                Ok(())
            }
            Err(cause) => {
                cx.ring.close(socket);
                Err(RemoteError::Connect(io::Error::other(cause.to_string())))
            }
        }
    }

    fn received<'a>(
        &mut self,
        now: Now,
        generation: u32,
        bytes: &io::Result<&'a [u8]>,
    ) -> &'a [u8] {
        let SocketState::Up(up) = &mut self.state else {
            return &[];
        };
        if generation != self.generation {
            return &[];
        }
        up.receiving = false;
        match bytes {
            Ok(bytes) if !bytes.is_empty() => &bytes[up.session.receive(now, bytes)..],
            _ => {
                up.session.lost();
                &[]
            }
        }
    }

    fn continue_receive<'a>(&mut self, now: Now, bytes: &'a [u8]) -> &'a [u8] {
        let SocketState::Up(up) = &mut self.state else {
            return &[];
        };
        let rest = &bytes[up.session.receive(now, bytes)..];
        if rest.len() < bytes.len() {
            return rest;
        }
        self.keep(rest);
        &[]
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let SocketState::Up(up) = &mut self.state {
            up.early.extend(bytes);
        }
    }

    fn sent(&mut self, generation: u32, batch: Box<SendBatch>, result: &io::Result<()>) {
        self.batch = Some(batch);
        let SocketState::Up(up) = &mut self.state else {
            return;
        };
        if generation != self.generation {
            return;
        }
        up.sending = false;
        if result.is_err() {
            up.session.lost();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Option<LinkEvent> {
        loop {
            let SocketState::Up(up) = &mut self.state else {
                return None;
            };
            if !up.early.is_empty() {
                let used = up.session.receive(cx.now, &up.early);
                up.early.drain(..used);
            }
            let event = up.session.poll()?;
            if let Some(heard) = self.session_event(cx, event) {
                return Some(heard);
            }
        }
    }

    fn close(&mut self, cx: &mut Context<'_>) {
        if let SocketState::Up(up) = &self.state {
            cx.ring.close(up.socket);
        }
        self.state = SocketState::Down;
    }

    fn push(&mut self, cx: &mut Context<'_>) {
        let SocketState::Up(up) = &mut self.state else {
            return;
        };
        if !up.sending {
            let mut batch = self.batch.take().unwrap_or_default();
            up.session.transmit(&mut BatchSink(&mut batch));
            if batch.is_empty() {
                self.batch = Some(batch);
            } else {
                up.sending = true;
                cx.send(self.node, self.generation, up.socket, batch);
            }
        }
        if !up.receiving && up.early.is_empty() && !up.session.is_stalled() {
            up.receiving = true;
            cx.receive(self.node, self.generation, up.socket);
        }
    }

    fn wait_after(&mut self, end: &link::LinkEnd) -> Duration {
        let negotiated = std::mem::take(&mut self.wait);
        match end {
            link::LinkEnd::Session(SessionEnd::Dropped { time2wait, .. }) => {
                Duration::from_secs((*time2wait).into())
            }
            link::LinkEnd::Session(SessionEnd::LoggedOut) => Duration::ZERO,
            _ => negotiated,
        }
    }

    fn follow(&mut self, end: &link::LinkEnd) -> bool {
        let link::LinkEnd::Session(SessionEnd::Redirected { address, permanent }) = end else {
            return false;
        };
        self.host.clone_from(&address.host);
        self.port = address.port;
        if *permanent {
            self.home = (self.host.clone(), self.port);
        }
        true
    }

    fn go_home(&mut self) {
        (self.host, self.port) = self.home.clone();
    }

    fn go_to(&mut self, place: &TransportAddress) {
        if let TransportAddress::Iscsi(portal) = place {
            self.host.clone_from(&portal.host);
            self.port = portal.port;
        }
    }

    fn place(&self) -> TransportAddress {
        TransportAddress::Iscsi(Box::new(TargetPortal {
            host: self.host.clone(),
            port: self.port,
            config: InitiatorConfig::clone(&self.config),
        }))
    }

    fn particulars(&self) -> Vec<Particular> {
        let outcome = self.session().and_then(Initiator::outcome);
        let place = (
            self.host.as_str(),
            self.port,
            self.config.initiator.as_str(),
        );
        outcome.map_or_else(Vec::new, |outcome| {
            details::session(outcome, place, self.sessions)
        })
    }
}
