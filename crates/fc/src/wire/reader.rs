//! Bytes taken from the front of what is left of a format, so that no length can reach past it.

/// Fewer bytes came than the format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it ends too early")]
pub struct Truncated;

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let (first, rest) = self.0.split_at_checked(len).ok_or(Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    /// Leaves out `len` bytes, as reserved fields are.
    ///
    /// # Errors
    /// There are fewer.
    pub fn skip(&mut self, len: usize) -> Result<(), Truncated> {
        self.take(len).map(drop)
    }

    /// The next three bytes, big-endian.
    ///
    /// # Errors
    /// There are fewer.
    pub fn u24(&mut self) -> Result<u32, Truncated> {
        self.array()
            .map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }
}

macro_rules! numbers {
    ($($number:ident),*) => {
        impl ByteReader<'_> {
            $(
                /// The next number, big-endian.
                ///
                /// # Errors
                /// There are fewer bytes than it has.
                pub fn $number(&mut self) -> Result<$number, Truncated> {
                    self.array().map($number::from_be_bytes)
                }
            )*
        }
    };
}

numbers!(u8, u16, u32, u64);
