//! The floor under all targets: bare TCP without iSCSI. The same octets, headers of the same
//! length, the same depth, data from and to random places of as much memory.

use std::io::{BufRead, BufReader, ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

use super::VOLUME;
use super::load::{Job, Measured, Meter, Random};
use super::process::{GENERATOR_CPU, pin};
use super::target;

/// As long as a basic header segment.
const HEADER: usize = 48;

const BUFFER: usize = 1 << 20;

/// A request or, without its data, the answer to one.
#[derive(Clone, Copy)]
struct Header {
    write: bool,
    len: usize,
    offset: usize,
}

impl Header {
    fn encode(self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[0] = u8::from(self.write);
        octets[4..8].copy_from_slice(&(self.len as u32).to_be_bytes());
        octets[8..16].copy_from_slice(&(self.offset as u64).to_be_bytes());
        octets
    }

    /// The header that `octets` begin with, if it is there whole.
    fn decode(octets: &[u8]) -> Option<Self> {
        let octets = octets.first_chunk::<HEADER>()?;
        let number = |range: std::ops::Range<usize>| {
            octets[range]
                .iter()
                .fold(0, |sum, octet| sum << 8 | usize::from(*octet))
        };
        Some(Self {
            write: octets[0] == 1,
            len: number(4..8),
            offset: number(8..16),
        })
    }
}

/// The other end: answers one connection until it is closed.
pub(crate) fn serve(spin: bool) -> Result<()> {
    let mut memory = vec![0x5a; VOLUME as usize];
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let (socket, _) = listener.accept()?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(spin)?;
    let mut end = End { socket };
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0;
    let mut answers = Vec::new();
    while let Some(count) = end.read(&mut buffer[filled..])? {
        filled += count;
        let mut at = 0;
        while let Some(header) = Header::decode(&buffer[at..filled]) {
            let start = at + HEADER;
            at = start;
            if header.write {
                let here = header.len.min(filled - start);
                let place = &mut memory[header.offset..header.offset + header.len];
                place[..here].copy_from_slice(&buffer[start..start + here]);
                // What has not come yet is received where it belongs.
                end.read_exact(&mut place[here..])?;
                at += here;
            }
            answers.push(header);
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        end.answer(&answers, &memory)?;
        answers.clear();
    }
    Ok(())
}

struct End {
    socket: TcpStream,
}

impl End {
    /// Receives something; `None` when the peer has closed.
    fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        loop {
            match self.socket.read(into) {
                Ok(0) => return Ok(None),
                Ok(count) => return Ok(Some(count)),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(cause) => return Err(cause.into()),
            }
        }
    }

    fn read_exact(&mut self, mut into: &mut [u8]) -> Result<()> {
        while !into.is_empty() {
            let count = self.read(into)?.context("closed in the middle")?;
            into = &mut into[count..];
        }
        Ok(())
    }

    /// Sends all answers, the data from where it lies.
    fn answer(&mut self, headers: &[Header], memory: &[u8]) -> Result<()> {
        let encoded: Vec<_> = headers.iter().map(|header| header.encode()).collect();
        let mut slices = Vec::new();
        for (header, octets) in headers.iter().zip(&encoded) {
            slices.push(IoSlice::new(octets));
            if !header.write {
                let data = &memory[header.offset..header.offset + header.len];
                slices.push(IoSlice::new(data));
            }
        }
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.socket.write_vectored(rest) {
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }
}

/// The other end as a process, and our connection to it.
pub(crate) struct Floor {
    child: Child,
    socket: TcpStream,
}

impl Floor {
    pub(crate) fn start(spin: bool) -> Result<Self> {
        let [program, pinned @ ..] = &target::pinned()[..] else {
            bail!("no taskset")
        };
        let mut command = Command::new(program);
        command
            .args(pinned)
            .arg(std::env::current_exe()?)
            .arg("floor");
        if spin {
            command.arg("--spin");
        }
        // Huge pages for what is allocated, as far as the kernel gives them.
        command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let port: u16 = line.trim().parse().context("the floor did not start")?;
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { child, socket })
    }

    pub(crate) fn measure(mut self, job: &Job, time: Duration) -> Result<Measured> {
        pin(GENERATOR_CPU)?;
        let mut client = Client::new(job);
        let mut warm = Meter::start(self.child.id())?;
        client.run(&mut self.socket, &mut warm, time / 10)?;
        let mut meter = Meter::start(self.child.id())?;
        client.run(&mut self.socket, &mut meter, time)?;
        meter.end()
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // It has ended by itself if the connection broke.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps so many requests under way.
struct Client<'a> {
    job: &'a Job,
    random: Random,
    out: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    /// Octets of the answer that is being received.
    received: usize,
    /// Octets of one whole answer.
    answer: usize,
    began: std::collections::VecDeque<Instant>,
}

impl<'a> Client<'a> {
    fn new(job: &'a Job) -> Self {
        Self {
            job,
            random: Random(0x9e37_79b9_7f4a_7c15),
            out: Vec::new(),
            sent: 0,
            buffer: vec![0; BUFFER],
            received: 0,
            answer: HEADER + if job.write { 0 } else { job.size as usize },
            began: std::collections::VecDeque::new(),
        }
    }

    fn run(&mut self, socket: &mut TcpStream, meter: &mut Meter, time: Duration) -> Result<()> {
        while meter.elapsed() < time {
            while self.began.len() < self.job.depth {
                self.request();
            }
            self.send(socket)?;
            match socket.read(&mut self.buffer) {
                Ok(0) => bail!("the floor closed the connection"),
                Ok(count) => self.count(count, meter),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => self.wait(socket)?,
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }

    fn request(&mut self) {
        let size = self.job.size as usize;
        let place = self.random.below(VOLUME / size as u64) as usize;
        let header = Header {
            write: self.job.write,
            len: size,
            offset: place * size,
        };
        self.out.extend_from_slice(&header.encode());
        if self.job.write {
            self.out.resize(self.out.len() + size, 0xa5);
        }
        self.began.push_back(Instant::now());
    }

    fn send(&mut self, socket: &mut TcpStream) -> Result<()> {
        while self.sent < self.out.len() {
            match socket.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause.into()),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Answers come in the order of the requests.
    fn count(&mut self, octets: usize, meter: &mut Meter) {
        self.received += octets;
        while self.received >= self.answer {
            self.received -= self.answer;
            if let Some(began) = self.began.pop_front() {
                meter.done(began);
            }
        }
    }

    fn wait(&self, socket: &TcpStream) -> Result<()> {
        let mut flags = PollFlags::IN;
        if !self.out.is_empty() {
            flags |= PollFlags::OUT;
        }
        poll(&mut [PollFd::new(socket, flags)], None)?;
        Ok(())
    }
}
