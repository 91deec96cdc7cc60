//! The login phase of a target connection (RFC 7143 §6.3, §11.12, §11.13).
//!
//! | state | what may come | where it leads |
//! |---|---|---|
//! | waiting (XPT_UP, S3) | the first Login Request | negotiating; anything else closes (§4.2.4) |
//! | negotiating (IN_LOGIN, S4) | Login Requests of the stage | on, or a reject and close |
//! | asking | nothing | `admit` or `refuse` decides |
//! | done (LOGGED_IN, S5) | nothing: it is the session's | `into_session` |

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use scsi::medium::{Lease, Now};
use zeroize::Zeroizing;

use crate::datamover::Datamover;
use crate::parameters::{DEFAULT_DATA_SEGMENT, FIRST_WINDOW, Parameters, Transport};
use crate::pdu_sink::PduSink;
use crate::session::Session;
use crate::target::{AdmissionWish, Endpoints, TargetConfig, TargetNode};
use crate::text::Text;
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::framer::{Framer, PduPiece};
use crate::wire::login::LoginRequest;
use scsi::violation::Violation;

mod admission;
mod dialogue;
mod identity;
mod messages;
mod stage;
pub mod status;
#[cfg(test)]
mod tests;

use admission::AdmissionRequest;
use dialogue::{Dialogue, RequestProgress};
use stage::{LoginContext, LoginResult, NegotiationStage, StageExit};
pub use status::LoginStatus;
use status::{ADDITIONAL_HEADER, LoginFault, NOT_A_LOGIN, TWO_AT_ONCE};

/// A connection in its login phase.
#[derive(Debug)]
pub struct Login<L> {
    config: Arc<TargetConfig>,
    endpoints: Endpoints,
    transport: Transport,
    random: Zeroizing<[u8; 64]>,
    deadline: Now,
    framer: Framer,
    header: Option<Bhs>,
    data: Vec<u8>,
    state: LoginState,
    outgoing: Vec<u8>,
    claimed: Option<String>,
    events: VecDeque<LoginEvent>,
    /// A login holds no lease, so it may move to another core whatever its session's leases are.
    lease: PhantomData<fn() -> L>,
}

/// Where a login stands.
#[derive(Debug)]
enum LoginState {
    /// No PDU has come.
    Waiting,
    /// Requests and responses alternate.
    Negotiating(Box<Dialogue>, NegotiationStage),
    /// All is agreed; whether there may be a session is being decided.
    Asking(Box<AdmissionRequest>),
    /// There is a session.
    Done(Box<Parameters>),
    /// It has failed.
    Closed,
}

/// What a request led to.
enum LoginStep {
    Stage(NegotiationStage),
    Over {
        current: u8,
        segment: Vec<u8>,
        agreed: Box<LoginResult>,
    },
}

/// What a login wants of its surroundings.
#[derive(Debug)]
pub enum LoginEvent {
    /// Authenticated and agreed: may there be a session? Answer with [`Login::admit`] (after
    /// a session that this one reinstates has ended at the medium) or [`Login::refuse`].
    /// Until then nothing more is received.
    Session {
        /// What it asks for.
        wish: AdmissionWish,
        /// To which node; `None` for discovery.
        node: Option<Arc<TargetNode>>,
    },
    /// The final response is queued: once it has been transmitted, [`Login::into_session`].
    Done,
    /// Close the connection, after what is queued has been transmitted.
    Close(Violation),
    /// Worth a line in the log, though the login goes on (a weak hash).
    Remark(Violation),
}

impl<L: Lease> Login<L> {
    /// A connection that was just accepted. `random` are fresh random bytes, used for
    /// challenges and the first StatSN.
    #[must_use]
    pub fn new(
        now: Now,
        config: Arc<TargetConfig>,
        endpoints: Endpoints,
        random: [u8; 64],
    ) -> Self {
        let deadline = now.saturating_add(config.limits.login_timeout);
        Self {
            config,
            endpoints,
            transport: Transport::Tcp,
            random: Zeroizing::new(random),
            deadline,
            framer: Framer::new(DEFAULT_DATA_SEGMENT),
            header: None,
            data: Vec::new(),
            state: LoginState::Waiting,
            outgoing: Vec::new(),
            claimed: None,
            events: VecDeque::new(),
            lease: PhantomData,
        }
    }

    /// Carries it over another transport than TCP, before anything has come.
    pub fn set_transport(&mut self, transport: Transport) {
        self.transport = transport;
    }

