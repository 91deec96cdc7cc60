//! The login phase (RFC 7143 §6.3, §11.12, §11.13), as the side that asks.
//!
//! | step | sent | what the answer may be |
//! |---|---|---|
//! | method | names, AuthMethod | the method; with None also the end of the stage |
//! | hash | CHAP_A | CHAP_A, CHAP_I, CHAP_C |
//! | proof | CHAP_N, CHAP_R, with mutual CHAP also CHAP_I, CHAP_C | CHAP_N, CHAP_R where asked for; the end of the stage |
//! | secure | nothing more | the end of the stage |
//! | operational | the operational keys, then answers | their values; the full-feature phase |

use zeroize::Zeroizing;

use super::chap;
use super::config::{Auth, InitiatorConfig, InitiatorPurpose, OperationalOffer};
use super::error::{ChapError, LoginError, SessionEnd, harmless, shown};
use super::offer::{OfferNegotiation, RESERVED, wrong};
use super::portal::ReportedPortal;
use super::tasks::LOGIN_ITT;
use super::transmit::ControlRequest;
use crate::auth::chap::Challenge;
use crate::auth::{Hash, SecurityKeys};
use crate::keys::{self, KeyPhase, KeyRow, KeyRule, KeySide, LoginKey};
use crate::parameters::{DEFAULT_DATA_SEGMENT, Operational};
use crate::text::{self, Assembly, KeyValue, Text};
use crate::wire::login::{LoginRequest, LoginResponse, stage};
use crate::wire::serial::{CmdSn, StatSn};
use scsi::violation::Violation;

/// What a login agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginOutcome {
    /// The operational keys. `own_data_segment` is what we declared.
    pub keys: Operational,
    /// The target's part of the session identifier; never 0.
    pub tsih: u16,
    /// TargetPortalGroupTag, if it was told (RFC 7143 §13.9).
    pub portal_group: Option<u16>,
    /// TargetAlias, if it was told; for display only, without control characters.
    pub alias: Option<String>,
    /// With which hash CHAP was done; `None`: without CHAP.
    pub hash: Option<Hash>,
}

/// A login in progress.
#[derive(Debug)]
pub(super) struct InitiatorLogin {
    /// Of every request; flags and numbers differ.
    template: LoginRequest,
    random: Zeroizing<[u8; 33]>,
    step: LoginRequestStep,
    /// CHAP has to be done.
    chap: bool,
    /// To which stage the last request asked to go.
    asked: Option<u8>,
    /// The target has sent but a part of its text.
    unfinished: bool,
    requests: u32,
    seen: u64,
    incoming: Assembly,
    outgoing: Text,
    negotiation: OfferNegotiation,
    outcome: LoginOutcome,
}

#[derive(Debug)]
enum LoginRequestStep {
    Method,
    Hash,
    Proof(Option<Challenge>),
    Secure,
    Operational,
}

/// What a response led to.
pub(super) enum LoginTurn {
    /// Another request is to be sent.
    Request(ControlRequest),
    /// The full-feature phase.
    Over(LoginOutcome),
}

impl InitiatorLogin {
    /// A login, and its first request.
    pub(super) fn new(
        config: &InitiatorConfig,
        offer: &OperationalOffer,
        random: [u8; 33],
    ) -> (Self, ControlRequest) {
        let template = LoginRequest {
            transit: false,
            more: false,
            current: stage::SECURITY,
            next: 0,
            version_max: VERSION,
            version_min: VERSION,
            isid: config.isid,
            tsih: 0,
            itt: LOGIN_ITT,
            cid: config.cid,
            cmd_sn: CmdSn(0),
            exp_stat_sn: StatSn(0),
        };
        let mut login = Self {
            template,
            random: Zeroizing::new(random),
            step: LoginRequestStep::Method,
            chap: matches!(config.auth, Auth::Chap(_)),
            asked: None,
            unfinished: false,
            requests: 0,
            seen: 0,
            incoming: Assembly::default(),
            outgoing: Text::default(),
            negotiation: OfferNegotiation::new(offer, config.is_discovery()),
            outcome: LoginOutcome {
                keys: Operational::default(),
                tsih: 0,
                portal_group: None,
                alias: None,
                hash: None,
            },
        };
        login.introduce(config);
        let request = login.request();
        (login, request)
    }

    /// The two names of a login, and the authentication.
    fn introduce(&mut self, config: &InitiatorConfig) {
        let out = &mut self.outgoing;
        out.put("InitiatorName", &config.initiator);
        if let Some(alias) = &config.alias {
            out.put("InitiatorAlias", alias);
        }
        match &config.purpose {
            InitiatorPurpose::Normal(target) => {
                out.put("SessionType", "Normal");
                out.put("TargetName", target);
            }
            InitiatorPurpose::Discovery => out.put("SessionType", "Discovery"),
        }
        out.put("AuthMethod", if self.chap { "CHAP" } else { "None" });
    }

