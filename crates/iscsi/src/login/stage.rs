//! The stages of a login (RFC 7143 §6.3). Each is a struct that holds what is known then, and is
//! consumed by the step that leads on.

use std::net::SocketAddr;

use super::identity::LoginIdentity;
use super::status::{self, LoginFault};
use crate::auth::{AuthRefusal, AuthRequirement, ChapHandshake, chap::ChapProof};
use crate::keys::negotiation::TargetNegotiation;
use crate::keys::{Admitted, KeyPhase, KeySide, SeenKeys};
use crate::parameters::{Operational, SessionPurpose, Transport};
use crate::target::TargetConfig;
use crate::text::{self, Text};
use crate::wire::login::stage;

/// What a login goes by, whichever initiator it is.
#[derive(Clone, Copy)]
pub(super) struct LoginContext<'a> {
    /// The target's configuration.
    pub(super) config: &'a TargetConfig,
    /// Our address.
    pub(super) local: SocketAddr,
    /// What carries the connection.
    pub(super) transport: Transport,
}

/// A stage between two texts.
#[derive(Debug)]
pub(super) enum NegotiationStage {
    /// Nothing is known but in which of the two stages the initiator begins.
    Start(KeyPhase),
    /// SecurityNegotiation.
    Security(Box<Security>),
    /// LoginOperationalNegotiation.
    Operational(Box<Negotiating>),
}

/// SecurityNegotiation.
#[derive(Debug)]
pub(super) struct Security {
    identity: LoginIdentity,
    realm: AuthRequirement,
    exchange: ChapHandshake,
    seen: SeenKeys,
}

/// LoginOperationalNegotiation.
#[derive(Debug)]
pub(super) struct Negotiating {
    identity: LoginIdentity,
    proof: Option<ChapProof>,
    negotiation: TargetNegotiation,
    declared: bool,
    /// What the target proposes is in the answer to this text.
    proposes: bool,
    seen: SeenKeys,
}

/// All that a login leads to but the session's handle.
#[derive(Debug)]
pub(super) struct LoginResult {
    /// The initiator and what it asked for.
    pub(super) identity: LoginIdentity,
    /// What was proven.
    pub(super) proof: Option<ChapProof>,
    /// What it may be used for.
    pub(super) purpose: SessionPurpose,
    /// The operational keys.
    pub(super) keys: Operational,
}

/// What becomes of a stage when the initiator asks to leave it.
#[derive(Debug)]
pub(super) enum StageExit {
    /// Not yet.
    Stay(NegotiationStage),
    /// On to the next stage.
    Moved(NegotiationStage),
    /// On to the full-feature phase.
    Over(Box<LoginResult>),
}