    /// The addresses it came by.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// Which initiator a login that failed said it was, and which CHAP user, for the log: the names
    /// that an administrator may have to let in. Both are claims. A user may be any text, so it is
    /// quoted.
    #[must_use]
    pub fn claimed(&self) -> Option<&str> {
        self.claimed.as_deref()
    }

    /// The configuration it goes by.
    #[must_use]
    pub fn config(&self) -> &Arc<TargetConfig> {
        &self.config
    }

    /// Takes bytes from the wire, as many as can be used now; the rest is to be given again
    /// after `poll` has given `None`. What comes after the last request belongs to the session,
    /// and is left; what comes after a failure is thrown away.
    pub fn receive(&mut self, _now: Now, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while self.takes_requests() {
            if self.framer.is_between() && !begins_login(rest) {
                self.unexpected();
                break;
            }
            match self.framer.next(&mut rest) {
                Ok(Some(piece)) => self.piece(piece),
                Ok(None) => break,
                // Without digests, a length is all that can be wrong.
                Err(_) => self.close(TOO_LONG),
            }
        }
        if matches!(self.state, LoginState::Closed) {
            bytes.len()
        } else {
            bytes.len() - rest.len()
        }
    }

    /// Whether a request may come: not while it is decided, and not after the last one.
    #[must_use]
    pub const fn takes_requests(&self) -> bool {
        matches!(
            self.state,
            LoginState::Waiting | LoginState::Negotiating(..)
        )
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<LoginEvent> {
        self.events.pop_front()
    }

    /// Whether it waits for [`Login::admit`] or [`Login::refuse`], and takes no bytes until then.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        matches!(self.state, LoginState::Asking(_))
    }

    /// Puts what is to be sent into `out`; returns whether there was anything.
    pub fn transmit(&mut self, out: &mut impl PduSink<L>) -> bool {
        if self.outgoing.is_empty() {
            return false;
        }
        out.bytes(&self.outgoing);
        self.outgoing.clear();
        true
    }

