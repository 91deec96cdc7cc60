//! One end of the floor.

use std::io;
use std::process;
use std::time::{Duration, Instant};

use ::io::ether::{EtherMac, EtherPort};
use rustix::event::{PollFd, PollFlags};

use super::WINDOW;
use super::frame::{FloorFrameKind, FloorMessage, HEAD, PAYLOAD_MAX, Run, TAIL, machine};
use crate::floor::wait;
use crate::outcome::DataDirection;

/// Frames sent before one looks for some that came.
const BURST: usize = 64;

/// How many frames the other end is told of together: few enough that it need not wait.
const TELL: u64 = WINDOW as u64 / 8;

/// How long nothing is heard before frames on their way are taken for lost.
const STALL: Duration = Duration::from_millis(50);

/// A port, and what is in flight there.
pub(super) struct FloorPort {
    pub(super) port: EtherPort,
    memory: Vec<u8>,
    /// Bytes of data in a frame.
    pub(super) payload_len: usize,
    /// What we call for; `None` at the side that is called.
    own: Option<Run>,
    pub(super) session: Option<FloorRun>,
    heard: Instant,
    /// When frames on their way were taken for lost.
    resumed: Instant,
    /// Something may be done without waiting.
    busy: bool,
}

/// A run with the other end.
pub(super) struct FloorRun {
    peer: EtherMac,
    run: Run,
    sends: bool,
    /// The process of the other end, if it is of this machine.
    pub(super) far: Option<u32>,
    outgoing: FloorBatch,
    incoming: Incoming,
    /// What was told of both.
    told: (FrameCounts, FrameCounts),
}

#[derive(Default)]
struct FloorBatch {
    next: u64,
    /// Those before it are no longer on their way.
    credited: u64,
    /// What the other end has told.
    progress: FrameCounts,
    at: usize,
}

#[derive(Default)]
struct Incoming {
    progress: FrameCounts,
    /// The number that is expected next.
    expected: u64,
    /// It was told how far frames came.
    told: u64,
    at: usize,
}

/// How many frames came, and how many did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameCounts {
    pub(super) frames: u64,
    pub(super) lost: u64,
}

impl FrameCounts {
    fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            lost: self.lost.saturating_sub(before.lost),
        }
    }
}

impl FloorPort {
    /// An end with so much memory, which calls for `own`, or answers others.
    pub(super) fn new(port: EtherPort, size: u64, own: Option<Run>) -> io::Result<Self> {
        let room = port.link().mtu as usize + 14;
        let payload_len = room.saturating_sub(HEAD + TAIL).min(PAYLOAD_MAX) & !3;
        if payload_len == 0 {
            let why = "its MTU is too small for a Fibre Channel frame";
            return Err(io::Error::other(why));
        }
        let size = usize::try_from(size).map_err(io::Error::other)?;
        Ok(Self {
            port,
            // Written, so that every page is there.
            memory: vec![0x5a; size.max(payload_len)],
            payload_len,
            own,
            session: None,
            heard: Instant::now(),
            resumed: Instant::now(),
            busy: false,
        })
    }

