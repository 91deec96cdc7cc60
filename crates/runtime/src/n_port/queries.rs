//! A Unix socket by which a port sends ECHO, RLS and name server queries on behalf of other
//! programs of its user: `lunar fcping`, `fcrls` and `fcnsq`.
//!
//! Whoever connects sends one line and is sent one ([`message`]); then the connection ends. Like
//! the status socket it is answered by the thread that moves frames, beside which it lies. That
//! costs the thread little, whatever the others do: few connections are open at a time, each has
//! one request of bounded length, and is read once a turn.

mod ask;
mod message;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ::io::ether::EtherPort;
use fc::port::{Fc4Layer, FcQueryError, FcQueryId, Port};
use scsi::medium::Now;

use self::message::{QueryAnswer, QueryRequest, REQUEST_MAX};
use super::{StatusKind, StatusSocket};

/// What sends queries of others.
#[derive(Debug)]
pub(super) struct QuerySocket {
    socket: StatusSocket,
    askers: Vec<Asker>,
}

/// A program that is connected.
#[derive(Debug)]
struct Asker {
    stream: UnixStream,
    since: Now,
    /// What it has sent so far.
    line: Vec<u8>,
    /// The query that it waits for.
    query: Option<FcQueryId>,
}

/// What has come of reading from an asker.
enum AskerNews {
    /// It has not sent all yet, or waits.
    None,
    /// A whole line.
    Request,
    /// It is gone, or sends what it should not.
    Over,
}

impl QuerySocket {
    /// That of a port, beside its status socket.
    pub(super) fn open(status: &StatusSocket) -> io::Result<Self> {
        Ok(Self {
            socket: status.open_beside(StatusKind::Query)?,
            askers: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.socket.path()
    }

    /// Takes requests and gives answers, as far as there are any.
    pub(super) fn turn<F: Fc4Layer>(&mut self, now: Now, ether: &EtherPort, port: &mut Port<F>) {
        for at in (0..self.askers.len()).rev() {
            let is_over = match self.askers[at].read(now) {
                AskerNews::None => false,
                AskerNews::Request => self.askers[at].begin(now, port),
                AskerNews::Over => true,
            };
            if is_over && let Some(query) = self.askers.swap_remove(at).query {
                port.forget_query(query);
            }
        }
        // After those that were silent for too long have made room.
        self.accept(now, ether);
        self.answer(port);
    }

    fn accept(&mut self, now: Now, ether: &EtherPort) {
        let askers = &mut self.askers;
        self.socket.accept(now, |stream| {
            stream.set_nonblocking(true)?;
            let mut asker = Asker::new(stream, now);
            if askers.len() >= ASKERS_MAX {
                asker.give(&QueryAnswer::failed(&FcQueryError::Busy));
                return Ok(());
            }
            ether.wait_for(&asker.stream)?;
            askers.push(asker);
            Ok(())
        });
    }

    /// Gives the answers that have come.
    pub(super) fn answer<F: Fc4Layer>(&mut self, port: &mut Port<F>) {
        while let Some((id, outcome)) = port.answered_query() {
            let asker = self.askers.iter().position(|one| one.query == Some(id));
            if let Some(at) = asker {
                let mut asker = self.askers.swap_remove(at);
                asker.give(&QueryAnswer::of(&outcome));
            }
        }
    }
}

impl AsFd for QuerySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Asker {
    const fn new(stream: UnixStream, since: Now) -> Self {
        Self {
            stream,
            since,
            line: Vec::new(),
            query: None,
        }
    }

    fn read(&mut self, now: Now) -> AskerNews {
        let mut bytes = [0; REQUEST_MAX];
        let room = REQUEST_MAX - self.line.len();
        let len = match self.stream.read(&mut bytes[..room]) {
            // What is sent beside the request would wake the thread again and again.
            Ok(_) if self.query.is_some() => return AskerNews::Over,
            Ok(0) => return AskerNews::Over,
            Ok(len) => len,
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                let is_late = self.query.is_none() && self.since + PATIENCE <= now;
                return if is_late {
                    AskerNews::Over
                } else {
                    AskerNews::None
                };
            }
            Err(_) => return AskerNews::Over,
        };
        self.line.extend_from_slice(&bytes[..len]);
        if self.line.ends_with(b"\n") {
            AskerNews::Request
        } else if self.line.len() >= REQUEST_MAX {
            AskerNews::Over
        } else {
            AskerNews::None
        }
    }

    /// Begins what it asks for. Returns whether it is over with that: it was told why not.
    fn begin<F: Fc4Layer>(&mut self, now: Now, port: &mut Port<F>) -> bool {
        let asked = QueryRequest::parse(&self.line).and_then(|query| {
            port.query(now, query)
                .map_err(|cause| QueryAnswer::failed(&cause))
        });
        match asked {
            Ok(query) => self.query = Some(query),
            Err(failure) => self.give(&failure),
        }
        self.query.is_none()
    }

    /// A new connection has room for an answer.
    fn give(&mut self, answer: &QueryAnswer) {
        if let Ok(text) = serde_json::to_vec(answer) {
            let _ = self.stream.write_all(&text);
        }
    }
}

/// Connections at a time: as many as have a query outstanding, and as many that have not yet.
const ASKERS_MAX: usize = 2 * fc::port::QUERIES_MAX;

/// How long an asker may take to send its request.
const PATIENCE: Duration = Duration::from_secs(1);
