//! The stages of a login (RFC 7143 §6.3). Each is a struct that holds what is known then, and is
//! consumed by the step that leads on.

use super::identity::Identity;
use super::status::{self, Fault};
use crate::auth::{Exchange, Realm, Refusal, chap::Proof};
use crate::keys::negotiation::Negotiation;
use crate::keys::{Admitted, Phase, Seen, Side};
use crate::names::PORTAL_GROUP;
use crate::parameters::{Operational, Purpose};
use crate::target::Config;
use crate::text::{self, Text};
use crate::wire::login_request::stage;

/// A stage between two texts.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing is known but in which of the two stages the initiator begins.
    Start(Phase),
    /// SecurityNegotiation.
    Security(Box<Security>),
    /// LoginOperationalNegotiation.
    Operational(Box<Negotiating>),
}

/// SecurityNegotiation.
#[derive(Debug)]
pub(super) struct Security {
    identity: Identity,
    realm: Realm,
    exchange: Exchange,
    seen: Seen,
}

/// LoginOperationalNegotiation.
#[derive(Debug)]
pub(super) struct Negotiating {
    identity: Identity,
    proof: Option<Proof>,
    negotiation: Negotiation,
    declared: bool,
    seen: Seen,
}

/// All that a login leads to but the session's handle.
#[derive(Debug)]
pub(super) struct Agreed {
    /// Who.
    pub(super) identity: Identity,
    /// What was proven.
    pub(super) proof: Option<Proof>,
    /// What it may be used for.
    pub(super) purpose: Purpose,
    /// The operational keys.
    pub(super) keys: Operational,
}

/// What becomes of a stage when the initiator asks to leave it.
#[derive(Debug)]
pub(super) enum Leaving {
    /// Not yet.
    Stay(Stage),
    /// On to the next stage.
    Moved(Stage),
    /// On to the full-feature phase.
    Over(Box<Agreed>),
}

impl Stage {
    /// The stage in which the first request says to be.
    pub(super) const fn start(current: u8) -> Self {
        Self::Start(if current == stage::SECURITY {
            Phase::Security
        } else {
            Phase::Operational
        })
    }

    /// InitiatorName, normalised, once it is known.
    pub(super) fn initiator(&self) -> Option<&str> {
        match self {
            Self::Start(_) => None,
            Self::Security(stage) => Some(&stage.identity.initiator),
            Self::Operational(stage) => Some(&stage.identity.initiator),
        }
    }

    /// CSG.
    pub(super) const fn current(&self) -> u8 {
        match self {
            Self::Start(Phase::Security) | Self::Security(_) => stage::SECURITY,
            Self::Start(_) | Self::Operational(_) => stage::OPERATIONAL,
        }
    }

    /// Takes a whole text and writes the answer.
    pub(super) fn text(
        self,
        octets: &[u8],
        config: &Config,
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, Fault> {
        let pairs = text::parse(octets)?;
        match self {
            Self::Start(phase) => {
                let mut seen = Seen::default();
                let admitted = seen.admit(&pairs, phase, Side::Initiator, out)?;
                begin(phase, seen, &admitted, config, out)?.answer(&admitted, random, out)
            }
            Self::Security(mut stage) => {
                let admitted = stage
                    .seen
                    .admit(&pairs, Phase::Security, Side::Initiator, out)?;
                stage.identity.confirm(&admitted)?;
                Self::Security(stage).answer(&admitted, random, out)
            }
            Self::Operational(mut stage) => {
                let phase = Phase::Operational;
                let admitted = stage.seen.admit(&pairs, phase, Side::Initiator, out)?;
                stage.identity.confirm(&admitted)?;
                Self::Operational(stage).answer(&admitted, random, out)
            }
        }
    }

    fn answer(
        self,
        admitted: &[Admitted<'_>],
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, Fault> {
        Ok(match self {
            Self::Start(_) => self,
            Self::Security(mut stage) => {
                stage.exchange = stage.exchange.step(admitted, &stage.realm, random, out)?;
                Self::Security(stage)
            }
            Self::Operational(mut stage) => {
                if !stage.declared {
                    stage.negotiation.declare(out);
                    stage.declared = true;
                }
                stage.negotiation.answer(admitted, out)?;
                Self::Operational(stage)
            }
        })
    }

    /// The initiator asks to go to `next`, which lies ahead.
    pub(super) fn leave(self, next: u8, config: &Config) -> Result<Leaving, Fault> {
        match self {
            Self::Start(_) => Ok(Leaving::Stay(self)),
            Self::Security(stage) => stage.leave(next, config),
            Self::Operational(stage) => stage.over(),
        }
    }
}

/// The first text: who it is, and what follows from that. TargetPortalGroupTag goes with the first
/// answer (RFC 7143 §6.3.1).
fn begin(
    phase: Phase,
    seen: Seen,
    admitted: &[Admitted<'_>],
    config: &Config,
    out: &mut Text,
) -> Result<Stage, Fault> {
    let identity = Identity::of(admitted, config)?;
    out.put("TargetPortalGroupTag", &PORTAL_GROUP.to_string());
    if let Some(alias) = identity.target_alias() {
        out.put("TargetAlias", alias);
    }
    let realm = identity.realm();
    if matches!(phase, Phase::Security) {
        return Ok(Stage::Security(Box::new(Security {
            identity,
            realm,
            exchange: Exchange::Open,
            seen,
        })));
    }
    if !realm.open {
        return Err(UNPROVEN);
    }
    let stage = Negotiating::new(identity, None, seen, config);
    Ok(Stage::Operational(Box::new(stage)))
}

impl Security {
    fn leave(self, next: u8, config: &Config) -> Result<Leaving, Fault> {
        if !self.exchange.is_over(&self.realm) {
            // Nothing offered where something is needed: waiting would not help.
            if matches!(self.exchange, Exchange::Open) {
                return Err(Refusal::NoMethod.into());
            }
            return Ok(Leaving::Stay(Stage::Security(Box::new(self))));
        }
        let proof = self.exchange.into_proof();
        let stage = Negotiating::new(self.identity, proof, Seen::default(), config);
        if next == stage::FULL_FEATURE {
            return stage.over();
        }
        Ok(Leaving::Moved(Stage::Operational(Box::new(stage))))
    }
}

impl Negotiating {
    fn new(identity: Identity, proof: Option<Proof>, seen: Seen, config: &Config) -> Self {
        let negotiation = Negotiation::new(config.limits.preferences(), identity.discovery);
        Self {
            identity,
            proof,
            negotiation,
            declared: false,
            seen,
        }
    }

    fn over(self) -> Result<Leaving, Fault> {
        let purpose = self.identity.purpose(self.proof.as_ref()).ok_or(UNPROVEN)?;
        let Self {
            identity,
            proof,
            negotiation,
            ..
        } = self;
        let keys = negotiation.outcome();
        Ok(Leaving::Over(Box::new(Agreed {
            identity,
            proof,
            purpose,
            keys,
        })))
    }
}

const UNPROVEN: Fault = Fault::new(
    status::AUTHENTICATION_FAILURE,
    "a login without the required authentication",
    "RFC 7143 §6.3.1",
);
