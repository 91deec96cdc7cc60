//! Asking all status sockets of this user and network namespace.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;

use super::StatusKind;
use crate::n_port::claim::ClaimDir;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusAnswers<T> {
    /// What each has told that has answered.
    pub told: Vec<T>,
    /// The numbers of the processes that have not: they are stopped, or busy with something else.
    pub silent: Vec<u32>,
    /// The numbers of the processes whose answer is cut off, or one of another version.
    pub garbled: Vec<u32>,
}

/// What all ports, or all switches, of this user and network namespace tell.
#[must_use]
pub fn ask_all<T: DeserializeOwned>(kind: StatusKind) -> StatusAnswers<T> {
    let folder = ClaimDir::of_this_user();
    folder.map_or_else(|_| StatusAnswers::empty(), |it| ask_in(it.path(), kind))
}

pub(super) fn ask_in<T: DeserializeOwned>(folder: &Path, kind: StatusKind) -> StatusAnswers<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let (mut paths, others): (Vec<_>, Vec<_>) = entries
        .map(|entry| entry.path())
        .partition(|path| path.extension().is_some_and(|it| it == kind.extension()));
    others.iter().for_each(clear_begun);
    paths.sort();
    let mut answers = StatusAnswers::empty();
    // All of some have the same time. A process has room for so many descriptors.
    for some in paths.chunks(AT_ONCE) {
        let asked: Vec<_> = some.iter().map(|path| (path, connect_to(path))).collect();
        let deadline = Instant::now() + PATIENCE;
        for (path, asked) in asked {
            match asked.and_then(|stream| read(stream, deadline)) {
                Ok(text) => match serde_json::from_str(&text) {
                    Ok(told) => answers.told.push(told),
                    Err(_) => answers.garbled.extend(process_of(path)),
                },
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                    answers.silent.extend(process_of(path));
                }
                Err(_) => {}
            }
        }
    }
    answers.silent.dedup();
    answers.garbled.dedup();
    answers
}

impl<T> StatusAnswers<T> {
    const fn empty() -> Self {
        Self {
            told: Vec::new(),
            silent: Vec::new(),
            garbled: Vec::new(),
        }
    }
}

/// Connects, unless the process is dead, whose sockets are removed. Nothing is waited for: the
/// queue of a process that is stopped is full some time, and then the kernel would wait for it.
pub(in crate::n_port) fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let stream = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    if let Err(cause) = connect(&stream, &SocketAddrUnix::new(path)?) {
        let cause = io::Error::from(cause);
        if cause.kind() == io::ErrorKind::ConnectionRefused {
            let beside = path.with_extension(StatusKind::Query.extension());
            for dead in [path, &beside] {
                let _ = fs::remove_file(dead);
            }
        }
        return Err(cause);
    }
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// What it tells; [`io::ErrorKind::WouldBlock`] where it does not until then. One that has no
/// descriptor left tells nothing.
fn read(stream: UnixStream, deadline: Instant) -> io::Result<String> {
    let mut text = String::new();
    let mut bytes = stream.take(ANSWER_MAX);
    let left = deadline.saturating_duration_since(Instant::now());
    let left = left.max(Duration::from_millis(1));
    bytes.get_ref().set_read_timeout(Some(left))?;
    bytes.read_to_string(&mut text)?;
    if text.is_empty() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(text)
}

/// The process of a socket, with whose number its name begins.
fn process_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.split('-').next()?.parse().ok()
}

/// Removes a socket whose process died before it gave it its name.
fn clear_begun(path: &PathBuf) {
    let is_begun = |found: &fs::Metadata| {
        let age = found
            .modified()
            .map(|at| SystemTime::now().duration_since(at));
        let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age > BEGUN_FOR));
        path.extension().is_none() && found.file_type().is_socket() && is_old
    };
    if fs::symlink_metadata(path).is_ok_and(|found| is_begun(&found)) {
        let _ = fs::remove_file(path);
    }
}

/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a socket may have no name yet: one that is alive takes some microseconds.
const BEGUN_FOR: Duration = Duration::from_secs(60);

/// Sockets that are asked at once: a quarter of the descriptors that a process has by default.
const AT_ONCE: usize = 256;

/// Bytes of an answer, more than a socket has room for by default.
const ANSWER_MAX: u64 = 1 << 20;
