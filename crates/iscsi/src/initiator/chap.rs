//! CHAP at the initiator, one-way and mutual (RFC 7143 §12.1.3, §9.2.1; RFC 1994).

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::config::InitiatorChap;
use super::error::{ChapError, shown};
use crate::auth::Hash;
use crate::text::{self, Text};

/// The CHAP keys of one text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChapKeys<'a> {
    pub(super) algorithm: Option<&'a str>,
    pub(super) identifier: Option<&'a str>,
    pub(super) challenge: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) response: Option<&'a str>,
}

impl ChapKeys<'_> {
    pub(super) const fn is_empty(&self) -> bool {
        self.algorithm.is_none()
            && self.identifier.is_none()
            && self.challenge.is_none()
            && self.name.is_none()
            && self.response.is_none()
    }
}

/// A challenge of ours that the target has to answer.
#[derive(Debug)]
pub(super) struct MutualChallenge {
    hash: Hash,
    identifier: u8,
    bytes: Zeroizing<Vec<u8>>,
}

/// CHAP_A: the hashes that will do.
pub(super) fn offer(chap: &InitiatorChap, out: &mut Text) {
    let numbers = chap.hashes.iter().map(|hash| (*hash as u8).to_string());
    let list: Vec<String> = numbers.collect();
    out.put("CHAP_A", &list.join(","));
}

/// Answers the target's challenge; if it has to prove itself, with one of ours, made of `random`.
/// Gives the hash, and our challenge.
pub(super) fn answer(
    chap: &InitiatorChap,
    sent: &ChapKeys<'_>,
    random: &[u8; 33],
    out: &mut Text,
) -> Result<(Hash, Option<MutualChallenge>), ChapError> {
    let algorithm = sent.algorithm.ok_or(ChapError::Missing("CHAP_A"))?;
    let hash = chosen(algorithm, &chap.hashes)?;
    let identifier = sent.identifier.ok_or(ChapError::Missing("CHAP_I"))?;
    let identifier = identifier_of(identifier).ok_or(ChapError::Malformed("CHAP_I"))?;
    let challenge = sent.challenge.ok_or(ChapError::Missing("CHAP_C"))?;
    let challenge = text::binary(challenge, MAX_BINARY)
        .filter(|bytes| !bytes.is_empty())
        .ok_or(ChapError::Malformed("CHAP_C"))?;
    out.put("CHAP_N", &chap.user);
    let response = hash.response(identifier, &chap.secret, &challenge);
    out.put("CHAP_R", &text::hex(&response));
    if chap.mutual.is_none() {
        return Ok((hash, None));
    }
    let counter = MutualChallenge::new(hash, random);
    if *counter.bytes == challenge {
        return Err(ChapError::Reflected);
    }
    out.put("CHAP_I", &counter.identifier.to_string());
    out.put("CHAP_C", &text::hex(&counter.bytes));
    Ok((hash, Some(counter)))
}

impl MutualChallenge {
    fn new(hash: Hash, random: &[u8; 33]) -> Self {
        let [identifier, bytes @ ..] = random;
        let bytes = bytes.get(..hash.bytes()).unwrap_or(bytes);
        Self {
            hash,
            identifier: *identifier,
            bytes: Zeroizing::new(bytes.to_vec()),
        }
    }

    /// Whether the target is the one that is expected.
    pub(super) fn verify(
        &self,
        chap: &InitiatorChap,
        sent: &ChapKeys<'_>,
    ) -> Result<(), ChapError> {
        let Some(mutual) = &chap.mutual else {
            return Ok(());
        };
        let (Some(name), Some(response)) = (sent.name, sent.response) else {
            return Err(ChapError::Unproven);
        };
        let response = text::binary(response, MAX_BINARY).ok_or(ChapError::Malformed("CHAP_R"))?;
        if self.matches(&chap.secret, &response) {
            return Err(ChapError::SharedSecret);
        }
        if !self.matches(&mutual.secret, &response) {
            return Err(ChapError::WrongResponse);
        }
        match &mutual.name {
            Some(expected) if expected != name => Err(ChapError::Name(shown(name))),
            _ => Ok(()),
        }
    }

    fn matches(&self, secret: &[u8], response: &[u8]) -> bool {
        let expected = self.hash.response(self.identifier, secret, &self.bytes);
        expected.ct_eq(response).into()
    }
}

/// The one hash that the target chose, of those that were offered.
fn chosen(algorithm: &str, offered: &[Hash]) -> Result<Hash, ChapError> {
    let number = text::number(algorithm);
    let mut offered = offered.iter().copied();
    offered
        .find(|hash| number == Some(*hash as u64))
        .ok_or_else(|| ChapError::Hash(shown(algorithm)))
}

fn identifier_of(value: &str) -> Option<u8> {
    u8::try_from(text::number(value)?).ok()
}

/// The longest challenge or response, in bytes.
const MAX_BINARY: usize = 1024;
