//! Tokens: what a client over TCP shows. A token is shown once, when it is made; what is kept is
//! its SHA-256, in a file that only the daemon's user can read.

mod file;
mod pauses;
mod requests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use runtime::secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::caller::Role;
use crate::alarm::AlarmBoard;
use file::TokenFile;
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
    /// Held by whoever writes it. Requests that only show a token do not wait for that.
    file: Mutex<TokenFile>,
    kept: Mutex<Kept>,
    /// Told when one counts no more.
    revoked: watch::Sender<()>,
    /// A task tries to write what was revoked.
    is_retried: AtomicBool,
    pub(super) pauses: Pauses,
}

#[derive(Debug, Default)]
struct Kept {
    tokens: BTreeMap<String, KeptToken>,
    /// When the file was written, or could not be, in seconds since 1970.
    tried: u64,
}

/// Tells a token from others, also from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenKey(String);

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
    #[error(
        "the token is revoked, but counts again after the next start of the daemon if it stays \
         so: {0}"
    )]
    NotKept(String),
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

/// How often it is tried again to write what was revoked.
const AGAIN: Duration = Duration::from_secs(10);

/// How long a token is taken to count that has no end, before it is looked at again.
const LONG: Duration = Duration::from_secs(3600);

impl Tokens {
    /// The tokens that are kept in a file. Without those that cannot be read there is the socket.
    pub(crate) fn read(path: PathBuf, alarms: Arc<AlarmBoard>) -> Self {
        let (file, tokens) = TokenFile::read(path, alarms);
        let tokens = tokens.into_iter().map(|one| (one.info.name.clone(), one));
        let kept = Kept {
            tokens: tokens.collect(),
            tried: 0,
        };
        Self {
            file: Mutex::new(file),
            kept: Mutex::new(kept),
            revoked: watch::Sender::default(),
            is_retried: AtomicBool::default(),
            pauses: Pauses::default(),
        }
    }

    /// Makes a token; returns what it is shown by. It counts when it is kept.
    fn create(&self, info: TokenInfo) -> Result<Zeroizing<String>, TokenError> {
        let mut file = self.file();
        let mut tokens = self.kept().tokens.clone();
        if tokens.contains_key(&info.name) {
            return Err(TokenError::Taken(info.name));
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(TokenError::Full);
        }
        let token = Zeroizing::new(format!("{PREFIX}{}", *secret::generate(LETTERS)));
        let (name, TokenKey(sha256)) = (info.name.clone(), TokenKey::of(&token));
        let made = KeptToken { info, sha256 };
        tokens.insert(name.clone(), made.clone());
        file.write(&tokens).map_err(TokenError::Store)?;
        self.kept().tokens.insert(name, made);
        Ok(token)
    }

    /// Those that there are, by name.
    fn list(&self) -> Vec<TokenInfo> {
        let kept = self.kept();
        kept.tokens.values().map(|one| one.info.clone()).collect()
    }

    /// Takes a token back, also where the file cannot be written.
    fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut file = self.file();
        let tokens = {
            let mut kept = self.kept();
            let revoked = kept.tokens.remove(name);
            revoked.ok_or_else(|| TokenError::Unknown(name.to_owned()))?;
            kept.tokens.clone()
        };
        self.revoked.send_replace(());
        file.write(&tokens).map_err(|cause| {
            file.is_behind(name, &cause);
            TokenError::NotKept(cause)
        })
    }

    /// Has a task write what was revoked until that is done.
    fn retry(self: &Arc<Self>) {
        self.retry_every(AGAIN);
    }

    fn retry_every(self: &Arc<Self>, pause: Duration) {
        if self.is_retried.swap(true, SeqCst) {
            return;
        }
        let tokens = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let again = Arc::clone(&tokens);
                let written = tokio::task::spawn_blocking(move || again.write()).await;
                if written.is_ok_and(|written| written.is_ok()) {
                    break;
                }
            }
            tokens.is_retried.store(false, SeqCst);
        });
    }

    /// What a token is good for at this time, if it is one.
    pub(super) fn shown(&self, token: &str, now: SystemTime) -> Option<TokenInfo> {
        let (TokenKey(key), now) = (TokenKey::of(token), seconds(now));
        let mut kept = self.kept();
        // All are compared, and each in the same time.
        let is_it = |one: &KeptToken| bool::from(one.sha256.as_bytes().ct_eq(key.as_bytes()));
        let found = kept.tokens.values_mut().filter(|one| is_it(one));
        let found = found.reduce(|_, last| last)?;
        if found.info.expires.is_some_and(|expires| expires <= now) {
            return None;
        }
        found.info.used = Some(now);
        Some(found.info.clone())
    }

    /// For how long a token counts still, or will at least; `None`: it does not.
    fn time_left(&self, key: &TokenKey, now: SystemTime) -> Option<Duration> {
        let kept = self.kept();
        let token = kept.tokens.values().find(|one| one.sha256 == key.0)?;
        let Some(expires) = token.info.expires else {
            return Some(LONG);
        };
        let left = expires.checked_sub(seconds(now)).filter(|left| *left > 0)?;
        Some(Duration::from_secs(left).min(LONG))
    }

    /// Waits until a token counts no more.
    pub(super) async fn ended(&self, key: &TokenKey) {
        let mut revoked = self.revoked.subscribe();
        while let Some(left) = self.time_left(key, SystemTime::now()) {
            let _ = tokio::time::timeout(left, revoked.changed()).await;
        }
    }

    /// Keeps when tokens were used, if that is behind and nothing else is just being written.
    pub(super) fn keep_use(&self, now: SystemTime) {
        if let Ok(mut file) = self.file.try_lock()
            && self.is_behind(now)
        {
            let tokens = {
                let mut kept = self.kept();
                kept.tried = seconds(now);
                kept.tokens.clone()
            };
            let written = file.write(&tokens);
            written.unwrap_or_else(|cause| tracing::warn!("{cause}"));
        }
    }

    /// Whether the last use is too new for the file.
    pub(super) fn is_behind(&self, now: SystemTime) -> bool {
        self.kept().tried + BEHIND <= seconds(now)
    }

    fn write(&self) -> Result<(), String> {
        let mut file = self.file();
        let tokens = self.kept().tokens.clone();
        file.write(&tokens)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> MutexGuard<'_, TokenFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenKey {
    pub(super) fn of(token: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(token).into();
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
