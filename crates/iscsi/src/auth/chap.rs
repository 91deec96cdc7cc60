//! CHAP (RFC 7143 §12.1.3, §9.2.1; RFC 1994), one-way and mutual, at the target.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::{AdmittedNode, AuthRefusal, AuthRequirement, Hash};
use crate::target::TargetChap;
use crate::text::{self, MAX_VALUE, Text};

/// The longest challenge or response, in bytes.
pub(crate) const MAX_BINARY: usize = 1024;

/// Our challenge, as long as it stands.
#[derive(Debug)]
pub struct Challenge {
    hash: Hash,
    pub(crate) identifier: u8,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

/// What the initiator proved.
#[derive(Clone, Debug)]
pub struct ChapProof {
    /// CHAP_N.
    pub user: String,
    /// With which hash.
    pub hash: Hash,
    /// The initiator wanted us to prove ourselves too.
    pub is_mutual: bool,
    /// The nodes that have this user, with the secret that was proven.
    pub nodes: Vec<AdmittedNode>,
}

/// The initiator's CHAP_N and CHAP_R, with its own challenge if it wants us to prove ourselves.
#[derive(Debug)]
pub struct ChapAnswer<'a> {
    name: &'a str,
    response: Vec<u8>,
    counter: Option<(u8, Vec<u8>)>,
}

impl<'a> ChapAnswer<'a> {
    /// From the values of CHAP_N, CHAP_R, CHAP_I and CHAP_C; `None` if one of them is malformed,
    /// or CHAP_I comes without CHAP_C or the other way about.
    #[must_use]
    pub fn read(
        name: &'a str,
        response: &str,
        identifier: Option<&str>,
        challenge: Option<&str>,
    ) -> Option<Self> {
        let counter = match (identifier, challenge) {
            (None, None) => None,
            (Some(identifier), Some(challenge)) => {
                let identifier = u8::try_from(text::number(identifier)?).ok()?;
                Some((identifier, text::binary(challenge, MAX_BINARY)?))
            }
            _ => return None,
        };
        let response = text::binary(response, MAX_BINARY)?;
        (name.len() <= MAX_VALUE).then_some(Self {
            name,
            response,
            counter,
        })
    }
}

impl AuthRequirement {
    /// The credentials of its guarded nodes.
    pub(super) fn chaps(&self) -> impl Iterator<Item = &TargetChap> {
        self.guarded.iter().filter_map(AdmittedNode::chap)
    }
}

impl Challenge {
    /// A challenge as long as the hash's result, from fresh random bytes.
    #[must_use]
    pub fn new(hash: Hash, random: &[u8; 33]) -> Self {
        let [identifier, bytes @ ..] = random;
        let bytes = bytes.get(..hash.bytes()).unwrap_or(bytes);
        Self {
            hash,
            identifier: *identifier,
            bytes: Zeroizing::new(bytes.to_vec()),
        }
    }

    /// CHAP_A, CHAP_I and CHAP_C.
    pub fn write(&self, out: &mut Text) {
        out.put("CHAP_A", &(self.hash as u8).to_string());
        out.put("CHAP_I", &self.identifier.to_string());
        out.put("CHAP_C", &text::hex(&self.bytes));
    }

    /// What the initiator proved by its answer.
    ///
    /// # Errors
    /// [`AuthRefusal::Reflected`], [`AuthRefusal::SharedSecret`], [`AuthRefusal::WrongResponse`]
    /// and [`AuthRefusal::AnotherInitiator`].
    pub fn verify(
        &self,
        answer: &ChapAnswer<'_>,
        realm: &AuthRequirement,
    ) -> Result<ChapProof, AuthRefusal> {
        if answer
            .counter
            .as_ref()
            .is_some_and(|(_, bytes)| *bytes == *self.bytes)
        {
            return Err(AuthRefusal::Reflected);
        }
        let ours = realm.chaps().filter_map(|chap| chap.mutual.as_ref());
        if ours.fold(false, |found, (_, secret)| {
            found | self.matches(secret, &answer.response)
        }) {
            return Err(AuthRefusal::SharedSecret);
        }
        let mut nodes = Vec::new();
        let mut refusal = AuthRefusal::WrongResponse;
        for node in &realm.guarded {
            match self.proves(answer, node, &realm.initiator) {
                Ok(()) => nodes.push(node.clone()),
                Err(AuthRefusal::AnotherInitiator) => refusal = AuthRefusal::AnotherInitiator,
                Err(_) => {}
            }
        }
        if nodes.is_empty() {
            return Err(refusal);
        }
        Ok(ChapProof {
            user: answer.name.to_owned(),
            hash: self.hash,
            is_mutual: answer.counter.is_some(),
            nodes,
        })
    }

    /// Tries every user, so that a wrong name takes as long as a right one. An initiator that knows
    /// the secret of a user bound to another initiator name gets a distinct error.
    fn proves(
        &self,
        answer: &ChapAnswer<'_>,
        node: &AdmittedNode,
        initiator: &str,
    ) -> Result<(), AuthRefusal> {
        let Some(chap) = node.chap() else {
            return Err(AuthRefusal::WrongResponse);
        };
        let (mut proven, mut bound) = (false, false);
        for user in &chap.users {
            let right = self.matches(&user.secret, &answer.response) & (user.name == answer.name);
            proven |= right;
            bound |= right & user.is_for(initiator);
        }
        match (proven && self.hash >= chap.minimum, bound) {
            (true, true) => Ok(()),
            (true, false) => Err(AuthRefusal::AnotherInitiator),
            (false, _) => Err(AuthRefusal::WrongResponse),
        }
    }

    /// Whether it was answered with this secret.
    pub(crate) fn matches(&self, secret: &[u8], response: &[u8]) -> bool {
        let expected = self.hash.response(self.identifier, secret, &self.bytes);
        expected.ct_eq(response).into()
    }

    /// CHAP_N and CHAP_R, if the initiator asked for them. The nodes of a discovery session share
    /// the first name and secret that is found.
    ///
    /// # Errors
    /// [`AuthRefusal::NoMutual`].
    pub fn prove_ourselves(
        &self,
        answer: &ChapAnswer<'_>,
        proof: &ChapProof,
        out: &mut Text,
    ) -> Result<(), AuthRefusal> {
        let Some((identifier, challenge)) = &answer.counter else {
            return Ok(());
        };
        let mutual = |node: &AdmittedNode| node.chap()?.mutual.clone();
        let (name, secret) = proof
            .nodes
            .iter()
            .find_map(mutual)
            .ok_or(AuthRefusal::NoMutual)?;
        let secret = Zeroizing::new(secret);
        let response = self.hash.response(*identifier, &secret, challenge);
        out.put("CHAP_N", &name);
        out.put("CHAP_R", &text::hex(&response));
        Ok(())
    }
}