    /// When [`Login::timeout`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let over = matches!(self.state, LoginState::Done(_) | LoginState::Closed);
        (!over).then_some(self.deadline)
    }

    /// The deadline passed.
    pub fn timeout(&mut self, now: Now) {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let rule = match self.state {
            LoginState::Asking(_) => "the old session did not end in time",
            _ => "a login that took too long",
        };
        self.close(Violation {
            rule,
            clause: "RFC 7143 §8.1.2",
        });
    }

    /// What was agreed upon, after [`LoginEvent::Done`]; `None` before it.
    #[must_use]
    pub fn outcome(&self) -> Option<&Parameters> {
        match &self.state {
            LoginState::Done(parameters) => Some(parameters),
            _ => None,
        }
    }

    /// The full-feature phase over TCP, after [`LoginEvent::Done`]; `None` before it, and of a
    /// login over RDMA.
    #[must_use]
    pub fn into_session(self, now: Now) -> Option<Session<L>> {
        if self.transport.is_rdma() {
            return None;
        }
        self.into_session_over(now)
    }

    /// The same, whose data moves by `D`, which is of the transport of the login.
    #[must_use]
    pub fn into_session_over<D: Datamover<L>>(self, now: Now) -> Option<Session<L, D>> {
        match self.state {
            LoginState::Done(parameters) => Some(Session::new(*parameters, self.config, now)),
            _ => None,
        }
    }

    fn piece(&mut self, piece: PduPiece<'_>) {
        match piece {
            PduPiece::Header(bhs) if bhs.data_len() == 0 => self.request(bhs),
            PduPiece::Header(bhs) => self.header = Some(bhs),
            PduPiece::Data { bytes, end } => {
                self.data.extend_from_slice(bytes);
                if end && let Some(bhs) = self.header.take() {
                    self.request(bhs);
                }
            }
            // There are no digests before the full-feature phase.
            PduPiece::BadData => self.close(Violation {
                rule: "a data digest error",
                clause: "RFC 7143 §13.1",
            }),
        }
    }

    /// A whole request has come.
    fn request(&mut self, bhs: Bhs) {
        let request = LoginRequest::decode(&bhs);
        let data = std::mem::take(&mut self.data);
        let (mut dialogue, stage) = match std::mem::replace(&mut self.state, LoginState::Closed) {
            // T4: S3 XPT_UP to S4 IN_LOGIN (RFC 7143 §8.1.3).
            LoginState::Waiting => (
                self.dialogue(request),
                NegotiationStage::start(request.current),
            ),
            LoginState::Negotiating(dialogue, stage) => (dialogue, stage),
            state => {
                self.state = state;
                return;
            }
        };
        if !self.outgoing.is_empty() {
            return self.fail(&mut dialogue, TWO_AT_ONCE);
        }
        let known = stage.initiator().map(str::to_owned);
        match self.turn(&mut dialogue, stage, &request, bhs.ahs_len(), &data) {
            Ok(LoginStep::Stage(stage)) => self.state = LoginState::Negotiating(dialogue, stage),
            Ok(LoginStep::Over {
                current,
                segment,
                agreed,
            }) => {
                self.ask(AdmissionRequest {
                    dialogue,
                    current,
                    segment,
                    agreed,
                });
            }
            Err(fault) => {
                self.claimed = identity::claimed(known, &data);
                self.fail(&mut dialogue, fault);
            }
        }
    }

    fn dialogue(&self, first: LoginRequest) -> Box<Dialogue> {
        let [.., a, b, c, d] = *self.random;
        let window = self.config.limits.window.min(FIRST_WINDOW);
        Box::new(Dialogue::new(
            first,
            u32::from_be_bytes([a, b, c, d]),
            window,
        ))
    }

    /// One request, and the response to it unless it is the last.
    fn turn(
        &mut self,
        dialogue: &mut Dialogue,
        stage: NegotiationStage,
        request: &LoginRequest,
        ahs_len: usize,
        data: &[u8],
    ) -> Result<LoginStep, LoginFault> {
        if ahs_len > 0 {
            return Err(ADDITIONAL_HEADER);
        }
        let stage = match dialogue.take(request, stage.current(), data)? {
            RequestProgress::Part => stage,
            RequestProgress::Whole(text) => self.text(dialogue, stage, (&text, request.transit))?,
        };
        let current = stage.current();
        let segment = dialogue.segment();
        let leaving = if request.transit && !segment.1 {
            stage.leave(request.next, self.context())?
        } else {
            StageExit::Stay(stage)
        };
        let (next, stage) = match leaving {
            StageExit::Stay(stage) => (None, stage),
            StageExit::Moved(stage) => (Some(stage.current()), stage),
            StageExit::Over(agreed) => {
                return Ok(LoginStep::Over {
                    current,
                    segment: segment.0,
                    agreed,
                });
            }
        };
        dialogue.respond(&mut self.outgoing, current, next, &segment);
        Ok(LoginStep::Stage(stage))
    }

    fn text(
        &self,
        dialogue: &mut Dialogue,
        stage: NegotiationStage,
        text: (&[u8], bool),
    ) -> Result<NegotiationStage, LoginFault> {
        let mut answer = Text::default();
        let random = self.random.first_chunk().unwrap_or(&[0; 33]);
        let stage = stage.text(text, self.context(), random, &mut answer)?;
        dialogue.send(answer);
        Ok(stage)
    }

    fn context(&self) -> LoginContext<'_> {
        LoginContext {
            config: &self.config,
            local: self.endpoints.local,
            transport: self.transport,
        }
    }

    /// A PDU that is not a Login Request: before the login it ends the connection, in it also the
    /// login (RFC 7143 §4.2.4).
    fn unexpected(&mut self) {
        match std::mem::replace(&mut self.state, LoginState::Closed) {
            LoginState::Negotiating(mut dialogue, _) => self.fail(&mut dialogue, NOT_A_LOGIN),
            _ => self.close(BEFORE_LOGIN),
        }
    }

    /// T7: S4 IN_LOGIN to S1 FREE, with a Login Response of another Status-Class than 0.
    fn fail(&mut self, dialogue: &mut Dialogue, fault: LoginFault) {
        dialogue.reject(&mut self.outgoing, fault.status);
        self.close(fault.violation);
    }

    /// Ends it: the peer broke a rule, here or of what carries its PDUs. T6 from S3, T7 from S4.
    pub fn close(&mut self, violation: Violation) {
        self.state = LoginState::Closed;
        self.events.push_back(LoginEvent::Close(violation));
    }
}

/// Whether a Login Request may begin so: the first byte tells, and others may never come.
fn begins_login(bytes: &[u8]) -> bool {
    let first = bytes.first();
    first.is_none_or(|byte| Opcode::from_code(*byte) == Opcode::LoginRequest)
}

const BEFORE_LOGIN: Violation = Violation {
    rule: "a PDU other than a Login Request before login",
    clause: "RFC 7143 §4.2.4",
};

const TOO_LONG: Violation = Violation {
    rule: "a Login Request over 8192 bytes",
    clause: "RFC 7143 §6.3",
};
