//! Authentication in a login's SecurityNegotiation stage (RFC 7143 §12.1), at the target.
//!
//! Which nodes an initiator may be told of depends on what it proves. A normal session is with one
//! node, and needs CHAP if that node does. A discovery session needs CHAP if every node that the
//! initiator could see does; otherwise CHAP is optional there, and without it only the nodes that
//! need none are shown.

use std::sync::Arc;

use crate::keys::{Admitted, LoginKey};
use crate::login::{LoginStatus, status};
use crate::target::{TargetChap, TargetNode};
use crate::text::Text;
use scsi::violation::Violation;

pub mod chap;
mod hash;
#[cfg(test)]
mod tests;

use chap::{Challenge, ChapAnswer, ChapProof};
pub use hash::Hash;

/// What a login may be for, and what has to be proven for it.
#[derive(Clone, Debug, Default)]
pub struct AuthRequirement {
    /// The nodes that ask the initiator for CHAP.
    pub guarded: Vec<AdmittedNode>,
    /// Whether it will do without.
    pub open: bool,
    /// InitiatorName, normalised, as users may be bound to one.
    pub initiator: String,
}

/// A node that an initiator may log in to, and the group of initiators that it is in there.
#[derive(Clone, Debug)]
pub struct AdmittedNode {
    /// The node.
    pub node: Arc<TargetNode>,
    group: usize,
}

impl AdmittedNode {
    /// A node for an initiator of this normalised name; `None` if it may not log in.
    #[must_use]
    pub fn new(node: &Arc<TargetNode>, initiator: &str) -> Option<Self> {
        let group = node.access.group_of(initiator)?;
        let node = Arc::clone(node);
        Some(Self { node, group })
    }

    /// What the initiator has to prove there. The credentials of other groups are none for it.
    #[must_use]
    pub fn chap(&self) -> Option<&TargetChap> {
        self.node.access.groups().get(self.group)?.chap.as_ref()
    }
}

/// Why a login fails in its SecurityNegotiation stage. The initiator learns less than the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRefusal {
    /// No method of the initiator's list will do; also if it offers none where one is needed.
    NoMethod,
    /// None of its hashes is known and strong enough.
    NoHash,
    /// A user that does not exist, or not the right response. Which of them is not told.
    WrongResponse,
    /// A user that is bound to another initiator name.
    AnotherInitiator,
    /// It sent our own challenge back.
    Reflected,
    /// It knows our secret: the two directions share one.
    SharedSecret,
    /// It wants us to prove ourselves, and we have no secret for that.
    NoMutual,
    /// A key of the exchange that is missing, malformed, or out of turn.
    Malformed,
}

impl AuthRefusal {
    /// What the initiator is told.
    #[must_use]
    pub const fn status(self) -> LoginStatus {
        match self {
            Self::Malformed => status::INITIATOR_ERROR,
            Self::AnotherInitiator => status::AUTHORIZATION_FAILURE,
            _ => status::AUTHENTICATION_FAILURE,
        }
    }
}

impl From<AuthRefusal> for Violation {
    fn from(refusal: AuthRefusal) -> Self {
        let (rule, clause) = match refusal {
            AuthRefusal::NoMethod => ("no acceptable authentication method", "RFC 7143 §6.3.2"),
            AuthRefusal::NoHash => ("no sufficiently strong CHAP hash", "RFC 7143 §12.1.3"),
            AuthRefusal::WrongResponse => ("CHAP authentication failed", "RFC 7143 §12.1.3"),
            AuthRefusal::AnotherInitiator => (
                "a CHAP user that is bound to another initiator name",
                "--chap",
            ),
            AuthRefusal::Reflected => ("our own CHAP challenge sent back", "RFC 7143 §9.2.1"),
            AuthRefusal::SharedSecret => {
                ("one CHAP secret used in both directions", "RFC 7143 §9.2.1")
            }
            AuthRefusal::NoMutual => ("mutual CHAP, which is not configured", "RFC 7143 §12.1.3"),
            AuthRefusal::Malformed => ("a malformed CHAP exchange", "RFC 7143 §12.1.3"),
        };
        Self { rule, clause }
    }
}

/// How far the exchange has come; consumed by each step.
#[derive(Debug)]
pub enum ChapHandshake {
    /// No method has been chosen.
    Open,
    /// AuthMethod=None.
    Without,
    /// AuthMethod=CHAP; CHAP_A is to come.
    Chap,
    /// Our challenge is on its way; CHAP_N and CHAP_R are to come.
    Challenged(Challenge),
    /// Done.
    Proven(ChapProof),
}

