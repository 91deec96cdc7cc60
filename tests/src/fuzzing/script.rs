//! Bytes as a script: each decision takes the next ones. A script that is over decides zero.
//!
//! `arbitrary` does the same, but takes lengths from the end; here the order of the bytes is that
//! of the decisions, so a corpus can be written by hand and a finding read.

/// What is left of a script.
#[derive(Clone, Debug)]
pub(super) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next bytes, zeros after the end.
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let some = self.take(N);
        array[..some.len()].copy_from_slice(some);
        array
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(super) fn half(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub(super) fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    /// A number below `end`, which is 1 to 256.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// One byte in two is true.
    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// So many bytes, or as many as there are.
    pub(super) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        self.take(self.0.len())
    }
}
