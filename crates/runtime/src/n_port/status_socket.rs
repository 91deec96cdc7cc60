//! A Unix socket by which a port or a switch tells other programs of its user what it is like.
//!
//! Whoever connects is sent one JSON object, and nothing is read. The socket is one of those that
//! the Ethernet port waits for, and is answered by the thread that moves frames: no other one has
//! to be let in to what that owns. An answer takes some ten microseconds, and there is none while
//! nothing asks. It is as long as a socket has room for, so that whoever reads slowly holds nothing
//! up.
//!
//! Sockets lie beside the claims of names, in a folder of this user and this network namespace,
//! with mode 0600. Those of dead processes are removed by whoever finds them.

#[cfg(test)]
mod tests;

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scsi::medium::Now;
use serde::Serialize;

use super::claim::ClaimDir;

/// What tells of a port or a switch.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    looked: Option<Now>,
}

/// What tells: the end of the name of its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKind {
    /// An N_Port.
    Port,
    /// A switch.
    Switch,
}

impl StatusKind {
    const fn extension(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Switch => "switch",
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
        // It has its name once it listens: one that does not is taken for that of a dead process.
        let (begun, path) = (
            folder.join(&name),
            folder.join(format!("{name}.{}", kind.extension())),
        );
        let listener = UnixListener::bind(&begun)?;
        let is_ready = listener
            .set_nonblocking(true)
            .and_then(|()| fs::set_permissions(&begun, Permissions::from_mode(0o600)))
            .and_then(|()| fs::rename(&begun, &path));
        if let Err(cause) = is_ready {
            let _ = fs::remove_file(&begun);
            return Err(cause);
        }
        Ok(Self {
            listener,
            path,
            looked: None,
        })
    }

    /// Answers whoever has connected. It costs a system call each few milliseconds, however often
    /// it is called.
    pub fn answer<T: Serialize>(&mut self, now: Now, mut told: impl FnMut() -> T) {
        if self.looked.is_some_and(|at| now < at + LOOK) {
            return;
        }
        self.looked = Some(now);
        for _ in 0..ANSWERS_MAX {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            // Whoever goes away meanwhile needs none.
            let _ = give(stream, &told());
        }
    }
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

fn give(mut stream: UnixStream, told: &impl Serialize) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.write_all(&serde_json::to_vec(told)?)
}

/// What all ports, or all switches, of this user and network namespace tell: a JSON text each.
/// Those that do not answer soon are left out.
#[must_use]
pub fn ask_all(kind: StatusKind) -> Vec<String> {
    let folder = ClaimDir::of_this_user();
    folder.map_or_else(|_| Vec::new(), |folder| ask_in(folder.path(), kind))
}

pub(super) fn ask_in(folder: &Path, kind: StatusKind) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == kind.extension()))
        .take(SOCKETS_MAX)
        .collect();
    paths.sort();
    // All of them have the same time.
    let asked: Vec<_> = paths.iter().filter_map(|path| ask(path)).collect();
    let deadline = Instant::now() + PATIENCE;
    asked
        .into_iter()
        .filter_map(|stream| read(stream, deadline).ok())
        .collect()
}

/// Connects, unless the process is dead, whose socket is removed.
fn ask(path: &Path) -> Option<UnixStream> {
    match UnixStream::connect(path) {
        Ok(stream) => Some(stream),
        Err(cause) => {
            if cause.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(path);
            }
            None
        }
    }
}

fn read(stream: UnixStream, deadline: Instant) -> io::Result<String> {
    let left = deadline.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// How often it is looked whether anything asks.
const LOOK: Duration = Duration::from_millis(5);

/// Answers that are given at once.
const ANSWERS_MAX: usize = 4;

/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sockets that are asked.
const SOCKETS_MAX: usize = 1024;

/// Bytes of an answer, more than a socket has room for by default.
const ANSWER_MAX: u64 = 1 << 20;
