//! CHAP at the initiator, one-way and mutual (RFC 7143 §12.1.3, §9.2.1; RFC 1994).

use super::config::InitiatorChap;
use super::error::{ChapError, shown};
use crate::auth::chap::{Challenge, MAX_BINARY};
use crate::auth::{Hash, SecurityKeys};
use crate::text::{self, Text};

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
    sent: &SecurityKeys<'_>,
    random: &[u8; 33],
    out: &mut Text,
) -> Result<(Hash, Option<Challenge>), ChapError> {
    let algorithm = sent.algorithms.ok_or(ChapError::Missing("CHAP_A"))?;
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
    let counter = Challenge::new(hash, random);
    if *counter.bytes == challenge {
        return Err(ChapError::Reflected);
    }
    out.put("CHAP_I", &counter.identifier.to_string());
    out.put("CHAP_C", &text::hex(&counter.bytes));
    Ok((hash, Some(counter)))
}

/// Whether the target is the one that is expected, by its answer to our challenge.
pub(super) fn verify(
    counter: &Challenge,
    chap: &InitiatorChap,
    sent: &SecurityKeys<'_>,
) -> Result<(), ChapError> {
    let Some(mutual) = &chap.mutual else {
        return Ok(());
    };
    let (Some(name), Some(response)) = (sent.name, sent.response) else {
        return Err(ChapError::Unproven);
    };
    let response = text::binary(response, MAX_BINARY).ok_or(ChapError::Malformed("CHAP_R"))?;
    if counter.matches(&chap.secret, &response) {
        return Err(ChapError::SharedSecret);
    }
    if !counter.matches(&mutual.secret, &response) {
        return Err(ChapError::WrongResponse);
    }
    match &mutual.name {
        Some(expected) if expected != name => Err(ChapError::Name(shown(name))),
        _ => Ok(()),
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
