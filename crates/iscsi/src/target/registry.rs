//! Which sessions there are: the answers to logins that ask for one (RFC 7143 §6.3.1).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{InitiatorPort, Scope};
use crate::login::status::{
    LoginStatus, OUT_OF_RESOURCES, SERVICE_UNAVAILABLE, SESSION_DOES_NOT_EXIST,
    TOO_MANY_CONNECTIONS,
};

#[cfg(test)]
mod tests;

/// The sessions of a process, by handle and by the identity that only one of them may have.
#[derive(Debug)]
pub struct Registry {
    sessions: BTreeMap<u16, Identity>,
    handles: BTreeMap<Identity, u16>,
    last: u16,
    limit: usize,
    closed: bool,
}

/// The ISID RULE (RFC 7143 §4.4.3): one session for an initiator port within a scope.
pub type Identity = (InitiatorPort, Scope);

/// What becomes of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It becomes the session with this TSIH, which is entered.
    Admit(u16),
    /// It takes the place of the session with this TSIH (RFC 7143 §6.3.5). When that has ended at
    /// the medium and [`Registry::ended`] has been told, decide again.
    Reinstate(u16),
    /// It ends.
    Refuse(LoginStatus),
}

impl Registry {
    /// Without sessions; there may be `limit` at once (and 65,535 at the most, as a handle has 16
    /// bits and is not 0).
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            sessions: BTreeMap::new(),
            handles: BTreeMap::new(),
            last: 0,
            limit: limit.min(usize::from(u16::MAX)),
            closed: false,
        }
    }

    /// What becomes of a login of `initiator` within `scope` that brings `tsih`.
    ///
    /// A session has one connection, so a login that would add another to it is refused, be it
    /// with a new connection id or to take the old one's place: at ErrorRecoveryLevel 0 nothing
    /// of a connection outlives it, and the initiator gets as much by reinstating the session.
    pub fn decide(&mut self, initiator: &InitiatorPort, scope: &Scope, tsih: u16) -> Decision {
        let identity = (initiator.clone(), scope.clone());
        if self.closed {
            return Decision::Refuse(SERVICE_UNAVAILABLE);
        }
        if tsih != 0 {
            let exists = self.sessions.get(&tsih) == Some(&identity);
            let status = if exists {
                TOO_MANY_CONNECTIONS
            } else {
                SESSION_DOES_NOT_EXIST
            };
            return Decision::Refuse(status);
        }
        if let Some(old) = self.handles.get(&identity) {
            return Decision::Reinstate(*old);
        }
        if self.sessions.len() >= self.limit {
            return Decision::Refuse(OUT_OF_RESOURCES);
        }
        self.enter(identity)
    }

    /// Handles are used in turn, so that one is not given out again soon.
    fn enter(&mut self, identity: Identity) -> Decision {
        let free = |mut handles: RangeInclusive<u32>| {
            handles.find_map(|handle| {
                let tsih = u16::try_from(handle).ok()?;
                (!self.sessions.contains_key(&tsih)).then_some(tsih)
            })
        };
        let last = u32::from(self.last);
        let found = free(last + 1..=u16::MAX.into()).or_else(|| free(1..=last));
        let Some(tsih) = found else {
            return Decision::Refuse(OUT_OF_RESOURCES);
        };
        self.last = tsih;
        self.handles.insert(identity.clone(), tsih);
        self.sessions.insert(tsih, identity);
        Decision::Admit(tsih)
    }

    /// A session has ended, its tasks at the medium included.
    pub fn ended(&mut self, tsih: u16) {
        if let Some(identity) = self.sessions.remove(&tsih) {
            self.handles.remove(&identity);
        }
    }

    /// The target goes down: no more sessions.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// With whom the session of this handle is.
    #[must_use]
    pub fn identity(&self, tsih: u16) -> Option<&Identity> {
        self.sessions.get(&tsih)
    }

    /// The handles of all sessions, with whom they are.
    pub fn sessions(&self) -> impl Iterator<Item = (u16, &InitiatorPort, &Scope)> {
        self.sessions
            .iter()
            .map(|(tsih, (initiator, scope))| (*tsih, initiator, scope))
    }
}