    /// The next request: a part of our text, or one that asks for more of the target's.
    fn request(&mut self) -> ControlRequest {
        let (next, ready) = match self.step {
            LoginRequestStep::Method => (stage::OPERATIONAL, !self.chap),
            LoginRequestStep::Hash => (stage::OPERATIONAL, false),
            LoginRequestStep::Proof(_) | LoginRequestStep::Secure => (stage::OPERATIONAL, true),
            LoginRequestStep::Operational => (stage::FULL_FEATURE, true),
        };
        let (segment, more) = self.outgoing.next_segment(DEFAULT_DATA_SEGMENT);
        let segment = segment.to_vec();
        self.asked = (ready && !more && !self.unfinished).then_some(next);
        self.requests += 1;
        let request = LoginRequest {
            transit: self.asked.is_some(),
            more,
            next: self.asked.unwrap_or(0),
            ..self.template
        };
        ControlRequest(request.encode(), segment)
    }

    /// Takes a Login Response, with its whole data segment.
    ///
    /// # Errors
    /// The connection ends.
    pub(super) fn response(
        &mut self,
        config: &InitiatorConfig,
        response: &LoginResponse,
        data: &[u8],
    ) -> Result<LoginTurn, SessionEnd> {
        match response.status {
            0 => Ok(self.proceed(config, response, data)?),
            0x0100..=0x01ff => Err(redirect(response.status, data)),
            status => Err(SessionEnd::Login(LoginError::Refused {
                status,
                user: match &config.auth {
                    Auth::Chap(chap) => Some(chap.user.clone()),
                    Auth::None => None,
                },
                hash: self.outcome.hash,
                initiator: config.initiator.clone(),
            })),
        }
    }

    /// The connection was closed.
    pub(super) const fn lost(&self) -> LoginError {
        LoginError::Lost { proven: self.chap }
    }

    fn proceed(
        &mut self,
        config: &InitiatorConfig,
        response: &LoginResponse,
        data: &[u8],
    ) -> Result<LoginTurn, LoginError> {
        self.check(response)?;
        if !self.outgoing.is_empty() {
            // The target has but a part of our text.
            if response.transit || response.more || !data.is_empty() {
                return Err(broken("text in response to a C bit", "RFC 7143 §6.2"));
            }
            return self.again();
        }
        self.incoming.push(data)?;
        self.unfinished = response.more;
        if response.more {
            return self.again();
        }
        let bytes = self.incoming.take();
        self.text(config, &text::parse(&bytes)?, response.transit)?;
        match (response.transit, self.template.current) {
            (false, _) => self.again(),
            (true, stage::SECURITY) => {
                self.template.current = stage::OPERATIONAL;
                self.step = LoginRequestStep::Operational;
                self.negotiation.offer(&mut self.outgoing);
                self.again()
            }
            (true, _) => self.over(response.tsih),
        }
    }

    /// What has to be so in every response (RFC 7143 §11.13).
    fn check(&self, response: &LoginResponse) -> Result<(), LoginError> {
        let rule = if response.itt != self.template.itt {
            (
                "another Initiator Task Tag in a Login Response",
                "RFC 7143 §6.3",
            )
        } else if response.isid != self.template.isid {
            ("another ISID in a Login Response", "RFC 7143 §11.13")
        } else if response.version_active != VERSION {
            ("a version that was not offered", "RFC 7143 §11.13.2")
        } else if response.current != self.template.current {
            ("a Login Response of another stage", "RFC 7143 §6.3")
        } else if response.transit && response.more {
            ("the T bit and the C bit together", "RFC 7143 §11.13.1")
        } else if response.transit && self.asked != Some(response.next) {
            (
                "a transition to a stage that was not requested",
                "RFC 7143 §6.3",
            )
        } else if self.requests >= MAX_REQUESTS {
            ("a login that does not complete", "RFC 7143 §6.2")
        } else {
            return Ok(());
        };
        Err(broken(rule.0, rule.1))
    }

    fn again(&mut self) -> Result<LoginTurn, LoginError> {
        Ok(LoginTurn::Request(self.request()))
    }

    fn over(&mut self, tsih: u16) -> Result<LoginTurn, LoginError> {
        if tsih == 0 {
            return Err(broken("a session without a TSIH", "RFC 7143 §11.13.3"));
        }
        let keys = self.negotiation.outcome()?;
        Ok(LoginTurn::Over(LoginOutcome {
            keys,
            tsih,
            ..self.outcome.clone()
        }))
    }

