//! The hashes of CHAP, by the numbers that IANA gave them.

use md5::Md5;
use sha1::Sha1;
use sha2::Sha256;
use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::text;

/// A hash by its CHAP_A number (RFC 7143 §12.1.3 and IANA's list of PPP authentication
/// algorithms); the larger the stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hash {
    /// MD5.
    Md5 = 5,
    /// SHA1.
    Sha1 = 6,
    /// SHA-256.
    Sha256 = 7,
    /// SHA3-256.
    Sha3 = 8,
}

impl Hash {
    /// The strongest that a CHAP_A list offers and that is not below `minimum`. RFC 7143 §12.1.3
    /// would let the initiator's order of preference decide, of which an attacker in between could
    /// make MD5 alone just as well; many initiators list MD5 first.
    #[must_use]
    pub fn strongest(list: &str, minimum: Self) -> Option<Self> {
        list.split(',')
            .filter_map(text::number)
            .filter_map(|number| ALL.into_iter().find(|hash| number == *hash as u64))
            .filter(|hash| *hash >= minimum)
            .max()
    }

    /// How it is written in options: `md5`, `sha1`, `sha256` or `sha3-256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha3 => "sha3-256",
        }
    }

    /// The hash of a [`Self::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|hash| hash.name() == name)
    }

    /// Bytes of its result, and of the challenges made for it.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Sha3 => 32,
        }
    }

    /// RFC 1994 §4.1: what answers a challenge.
    #[must_use]
    pub fn response(self, identifier: u8, secret: &[u8], challenge: &[u8]) -> Zeroizing<Vec<u8>> {
        let parts = [&[identifier], secret, challenge];
        Zeroizing::new(match self {
            Self::Md5 => digest::<Md5>(parts),
            Self::Sha1 => digest::<Sha1>(parts),
            Self::Sha256 => digest::<Sha256>(parts),
            Self::Sha3 => digest::<Sha3_256>(parts),
        })
    }
}

fn digest<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
    let mut digest = D::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().to_vec()
}

const ALL: [Hash; 4] = [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Sha3];
