//! A session over iSER, by software iWARP on a connection of TCP.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use block::lease::BlockLease;
use iscsi::initiator::config::{InitiatorConfig, Misconfigured};
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::initiator::{Initiator, RestingSession};
use iscsi::wire::iser::{invalidates, private_data};
use rdma::iwarp::startup::{
    Agreed, FrameKind, FrameReader, StartupConfig, StartupError, StartupFrame,
};
use rdma::iwarp::stream::{RestingStream, Stream, StreamConfig};
use runtime::batch::BatchSink;
use scsi::medium::Now;

use super::{ClientSession, RestingClientSession};

/// What a connection needs to become a queue pair.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct IwarpConnection {
    crc: bool,
    /// Bytes of a segment of TCP.
    segment_size: usize,
    /// Random bytes that the target does not know.
    random: [u8; 32],
}

/// A session over iSER, and its end of the connection.
pub(in super::super) struct IwarpSession {
    pub(super) initiator: Initiator<BlockLease, InitiatorIserMover>,
    end: IwarpEnd,
    /// The target's Sends may invalidate STags, by its private data.
    invalidates: bool,
    /// Nothing is sent before this instant.
    held: Option<Now>,
}

/// One that was laid down.
#[derive(Debug)]
pub(in super::super) struct RestingIwarp {
    session: RestingSession<InitiatorIserMover>,
    stream: Box<RestingStream>,
    invalidates: bool,
}

/// What is told of a queue pair of software iWARP.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct IwarpFacts {
    pub(in super::super) agreed: Agreed,
    /// The target's Sends may invalidate STags: each end has said so.
    pub(in super::super) invalidates: bool,
}

enum IwarpEnd {
    /// Request and Reply of MPA are exchanged.
    Startup(Box<IwarpStartup>),
    Up(Box<Stream<BlockLease>>),
}

struct IwarpStartup {
    connection: IwarpConnection,
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

impl IwarpConnection {
    /// Of a connection that was just made.
    pub(in super::super) fn new(
        crc: bool,
        socket: &OwnedFd,
        fill: fn(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut random = [0; 32];
        fill(&mut random)?;
        Ok(Self {
            crc,
            segment_size: ::io::tcp::segment_size(socket),
            random,
        })
    }

    /// Linux asks for one read of its own, too, which it never makes.
    const fn startup(&self) -> StartupConfig {
        StartupConfig {
            crc: self.crc,
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

    /// The queue pair, and whether the target invalidates.
    fn receive(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<(Stream<BlockLease>, bool)>, StartupError> {
        let Some(reply) = self.reader.receive(bytes)? else {
            return Ok(None);
        };
        let agreed = self.connection.startup().agree(&reply)?;
        let stream = self.connection.stream(agreed);
        Ok(Some((stream, invalidates(&reply.private))))
    }
}

impl IwarpSession {
    /// A session on a connection that was just made.
    pub(super) fn new(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
        connection: IwarpConnection,
    ) -> Result<Self, Misconfigured> {
        Ok(Self {
            initiator: Initiator::over_rdma(config, now, random)?,
            end: IwarpEnd::Startup(Box::new(IwarpStartup {
                connection,
                is_asked: false,
                reader: FrameReader::new(FrameKind::Reply),
            })),
            invalidates: false,
            held: None,
        })
    }

    /// Takes bytes, as many as can be used now.
    pub(super) fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        if !bytes.is_empty() {
            self.initiator.heard(now);
        }
        match &mut self.end {
            IwarpEnd::Startup(startup) => match startup.receive(bytes) {
                Ok(Some((stream, invalidates))) => {
                    self.invalidates = invalidates;
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

    pub(super) fn transmit(&mut self, out: &mut BatchSink<'_>) {
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

    /// Whether something has come, other than bytes.
    pub(super) fn has_more(&self) -> bool {
        match &self.end {
            IwarpEnd::Startup(_) => false,
            IwarpEnd::Up(stream) => stream.has_completions() && !self.initiator.is_stalled(),
        }
    }

    /// What is to leave before the connection is closed: why the queue pair has ended.
    pub(super) fn transmit_end(&mut self, out: &mut BatchSink<'_>) {
        if let IwarpEnd::Up(stream) = &mut self.end {
            stream.transmit(out);
        }
    }

    /// What became of the queue pair, once there is one.
    pub(super) fn facts(&self) -> Option<IwarpFacts> {
        match &self.end {
            IwarpEnd::Up(stream) => Some(IwarpFacts {
                agreed: stream.agreed(),
                invalidates: self.invalidates,
            }),
            IwarpEnd::Startup(_) => None,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.held.or_else(|| self.initiator.next_deadline())
    }

    /// The connection was closed by the target, or broke.
    pub(super) fn lost(&mut self) {
        match self.end {
            IwarpEnd::Startup(_) => self.initiator.closed_at_startup(),
            IwarpEnd::Up(_) => self.initiator.lost(),
        }
    }

    /// The deadline of the login is that of the startup, too.
    pub(super) fn expire(&mut self, now: Now) {
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

    /// Lays it down, if nothing is in flight; else gives it back.
    pub(super) fn rest(self) -> Result<RestingClientSession, Box<ClientSession>> {
        let back = |initiator, end| {
            let over = Self {
                initiator,
                end,
                invalidates: self.invalidates,
                held: None,
            };
            Err(Box::new(ClientSession::Iwarp(Box::new(over))))
        };
        let IwarpEnd::Up(stream) = self.end else {
            return back(self.initiator, self.end);
        };
        let initiator = match self.initiator.rest() {
            Ok(initiator) => initiator,
            Err(initiator) => return back(*initiator, IwarpEnd::Up(stream)),
        };
        match stream.rest() {
            Ok(stream) => Ok(RestingClientSession::Iwarp(RestingIwarp {
                session: initiator,
                stream: Box::new(stream),
                invalidates: self.invalidates,
            })),
            // Its answers have come, so it has nothing to do; were it not so, it would go on.
            Err(stream) => back(initiator.resume(Now::ZERO), IwarpEnd::Up(stream)),
        }
    }

    /// Takes up one that was laid down.
    pub(super) fn resume(resting: RestingIwarp, now: Now) -> Self {
        Self {
            initiator: resting.session.resume(now),
            end: IwarpEnd::Up(Box::new(resting.stream.wake())),
            invalidates: resting.invalidates,
            held: None,
        }
    }
}
