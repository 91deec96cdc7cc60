//! Which sessions there are, and their end by order: on core 0.

use std::sync::mpsc::Sender;

use ::io::ring::Ring;
use iscsi::parameters::Parameters;
use scsi::medium::Now;
use scsi::unit::CoreId;

use super::{ControlCore, Core};
use crate::mailbox::{Mailer, SessionInfo};

impl SessionInfo {
    pub(super) fn of(session: &Parameters, core: CoreId, now: Now) -> Self {
        Self {
            tsih: session.tsih,
            initiator: session.initiator.clone(),
            target: session.node().map(|node| node.name.clone()),
            endpoints: session.endpoints,
            core,
            since: now,
        }
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    pub(super) fn tell_sessions(&self, reply: &Sender<Vec<SessionInfo>>) {
        let front = self.front.iter();
        let sessions = front.flat_map(|front| front.sessions.values().cloned());
        // Who asked may have left.
        let _ = reply.send(sessions.collect());
    }

    /// Ends a session. Its connection is cut, so that its peer has no say in how long it takes.
    pub(super) fn drop_session(&mut self, tsih: u16, reply: Sender<()>) {
        let Some(front) = &mut self.front else { return };
        if front.registry.identity(tsih).is_none() {
            return;
        }
        front.dropping.push((tsih, reply));
        self.end_anywhere(tsih);
    }

    /// The sessions that could not log in again, by what is configured now.
    pub(super) fn sessions_not_allowed(&self) -> Vec<u16> {
        let Some(front) = &self.front else {
            return Vec::new();
        };
        let sessions = front.registry.sessions();
        let revoked = sessions.filter_map(|(tsih, initiator, scope)| {
            let identity = (initiator.clone(), scope.clone());
            (!front.admits(&identity)).then_some(tsih)
        });
        revoked.collect()
    }
}

impl ControlCore {
    /// A session has ended.
    pub(super) fn tell_dropped(&mut self, tsih: u16) {
        self.sessions.remove(&tsih);
        for (_, reply) in self.dropping.extract_if(.., |one| one.0 == tsih) {
            let _ = reply.send(());
        }
    }
}
