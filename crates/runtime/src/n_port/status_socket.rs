//! A Unix socket by which a port or a switch tells other programs of its user what it is like.
//!
//! Whoever connects is sent one JSON object, and nothing is read. The socket is one of those that
//! the Ethernet port waits for, and is answered by the thread that moves frames: no other one has
//! to be let in to what that owns. An answer takes some ten microseconds, and there is none while
//! nothing asks. It has to be no longer than a socket has room for ([`ANSWER_BYTES`]), so that
//! whoever reads slowly holds nothing up: what does not go in at once is cut off.
//!
//! Sockets lie beside the claims of names, in a folder of this user and this network namespace,
//! with mode 0600. Those of dead processes are removed by whoever finds them.

mod ask;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use scsi::medium::Now;
use serde::Serialize;

use super::claim::ClaimDir;
pub(super) use ask::connect_to;
pub use ask::{StatusAnswers, ask_all};

/// What tells of a port or a switch.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    looked: Option<Now>,
    /// A descriptor to give up where the process may have no more: one that waits would wake the
    /// thread for as long as it is not accepted.
    spare: Option<File>,
}

/// What tells: the end of the name of its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKind {
    /// An N_Port.
    Port,
    /// A switch.
    Switch,
    /// What sends queries of others by an N_Port.
    Query,
}

impl StatusKind {
    const fn extension(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Switch => "switch",
            Self::Query => "query",
        }
    }
}

impl StatusSocket {
    /// One of this process.
    ///
    /// # Errors
    ///
    /// When there is no folder for it.
    pub fn open(kind: StatusKind) -> io::Result<Self> {
        Self::open_in(ClaimDir::of_this_user()?.path(), kind)
    }

    pub(super) fn open_in(folder: &Path, kind: StatusKind) -> io::Result<Self> {
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{}-{:08x}", std::process::id(), u32::from_ne_bytes(random));
        Self::open_as(&folder.join(name), kind)
    }

    /// Another one of the same port, whose name ends in another way. It is removed with this one
    /// once the process is dead.
    pub(super) fn open_beside(&self, kind: StatusKind) -> io::Result<Self> {
        Self::open_as(&self.path.with_extension(""), kind)
    }

    /// It has its name once it listens: one that does not is taken for that of a dead process.
    fn open_as(begun: &Path, kind: StatusKind) -> io::Result<Self> {
        let path = begun.with_extension(kind.extension());
        let listener = UnixListener::bind(begun)?;
        let is_ready = listener
            .set_nonblocking(true)
            .and_then(|()| fs::set_permissions(begun, Permissions::from_mode(0o600)))
            .and_then(|()| fs::rename(begun, &path));
        if let Err(cause) = is_ready {
            let _ = fs::remove_file(begun);
            return Err(cause);
        }
        Ok(Self {
            listener,
            path,
            looked: None,
            spare: spare(),
        })
    }

    /// Answers whoever has connected. It costs a system call each few milliseconds, however often
    /// it is called.
    pub fn answer<T: Serialize>(&mut self, now: Now, mut told: impl FnMut() -> T) {
        self.accept(now, |stream| give(stream, &told()));
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts whoever has connected, as often as [`Self::answer`] does.
    pub(super) fn accept(&mut self, now: Now, mut serve: impl FnMut(UnixStream) -> io::Result<()>) {
        if self.looked.is_some_and(|at| now < at + LOOK) {
            return;
        }
        self.looked = Some(now);
        for _ in 0..ANSWERS_MAX {
            match self.listener.accept() {
                // Whoever goes away meanwhile needs none.
                Ok((stream, _)) => drop(serve(stream)),
                Err(cause) if is_exhausted(&cause) => self.turn_away(),
                Err(_) => return,
            }
        }
    }

    /// Accepts a connection in place of the spare descriptor, and closes it without an answer.
    fn turn_away(&mut self) {
        drop(self.spare.take());
        drop(self.listener.accept());
        self.spare = spare();
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// The process, or the machine, has no descriptor left (`EMFILE`, `ENFILE`).
fn is_exhausted(cause: &io::Error) -> bool {
    let errno = Errno::from_io_error(cause);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

impl AsFd for StatusSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Bytes that something takes in an answer.
pub fn answer_len(told: &impl Serialize) -> usize {
    serde_json::to_vec(told).map_or(0, |bytes| bytes.len())
}

fn give(mut stream: UnixStream, told: &impl Serialize) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.write_all(&serde_json::to_vec(told)?)
}

/// Bytes of an answer that any socket has room for: by default Linux lets 208 KiB wait in one, with
/// what it keeps beside them.
pub const ANSWER_BYTES: usize = 128 << 10;

/// How often it is looked whether anything asks.
const LOOK: Duration = Duration::from_millis(5);

/// Answers that are given at once.
const ANSWERS_MAX: usize = 4;
