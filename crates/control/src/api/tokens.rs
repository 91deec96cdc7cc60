//! Tokens: what a client over TCP shows. A token is shown once, when it is made; what is kept is
//! its SHA-256, in a file that only the daemon's user can read.

mod pauses;
mod requests;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use runtime::secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::caller::Role;
pub(super) use pauses::Pauses;
pub use requests::{NewToken, ShownToken};
pub(super) use requests::{create, list, revoke};

/// A token, without what it is shown by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenInfo {
    /// Its name, by which history and log call those that show it.
    pub name: String,
    /// What it is good for.
    pub role: Role,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Until when it counts, in seconds since 1970; for ever without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<u64>,
    /// When it was shown last, in seconds since 1970; within ten minutes after a restart.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub used: Option<u64>,
}

/// A token as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptToken {
    #[serde(flatten)]
    info: TokenInfo,
    /// In hexadecimal digits.
    sha256: String,
}

/// The tokens of a daemon.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    kept: Mutex<Kept>,
    pub(super) pauses: Pauses,
}

#[derive(Debug, Default)]
struct Kept {
    tokens: BTreeMap<String, KeptToken>,
    /// When the file was written, in seconds since 1970.
    written: u64,
}

/// Why a token cannot be made or revoked.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokenError {
    #[error("there is a token {0:?} already")]
    Taken(String),
    #[error("there is no token {0:?}")]
    Unknown(String),
    #[error("there are {TOKENS_MAX} tokens already")]
    Full,
    #[error("{0}")]
    Store(String),
}

/// How many tokens there can be.
const TOKENS_MAX: usize = 256;

/// What tokens begin with, so that those who find one know what it is.
const PREFIX: &str = "lunar_";

/// Letters and digits behind it: 256 bits.
const LETTERS: usize = 43;

/// How far the file may be behind what is known of the last use, in seconds. Each request would be
/// a write otherwise.
const BEHIND: u64 = 600;

impl Tokens {
    /// The tokens that are kept in a file.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read.
    pub(crate) fn read(path: PathBuf) -> Result<Self, String> {
        let cannot = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let tokens: Vec<KeptToken> = match fs::read_to_string(&path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(cannot(&cause)),
            Ok(text) => serde_json::from_str(&text).map_err(|cause| cannot(&cause))?,
        };
        let tokens = tokens.into_iter().map(|one| (one.info.name.clone(), one));
        let kept = Kept {
            tokens: tokens.collect(),
            written: 0,
        };
        Ok(Self {
            path,
            kept: Mutex::new(kept),
            pauses: Pauses::default(),
        })
    }

    /// Makes a token; returns what it is shown by.
    fn create(&self, info: TokenInfo) -> Result<Zeroizing<String>, TokenError> {
        let mut kept = self.kept();
        if kept.tokens.contains_key(&info.name) {
            return Err(TokenError::Taken(info.name));
        }
        if kept.tokens.len() >= TOKENS_MAX {
            return Err(TokenError::Full);
        }
        let token = Zeroizing::new(format!("{PREFIX}{}", *secret::generate(LETTERS)));
        let (name, sha256) = (info.name.clone(), hex(&digest(&token)));
        kept.tokens.insert(name.clone(), KeptToken { info, sha256 });
        if let Err(error) = self.write(&mut kept) {
            kept.tokens.remove(&name);
            return Err(error);
        }
        Ok(token)
    }

    /// Those that there are, by name.
    fn list(&self) -> Vec<TokenInfo> {
        let kept = self.kept();
        kept.tokens.values().map(|one| one.info.clone()).collect()
    }

    /// Takes a token back, also where the file cannot be written.
    fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut kept = self.kept();
        let revoked = kept.tokens.remove(name);
        revoked.ok_or_else(|| TokenError::Unknown(name.to_owned()))?;
        self.write(&mut kept)
    }

    /// What a token is good for at this time, if it is one.
    pub(super) fn shown(&self, token: &str, now: SystemTime) -> Option<TokenInfo> {
        let (digest, now) = (hex(&digest(token)), seconds(now));
        let mut kept = self.kept();
        // All are compared, and each in the same time.
        let is_it = |one: &KeptToken| bool::from(one.sha256.as_bytes().ct_eq(digest.as_bytes()));
        let found = kept.tokens.values_mut().filter(|one| is_it(one));
        let found = found.reduce(|_, last| last)?;
        if found.info.expires.is_some_and(|expires| expires <= now) {
            return None;
        }
        found.info.used = Some(now);
        Some(found.info.clone())
    }

    /// Whether the token of this name counts at this time.
    pub(super) fn counts(&self, name: &str, now: SystemTime) -> bool {
        let kept = self.kept();
        let token = kept.tokens.get(name);
        token.is_some_and(|one| {
            one.info
                .expires
                .is_none_or(|expires| expires > seconds(now))
        })
    }

    /// Keeps when tokens were used, if that is behind.
    pub(super) fn keep_use(&self, now: SystemTime) {
        let mut kept = self.kept();
        if kept.written + BEHIND <= seconds(now)
            && let Err(error) = self.write(&mut kept)
        {
            tracing::warn!("{error}");
        }
    }

    /// Whether the last use is too new for the file.
    pub(super) fn is_behind(&self, now: SystemTime) -> bool {
        self.kept().written + BEHIND <= seconds(now)
    }

    fn write(&self, kept: &mut Kept) -> Result<(), TokenError> {
        let tokens: Vec<_> = kept.tokens.values().collect();
        let text = serde_json::to_string_pretty(&tokens).unwrap_or_default();
        let written = crate::secret::keep(&self.path, &text);
        written.map_err(|cause| {
            TokenError::Store(format!("cannot write {}: {cause}", self.path.display()))
        })?;
        kept.written = seconds(SystemTime::now());
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
