//! A session between the thread that opened a volume and the core that uses it, so that a target
//! sees one login.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use iscsi::initiator::{Initiator, RestingSession};
use scsi::medium::HeapLease;

use super::blocking_session::Batch;

/// A session that nobody uses. Nobody answers its pings either, so it does not last long.
#[derive(Debug)]
pub(super) struct RestingConnection {
    connection: Option<(OwnedFd, RestingSession)>,
    since: Instant,
}

/// Targets give up a session that is silent after 15 s or more.
const LASTS: Duration = Duration::from_secs(10);

impl RestingConnection {
    pub(super) fn new(socket: OwnedFd, session: RestingSession) -> Self {
        Self {
            connection: Some((socket, session)),
            since: Instant::now(),
        }
    }

    /// What there is to be taken up, unless it is too late for that.
    pub(super) fn take(mut self) -> Option<(OwnedFd, RestingSession)> {
        if self.since.elapsed() > LASTS {
            return None;
        }
        self.connection.take()
    }
}

impl Drop for RestingConnection {
    /// Logs out. The answer is not waited for: the target knows what it has to.
    fn drop(&mut self) {
        let Some((socket, session)) = self.connection.take() else {
            return;
        };
        let mut session = Initiator::<HeapLease>::resume(session, Duration::ZERO);
        let mut batch = Batch::default();
        if session.logout(Duration::ZERO).is_ok() && session.transmit(&mut batch) {
            // A target that is gone needs no logout.
            let _ = batch.write_to(&mut TcpStream::from(socket));
        }
    }
}
