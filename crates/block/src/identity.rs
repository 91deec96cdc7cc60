//! What volumes say of themselves beyond their traits, and what tells one from all others: texts
//! that stay the same over restarts, and what units call themselves by them.
//!
//! A text names what holds the data, and never how it was addressed: one file has one identity by
//! whatever path or options it is opened, and two files of one name have two.

use scsi::medium::Traits;
use sha2::{Digest, Sha256};

/// The serial number of a unit whose volume has this identity: 16 hexadecimal digits.
#[must_use]
pub fn serial(identity: &str) -> String {
    hex(&digest(&[b"serial number of", identity.as_bytes()])[..8])
}

/// A digest of `parts`, which are kept apart.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    digits.collect()
}

/// The machine's own name (machine-id(5)); `None` in most containers, and in an image that has not
/// been booted yet.
pub(crate) fn machine() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    machine_in(&text)
}

fn machine_in(text: &str) -> Option<String> {
    let id = text.trim();
    let is_set = id.len() == 32 && id.bytes().all(|c| c.is_ascii_hexdigit());
    let is_set = is_set && id.bytes().any(|c| c != b'0');
    is_set.then(|| id.to_owned())
}

/// What a volume says of itself, with all that is inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// What it is and can do.
    pub traits: Traits,
    /// Tells it from every other volume, over restarts too; `None` where nothing does.
    pub identity: Option<String>,
    /// What else there is to say, by headings.
    pub groups: Vec<DetailGroup>,
    /// The volumes that it is made of.
    pub parts: Vec<Details>,
}

/// Names and values under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailGroup {
    /// What they are about.
    pub heading: &'static str,
    /// Names, and values as text.
    pub values: Vec<(&'static str, String)>,
}

impl Details {
    /// Of a volume that says no more than its traits.
    #[must_use]
    pub const fn new(traits: Traits, identity: Option<String>) -> Self {
        Self {
            traits,
            identity,
            groups: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The serial number of a unit that serves it, where it was not told another.
    #[must_use]
    pub fn serial(&self) -> Option<String> {
        self.identity.as_deref().map(serial)
    }

    /// The identities of all that is not made of others.
    #[must_use]
    pub fn leaves(&self) -> Vec<&str> {
        if self.parts.is_empty() {
            self.identity.as_deref().into_iter().collect()
        } else {
            self.parts.iter().flat_map(Self::leaves).collect()
        }
    }
}

#[cfg(test)]
mod tests;
