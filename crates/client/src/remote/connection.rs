//! iSCSI: one connection after the other to the same target, by TCP or by a device of RDMA.

mod device;
mod socket;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::ring::{Ring, SendBatch, SocketId};
use block::identity::DetailGroup;
use block::lease::BlockLease;
use block::volume::{Context, HandleEvent, HandleId};
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{ClientCommand, InitiatorEvent, IscsiRefusal, TargetNotice};
use scsi::client::UnitRequest;
use scsi::medium::Now;
use scsi::wire::lun::Lun;

use self::device::{DeviceAttempt, DeviceConnection, ResolvedHost};
use self::socket::ConnectedSocket;
use super::indeterminate_writes::SeekHistory;
use super::link::{Link, LinkEnd, LinkEvent};
use super::provider::IserOptions;
use super::session::{ClientSession, RestingConnection};
use super::{RemoteError, SessionEnvironment, TargetPortal, details, host_port};
use runtime::batch::BatchSink;

/// A connection that is there, or is to be.
pub(crate) struct InitiatorConnection {
    node: HandleId,
    config: Arc<InitiatorConfig>,
    /// Over iSER, and how.
    iser: Option<IserOptions>,
    outside: SessionEnvironment,
    /// How the unit is called in the log.
    name: String,
    /// Where to: a redirection changes it.
    host: String,
    port: u16,
    /// The address to try when no connection was ever made.
    home: (String, u16),
    /// The portal that the user gave.
    given: (String, u16),
    /// Where there were sessions: the portal group, if that was told, else the portal.
    groups: SeekHistory<TargetGroup>,
    /// DefaultTime2Wait of the session that is there.
    wait: Duration,
    state: SocketState,
    /// Tells the events of this connection from those of earlier ones.
    generation: u32,
    batch: Option<Box<SendBatch>>,
    /// Bytes that could not be used yet.
    early: Vec<u8>,
    heard: VecDeque<LinkEvent>,
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
    /// A thread resolves the name, for a device.
    Resolving(ResolvedHost),
    /// The target is asked by a device.
    Asking(Box<DeviceAttempt>),
    /// The same as up, over a device.
    Device(Box<DeviceConnection>),
}

struct LiveConnection {
    socket: SocketId,
    session: ClientSession,
    receiving: bool,
    sending: bool,
}

impl InitiatorConnection {
    pub(crate) fn new(
        node: HandleId,
        portal: TargetPortal,
        name: String,
        outside: SessionEnvironment,
    ) -> Self {
        let TargetPortal {
            host,
            port,
            config,
            iser,
        } = portal;
        Self {
            node,
            config: Arc::new(config),
            iser,
            outside,
            name,
            home: (host.clone(), port),
            given: (host.clone(), port),
            host,
            port,
            groups: SeekHistory::default(),
            wait: Duration::ZERO,
            state: SocketState::Down,
            generation: 0,
            batch: None,
            early: Vec::new(),
            heard: VecDeque::new(),
        }
    }

    /// Where it goes to.
    pub(super) fn place(&self) -> (String, u16) {
        (self.host.clone(), self.port)
    }

    /// The next connection is to there.
    pub(super) fn go_to(&mut self, place: (String, u16)) {
        (self.host, self.port) = place;
    }

    /// Names the portal, where that is another one than the user gave.
    fn with_portal(&self, cause: io::Error) -> io::Error {
        if self.place() == self.given {
            return cause;
        }
        let portal = host_port(&self.host, self.port);
        let told = format!("the target redirects to {portal}: {cause}");
        io::Error::new(cause.kind(), told)
    }

    /// The first connection is one that rests.
    pub(super) fn take_up(&mut self, resting: RestingConnection) {
        self.state = SocketState::Resting(resting);
    }

    /// Lays the session down, for another link to take up, if nothing is in flight. The target has
    /// answered after `since`.
    pub(super) fn rest(
        &mut self,
        ring: &mut impl Ring,
        since: Instant,
    ) -> Option<RestingConnection> {
        let is_free = self.early.is_empty() && self.heard.is_empty();
        let up = match std::mem::replace(&mut self.state, SocketState::Down) {
            SocketState::Up(up) if is_free && !up.sending && !up.receiving => up,
            state => {
                self.state = state;
                return None;
            }
        };
        match up.session.rest() {
            Ok(session) => Some(RestingConnection {
                socket: ring.release(up.socket),
                session,
                since,
            }),
            Err(session) => {
                self.state = SocketState::up(up.socket, *session);
                None
            }
        }
    }

