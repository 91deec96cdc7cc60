//! The end that asks: it keeps so many requests under way.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BUFFER, HEADER, Header, Kind, Place};
use crate::crew::{Phase, Post, Report};
use crate::outcome::{Direction, Load};
use crate::places::Places;
use crate::plan::{Span, Words};
use crate::random::Random;

/// How long the other end may take to have its memory, and to answer.
const SILENCE: Duration = Duration::from_secs(30);

/// How often the phase is looked at when nothing comes.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

pub(super) fn run(
    place: Place,
    (words, load): (&Words, Load),
    (number, size): (u32, u64),
    post: &Post<'_>,
) -> Report {
    let failed = |cause: &io::Error| format!("{}: {cause}", place.address);
    let socket = match connect(place, size) {
        Ok(socket) => socket,
        Err(cause) => {
            let failure = Some(failed(&cause));
            return Report {
                failure,
                ..Report::default()
            };
        }
    };
    let span = Span {
        first: 0,
        blocks: size,
        block_size: 1,
    };
    let mut near = Near {
        socket,
        load,
        read_percent: u64::from(words.read_percent),
        random: Random::new(words.seed ^ u64::from(number) << 32),
        places: Places::new(span, load.block_bytes.into(), load.order, 0, 1),
        out: Vec::new(),
        sent: 0,
        buffer: vec![0; BUFFER],
        received: 0,
        under_way: VecDeque::with_capacity(load.depth as usize),
        report: Report::default(),
    };
    post.ready(None);
    if let Err(cause) = near.work(post) {
        near.report.failure = Some(failed(&cause));
    }
    near.report
}

fn connect(place: Place, size: u64) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&place.address, super::CONNECT)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    let begin = Header {
        kind: Kind::Begin,
        spin: place.spin,
        len: 0,
        offset: size,
    };
    socket.write_all(&begin.encode())?;
    let mut answer = [0; HEADER];
    let refused = |cause: io::Error| match cause.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => io::Error::other(format!(
            "no lunar floor --listen is there, or it does not give {size} octets of memory: see \
             its --size"
        )),
        _ => cause,
    };
    socket.read_exact(&mut answer).map_err(refused)?;
    Header::decode(&answer)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Keeps so many requests under way.
struct Near {
    socket: TcpStream,
    load: Load,
    read_percent: u64,
    random: Random,
    places: Places,
    out: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    /// Octets of the answer that is being received.
    received: usize,
    /// When requests began, and whether they write.
    under_way: VecDeque<(Instant, bool)>,
    report: Report,
}

impl Near {
    fn work(&mut self, post: &Post<'_>) -> io::Result<()> {
        let mut heard = Instant::now();
        loop {
            let counts = match post.phase() {
                Phase::Ramp => false,
                Phase::Measure => true,
                Phase::Stop | Phase::Abandon => return Ok(()),
            };
            while self.under_way.len() < self.load.depth as usize {
                self.request();
            }
            self.send()?;
            match self.socket.read(&mut self.buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    heard = Instant::now();
                    self.count(count, counts, heard);
                    post.show(&self.report);
                }
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    if heard.elapsed() > SILENCE {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    self.wait()?;
                }
                Err(cause) => return Err(cause),
            }
        }
    }

    fn request(&mut self) {
        let len = self.load.block_bytes;
        let write = match self.load.direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Mixed => self.random.below(100) >= self.read_percent,
        };
        let header = Header {
            kind: if write { Kind::Write } else { Kind::Read },
            spin: false,
            len,
            offset: self.places.next(&mut self.random) * u64::from(len),
        };
        self.out.extend_from_slice(&header.encode());
        if write {
            self.out.resize(self.out.len() + len as usize, 0xa5);
        }
        self.under_way.push_back((Instant::now(), write));
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Answers come in the order of the requests.
    fn count(&mut self, octets: usize, counts: bool, now: Instant) {
        self.received += octets;
        let bytes = self.load.block_bytes;
        while let Some(&(began, write)) = self.under_way.front() {
            let data = if write { 0 } else { bytes as usize };
            if self.received < HEADER + data {
                return;
            }
            self.received -= HEADER + data;
            self.under_way.pop_front();
            let tally = match write {
                true => &mut self.report.writes,
                false => &mut self.report.reads,
            };
            if counts {
                tally.record(bytes.into(), now.duration_since(began).as_nanos() as u64);
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut flags = PollFlags::IN;
        if !self.out.is_empty() {
            flags |= PollFlags::OUT;
        }
        poll(&mut [PollFd::new(&self.socket, flags)], Some(&LOOK))?;
        Ok(())
    }
}
