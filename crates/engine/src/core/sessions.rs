//! Which sessions there are, and their end by order: on core 0.

use std::sync::mpsc::Sender;

use ::io::ring::Ring;
use iscsi::parameters::Parameters;
use scsi::medium::Now;
use scsi::unit::CoreId;

use super::{ControlCore, Core};
use crate::mailbox::{Mailer, SessionInfo};

impl SessionInfo {
    pub(super) fn of(session: &Parameters, device: Option<&str>, core: CoreId, now: Now) -> Self {
        Self {
            tsih: session.tsih,
            initiator: session.initiator.clone(),
            target: session.node().map(|node| node.name.clone()),
            user: session.user.clone(),
            proof: session.proof,
            transport: session.keys.transport,
            device: device.map(str::to_owned),
            header_digest: session.keys.header_digest,
            data_digest: session.keys.data_digest,
            endpoints: session.endpoints,
            core,
            since: now,
        }
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    pub(super) fn tell_sessions(&self, reply: &Sender<Vec<SessionInfo>>) {
        let control = self.control.iter();
        let sessions = control.flat_map(|control| control.sessions.values().cloned());
        // Who asked may have left.
        let _ = reply.send(sessions.collect());
    }

    /// Ends a session. Its connection is cut, so that its peer has no say in how long it takes.
    pub(super) fn drop_session(&mut self, tsih: u16, reply: Sender<()>) {
        let Some(control) = &mut self.control else {
            return;
        };
        if control.registry.identity(tsih).is_none() {
            return;
        }
        control.dropping.push((tsih, reply));
        self.end_anywhere(tsih);
    }

    /// The sessions that could not log in again, by what is configured now.
    pub(super) fn sessions_not_allowed(&self) -> Vec<u16> {
        let Some(control) = &self.control else {
            return Vec::new();
        };
        let revoked = |identity: &_, local| !control.admits(identity, local);
        control.registry.sessions_that(revoked).collect()
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
