//! The end that answers.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::{BUFFER, HEADER, Header, Kind};

/// How long it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Until the process is ended.
    On,
    /// Until its standard input ends: as long as who started it, however that ends.
    WithInput,
}

/// Waits for the other end.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Octets that connections may still have.
    memory: AtomicU64,
    connections: AtomicUsize,
}

/// Each takes a thread.
const CONNECTIONS_MAX: usize = 256;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);

impl Listener {
    /// Listens. All connections together have `memory` octets at the most.
    ///
    /// # Errors
    ///
    /// When the address cannot be had.
    pub fn new(address: &[SocketAddr], memory: u64) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address)?,
            shared: Arc::new(Shared {
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

    /// Answers whoever connects.
    ///
    /// # Errors
    ///
    /// When nobody can be let in any more.
    pub fn run(&self, lives: Lives) -> io::Result<()> {
        if lives == Lives::WithInput {
            thread::Builder::new()
                .name("input".to_owned())
                .spawn(end_with_input)?;
        }
        for socket in self.listener.incoming() {
            let socket = match socket {
                Ok(socket) => socket,
                // Who has gone again is no reason to stop.
                Err(cause) if cause.kind() == ErrorKind::ConnectionAborted => continue,
                Err(cause) => return Err(cause),
            };
            if self.shared.connections.fetch_add(1, Relaxed) >= CONNECTIONS_MAX {
                self.shared.connections.fetch_sub(1, Relaxed);
                continue;
            }
            let shared = Arc::clone(&self.shared);
            thread::Builder::new()
                .name("floor".to_owned())
                .spawn(move || {
                    // What is wrong with a connection is seen at its other end.
                    let _ = serve(socket, &shared);
                    shared.connections.fetch_sub(1, Relaxed);
                })?;
        }
        Ok(())
    }
}

fn end_with_input() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(0);
}

/// Memory that is counted.
struct Memory<'a> {
    octets: Vec<u8>,
    shared: &'a Shared,
}

impl<'a> Memory<'a> {
    fn take(shared: &'a Shared, size: u64) -> io::Result<Self> {
        let less = |memory: u64| memory.checked_sub(size);
        let taken = shared.memory.fetch_update(Relaxed, Relaxed, less);
        taken.map_err(|_| ErrorKind::OutOfMemory)?;
        // Written, so that every page is there.
        let octets = vec![0x5a; size as usize];
        Ok(Self { octets, shared })
    }

    fn place(&mut self, header: Header) -> io::Result<&mut [u8]> {
        let start = usize::try_from(header.offset).ok();
        let end = start.and_then(|start| start.checked_add(header.len as usize));
        let place = start
            .zip(end)
            .and_then(|(start, end)| self.octets.get_mut(start..end));
        place.ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let size = self.octets.len() as u64;
        self.shared.memory.fetch_add(size, Relaxed);
    }
}

/// Answers one connection until it is closed.
fn serve(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE))?;
    socket.set_write_timeout(Some(SILENCE))?;
    let mut end = End { socket };
    let mut begin = [0; HEADER];
    end.read_exact(&mut begin)?;
    let header = Header::decode(&begin)?;
    if header.kind != Kind::Begin {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut memory = Memory::take(shared, header.offset)?;
    end.socket.write_all(&begin)?;
    end.socket.set_nonblocking(header.spin)?;
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0;
    let mut answers = Vec::new();
    while let Some(count) = end.read(&mut buffer[filled..])? {
        filled += count;
        let mut at = 0;
        while let Some(header) = buffer[at..filled].first_chunk::<HEADER>() {
            let header = Header::decode(header)?;
            at += HEADER;
            let place = memory.place(header)?;
            if header.kind == Kind::Write {
                let here = place.len().min(filled - at);
                place[..here].copy_from_slice(&buffer[at..at + here]);
                // What has not come yet is received where it belongs.
                end.read_exact(&mut place[here..])?;
                at += here;
            }
            answers.push(header);
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        end.answer(&answers, &memory.octets)?;
        answers.clear();
    }
    Ok(())
}

struct End {
    socket: TcpStream,
}

impl End {
    /// Receives something; `None` when the peer has closed.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match patiently(|| self.socket.read(into))? {
            0 => Ok(None),
            count => Ok(Some(count)),
        }
    }

    fn read_exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let count = self.read(into)?.ok_or(ErrorKind::UnexpectedEof)?;
            into = &mut into[count..];
        }
        Ok(())
    }

    /// Sends all answers, the data from where it lies.
    fn answer(&mut self, headers: &[Header], memory: &[u8]) -> io::Result<()> {
        let encoded: Vec<_> = headers.iter().map(|header| header.encode()).collect();
        let mut slices = Vec::with_capacity(2 * headers.len());
        for (header, octets) in headers.iter().zip(&encoded) {
            slices.push(IoSlice::new(octets));
            if header.kind == Kind::Read {
                let offset = header.offset as usize;
                slices.push(IoSlice::new(&memory[offset..offset + header.len as usize]));
            }
        }
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let count = patiently(|| self.socket.write_vectored(rest))?;
            IoSlice::advance_slices(&mut rest, count);
        }
        Ok(())
    }
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