    /// Asks a discovery session for all targets.
    pub(super) fn send_targets(&mut self, now: Now) {
        // Refused only where the session has ended, which the next event tells.
        let _ = self
            .session_mut()
            .map(|session| session.send_targets(now, "All"));
    }

    /// What it says of itself, while it is there.
    pub(super) fn particulars(&self, sessions: u16) -> Vec<DetailGroup> {
        let outcome = self.session().and_then(ClientSession::outcome);
        let place = (&*self.host, self.port, &*self.config.initiator);
        let mut groups = outcome.map_or_else(Vec::new, |outcome| {
            details::session(outcome, place, sessions)
        });
        let pair = self.session().and_then(ClientSession::queue_pair);
        groups.extend(pair.map(|pair| details::queue_pair(&pair)));
        groups
    }

    fn session(&self) -> Option<&ClientSession> {
        match &self.state {
            SocketState::Up(up) => Some(&up.session),
            SocketState::Device(device) => Some(&device.session),
            _ => None,
        }
    }

    fn session_mut(&mut self) -> Option<&mut ClientSession> {
        match &mut self.state {
            SocketState::Up(up) => Some(&mut up.session),
            SocketState::Device(device) => Some(&mut device.session),
            _ => None,
        }
    }

    /// Goes on with a session that rests.
    fn resume(&mut self, cx: &mut Context<'_>) {
        if let SocketState::Resting(resting) = std::mem::replace(&mut self.state, SocketState::Down)
            && let Ok(socket) = cx.ring.adopt(resting.socket)
        {
            let session = resting.session.resume(cx.now);
            self.state = SocketState::up(socket, session);
        }
    }

    /// Hands bytes to the session, which stops after each event until that is taken.
    fn take(&mut self, cx: &mut Context<'_>, mut bytes: &[u8]) {
        while let Some(session) = self.session_mut()
            && (!bytes.is_empty() || session.has_more())
        {
            let used = session.receive(cx.now, bytes);
            bytes = &bytes[used..];
            if !self.hear(cx) && used == 0 {
                return self.early.extend(bytes);
            }
        }
    }

    /// Takes what the session tells; returns whether it told anything.
    fn hear(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Some(event) = self.session_mut().and_then(ClientSession::poll) {
            let heard = self.session_event(cx, event);
            self.heard.extend(heard);
            any = true;
        }
        any
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
            InitiatorEvent::Ended(end) => self.ended(cx, end),
            InitiatorEvent::Notice(TargetNotice::LogoutWanted(_)) => {
                self.log_out(cx.now);
                return None;
            }
            InitiatorEvent::Targets(targets) => LinkEvent::Targets(targets),
            InitiatorEvent::TargetsRefused(_) => LinkEvent::Targets(Vec::new()),
            InitiatorEvent::Managed { .. } | InitiatorEvent::Notice(_) => return None,
        })
    }

    /// A session has just logged in. Returns whether that ended the one before at the target, as
    /// there is the same portal group. The first one has none before it.
    fn logged_in(&mut self) -> bool {
        let outcome = self.session().and_then(ClientSession::outcome);
        let wait = outcome.map_or(0, |outcome| outcome.keys.time2wait);
        let group = match outcome.and_then(|outcome| outcome.portal_group) {
            Some(tag) => TargetGroup::Tag(tag),
            None => TargetGroup::Portal(self.host.clone(), self.port),
        };
        self.wait = Duration::from_secs(wait.into());
        self.groups.come_to(group)
    }

    /// Has what the target is to be told of the end leave, where that costs no time.
    fn tell_end(&mut self, cx: &mut Context<'_>) {
        let SocketState::Up(up) = &mut self.state else {
            return;
        };
        if up.sending {
            return;
        }
        let mut batch = self.batch.take().unwrap_or_default();
        up.session.transmit_end(&mut BatchSink(&mut batch));
        self.batch = if batch.is_empty() {
            Some(batch)
        } else {
            cx.send_now(self.node, self.generation, up.socket, batch)
        };
    }

    /// The session has ended; the next one goes where the target wants it.
    fn ended(&mut self, cx: &mut Context<'_>, end: SessionEnd) -> LinkEvent {
        self.tell_end(cx);
        let session = self.session();
        let failure = session.and_then(|session| session.device_failure(&end));
        self.close(cx);
        let negotiated = std::mem::take(&mut self.wait);
        let wait = match &end {
            SessionEnd::Dropped { time2wait, .. } => Duration::from_secs((*time2wait).into()),
            SessionEnd::LoggedOut => Duration::ZERO,
            _ => negotiated,
        };
        if let SessionEnd::Redirected { address, permanent } = &end {
            self.go_to((address.host.clone(), address.port));
            if *permanent {
                self.home = self.place();
            }
        }
        let end = match failure {
            Some(failure) => LinkEnd::Device(failure.into()),
            None => LinkEnd::Session(end),
        };
        LinkEvent::Ended { end, wait }
    }
}

