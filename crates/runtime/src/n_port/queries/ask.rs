//! Asking a port of this machine to send a query.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use fc::wire::names::FcId;

use super::message::{ANSWER_MAX, QueryAnswer, QueryRequest};
use crate::n_port::PortStatus;
use crate::n_port::status_socket::connect_to;

impl PortStatus {
    /// Has the port send an ECHO or RLS (FC-LS-3), and gives the payload that comes back.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`]: nothing came back. [`io::ErrorKind::ResourceBusy`]: the port
    /// sends so many for others already, or is still logging in.
    /// [`io::ErrorKind::ConnectionAborted`]: the port is not online, or its program has ended.
    /// [`io::ErrorKind::InvalidInput`]: it sends none such, or knows no such port.
    pub fn ask_els(&self, to: FcId, payload: &[u8]) -> io::Result<Vec<u8>> {
        self.ask(&QueryRequest::els(to, payload))
    }

    /// The same with a query of the name server (FC-GS-7), whole.
    ///
    /// # Errors
    ///
    /// See [`Self::ask_els`].
    pub fn ask_ct(&self, payload: &[u8]) -> io::Result<Vec<u8>> {
        self.ask(&QueryRequest::ct(payload))
    }

    fn ask(&self, request: &QueryRequest) -> io::Result<Vec<u8>> {
        let Some(socket) = &self.query_socket else {
            return Err(self.failure(io::ErrorKind::InvalidInput, NO_SOCKET));
        };
        match ask_at(socket, request)? {
            Some(answer) => answer.outcome(),
            None => Err(self.failure(io::ErrorKind::ConnectionAborted, ENDED)),
        }
    }

    fn failure(&self, kind: io::ErrorKind, what: &str) -> io::Error {
        let Self { program, pid, .. } = self;
        io::Error::new(kind, format!("{program} (PID {pid}) {what}"))
    }
}

/// Sends a request; `None` where the port has ended before it answered.
pub(super) fn ask_at(socket: &Path, request: &QueryRequest) -> io::Result<Option<QueryAnswer>> {
    let mut stream = match connect_to(socket) {
        Ok(stream) => stream,
        Err(cause) if HAS_ENDED.contains(&cause.kind()) => return Ok(None),
        Err(cause) => return Err(cause),
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    // A program that sends its answer without reading all, or ends, breaks the pipe.
    let _ = stream.write_all(&request.encode()?);
    let mut text = Vec::new();
    match stream.take(ANSWER_MAX as u64).read_to_end(&mut text) {
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the program of the port does not answer: is it stopped?",
        )),
        _ if text.is_empty() => Ok(None),
        // The kernel resets a connection behind an answer if the request was not read.
        _ => serde_json::from_slice(&text).map(Some).map_err(Into::into),
    }
}

/// The socket is gone, or no program has it open.
const HAS_ENDED: [io::ErrorKind; 2] = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];

/// Longer than the port waits, which is E_D_TOV, of 10 s at most.
const PATIENCE: Duration = Duration::from_secs(20);

const NO_SOCKET: &str =
    "sends no requests of others: it is of an older version, or had no room for its socket";

const ENDED: &str = "has ended, or has its port no more: fcoeadm -i shows ports";
