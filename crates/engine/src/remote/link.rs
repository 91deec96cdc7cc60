//! One connection after the other to the same target.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ring::{FileOp, SendBatch, SocketId};
use block::lease::Lease;
use block::volume::{Context, Node};
use iscsi::initiator::config::Config;
use iscsi::initiator::error::End;
use iscsi::initiator::{Event, Initiator};
use scsi::medium::Now;

use super::{Outside, RemoteError, Settings};
use crate::core::Wire;

/// A connection that is there, or is to be.
pub(super) struct Link {
    node: Node,
    config: Arc<Config>,
    outside: Outside,
    /// Where to: a redirection changes it.
    pub(super) host: String,
    pub(super) port: u16,
    /// Where to, when nobody is there.
    home: (String, u16),
    /// Where there were sessions: the portal group, if that was told, else the portal.
    groups: Vec<Group>,
    /// Which of these the last one was in.
    group: usize,
    /// DefaultTime2Wait of the session that is there, or has just ended.
    wait: Duration,
    state: State,
    /// Tells the events of this connection from those of earlier ones.
    generation: u32,
    batch: Option<Box<SendBatch>>,
}

#[derive(PartialEq)]
enum Group {
    Tag(u16),
    Portal(String, u16),
}

enum State {
    Down,
    /// A thread connects.
    Connecting(Made),
    Up(Box<Up>),
}

/// Where a thread leaves the socket.
type Made = Arc<Mutex<Option<OwnedFd>>>;

struct Up {
    socket: SocketId,
    session: Initiator<Lease>,
    receiving: bool,
    sending: bool,
    /// Octets that could not be used yet.
    early: Vec<u8>,
}

/// How long connecting may take for each address.
const CONNECT: Duration = Duration::from_secs(5);

