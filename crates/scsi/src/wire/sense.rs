//! SPC-5 §4.4: sense data, as a value; octets are made from it when a command ends, in the format
//! that D_SENSE asks for.

/// SPC-5 §4.4.8: sense keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Key {
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

/// What the sense-key specific octets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specific {
    /// Which field is wrong (ILLEGAL REQUEST).
    Field {
        /// In the CDB, else in the parameter list.
        in_cdb: bool,
        /// The octet.
        octet: u16,
        /// The most significant bit of the field in that octet, where it is not the whole octet.
        bit: Option<u8>,
    },
    /// How far a FORMAT UNIT or SANITIZE got, in 1/65,536.
    Progress(u16),
    /// Segment pointer of a failed EXTENDED COPY.
    Segment {
        /// In the segment descriptor list rather than the target descriptor list.
        in_segments: bool,
        /// The octet of the descriptor in error.
        octet: u16,
        /// The bit.
        bit: Option<u8>,
    },
}

/// Sense data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: Key,
    /// ADDITIONAL SENSE CODE and its QUALIFIER, as 0xAAQQ.
    pub code: u16,
    /// INFORMATION: an LBA, or the offset of a miscompare.
    pub information: Option<u64>,
    /// COMMAND-SPECIFIC INFORMATION.
    pub command_specific: Option<u64>,
    /// Sense-key specific data.
    pub specific: Option<Specific>,
}

impl Sense {
    /// Sense data with nothing but key and code.
    #[must_use]
    pub const fn new(key: Key, code: u16) -> Self {
        Self {
            key,
            code,
            information: None,
            command_specific: None,
            specific: None,
        }
    }
}