    /// Takes a whole text of the target.
    fn text(
        &mut self,
        config: &InitiatorConfig,
        pairs: &[KeyValue<'_>],
        transit: bool,
    ) -> Result<(), LoginError> {
        let mut sent = SecurityKeys::default();
        let mut answers = Text::default();
        for pair in pairs {
            let Some(row) = keys::find(pair.key) else {
                if !RESERVED.contains(&pair.value) {
                    answers.put(pair.key, "NotUnderstood");
                }
                continue;
            };
            self.admit(row, pair.value)?;
            if !sent.take(row.key, pair.value) {
                self.declared(row, pair.value, &mut answers)?;
            }
        }
        // What comes with the last response cannot be answered any more.
        if !transit {
            self.outgoing = answers;
        }
        if self.template.current == stage::SECURITY {
            self.secure(config, &sent)?;
            if transit && !matches!(self.step, LoginRequestStep::Secure) {
                return Err(ChapError::Unproven.into());
            }
        }
        Ok(())
    }

    /// Whether the key may come now, from a target, and did not before.
    fn admit(&mut self, row: &'static KeyRow, value: &str) -> Result<(), LoginError> {
        let phase = match self.template.current {
            stage::SECURITY => KeyPhase::Security,
            _ => KeyPhase::Operational,
        };
        if !row.sent_by(KeySide::Target) && !row.is_unknown_there(value) {
            return Err(wrong(row, value, "which only initiators send", row.clause));
        }
        if !row.allowed(phase) {
            let rule = "in a stage that does not allow it";
            return Err(wrong(row, value, rule, "RFC 7143 §6.3"));
        }
        let bit = 1 << row.key as u32;
        if self.seen & bit != 0 {
            return Err(wrong(row, value, "a second time", "RFC 7143 §6.3"));
        }
        self.seen |= bit;
        Ok(())
    }

    fn declared(
        &mut self,
        row: &'static KeyRow,
        value: &str,
        answers: &mut Text,
    ) -> Result<(), LoginError> {
        match row.key {
            LoginKey::TargetAlias => self.outcome.alias = Some(harmless(value)),
            LoginKey::TargetPortalGroupTag => {
                let tag = text::number(value).and_then(|tag| u16::try_from(tag).ok());
                let tag = tag.ok_or_else(|| wrong(row, value, "which is not a tag", row.clause))?;
                self.outcome.portal_group = Some(tag);
            }
            _ if matches!(row.rule, KeyRule::Declare) => {}
            _ => self.negotiation.take(row, value, answers)?,
        }
        Ok(())
    }

    /// The SecurityNegotiation stage.
    fn secure(
        &mut self,
        config: &InitiatorConfig,
        sent: &SecurityKeys<'_>,
    ) -> Result<(), LoginError> {
        let step = std::mem::replace(&mut self.step, LoginRequestStep::Secure);
        self.step = match (step, &config.auth) {
            (LoginRequestStep::Method, Auth::None) => none(sent)?,
            (LoginRequestStep::Method, Auth::Chap(chap)) => {
                if sent.method != Some("CHAP") {
                    return Err(ChapError::NoMethod.into());
                }
                chap::offer(chap, &mut self.outgoing);
                LoginRequestStep::Hash
            }
            (LoginRequestStep::Hash, Auth::Chap(chap)) => {
                let answer = chap::answer(chap, sent, &self.random, &mut self.outgoing)?;
                self.outcome.hash = Some(answer.0);
                LoginRequestStep::Proof(answer.1)
            }
            (LoginRequestStep::Proof(Some(counter)), Auth::Chap(chap)) => {
                chap::verify(&counter, chap, sent)?;
                LoginRequestStep::Secure
            }
            (LoginRequestStep::Proof(None) | LoginRequestStep::Secure, _) if !sent.are_chap() => {
                LoginRequestStep::Secure
            }
            _ => {
                return Err(broken("unexpected CHAP keys", "RFC 7143 §12.1.3"));
            }
        };
        Ok(())
    }
}

/// The answer to AuthMethod=None. Some targets leave it out, as it says nothing.
fn none(sent: &SecurityKeys<'_>) -> Result<LoginRequestStep, LoginError> {
    match sent.method {
        None | Some("None") if !sent.are_chap() => Ok(LoginRequestStep::Secure),
        Some(other) if other != "None" => Err(LoginError::Key {
            key: "AuthMethod".into(),
            value: shown(other),
            rule: "although None was offered: give a CHAP user and secret",
            clause: "RFC 7143 §12.1",
        }),
        _ => Err(broken("unexpected CHAP keys", "RFC 7143 §12.1.3")),
    }
}

/// Status class 1: where the target says that it is. Without an address it is unknown.
fn redirect(status: u16, data: &[u8]) -> SessionEnd {
    let pairs = match text::parse(data) {
        Ok(pairs) => pairs,
        Err(malformed) => return SessionEnd::Login(malformed.into()),
    };
    let Some(pair) = pairs.iter().find(|pair| pair.key == "TargetAddress") else {
        return SessionEnd::Login(LoginError::Nowhere);
    };
    match ReportedPortal::parse(pair.value) {
        Some(address) => SessionEnd::Redirected {
            address,
            permanent: status == MOVED_PERMANENTLY,
        },
        None => SessionEnd::Login(LoginError::Key {
            key: pair.key.to_owned(),
            value: shown(pair.value),
            rule: "which is not an address",
            clause: "RFC 7143 §13.8",
        }),
    }
}

const fn broken(rule: &'static str, clause: &'static str) -> LoginError {
    LoginError::Violated(Violation { rule, clause })
}

/// The one version of the protocol (RFC 7143 §11.12.4).
const VERSION: u8 = 0;

/// The most requests of one login; as many as our target answers.
const MAX_REQUESTS: u32 = 64;

/// Target moved permanently.
const MOVED_PERMANENTLY: u16 = 0x0102;
