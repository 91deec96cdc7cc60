//! How a command ended: status codes (SAM-5 §5.3.1), and sense data (SPC-5 §4.4), which is a value;
//! bytes are made from it when a command ends, in the format that D_SENSE asks for.

use crate::task::SenseBytes;
use crate::wire::asc;

/// SPC-5 §4.4.8: sense keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing went wrong.
    NoSense = 0x0,
    /// Went well after recovery.
    RecoveredError = 0x1,
    /// Cannot be reached now.
    NotReady = 0x2,
    /// The medium failed.
    MediumError = 0x3,
    /// The device failed.
    HardwareError = 0x4,
    /// The CDB or parameter list is wrong.
    IllegalRequest = 0x5,
    /// Something changed that the initiator should know of.
    UnitAttention = 0x6,
    /// Write protected, or no space.
    DataProtect = 0x7,
    /// A blank medium.
    BlankCheck = 0x8,
    /// Vendor specific.
    VendorSpecific = 0x9,
    /// EXTENDED COPY was aborted.
    CopyAborted = 0xa,
    /// The command was aborted; trying again may help.
    AbortedCommand = 0xb,
    /// Volume overflow.
    VolumeOverflow = 0xd,
    /// The data compared differs.
    Miscompare = 0xe,
    /// Completed, with a remark.
    Completed = 0xf,
}

/// What the sense-key specific bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenseSpecific {
    /// Which field is wrong (ILLEGAL REQUEST).
    Field {
        /// In the CDB, else in the parameter list.
        in_cdb: bool,
        /// The byte.
        byte: u16,
        /// The most significant bit of the field in that byte, where it is not the whole byte.
        bit: Option<u8>,
    },
    /// How far a FORMAT UNIT or SANITIZE got, in 1/65,536.
    Progress(u16),
    /// Segment pointer of a failed EXTENDED COPY.
    Segment {
        /// In the segment descriptor list rather than the target descriptor list.
        in_segments: bool,
        /// The byte of the descriptor in error.
        byte: u16,
        /// The bit.
        bit: Option<u8>,
    },
}

/// Sense data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: SenseKey,
    /// ADDITIONAL SENSE CODE and its QUALIFIER, as 0xAAQQ.
    pub code: u16,
    /// INFORMATION: an LBA, or the offset of a miscompare.
    pub information: Option<u64>,
    /// COMMAND-SPECIFIC INFORMATION.
    pub command_specific: Option<u64>,
    /// Sense-key specific data.
    pub specific: Option<SenseSpecific>,
}

impl Sense {
    /// Sense data with nothing but key and code.
    #[must_use]
    pub const fn new(key: SenseKey, code: u16) -> Self {
        Self {
            key,
            code,
            information: None,
            command_specific: None,
            specific: None,
        }
    }

    /// INVALID FIELD IN CDB, pointing at `byte`, and at `bit` of it where the field is not the
    /// whole byte.
    #[must_use]
    pub const fn cdb_field(byte: u16, bit: Option<u8>) -> Self {
        Self::field(asc::INVALID_FIELD_IN_CDB, true, byte, bit)
    }

    /// INVALID FIELD IN PARAMETER LIST, likewise.
    #[must_use]
    pub const fn parameter_field(byte: u16, bit: Option<u8>) -> Self {
        Self::field(asc::INVALID_FIELD_IN_PARAMETER_LIST, false, byte, bit)
    }

    /// PARAMETER LIST LENGTH ERROR: what came is too short, or cut in the middle of a structure.
    #[must_use]
    pub const fn parameter_length() -> Self {
        Self::new(SenseKey::IllegalRequest, asc::PARAMETER_LIST_LENGTH_ERROR)
    }

    /// A UNIT ATTENTION.
    #[must_use]
    pub const fn attention(code: u16) -> Self {
        Self::new(SenseKey::UnitAttention, code)
    }

