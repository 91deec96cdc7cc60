//! The end that answers.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::{BUFFER, FloorHeader, FloorKind, HEADER};

/// Bytes of memory that [`FloorServer::new`] needs for data of `size` bytes over this many
/// connections: each has 1 MiB for what comes, too.
#[must_use]
pub const fn room(size: u64, connections: u32) -> u64 {
    size.saturating_add(connections as u64 * OVERHEAD)
}

/// How long it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLifetime {
    /// Until the process is ended.
    On,
    /// Until its standard input ends: as long as its parent process, however that ends.
    WithInput,
}

/// Waits for the other end.
#[derive(Debug)]
pub struct FloorServer {
    listener: TcpListener,
    shared: Arc<FloorBudget>,
}

#[derive(Debug)]
struct FloorBudget {
    /// Bytes that connections may still have.
    memory: AtomicU64,
    connections: AtomicUsize,
}

/// Connections at once: each takes a thread.
pub const CONNECTIONS_MAX: u32 = 256;

/// Bytes that a connection takes beside its data, for what comes.
const OVERHEAD: u64 = BUFFER as u64;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);

impl FloorServer {
    /// Listens. All connections together have `memory` bytes at the most; see [`room`].
    ///
    /// # Errors
    ///
    /// When the address cannot be had.
    pub fn new(address: &[SocketAddr], memory: u64) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address)?,
            shared: Arc::new(FloorBudget {
                memory: AtomicU64::new(memory),
                connections: AtomicUsize::new(0),
            }),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// Of getsockname.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers each peer that connects.
    ///
    /// # Errors
    ///
    /// When no more connections are accepted.
    pub fn run(&self, lives: ServerLifetime) -> io::Result<()> {
        if lives == ServerLifetime::WithInput {
            let thread = thread::Builder::new().name("input".to_owned());
            thread.spawn(end_with_input)?;
        }
        for socket in self.listener.incoming() {
            let socket = match socket {
                Ok(socket) => socket,
                // A peer that is gone again does not end it.
                Err(cause) if cause.kind() == ErrorKind::ConnectionAborted => continue,
                Err(cause) => return Err(cause),
            };
            if self.shared.connections.fetch_add(1, Relaxed) >= CONNECTIONS_MAX as usize {
                self.shared.connections.fetch_sub(1, Relaxed);
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("floor".to_owned());
            // What is wrong with a connection is seen at its other end.
            thread.spawn(move || drop(serve(socket, shared)))?;
        }
        Ok(())
    }
}

fn end_with_input() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(0);
}

/// What a connection has: a place among them, and memory.
#[derive(Debug)]
struct FloorBuffers {
    /// For data.
    bytes: Vec<u8>,
    /// Bytes that count.
    taken: u64,
    shared: Arc<FloorBudget>,
}

impl FloorBuffers {
    /// None yet.
    fn new(shared: Arc<FloorBudget>) -> Self {
        Self {
            bytes: Vec::new(),
            taken: 0,
            shared,
        }
    }

    /// For so much data, and what comes.
    fn take(&mut self, size: u64) -> io::Result<()> {
        let whole = size.checked_add(OVERHEAD);
        let less = |memory: u64| memory.checked_sub(whole?);
        let taken = self.shared.memory.fetch_update(Relaxed, Relaxed, less);
        taken.map_err(|_| ErrorKind::OutOfMemory)?;
        self.taken = size + OVERHEAD;
        // Written, so that every page is there.
        self.bytes = vec![0x5a; size as usize];
        Ok(())
    }

    fn place(&mut self, header: FloorHeader) -> io::Result<&mut [u8]> {
        let start = usize::try_from(header.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(header.len as usize);
        let place = self.bytes.get_mut(start..end);
        place.ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

impl Drop for FloorBuffers {
    fn drop(&mut self) {
        self.shared.memory.fetch_add(self.taken, Relaxed);
        self.shared.connections.fetch_sub(1, Relaxed);
    }
}

/// Answers a connection until it is closed.
fn serve(socket: TcpStream, shared: Arc<FloorBudget>) -> io::Result<()> {
    let mut memory = FloorBuffers::new(shared);
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.set_write_timeout(Some(SILENCE))?;
    let mut socket = socket;
    let mut begin = [0; HEADER];
    socket.read_exact(&mut begin)?;
    let header = FloorHeader::decode(&begin)?;
    if header.kind != FloorKind::Begin {
        return Err(ErrorKind::InvalidData.into());
    }
    memory.take(header.offset)?;
    socket.write_all(&begin)?;
    socket.set_nonblocking(header.spin)?;
    let mut connection = FloorConnection {
        socket,
        memory,
        buffer: vec![0; BUFFER],
        filled: 0,
        answers: Vec::new(),
    };
    while connection.step()? {}
    Ok(())
}

/// A connection that has begun.
#[derive(Debug)]
struct FloorConnection {
    socket: TcpStream,
    memory: FloorBuffers,
    buffer: Vec<u8>,
    /// What of the buffer has been received and not been looked at.
    filled: usize,
    answers: Vec<FloorHeader>,
}

impl FloorConnection {
    /// Receives something and answers all that came whole; `false` when the peer has closed.
    fn step(&mut self) -> io::Result<bool> {
        let Some(count) = receive(&mut self.socket, &mut self.buffer[self.filled..])? else {
            return Ok(false);
        };
        self.filled += count;
        let mut at = 0;
        while let Some(header) = self.buffer[at..self.filled].first_chunk::<HEADER>() {
            let header = FloorHeader::decode(header)?;
            at += HEADER;
            let place = self.memory.place(header)?;
            if header.kind == FloorKind::Write {
                let here = place.len().min(self.filled - at);
                place[..here].copy_from_slice(&self.buffer[at..at + here]);
                // What has not come yet is received where it belongs.
                receive_exact(&mut self.socket, &mut place[here..])?;
                at += here;
            }
            self.answers.push(header);
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        answer(&mut self.socket, &self.answers, &self.memory.bytes)?;
        self.answers.clear();
        Ok(true)
    }
}

/// Receives something; `None` when the peer has closed.
fn receive(socket: &mut TcpStream, into: &mut [u8]) -> io::Result<Option<usize>> {
    match patiently(|| socket.read(into))? {
        0 => Ok(None),
        count => Ok(Some(count)),
    }
}

fn receive_exact(socket: &mut TcpStream, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        let count = receive(socket, into)?.ok_or(ErrorKind::UnexpectedEof)?;
        into = &mut into[count..];
    }
    Ok(())
}

/// Sends all answers, the data from where it lies.
fn answer(socket: &mut TcpStream, headers: &[FloorHeader], memory: &[u8]) -> io::Result<()> {
    let encoded: Vec<_> = headers.iter().map(|header| header.encode()).collect();
    let mut slices = Vec::with_capacity(2 * headers.len());
    for (header, bytes) in headers.iter().zip(&encoded) {
        slices.push(IoSlice::new(bytes));
        if header.kind == FloorKind::Read {
            let offset = header.offset as usize;
            slices.push(IoSlice::new(&memory[offset..offset + header.len as usize]));
        }
    }
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let count = patiently(|| socket.write_vectored(rest))?;
        IoSlice::advance_slices(&mut rest, count);
    }
    Ok(())
}

/// Does it again until it can be done, for as long as a peer may be silent. (A socket that sleeps
/// waits for as long before it says for the first time that it cannot.)
fn patiently(mut act: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let mut since = None;
    loop {
        match act() {
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                let since = *since.get_or_insert_with(Instant::now);
                if since.elapsed() >= SILENCE {
                    return Err(cause);
                }
                std::hint::spin_loop();
            }
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
