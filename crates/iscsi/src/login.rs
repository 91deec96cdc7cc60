//! The login phase of a target connection (RFC 7143 §6.3, §11.12, §11.13).

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use scsi::medium::{Lease, Now};

use crate::datamover::Outgoing;
use crate::parameters::Parameters;
use crate::session::Session;
use crate::target::{Config, Endpoints, InitiatorPort, Node, Scope};

/// A connection in its login phase.
#[derive(Debug)]
pub struct Login<L> {
    config: Arc<Config>,
    endpoints: Endpoints,
    events: VecDeque<Event>,
    parameters: Option<Parameters>,
    lease: PhantomData<L>,
}

/// What a login wants of its surroundings.
#[derive(Debug)]
pub enum Event {
    /// Authenticated and agreed: may there be a session? Answer with [`Login::admit`] (after
    /// a session that this one reinstates has ended at the medium) or [`Login::refuse`].
    /// Until then nothing more is received.
    Session {
        /// Who.
        initiator: InitiatorPort,
        /// 0 for a new session (which reinstates an old one of the same port, if there is one).
        tsih: u16,
        /// Connection id.
        cid: u16,
        /// To which node; `None` for discovery.
        node: Option<Arc<Node>>,
        /// Where the initiator port may have one session only.
        scope: Scope,
    },
    /// The final response is queued: once it has been transmitted, [`Login::into_session`].
    Done,
    /// Close the connection, after what is queued has been transmitted.
    Close(Violation),
    /// Worth a line in the log, though the login goes on (a weak hash).
    Remark(&'static str),
}

/// A rule that a peer broke, or another reason to end a connection: what the log says, with the
/// clause it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// In a few words: `a SCSI command before login`.
    pub rule: &'static str,
    /// `RFC 7143 §6.3`; empty where no standard says it.
    pub clause: &'static str,
}

/// Status-Class and Status-Detail of a Login Response (RFC 7143 §11.13.5), as 0xCCDD.
pub type LoginStatus = u16;

impl<L: Lease> Login<L> {
    /// A connection that was just accepted. `random` are fresh random octets, used for
    /// challenges.
    #[must_use]
    pub fn new(_now: Now, config: Arc<Config>, endpoints: Endpoints, _random: [u8; 64]) -> Self {
        Self {
            config,
            endpoints,
            events: VecDeque::new(),
            parameters: None,
            lease: PhantomData,
        }
    }

    /// The addresses it came by.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// The configuration it goes by.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Takes octets from the wire, as many as can be used now; the rest is to be given again
    /// after `poll` has given `None`.
    pub fn receive(&mut self, _now: Now, octets: &[u8]) -> usize {
        octets.len()
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// There may be a session, with this TSIH.
    pub fn admit(&mut self, _tsih: u16) {}

    /// There may not.
    pub fn refuse(&mut self, _status: LoginStatus) {}

    /// Puts what is to be sent into `out`; returns whether there was anything.
    pub fn transmit(&mut self, _out: &mut impl Outgoing<L>) -> bool {
        false
    }

    /// When [`Login::timeout`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        None
    }

    /// The deadline passed.
    pub fn timeout(&mut self, _now: Now) {}

    /// The full-feature phase, after [`Event::Done`]; `None` before it.
    #[must_use]
    pub fn into_session(self, now: Now) -> Option<Session<L>> {
        let parameters = self.parameters?;
        Some(Session::new(parameters, self.config, now))
    }
}