impl Link {
    pub(super) fn new(node: Node, settings: &Settings, number: u16) -> Self {
        let mut config = settings.config.clone();
        config.isid[4..].copy_from_slice(&number.to_be_bytes());
        Self {
            node,
            config: Arc::new(config),
            outside: settings.outside,
            host: settings.host.clone(),
            port: settings.port,
            home: (settings.host.clone(), settings.port),
            groups: Vec::new(),
            group: 0,
            wait: Duration::ZERO,
            state: State::Down,
            generation: 0,
            batch: None,
        }
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.state, State::Down)
    }

    /// Whether the session is in its full feature phase.
    pub(super) fn is_logged_in(&self) -> bool {
        matches!(&self.state, State::Up(up) if up.session.outcome().is_some())
    }

    /// The number of the portal group that the last session was in, from 0 on.
    pub(super) fn group(&self) -> usize {
        self.group
    }

    /// The session, while there is a connection.
    pub(super) fn session(&mut self) -> Option<&mut Initiator<Lease>> {
        match &mut self.state {
            State::Up(up) => Some(&mut up.session),
            _ => None,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        match &self.state {
            State::Up(up) => up.session.next_deadline(),
            _ => None,
        }
    }

    /// Begins to connect.
    pub(super) fn connect(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        let made = Made::default();
        let (place, host, port) = (Arc::clone(&made), self.host.clone(), self.port);
        let connect = self.outside.connect;
        let connect = move || {
            let socket = connect(&host, port, CONNECT)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
            Ok(0)
        };
        self.state = State::Connecting(made);
        let op = FileOp::Blocking(Box::new(connect));
        cx.file(self.node, self.generation, op);
    }

    /// The thread has done what it could. Returns whether that concerns the present connection.
    pub(super) fn connected(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        result: io::Result<u64>,
    ) -> Result<bool, RemoteError> {
        let State::Connecting(made) = &self.state else {
            return Ok(false);
        };
        if generation != self.generation {
            return Ok(false);
        }
        let made = Arc::clone(made);
        self.state = State::Down;
        result.map_err(RemoteError::Connect)?;
        let socket = made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let socket = socket.ok_or_else(|| RemoteError::Connect(io::ErrorKind::NotConnected.into()));
        let socket = cx.ring.adopt(socket?).map_err(RemoteError::Connect)?;
        let mut random = [0; 37];
        (self.outside.random)(&mut random).map_err(RemoteError::Connect)?;
        match Initiator::new(Arc::clone(&self.config), cx.now, random) {
            Ok(session) => {
                self.state = State::Up(Box::new(Up {
                    socket,
                    session,
                    receiving: false,
                    sending: false,
                    early: Vec::new(),
                }));
                Ok(true)
            }
            Err(cause) => {
                cx.ring.close(socket);
                Err(RemoteError::Connect(io::Error::other(cause.to_string())))
            }
        }
    }

    /// Octets came in. Returns those that are to be given to [`Self::go_on`] once [`Self::poll`]
    /// has told what happened.
    pub(super) fn received<'a>(
        &mut self,
        now: Now,
        generation: u32,
        octets: &io::Result<&'a [u8]>,
    ) -> &'a [u8] {
        let State::Up(up) = &mut self.state else {
            return &[];
        };
        if generation != self.generation {
            return &[];
        }
        up.receiving = false;
        match octets {
            Ok(octets) if !octets.is_empty() => &octets[up.session.receive(now, octets)..],
            _ => {
                up.session.lost();
                &[]
            }
        }
    }

    /// Goes on with octets; those that the session cannot take now are kept.
    pub(super) fn go_on<'a>(&mut self, now: Now, octets: &'a [u8]) -> &'a [u8] {
        let State::Up(up) = &mut self.state else {
            return &[];
        };
        let rest = &octets[up.session.receive(now, octets)..];
        if rest.len() < octets.len() {
            return rest;
        }
        self.keep(rest);
        &[]
    }

    /// Keeps octets until something else has happened.
    pub(super) fn keep(&mut self, octets: &[u8]) {
        if let State::Up(up) = &mut self.state {
            up.early.extend(octets);
        }
    }

    /// A batch has left.
    pub(super) fn sent(&mut self, generation: u32, batch: Box<SendBatch>, result: &io::Result<()>) {
        self.batch = Some(batch);
        let State::Up(up) = &mut self.state else {
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

    /// What the session tells next; after its end the connection is closed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Event<Lease>> {
        let State::Up(up) = &mut self.state else {
            return None;
        };
        if !up.early.is_empty() {
            let used = up.session.receive(cx.now, &up.early);
            up.early.drain(..used);
        }
        let event = up.session.poll()?;
        if matches!(event, Event::Ended(_)) {
            self.close(cx);
        }
        Some(event)
    }

    /// Ends the connection, or what would become one, without a word.
    pub(super) fn close(&mut self, cx: &mut Context<'_>) {
        if let State::Up(up) = &self.state {
            cx.ring.close(up.socket);
        }
        self.state = State::Down;
    }

    /// Sends what there is to be sent, and receives what there may be.
    pub(super) fn push(&mut self, cx: &mut Context<'_>) {
        let State::Up(up) = &mut self.state else {
            return;
        };
        if !up.sending {
            let mut batch = self.batch.take().unwrap_or_default();
            up.session.transmit(&mut Wire(&mut batch));
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

    /// How long the target wants to be left alone after this end of its session: what it said when
    /// it dropped it (RFC 7143 §11.9.1), else what was negotiated (§13.15).
    pub(super) fn wait_after(&mut self, end: &End) -> Duration {
        let negotiated = std::mem::take(&mut self.wait);
        match end {
            End::Dropped { time2wait, .. } => Duration::from_secs((*time2wait).into()),
            End::LoggedOut => Duration::ZERO,
            _ => negotiated,
        }
    }

    /// Where the target wants us to go, from an event of its end.
    pub(super) fn follow(&mut self, end: &End) -> bool {
        let End::Redirected { address, permanent } = end else {
            return false;
        };
        self.host.clone_from(&address.host);
        self.port = address.port;
        if *permanent {
            self.home = (self.host.clone(), self.port);
        }
        true
    }

    /// The next connection is to where the first one was.
    pub(super) fn go_home(&mut self) {
        (self.host, self.port) = self.home.clone();
    }

    /// A session has just logged in. Returns whether that ended the one before at the target, as
    /// there is the same portal group. The first one has none before it.
    pub(super) fn logged_in(&mut self) -> bool {
        let State::Up(up) = &self.state else {
            return false;
        };
        let outcome = up.session.outcome();
        let wait = outcome.map_or(0, |outcome| outcome.keys.time2wait);
        self.wait = Duration::from_secs(wait.into());
        let group = match outcome.and_then(|outcome| outcome.portal_group) {
            Some(tag) => Group::Tag(tag),
            None => Group::Portal(self.host.clone(), self.port),
        };
        let known = self.groups.iter().position(|known| *known == group);
        let at = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push(group);
        }
        std::mem::replace(&mut self.group, at) == at
    }
}
