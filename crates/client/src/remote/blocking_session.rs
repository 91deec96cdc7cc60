//! A session on a socket that one thread waits for: a few questions, one after the other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{ClientCommand, Initiator, InitiatorEvent};
use iscsi::pdu_sink::PduSink;
use scsi::client::{UnitRequest, Why};
use scsi::medium::{HeapLease, Lease};
use scsi::wire::lun::Lun;

use super::command_channel::{CommandChannel, CommandResult, LIMIT};
use crate::remote::wait_notice::WaitNotice;
use crate::remote::{RemoteError, TargetPortal};

/// A session.
pub(crate) struct BlockingSession {
    initiator: Initiator<HeapLease>,
    stream: TcpStream,
    begun: Instant,
    /// When the present question was asked.
    asked: Instant,
    /// What came and was not taken.
    held: Vec<u8>,
    /// What the portal is called, and what was told of waiting for it.
    portal: String,
    patience: WaitNotice,
}

/// How long connecting may take for each address.
const CONNECT: Duration = Duration::from_secs(5);

/// How long is waited for bytes before deadlines are looked at.
const TURN: Duration = Duration::from_millis(50);

impl BlockingSession {
    pub(crate) fn log_in(portal: &TargetPortal) -> Result<Self, RemoteError> {
        Self::log_in_since(portal, Instant::now())
    }

    /// Logs in for a question that was asked then.
    pub(crate) fn log_in_since(portal: &TargetPortal, asked: Instant) -> Result<Self, RemoteError> {
        let begun = Instant::now();
        let left = LIMIT.saturating_sub(asked.elapsed());
        if left.is_zero() {
            return Err(RemoteError::Late(LIMIT.as_secs()));
        }
        let stream = ::io::tcp::connect(&portal.host, portal.port, CONNECT.min(left));
        let stream = TcpStream::from(stream.map_err(RemoteError::Connect)?);
        let timeout = stream.set_read_timeout(Some(TURN));
        timeout
            .and_then(|()| stream.set_write_timeout(Some(CONNECT)))
            .map_err(RemoteError::Connect)?;
        let other = |cause: String| RemoteError::Connect(std::io::Error::other(cause));
        let mut random = [0; 37];
        getrandom::fill(&mut random).map_err(|cause| other(cause.to_string()))?;
        let config = Arc::new(portal.config.clone());
        let initiator = Initiator::new(config, Duration::ZERO, random);
        let initiator = initiator.map_err(|cause| other(cause.to_string()))?;
        let mut talk = Self {
            initiator,
            stream,
            begun,
            asked,
            held: Vec::new(),
            portal: portal.to_string(),
            patience: WaitNotice::new(begun),
        };
        while !matches!(talk.event()?, InitiatorEvent::LoggedIn) {}
        Ok(talk)
    }

    pub(crate) fn send_targets(&mut self) {
        // Refused only where the session has ended, which the next event tells.
        let _ = self.initiator.send_targets(self.begun.elapsed(), "All");
    }

    /// What happens next, unless it is the end.
    pub(crate) fn event(&mut self) -> Result<InitiatorEvent<HeapLease>, RemoteError> {
        loop {
            match self.initiator.poll() {
                Some(InitiatorEvent::Ended(end)) => return Err(RemoteError::Session(end.into())),
                // The end that follows says why.
                Some(InitiatorEvent::Failed(failed)) if failed.why == Why::Ended => {}
                Some(event) => return Ok(event),
                None if self.asked.elapsed() > LIMIT => {
                    return Err(RemoteError::Late(LIMIT.as_secs()));
                }
                None => {
                    self.log_wait();
                    self.turn();
                }
            }
        }
    }

    /// Says what is waited for, when that takes a while.
    fn log_wait(&mut self) {
        let what = match self.initiator.outcome() {
            None => "answer the login",
            Some(_) => "answer",
        };
        let awaited = format!("{} to {what}", self.portal);
        self.patience.wait(Instant::now(), awaited);
    }

    fn turn(&mut self) {
        let mut batch = Batch::default();
        while self.initiator.transmit(&mut batch) {
            // A target that is gone is noticed by reading.
            let _ = batch.write_to(&mut self.stream);
            batch.0.clear();
        }
        let now = self.begun.elapsed();
        self.initiator.expire(now);
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            let used = self.initiator.receive(now, &held);
            self.held
                .extend_from_slice(held.get(used..).unwrap_or_default());
            return;
        }
        let mut bytes = vec![0; 1 << 16];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.initiator.lost(),
            Ok(len) => self.held.extend_from_slice(&bytes[..len]),
            Err(_) => {}
        }
    }

    pub(crate) fn leave(self) {
        self.leave_since(Instant::now());
    }

    /// Logs out, which has what time is left of a question that was asked then; the target is told
    /// in any case.
    pub(crate) fn leave_since(mut self, asked: Instant) {
        self.asked = asked;
        if self.initiator.logout(self.begun.elapsed()).is_ok() {
            self.turn();
            while self.event().is_ok() {}
        }
    }
}

impl CommandChannel for BlockingSession {
    fn begun(&self) -> Instant {
        self.begun
    }

    fn begin(&mut self) {
        self.asked = Instant::now();
    }

    fn command(
        &mut self,
        lun: Lun,
        request: UnitRequest<HeapLease>,
    ) -> Result<CommandResult, RemoteError> {
        let command = ClientCommand::of(request, lun);
        if self
            .initiator
            .execute(self.begun.elapsed(), command)
            .is_err()
        {
            return Err(RemoteError::Session(SessionEnd::Stuck.into()));
        }
        loop {
            match self.event()? {
                InitiatorEvent::Done(done) => return Ok(done),
                InitiatorEvent::Failed(failed) => return Ok(failed.as_aborted()),
                _ => {}
            }
        }
    }

    fn wait_a_turn(&mut self) -> Result<(), RemoteError> {
        self.turn();
        while let Some(event) = self.initiator.poll() {
            if let InitiatorEvent::Ended(end) = event {
                return Err(RemoteError::Session(end.into()));
            }
        }
        Ok(())
    }
}

/// PDUs that leave with their data.
#[derive(Default)]
pub(super) struct Batch(Vec<u8>);

impl Batch {
    pub(super) fn write_to(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(&self.0)
    }
}

impl PduSink<HeapLease> for Batch {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        let start = self.0.len();
        self.0.resize(start + data.len(), 0);
        data.copy_out(0, &mut self.0[start..]);
        &self.0[start..]
    }

    fn is_full(&self) -> bool {
        self.0.len() > 1 << 16
    }
}

#[cfg(test)]
mod tests;