    const fn field(code: u16, in_cdb: bool, byte: u16, bit: Option<u8>) -> Self {
        Self {
            specific: Some(SenseSpecific::Field { in_cdb, byte, bit }),
            ..Self::new(SenseKey::IllegalRequest, code)
        }
    }

    /// The bytes, for current (not deferred) information. Fixed format cannot tell INFORMATION
    /// or COMMAND-SPECIFIC INFORMATION beyond 32 bits; they are left out then (SPC-5 §4.4.3).
    #[must_use]
    pub fn encode(&self, format: Format) -> SenseBytes {
        match format {
            Format::Fixed => SenseBytes::new(&self.fixed()),
            Format::Descriptor => self.descriptors(),
        }
    }

    fn fixed(&self) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[0] = 0x70;
        if let Some(information) = self.information.and_then(|value| u32::try_from(value).ok()) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        bytes[2] = self.key as u8;
        bytes[7] = 10;
        if let Some(value) = self
            .command_specific
            .and_then(|value| u32::try_from(value).ok())
        {
            bytes[8..12].copy_from_slice(&value.to_be_bytes());
        }
        bytes[12..14].copy_from_slice(&self.code.to_be_bytes());
        if let Some(specific) = self.specific {
            bytes[15..18].copy_from_slice(&specific.bytes());
        }
        bytes
    }

    fn descriptors(&self) -> SenseBytes {
        let mut bytes = [0; 40];
        let [asc, ascq] = self.code.to_be_bytes();
        bytes[..4].copy_from_slice(&[0x72, self.key as u8, asc, ascq]);
        let mut end = 8;
        let mut put = |descriptor: &[u8]| {
            bytes[end..end + descriptor.len()].copy_from_slice(descriptor);
            end += descriptor.len();
        };
        if let Some(value) = self.information {
            put(&[0x00, 0x0a, 0x80, 0]);
            put(&value.to_be_bytes());
        }
        if let Some(value) = self.command_specific {
            put(&[0x01, 0x0a, 0, 0]);
            put(&value.to_be_bytes());
        }
        if let Some(specific) = self.specific {
            let [a, b, c] = specific.bytes();
            put(&[0x02, 0x06, 0, 0, a, b, c, 0]);
        }
        bytes[7] = (end - 8) as u8;
        SenseBytes::new(&bytes[..end])
    }
}

impl SenseSpecific {
    /// The three bytes, SKSV first (SPC-5 §4.4.2.4).
    fn bytes(self) -> [u8; 3] {
        let pointer = |bit: Option<u8>| bit.map_or(0, |bit| 0x08 | bit & 0x07);
        let (first, number) = match self {
            Self::Field { in_cdb, byte, bit } => (u8::from(in_cdb) << 6 | pointer(bit), byte),
            Self::Progress(progress) => (0, progress),
            Self::Segment {
                in_segments,
                byte,
                bit,
            } => (u8::from(in_segments) << 5 | pointer(bit), byte),
        };
        let [high, low] = number.to_be_bytes();
        [0x80 | first, high, low]
    }
}

/// How sense data is laid out (SPC-5 §4.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 18 bytes, response code 70h.
    Fixed,
    /// A header and descriptors, response code 72h.
    Descriptor,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Good = 0x00,
    /// Sense data says what went wrong.
    CheckCondition = 0x02,
    /// COMPARE AND WRITE's and PRE-FETCH's "it is (in the cache)".
    ConditionMet = 0x04,
    /// Try again later.
    Busy = 0x08,
    /// Another nexus holds a reservation.
    ReservationConflict = 0x18,
    /// The task set, or a buffer pool, has no room.
    TaskSetFull = 0x28,
    /// ACA is established; never sent, as ACA is not offered.
    AcaActive = 0x30,
    /// Aborted by another nexus, with TAS = 1.
    TaskAborted = 0x40,
}

#[cfg(test)]
mod tests;
