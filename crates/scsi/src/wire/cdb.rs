//! Fields and operation codes of command descriptor blocks.

/// Consecutive bytes that hold one big-endian number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The first byte.
    pub at: u8,
    /// How many, 1 to 8.
    pub len: u8,
}

impl Field {
    /// `len` bytes from byte `at`.
    #[must_use]
    pub const fn new(at: u8, len: u8) -> Self {
        Self { at, len }
    }

    /// The number in it; bytes that `bytes` does not have count as zero.
    #[must_use]
    pub fn read(self, bytes: &[u8]) -> u64 {
        let start = usize::from(self.at);
        if let Some(bytes) = bytes.get(start..).and_then(<[u8]>::first_chunk) {
            return u64::from_be_bytes(*bytes) >> (64 - 8 * u32::from(self.len));
        }
        (start..start + usize::from(self.len))
            .fold(0, |value, at| value << 8 | u64::from(byte(bytes, at)))
    }

    /// Puts the low bytes of `value` there; nothing where `bytes` is too short.
    pub fn write(self, bytes: &mut [u8], value: u64) {
        let start = usize::from(self.at);
        let len = usize::from(self.len);
        if let Some(to) = bytes.get_mut(start..start + len) {
            to.copy_from_slice(&value.to_be_bytes()[8 - len..]);
        }
    }
}

/// One byte; zero where there is none, as CDBs are padded with zeros.
#[must_use]
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Whether the bits of `mask` in byte `at` are set, one of them at least.
#[must_use]
pub fn bit(bytes: &[u8], at: usize, mask: u8) -> bool {
    byte(bytes, at) & mask != 0
}

/// A 16-bit number at `at`.
#[must_use]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([byte(bytes, at), byte(bytes, at + 1)])
}

/// A 24-bit number at `at`.
#[must_use]
pub fn be24(bytes: &[u8], at: usize) -> u32 {
    u32::from(byte(bytes, at)) << 16 | u32::from(be16(bytes, at + 1))
}

/// A 32-bit number at `at`.
#[must_use]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from(be16(bytes, at)) << 16 | u32::from(be16(bytes, at + 2))
}

/// A 64-bit number at `at`.
#[must_use]
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

/// Operation codes that are sent or asked for by name (SPC-5, SBC-4); the table of what is served
/// is [`crate::commands`].
#[expect(missing_docs, reason = "the names are those of the commands")]
pub mod opcode {
    pub const TEST_UNIT_READY: u8 = 0x00;
    pub const REQUEST_SENSE: u8 = 0x03;
    pub const INQUIRY: u8 = 0x12;
    pub const MODE_SELECT_6: u8 = 0x15;
    pub const MODE_SENSE_6: u8 = 0x1a;
    pub const READ_CAPACITY_10: u8 = 0x25;
    pub const READ_10: u8 = 0x28;
    pub const WRITE_10: u8 = 0x2a;
    pub const SYNCHRONIZE_CACHE_10: u8 = 0x35;
    pub const WRITE_SAME_10: u8 = 0x41;
    pub const UNMAP: u8 = 0x42;
    pub const PERSISTENT_RESERVE_IN: u8 = 0x5e;
    pub const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
    pub const READ_16: u8 = 0x88;
    pub const WRITE_16: u8 = 0x8a;
    pub const SYNCHRONIZE_CACHE_16: u8 = 0x91;
    pub const WRITE_SAME_16: u8 = 0x93;
    pub const WRITE_ATOMIC_16: u8 = 0x9c;
    pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
    pub const REPORT_LUNS: u8 = 0xa0;
    pub const MAINTENANCE_IN: u8 = 0xa3;
}