impl NegotiationStage {
    /// The stage in which the first request says to be.
    pub(super) const fn start(current: u8) -> Self {
        Self::Start(if current == stage::SECURITY {
            KeyPhase::Security
        } else {
            KeyPhase::Operational
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
            Self::Start(KeyPhase::Security) | Self::Security(_) => stage::SECURITY,
            Self::Start(_) | Self::Operational(_) => stage::OPERATIONAL,
        }
    }

    /// Takes a whole text, and writes the answer. `leaving`: the initiator asks for the next stage.
    pub(super) fn text(
        self,
        (bytes, leaving): (&[u8], bool),
        context: LoginContext<'_>,
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, LoginFault> {
        let pairs = text::parse(bytes)?;
        match self {
            Self::Start(phase) => {
                let mut seen = SeenKeys::default();
                let admitted = seen.admit(&pairs, phase, KeySide::Initiator, out)?;
                begin((phase, seen), &admitted, context, out)?.answer(
                    (&admitted, leaving),
                    random,
                    out,
                )
            }
            Self::Security(mut stage) => {
                let admitted =
                    stage
                        .seen
                        .admit(&pairs, KeyPhase::Security, KeySide::Initiator, out)?;
                stage.identity.confirm(&admitted)?;
                Self::Security(stage).answer((&admitted, leaving), random, out)
            }
            Self::Operational(mut stage) => {
                let phase = KeyPhase::Operational;
                let admitted = stage.seen.admit(&pairs, phase, KeySide::Initiator, out)?;
                stage.identity.confirm(&admitted)?;
                Self::Operational(stage).answer((&admitted, leaving), random, out)
            }
        }
    }

    fn answer(
        self,
        (admitted, leaving): (&[Admitted<'_>], bool),
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, LoginFault> {
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
                stage.proposes = leaving && stage.negotiation.propose(out);
                Self::Operational(stage)
            }
        })
    }

    /// The initiator asks to go to `next`, which lies ahead.
    pub(super) fn leave(
        self,
        next: u8,
        context: LoginContext<'_>,
    ) -> Result<StageExit, LoginFault> {
        match self {
            Self::Start(_) => Ok(StageExit::Stay(self)),
            Self::Security(stage) => stage.leave(next, context),
            Self::Operational(stage) if stage.proposes => {
                Ok(StageExit::Stay(Self::Operational(stage)))
            }
            Self::Operational(stage) => stage.over(),
        }
    }
}

/// The first text: its identity, and what follows from that. TargetPortalGroupTag goes with the
/// first answer (RFC 7143 §6.3.1).
fn begin(
    (phase, seen): (KeyPhase, SeenKeys),
    admitted: &[Admitted<'_>],
    context: LoginContext<'_>,
    out: &mut Text,
) -> Result<NegotiationStage, LoginFault> {
    let identity = LoginIdentity::of(admitted, context.config, context.local)?;
    out.put("TargetPortalGroupTag", &identity.portal_group.to_string());
    if let Some(alias) = identity.target_alias() {
        out.put("TargetAlias", alias);
    }
    let realm = identity.realm();
    if matches!(phase, KeyPhase::Security) {
        return Ok(NegotiationStage::Security(Box::new(Security {
            identity,
            realm,
            exchange: ChapHandshake::Open,
            seen,
        })));
    }
    if !realm.open {
        return Err(UNPROVEN);
    }
    let stage = Negotiating::new(identity, None, seen, context);
    Ok(NegotiationStage::Operational(Box::new(stage)))
}

impl Security {
    fn leave(self, next: u8, context: LoginContext<'_>) -> Result<StageExit, LoginFault> {
        if !self.exchange.is_over(&self.realm) {
            // Nothing offered where something is needed: waiting would not help.
            if matches!(self.exchange, ChapHandshake::Open) {
                return Err(AuthRefusal::NoMethod.into());
            }
            return Ok(StageExit::Stay(NegotiationStage::Security(Box::new(self))));
        }
        let proof = self.exchange.into_proof();
        let stage = Negotiating::new(self.identity, proof, SeenKeys::default(), context);
        if next == stage::FULL_FEATURE {
            return stage.over();
        }
        Ok(StageExit::Moved(NegotiationStage::Operational(Box::new(
            stage,
        ))))
    }
}

impl Negotiating {
    fn new(
        identity: LoginIdentity,
        proof: Option<ChapProof>,
        seen: SeenKeys,
        context: LoginContext<'_>,
    ) -> Self {
        let limits = &context.config.limits;
        let ours = |keys: Operational| keys.over(context.transport);
        let negotiation = match identity.node_login() {
            Some(node) => TargetNegotiation::with(ours(node.preferences(limits)), node),
            None => TargetNegotiation::new(ours(limits.preferences()), identity.discovery),
        };
        Self {
            identity,
            proof,
            negotiation,
            declared: false,
            proposes: false,
            seen,
        }
    }

    fn over(self) -> Result<StageExit, LoginFault> {
        let purpose = self.identity.purpose(self.proof.as_ref()).ok_or(UNPROVEN)?;
        let Self {
            identity,
            proof,
            negotiation,
            ..
        } = self;
        if let Some(row) = negotiation.unmet() {
            let rule = "a key at a value that the target does not allow";
            return Err(LoginFault::new(status::INITIATOR_ERROR, rule, row.clause));
        }
        let keys = negotiation.outcome();
        if keys.transport.is_rdma() && !identity.discovery && !keys.iser.rdma_extensions {
            return Err(WITHOUT_EXTENSIONS);
        }
        Ok(StageExit::Over(Box::new(LoginResult {
            identity,
            proof,
            purpose,
            keys,
        })))
    }
}

const UNPROVEN: LoginFault = LoginFault::new(
    status::AUTHENTICATION_FAILURE,
    "a login without the required authentication",
    "RFC 7143 §6.3.1",
);

/// A session that is not iSER-assisted would be one of plain iSCSI, for which RDMA has no stream of
/// bytes.
const WITHOUT_EXTENSIONS: LoginFault = LoginFault::new(
    status::INITIATOR_ERROR,
    "a login over RDMA without RDMAExtensions=Yes",
    "RFC 7145 §6.3",
);
