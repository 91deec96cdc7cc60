//! The floor under every transport: bare TCP without a protocol above it. The same bytes in pieces
//! of the same length (a header of 48 bytes, and data), as many in flight, and data from and to
//! random places of as much memory.
//!
//! Requests carry header and, when they write, data; answers header and, when they read, data. They
//! come in the order of the requests. Fields are big-endian:
//!
//! ```text
//! byte 0    1    2        4      8       16        48
//!       kind|spin|reserved|length|offset |reserved |
//! ```
//!
//! The first request of a connection says how much memory is used, and whether the other end is to
//! spin in place of sleeping; it is answered as soon as that memory is there.

pub mod ether;
mod far;
mod near;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use scsi::medium::SEGMENT_BYTES;

use crate::load::{self, Measured, RunError};
use crate::load_threads::{self, RunObserver};
use crate::outcome::{Load, RunResult};
use crate::plan::FioOptions;
use crate::processes;

pub use far::{CONNECTIONS_MAX, FloorServer, ServerLifetime, room};

/// As long as a basic header segment.
const HEADER: usize = 48;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// As much as is received at once.
const BUFFER: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloorKind {
    Read,
    Write,
    Begin,
}

const KINDS: [FloorKind; 3] = [FloorKind::Read, FloorKind::Write, FloorKind::Begin];

/// A request or, without its data, the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FloorHeader {
    kind: FloorKind,
    /// The other end is to spin.
    spin: bool,
    /// Bytes of data.
    len: u32,
    /// Where they lie; of [`FloorKind::Begin`] how much memory there is to be.
    offset: u64,
}

impl FloorHeader {
    fn new(kind: FloorKind, len: u32, offset: u64) -> Self {
        Self {
            kind,
            spin: false,
            len,
            offset,
        }
    }

    fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[1] = u8::from(self.spin);
        bytes[4..8].copy_from_slice(&self.len.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_be_bytes());
        bytes
    }

    /// # Errors
    ///
    /// When the peer does not speak the protocol of `floor`.
    fn decode(bytes: &[u8; HEADER]) -> io::Result<Self> {
        let kind = KINDS.get(usize::from(bytes[0])).ok_or_else(not_ours)?;
        let (len, offset) = (number(&bytes[4..8]) as u32, number(&bytes[8..16]));
        if u64::from(len) > SEGMENT_BYTES {
            return Err(not_ours());
        }
        Ok(Self {
            spin: bytes[1] == 1,
            ..Self::new(*kind, len, offset)
        })
    }
}

/// A number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter();
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Waits until one of these can go on, or for so long; a signal ends it early.
fn wait(list: &mut [PollFd<'_>], limit: Duration) -> io::Result<()> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    match poll(list, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn not_ours() -> io::Error {
    let cause = "the other end is not lunar floor --listen: start one there";
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

/// Data shall lie in more memory than there is.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "bare TCP needs {size} bytes of memory for its data, but only {available} are available: give \
     a smaller --size"
)]
pub struct NoRoom {
    size: u64,
    available: u64,
}

/// Whether this machine has the memory that data is to lie in, all of which is written before.
///
/// # Errors
///
/// When it has not.
pub fn has_room(size: u64) -> Result<(), NoRoom> {
    match ::io::limits::available_memory() {
        Ok(available) if available < size => Err(NoRoom { size, available }),
        _ => Ok(()),
    }
}

/// The other end of a floor.
#[derive(Clone, Copy, Debug)]
pub struct FloorPeer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process; without it, the one at the other end of our connections.
    pub pid: Option<u32>,
    /// Whether it is to spin in place of sleeping.
    pub spin: bool,
}

impl FloorPeer {
    /// One that listens already.
    ///
    /// # Errors
    ///
    /// When no peer answers there.
    pub fn far(address: SocketAddr, spin: bool) -> io::Result<Self> {
        TcpStream::connect_timeout(&address, CONNECT)?;
        Ok(Self {
            address,
            pid: None,
            spin,
        })
    }
}

/// Measures bare TCP under a load; `size` is the memory that data lies in.
///
/// # Errors
///
/// When there are no threads to be had. What goes wrong with the connections is told by
/// [`Measured::failure`].
pub fn measure(
    place: FloorPeer,
    words: &FioOptions,
    load: Load,
    size: u64,
    watch: &mut RunObserver<'_>,
) -> io::Result<Measured> {
    let size = (size / u64::from(load.jobs)).max(load.block_bytes.into());
    let member = |number| {
        move |post: &load_threads::LoadThread<'_>| {
            near::run(place, (words, load), (number, size), post)
        }
    };
    let members = (0..load.jobs).map(member).collect();
    let result = load_threads::run(members, words.times(), watch, || match place.pid {
        Some(pid) => vec![pid],
        None => processes::peers(&processes::sockets()),
    })?;
    let address = format!("floor {}", place.address);
    Ok(load::measured(vec![address], load, &result))
}

/// Measures row after row into `outcome`, until all are, something fails, or it is stopped.
///
/// # Errors
///
/// When it failed; what was measured before is in `outcome`.
pub fn rows(
    place: FloorPeer,
    words: &FioOptions,
    size: u64,
    outcome: &mut RunResult,
    watch: &mut RunObserver<'_>,
) -> Result<(), RunError> {
    load::each(words.loads(1), watch, |load, watch| {
        measure(place, words, load, size, watch)?.take(&mut outcome.rows)
    })
}

/// The other end as a process of this machine; it ends when this is dropped.
#[derive(Debug)]
pub struct LocalFloor {
    child: Child,
    place: FloorPeer,
}

impl LocalFloor {
    /// Starts it by a command that prints where it listens, and asks for as much memory as is
    /// needed.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn start(command: &mut Command, spin: bool) -> io::Result<Self> {
        // Huge pages for what is allocated, as far as the kernel gives them: volumes have them too.
        command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        // ^C is for us: the other end is needed until our connections are closed.
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let place = FloorPeer {
            address: ([127, 0, 0, 1], 0).into(),
            pid: Some(child.id()),
            spin,
        };
        // Ended below even if the line is wrong.
        let mut local = Self { child, place };
        let silent = |_| io::Error::other("the other end did not report its address");
        local.place.address = line.trim().parse().map_err(silent)?;
        Ok(local)
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> FloorPeer {
        self.place
    }
}

impl Drop for LocalFloor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
