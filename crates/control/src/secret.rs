//! Secrets by reference: a tree, a history and an answer never hold one.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use runtime::files::{self, Replacement};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum SecretSource {
    /// `file:/path`: the first line of a file.
    File(String),
    /// `credential:NAME`: a credential of the service manager (`$CREDENTIALS_DIRECTORY`).
    Credential(String),
    /// `state:NAME`: kept in the state directory, where API and shell put it.
    State(String),
}

/// A text that names no place of a secret. It does not repeat the text, which may be the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is not written here: give file:/PATH, credential:NAME or state:NAME, where it is"
)]
pub struct NotAPlace;

impl FromStr for SecretSource {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (kind, place) = text.split_once(':').ok_or(NotAPlace)?;
        let is_name = !place.is_empty()
            && !place.starts_with('.')
            && place
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        match kind {
            "file" if place.starts_with('/') => Ok(Self::File(place.to_owned())),
            "credential" if is_name => Ok(Self::Credential(place.to_owned())),
            "state" if is_name => Ok(Self::State(place.to_owned())),
            _ => Err(NotAPlace),
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{path}"),
            Self::Credential(name) => write!(f, "credential:{name}"),
            Self::State(name) => write!(f, "state:{name}"),
        }
    }
}

impl From<SecretSource> for String {
    fn from(source: SecretSource) -> Self {
        source.to_string()
    }
}

impl TryFrom<String> for SecretSource {
    type Error = NotAPlace;

    fn try_from(text: String) -> Result<Self, NotAPlace> {
        text.parse()
    }
}

/// Puts a text into a file that only its owner can read: after a crash it is the old one or the new
/// one.
///
/// # Errors
///
/// As the file system has it; the old file is there.
pub(crate) fn keep(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    files::make(path.parent().unwrap_or(Path::new(".")))?;
    // No secret has such a name.
    let new = path.with_file_name(format!(".{name}.new"));
    let replacement = Replacement {
        path,
        new: &new,
        mode: files::PRIVATE,
    };
    let line = Zeroizing::new(format!("{text}\n"));
    replacement.make(line.as_bytes(), |_| Ok(()), |_| Ok(()))
}
