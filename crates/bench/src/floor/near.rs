//! The requesting end: it keeps a fixed queue depth on each connection of a thread.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags};

use super::{BUFFER, FloorHeader, FloorKind, FloorPeer, HEADER, not_ours, wait};
use crate::load_threads::{LoadPhase, LoadThread, ThreadTotals};
use crate::outcome::Load;
use crate::plan::{BlockSpan, FioOptions, IoRegion};

/// How long the other end may take to have its memory, and to answer.
const SILENCE: Duration = Duration::from_secs(30);

/// How often the phase is looked at when nothing comes.
const LOOK: Duration = Duration::from_millis(50);

/// Has a connection of this number, with memory of this many bytes.
pub(super) fn run(
    place: FloorPeer,
    (words, load): (&FioOptions, Load),
    (number, size): (u32, u64),
    post: &LoadThread<'_>,
) -> ThreadTotals {
    let mut report = ThreadTotals::default();
    let near = RequestPipeline::new(place, (words, load), (number, size));
    let worked = near.and_then(|mut near| {
        post.ready(None);
        work(&mut near, &mut report, post)
    });
    if let Err(cause) = worked {
        report.failure = Some(format!("{}: {cause}", place.address));
    }
    report
}

fn work(
    near: &mut RequestPipeline<'_>,
    report: &mut ThreadTotals,
    post: &LoadThread<'_>,
) -> io::Result<()> {
    let mut heard = Instant::now();
    let mut counts = false;
    loop {
        let phase = post.phase();
        match phase {
            LoadPhase::Rest | LoadPhase::Ramp => counts = false,
            LoadPhase::Measure => counts = true,
            // What is in flight began in the row, so it counts as it did there.
            LoadPhase::Stop if !near.in_flight.is_empty() => {}
            LoadPhase::Stop | LoadPhase::Cancel | LoadPhase::Abandon => return Ok(()),
        }
        if !phase.is_end() {
            near.fill();
        }
        match near.step(counts, report)? {
            Some(now) => {
                heard = now;
                post.show(report);
            }
            None if heard.elapsed() > SILENCE => return Err(ErrorKind::TimedOut.into()),
            None => wait(&mut [near.waited_for()], LOOK)?,
        }
    }
}

fn connect(place: FloorPeer, size: u64) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&place.address, super::CONNECT)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    let begin = FloorHeader {
        spin: place.spin,
        ..FloorHeader::new(FloorKind::Begin, 0, size)
    };
    let begin = begin.encode();
    socket.write_all(&begin)?;
    let mut answer = [0; HEADER];
    let refused = |cause| refused(cause, size);
    socket.read_exact(&mut answer).map_err(refused)?;
    // It gives back what it agrees to.
    if answer != begin {
        return Err(not_ours());
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Why the other end has not agreed.
pub(super) fn refused(cause: io::Error, size: u64) -> io::Error {
    match cause.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => io::Error::other(format!(
            "lunar floor --listen is not running there, or its --size is too small: each \
             connection needs {size} bytes of memory and 1 MiB"
        )),
        // What a timeout of the socket is.
        ErrorKind::WouldBlock => io::Error::new(
            ErrorKind::TimedOut,
            "it accepts connections but does not answer: start lunar floor --listen there",
        ),
        _ => cause,
    }
}

/// Keeps a fixed number of requests in flight.
struct RequestPipeline<'a> {
    socket: TcpStream,
    words: &'a FioOptions,
    load: Load,
    random: Rng,
    places: IoRegion,
    out: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    /// Bytes of the answer that is being received.
    received: usize,
    /// When requests began, and whether they write.
    in_flight: VecDeque<(Instant, bool)>,
}

impl<'a> RequestPipeline<'a> {
    fn new(
        place: FloorPeer,
        (words, load): (&'a FioOptions, Load),
        (number, size): (u32, u64),
    ) -> io::Result<Self> {
        let span = BlockSpan {
            first: 0,
            blocks: size,
            block_size: 1,
        };
        Ok(Self {
            socket: connect(place, size)?,
            words,
            load,
            random: words.random(number),
            places: IoRegion::new(span, load.block_bytes.into(), load.order, 0, 1),
            out: Vec::new(),
            sent: 0,
            buffer: vec![0; BUFFER],
            received: 0,
            in_flight: VecDeque::with_capacity(load.depth as usize),
        })
    }

    /// Asks for as much as may be in flight.
    fn fill(&mut self) {
        while self.in_flight.len() < self.load.depth as usize {
            self.request();
        }
    }

    /// Sends what is asked for, and takes what has come. Returns when that was.
    fn step(&mut self, counts: bool, report: &mut ThreadTotals) -> io::Result<Option<Instant>> {
        self.send()?;
        match self.socket.read(&mut self.buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let now = Instant::now();
                self.count(count, counts, now, report);
                Ok(Some(now))
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    fn request(&mut self) {
        let len = self.load.block_bytes;
        let write = self
            .words
            .next_writes(self.load.direction, &mut self.random);
        let kind = if write {
            FloorKind::Write
        } else {
            FloorKind::Read
        };
        let offset = self.places.next(&mut self.random) * u64::from(len);
        let header = FloorHeader::new(kind, len, offset);
        self.out.extend_from_slice(&header.encode());
        if write {
            self.out.resize(self.out.len() + len as usize, 0xa5);
        }
        self.in_flight.push_back((Instant::now(), write));
    }

    fn waited_for(&self) -> PollFd<'_> {
        let flags = if self.out.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        PollFd::new(&self.socket, flags)
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
    fn count(&mut self, bytes: usize, counts: bool, now: Instant, report: &mut ThreadTotals) {
        self.received += bytes;
        let bytes = self.load.block_bytes;
        while let Some(&(began, write)) = self.in_flight.front() {
            let data = if write { 0 } else { bytes as usize };
            if self.received < HEADER + data {
                return;
            }
            self.received -= HEADER + data;
            self.in_flight.pop_front();
            if counts {
                let latency = now.duration_since(began).as_nanos() as u64;
                report.tally(write).record(bytes.into(), latency);
            }
        }
    }
}
