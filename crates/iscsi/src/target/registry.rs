//! Which sessions there are: the answers to logins that ask for one (RFC 7143 §6.3.1).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use super::{InitiatorPort, SessionScope};
use crate::login::status::{
    AUTHORIZATION_FAILURE, LoginStatus, OUT_OF_RESOURCES, SERVICE_UNAVAILABLE,
    SESSION_DOES_NOT_EXIST, TOO_MANY_CONNECTIONS,
};

#[cfg(test)]
mod tests;

/// The sessions of a process, by handle and by the identity that only one of them may have.
#[derive(Debug)]
pub struct Registry {
    sessions: BTreeMap<u16, RegisteredSession>,
    handles: BTreeMap<SessionIdentity, u16>,
    last: u16,
    limit: usize,
    closed: bool,
}

/// The ISID RULE (RFC 7143 §4.4.3): one session for an initiator port within a scope.
pub type SessionIdentity = (InitiatorPort, SessionScope);

/// What a login asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionWish {
    /// Whose session it is to be.
    pub initiator: InitiatorPort,
    /// Where the initiator port may have one session only.
    pub scope: SessionScope,
    /// Our address, to which its connection came.
    pub local: SocketAddr,
    /// The user that it proved to be, if it was asked for a proof.
    pub user: Option<String>,
    /// TSIH: 0 for a new session (which reinstates an old one of the same port, if there is one).
    pub tsih: u16,
    /// Connection id.
    pub cid: u16,
    /// How many sessions there may be with the node at once; `None`: as many as with all.
    pub most: Option<u32>,
}

#[derive(Debug)]
struct RegisteredSession {
    identity: SessionIdentity,
    local: SocketAddr,
    user: Option<String>,
}

/// What becomes of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
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

    /// What becomes of a login.
    ///
    /// An InitiatorName is a claim. An initiator that takes the place of a session has its I_T
    /// nexus, with registration and reservation, so that is for the user of that session alone.
    ///
    /// A session has one connection, so a login that would add another to it is refused, be it
    /// with a new connection id or to take the old one's place: at ErrorRecoveryLevel 0 nothing
    /// of a connection outlives it, and the initiator gets as much by reinstating the session.
    pub fn decide(&mut self, wish: &AdmissionWish) -> AdmissionDecision {
        let identity = (wish.initiator.clone(), wish.scope.clone());
        let tsih = wish.tsih;
        if self.closed {
            return AdmissionDecision::Refuse(SERVICE_UNAVAILABLE);
        }
        if tsih != 0 {
            let exists = self.identity(tsih) == Some(&identity);
            let status = if exists {
                TOO_MANY_CONNECTIONS
            } else {
                SESSION_DOES_NOT_EXIST
            };
            return AdmissionDecision::Refuse(status);
        }
        if let Some(old) = self.handles.get(&identity) {
            return if self.may_replace(*old, wish) {
                AdmissionDecision::Reinstate(*old)
            } else {
                AdmissionDecision::Refuse(AUTHORIZATION_FAILURE)
            };
        }
        if self.sessions.len() >= self.limit || !self.has_room(wish) {
            return AdmissionDecision::Refuse(OUT_OF_RESOURCES);
        }
        self.enter(RegisteredSession {
            identity,
            local: wish.local,
            user: wish.user.clone(),
        })
    }

    /// Whether a login may end this session and replace it. An authenticated login may replace a
    /// session that is not authenticated.
    fn may_replace(&self, tsih: u16, wish: &AdmissionWish) -> bool {
        let user = self.sessions.get(&tsih).and_then(|old| old.user.as_ref());
        user.is_none_or(|user| wish.user.as_ref() == Some(user))
    }

    /// Whether its node may have one more session. They are counted where a node has a limit: that
    /// takes a look at each, and needs no memory.
    fn has_room(&self, wish: &AdmissionWish) -> bool {
        let (Some(most), SessionScope::Node(name, _)) = (wish.most, &wish.scope) else {
            return true;
        };
        let is_with_it = |scope: &SessionScope| match scope {
            SessionScope::Node(other, _) => other == name,
            SessionScope::Portal(_) => false,
        };
        let there = self.handles.keys().filter(|(_, scope)| is_with_it(scope));
        (there.count() as u64) < most.into()
    }

    /// Handles are used in turn, so that one is not given out again soon.
    fn enter(&mut self, session: RegisteredSession) -> AdmissionDecision {
        let free = |mut handles: RangeInclusive<u32>| {
            handles.find_map(|handle| {
                let tsih = u16::try_from(handle).ok()?;
                (!self.sessions.contains_key(&tsih)).then_some(tsih)
            })
        };
        let last = u32::from(self.last);
        let found = free(last + 1..=u16::MAX.into()).or_else(|| free(1..=last));
        let Some(tsih) = found else {
            return AdmissionDecision::Refuse(OUT_OF_RESOURCES);
        };
        self.last = tsih;
        self.handles.insert(session.identity.clone(), tsih);
        self.sessions.insert(tsih, session);
        AdmissionDecision::Admit(tsih)
    }

    /// A session has ended, its tasks at the medium included.
    pub fn ended(&mut self, tsih: u16) {
        if let Some(entry) = self.sessions.remove(&tsih) {
            self.handles.remove(&entry.identity);
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
    pub fn identity(&self, tsih: u16) -> Option<&SessionIdentity> {
        self.sessions.get(&tsih).map(|entry| &entry.identity)
    }

    /// The handles of the sessions of which this holds, by whose they are and to which address of
    /// ours they came.
    pub fn sessions_that(
        &self,
        holds: impl Fn(&SessionIdentity, SocketAddr) -> bool,
    ) -> impl Iterator<Item = u16> {
        let sessions = self.sessions.iter();
        sessions.filter_map(move |(tsih, one)| holds(&one.identity, one.local).then_some(*tsih))
    }
}
