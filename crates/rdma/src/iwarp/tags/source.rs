//! Where STags come from: a hash of a secret and a counter, so that those which the peer has seen
//! tell nothing of the next (RFC 5040 §8.1.1, rule 8).

use sha2::{Digest, Sha256};

use crate::verbs::Stag;

/// How many STags one hash is good for.
const STAGS_OF_A_HASH: usize = 8;

/// Draws STags.
pub(super) struct StagSource {
    secret: [u8; 32],
    hashes: u64,
    drawn: [Stag; STAGS_OF_A_HASH],
    /// How many of `drawn` are left.
    left: usize,
}

impl StagSource {
    pub(super) const fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            hashes: 0,
            drawn: [Stag(0); STAGS_OF_A_HASH],
            left: 0,
        }
    }

    /// The next one; it may be any number, 0 and those in use included.
    pub(super) fn next(&mut self) -> Stag {
        if self.left == 0 {
            self.draw();
        }
        self.left -= 1;
        self.drawn[self.left]
    }

    fn draw(&mut self) {
        let hash = Sha256::new()
            .chain_update(self.secret)
            .chain_update(self.hashes.to_be_bytes())
            .finalize();
        self.hashes += 1;
        let (words, _) = hash.as_chunks();
        for (stag, word) in self.drawn.iter_mut().zip(words) {
            *stag = Stag(u32::from_be_bytes(*word));
        }
        self.left = STAGS_OF_A_HASH;
    }
}

impl std::fmt::Debug for StagSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StagSource").finish_non_exhaustive()
    }
}