    /// For how long nothing was heard.
    pub(super) fn silent(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Frames that came, and frames that the other end tells of, since this was asked before.
    pub(super) fn take_progress(&mut self) -> (FrameCounts, FrameCounts) {
        let Some(session) = &mut self.session else {
            return Default::default();
        };
        let now = (session.incoming.progress, session.outgoing.progress);
        let before = std::mem::replace(&mut session.told, now);
        (now.0.since(before.0), now.1.since(before.1))
    }

    /// Sends what has no data, if there is room for it.
    pub(super) fn send(&mut self, to: EtherMac, message: FloorMessage) -> io::Result<bool> {
        let from = self.port.mac();
        let Some(slot) = self.port.slot(HEAD + TAIL) else {
            self.port.flush()?;
            return Ok(false);
        };
        slot.fill(0);
        message.encode((to, from), slot);
        self.port.commit(HEAD + TAIL);
        self.port.flush()?;
        Ok(true)
    }

    /// Tells the other end that it is over.
    pub(super) fn end(&mut self) -> io::Result<()> {
        match self.session.take() {
            Some(FloorRun { peer, run, .. }) => self
                .send(peer, FloorMessage::of(FloorFrameKind::Bye, run))
                .map(drop),
            None => Ok(()),
        }
    }

    /// Waits until there is something to do.
    pub(super) fn wait(&self, limit: Duration) -> io::Result<()> {
        if self.busy {
            return Ok(());
        }
        let mut list = [PollFd::new(&**self.port.waited(), PollFlags::IN)];
        wait(&mut list, limit)
    }

    /// Takes the frames that came, says how far it is, and sends more.
    pub(super) fn turn(&mut self) -> io::Result<()> {
        let Self {
            port,
            memory,
            session,
            own,
            payload_len,
            ..
        } = self;
        let data_len = *payload_len + TAIL;
        let mut called = None;
        let count = port.receive(|frame, _| {
            let Some((from, message, rest)) = FloorMessage::parse(frame) else {
                return;
            };
            match (message.kind, &mut *session) {
                (FloorFrameKind::Hello, _) if own.is_none() => called = Some((from, message.run)),
                (FloorFrameKind::Here, None) if *own == Some(message.run) => {
                    *session = Some(FloorRun::with(from, &message));
                }
                (_, Some(known)) if known.run != message.run || known.peer != from => {}
                (FloorFrameKind::Data, Some(known)) if rest.len() >= data_len => {
                    known.take(&message, &rest[..data_len], memory);
                }
                (FloorFrameKind::Credit, Some(known)) => known.credit(&message),
                (FloorFrameKind::Bye, Some(_)) => *session = None,
                _ => {}
            }
        });
        port.news()?;
        if count > 0 {
            self.heard = Instant::now();
        }
        if let Some((from, run)) = called {
            self.greet(from, run)?;
        }
        self.tell()?;
        let sent = self.blast()?;
        self.busy = count > 0 || sent > 0;
        Ok(())
    }

    /// Answers a call; the first one of a run begins it.
    fn greet(&mut self, from: EtherMac, run: Run) -> io::Result<()> {
        let here = FloorMessage {
            number: machine(),
            process: process::id().into(),
            ..FloorMessage::of(FloorFrameKind::Here, run)
        };
        if self.session.as_ref().map(|session| session.run) != Some(run) {
            self.session = Some(FloorRun::answering(from, run));
        }
        self.send(from, here).map(drop)
    }

    /// Tells how far frames came; again in the next turn, if our own leave no room for that.
    fn tell(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let incoming = &session.incoming;
        if incoming.expected - incoming.told < TELL {
            return Ok(());
        }
        let credit = FloorMessage {
            number: incoming.expected,
            count: incoming.progress.frames,
            ..FloorMessage::of(FloorFrameKind::Credit, session.run)
        };
        let peer = session.peer;
        if self.send(peer, credit)?
            && let Some(session) = &mut self.session
        {
            session.incoming.told = credit.number;
        }
        Ok(())
    }

    /// Sends as much as may be on its way.
    fn blast(&mut self) -> io::Result<usize> {
        let stalled = self.heard.max(self.resumed).elapsed() > STALL;
        let from = self.port.mac();
        let Some(session) = self.session.as_mut().filter(|session| session.sends) else {
            return Ok(0);
        };
        if stalled {
            session.outgoing.credited = session.outgoing.next;
            self.resumed = Instant::now();
        }
        let (run, to, len) = (session.run, session.peer, self.payload_len);
        let mut sent = 0;
        let outgoing = &mut session.outgoing;
        while sent < BURST && outgoing.next - outgoing.credited < WINDOW.into() {
            let Some(slot) = self.port.slot(HEAD + len + TAIL) else {
                break;
            };
            let message = FloorMessage {
                number: outgoing.next,
                ..FloorMessage::of(FloorFrameKind::Data, run)
            };
            message.encode((to, from), slot);
            let data = piece(&mut outgoing.at, self.memory.len(), len);
            slot[HEAD..HEAD + len].copy_from_slice(&self.memory[data]);
            slot[HEAD + len..].fill(0);
            if run.crc {
                let sum = crc(&slot[HEAD..HEAD + len]);
                slot[HEAD + len..][..4].copy_from_slice(&sum);
            }
            self.port.commit(HEAD + len + TAIL);
            outgoing.next += 1;
            sent += 1;
        }
        self.port.flush()?;
        Ok(sent)
    }
}

impl FloorRun {
    /// Of the side that calls, with the one that has answered.
    fn with(peer: EtherMac, here: &FloorMessage) -> Self {
        let near = here.number == machine();
        Self {
            peer,
            run: here.run,
            sends: here.run.direction != DataDirection::Read,
            far: u32::try_from(here.process).ok().filter(|_| near),
            outgoing: FloorBatch::default(),
            incoming: Incoming::default(),
            told: Default::default(),
        }
    }

    fn answering(peer: EtherMac, run: Run) -> Self {
        let sends = run.direction != DataDirection::Write;
        Self {
            sends,
            ..Self::with(peer, &FloorMessage::of(FloorFrameKind::Hello, run))
        }
    }

    /// Copies data to memory.
    fn take(&mut self, message: &FloorMessage, payload: &[u8], memory: &mut [u8]) {
        let incoming = &mut self.incoming;
        let (data, tail) = payload.split_at(payload.len() - TAIL);
        let place = piece(&mut incoming.at, memory.len(), data.len());
        memory[place].copy_from_slice(data);
        if !self.run.crc || tail.starts_with(&crc(data)) {
            incoming.progress.frames += 1;
        }
        incoming.expected = incoming.expected.max(message.number.saturating_add(1));
        incoming.progress.lost = incoming.expected.saturating_sub(incoming.progress.frames);
    }

    fn credit(&mut self, message: &FloorMessage) {
        let outgoing = &mut self.outgoing;
        // What was not sent was not received.
        let expected = message.number.min(outgoing.next);
        outgoing.credited = outgoing.credited.max(expected);
        outgoing.progress = FrameCounts {
            frames: message.count,
            lost: expected.saturating_sub(message.count),
        };
    }
}

/// The next piece of memory, from the start again at its end.
fn piece(at: &mut usize, size: usize, len: usize) -> std::ops::Range<usize> {
    if size - *at < len {
        *at = 0;
    }
    let start = *at;
    *at += len;
    start..start + len
}

fn crc(data: &[u8]) -> [u8; 4] {
    crc32fast::hash(data).to_le_bytes()
}
