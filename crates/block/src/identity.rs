//! What tells a volume from all others: texts that stay the same over restarts, and what units call
//! themselves by them.
//!
//! A text names what holds the data, and never how it was addressed: one file has one identity by
//! whatever path or options it is opened, and two files of one name have two.

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
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

#[cfg(test)]
mod tests;