impl SocketState {
    fn up(socket: SocketId, session: ClientSession) -> Self {
        Self::Up(Box::new(LiveConnection {
            socket,
            session,
            receiving: false,
            sending: false,
        }))
    }
}

impl Link for InitiatorConnection {
    fn name(&self) -> &str {
        &self.name
    }

    fn awaited(&self) -> String {
        let portal = host_port(&self.host, self.port);
        match self.session() {
            None => format!("{portal} to accept the connection"),
            Some(session) if session.outcome().is_none() => format!("{portal} to answer the login"),
            Some(_) => format!("{} to answer", self.name),
        }
    }

    fn is_down(&self) -> bool {
        matches!(self.state, SocketState::Down)
    }

    fn is_logged_in(&self) -> bool {
        let session = self.session();
        session.is_some_and(|session| session.outcome().is_some())
    }

    fn group(&self) -> usize {
        self.groups.last()
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        if !self.connect_by_device(cx) {
            self.connect_socket(cx);
        }
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

    fn give_up(&mut self, _: Now) {
        let _ = self.session_mut().map(ClientSession::give_up);
    }

    fn close(&mut self, cx: &mut Context<'_>) {
        if let SocketState::Up(up) = &self.state {
            cx.ring.close(up.socket);
        }
        self.state = SocketState::Down;
        self.early.clear();
    }

    fn next_deadline(&self) -> Option<Now> {
        match &self.state {
            SocketState::Asking(attempt) => Some(attempt.until),
            SocketState::Device(device) if device.has_more => Some(Now::ZERO),
            _ => self.session().and_then(ClientSession::next_deadline),
        }
    }

    fn expire(&mut self, now: Now) {
        if let Some(session) = self.session_mut()
            && session.next_deadline().is_some_and(|at| at <= now)
        {
            session.expire(now);
        }
    }

    fn event(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        event: HandleEvent<'_>,
    ) -> Result<(), RemoteError> {
        let is_current = generation == self.generation;
        match (event, &mut self.state) {
            (HandleEvent::Sent { batch, result }, state) => {
                self.batch = Some(batch);
                if let SocketState::Up(up) = state
                    && is_current
                {
                    up.sending = false;
                    if result.is_err() {
                        up.session.lost();
                    }
                }
            }
            (HandleEvent::Received(bytes), SocketState::Up(up)) if is_current => {
                up.receiving = false;
                match bytes {
                    Ok(bytes) if !bytes.is_empty() => self.take(cx, bytes),
                    _ => up.session.lost(),
                }
            }
            (HandleEvent::File { result, .. }, SocketState::Connecting(socket)) if is_current => {
                let socket = Arc::clone(socket);
                let connected = self.connected(cx, &socket, result);
                return connected.map_err(|cause| self.not_connected(cause));
            }
            (HandleEvent::File { result, .. }, SocketState::Resolving(_)) if is_current => {
                return self.resolved(cx, result);
            }
            (HandleEvent::Ready, SocketState::Asking(_)) if is_current => self.asked(cx),
            (HandleEvent::Ready, SocketState::Device(_)) if is_current => self.wake(),
            _ => {}
        }
        Ok(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Option<LinkEvent> {
        if matches!(self.state, SocketState::Resting(_)) {
            self.resume(cx);
        }
        if self.heard.is_empty() {
            self.check_answer(cx);
            self.look();
            let early = std::mem::take(&mut self.early);
            self.take(cx, &early);
            self.hear(cx);
        }
        self.heard.pop_front()
    }

    fn push(&mut self, cx: &mut Context<'_>) {
        let SocketState::Up(up) = &mut self.state else {
            return self.push_device(cx);
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
        if !up.receiving && self.early.is_empty() && !up.session.is_stalled() {
            up.receiving = true;
            cx.receive(self.node, self.generation, up.socket);
        }
    }
}