/// The security keys of one text, by name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SecurityKeys<'a> {
    pub(crate) method: Option<&'a str>,
    pub(crate) algorithms: Option<&'a str>,
    pub(crate) identifier: Option<&'a str>,
    pub(crate) challenge: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) response: Option<&'a str>,
}

impl<'a> SecurityKeys<'a> {
    fn of(admitted: &[Admitted<'a>]) -> Self {
        let mut sent = Self::default();
        for (row, value) in admitted {
            sent.take(row.key, value);
        }
        sent
    }

    /// Takes the value of a key, if it is one of these.
    pub(crate) const fn take(&mut self, key: LoginKey, value: &'a str) -> bool {
        let field = match key {
            LoginKey::AuthMethod => &mut self.method,
            LoginKey::ChapA => &mut self.algorithms,
            LoginKey::ChapI => &mut self.identifier,
            LoginKey::ChapC => &mut self.challenge,
            LoginKey::ChapN => &mut self.name,
            LoginKey::ChapR => &mut self.response,
            _ => return false,
        };
        *field = Some(value);
        true
    }

    fn answer(&self) -> Option<ChapAnswer<'a>> {
        ChapAnswer::read(self.name?, self.response?, self.identifier, self.challenge)
    }

    /// Whether there are keys of CHAP.
    pub(crate) const fn are_chap(&self) -> bool {
        self.algorithms.is_some() || self.answers()
    }

    /// Whether there are keys of the third step.
    const fn answers(&self) -> bool {
        self.name.is_some()
            || self.response.is_some()
            || self.identifier.is_some()
            || self.challenge.is_some()
    }
}

impl ChapHandshake {
    /// Takes the keys of one text and writes the answers. `random` is used for the challenge.
    ///
    /// # Errors
    /// The login has failed.
    pub fn step(
        mut self,
        admitted: &[Admitted<'_>],
        realm: &AuthRequirement,
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, AuthRefusal> {
        let sent = SecurityKeys::of(admitted);
        if let Some(methods) = sent.method {
            self = self.choose(methods, realm, out)?;
        }
        if let Some(algorithms) = sent.algorithms {
            self = self.challenge(algorithms, realm, random, out)?;
        }
        if sent.answers() {
            self = self.prove(&sent, realm, out)?;
        }
        Ok(self)
    }

    /// Whether the stage may end.
    #[must_use]
    pub const fn is_over(&self, realm: &AuthRequirement) -> bool {
        match self {
            Self::Open => realm.open,
            Self::Without | Self::Proven(_) => true,
            Self::Chap | Self::Challenged(_) => false,
        }
    }

    /// What was proven.
    #[must_use]
    pub fn into_proof(self) -> Option<ChapProof> {
        match self {
            Self::Proven(proof) => Some(proof),
            _ => None,
        }
    }

    /// The first method of the initiator's list that will do (RFC 7143 §6.3.2).
    fn choose(
        self,
        methods: &str,
        realm: &AuthRequirement,
        out: &mut Text,
    ) -> Result<Self, AuthRefusal> {
        let Self::Open = self else {
            return Err(AuthRefusal::Malformed);
        };
        let chosen = methods.split(',').find(|method| match *method {
            "CHAP" => !realm.guarded.is_empty(),
            "None" => realm.open,
            _ => false,
        });
        let method = chosen.ok_or(AuthRefusal::NoMethod)?;
        out.put("AuthMethod", method);
        Ok(if method == "CHAP" {
            Self::Chap
        } else {
            Self::Without
        })
    }

    fn challenge(
        self,
        algorithms: &str,
        realm: &AuthRequirement,
        random: &[u8; 33],
        out: &mut Text,
    ) -> Result<Self, AuthRefusal> {
        let Self::Chap = self else {
            return Err(AuthRefusal::Malformed);
        };
        let minimum = realm.chaps().map(|chap| chap.minimum).min();
        let minimum = minimum.ok_or(AuthRefusal::NoMethod)?;
        let hash = Hash::strongest(algorithms, minimum).ok_or(AuthRefusal::NoHash)?;
        let challenge = Challenge::new(hash, random);
        challenge.write(out);
        Ok(Self::Challenged(challenge))
    }

    fn prove(
        self,
        sent: &SecurityKeys<'_>,
        realm: &AuthRequirement,
        out: &mut Text,
    ) -> Result<Self, AuthRefusal> {
        let Self::Challenged(challenge) = self else {
            return Err(AuthRefusal::Malformed);
        };
        let answer = sent.answer().ok_or(AuthRefusal::Malformed)?;
        let proof = challenge.verify(&answer, realm)?;
        challenge.prove_ourselves(&answer, &proof, out)?;
        Ok(Self::Proven(proof))
    }
}
