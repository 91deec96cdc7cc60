//! Mutations of a corpus as a fuzzer makes them, by a generator that begins the same each time.

/// A generator (xorshift64*).
pub(crate) struct Chance(u64);

impl Chance {
    /// A generator of its own for each name.
    pub(crate) fn new(name: &str) -> Self {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    /// One of the files with a few changes.
    pub(crate) fn mutated(&mut self, files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = files[self.below(files.len())].1.clone();
        for _ in 0..1 + self.below(4) {
            let other = &files[self.below(files.len())].1;
            self.change(&mut bytes, other);
        }
        bytes.truncate(super::LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let end = at + self.below(bytes.len() - at + 1);
        match self.below(6) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = self.next() as u8;
                }
            }
            3 => bytes.insert(at, self.next() as u8),
            4 => drop(bytes.drain(at..end)),
            _ => {
                let from = self.below(other.len() + 1);
                let to = from + self.below(other.len() - from + 1);
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
}
