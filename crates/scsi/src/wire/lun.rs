//! SAM-5 §4.7: logical unit numbers.

use std::fmt;

/// A LUN as it travels: eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lun(pub [u8; 8]);

/// SAM-5 §4.7.10.4: the well-known LUN of the REPORT LUNS logical unit.
pub const WELL_KNOWN_REPORT_LUNS: Lun = Lun([0xc1, 0x01, 0, 0, 0, 0, 0, 0]);

impl Lun {
    /// Numbers below 256 in peripheral device addressing, others in flat space addressing.
    /// `index` is at most 16,383.
    #[must_use]
    pub const fn from_index(index: u16) -> Self {
        let [high, low] = index.to_be_bytes();
        let method = if high == 0 { 0x00 } else { 0x40 };
        Self([method | high, low, 0, 0, 0, 0, 0, 0])
    }

    /// The number of a single-level LUN in peripheral device (bus 0) or flat space addressing;
    /// `None` for every other form, including extended flat space: these name no unit here.
    #[must_use]
    pub fn index(self) -> Option<u16> {
        let [a, b, rest @ ..] = self.0;
        if rest != [0; 6] {
            return None;
        }
        match a >> 6 {
            0 if a == 0 => Some(u16::from(b)),
            1 => Some(u16::from_be_bytes([a & 0x3f, b])),
            _ => None,
        }
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index() {
            Some(index) => index.fmt(f),
            None => write!(f, "{:#018x}", u64::from_be_bytes(self.0)),
        }
    }
}
