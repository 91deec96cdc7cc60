//! FIP, the FCoE Initialization Protocol (FC-BB-6): a header, then a list of descriptors.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::reader::{ByteReader, Truncated};

pub mod descriptor;

pub use descriptor::{Descriptor, DescriptorType, Encapsulated, Fc4Features};

/// Bytes of the header that descriptors follow.
pub const HEADER_LEN: usize = 10;

/// What FKA_ADV_PERIOD may be (FC-BB-6, Discovery Advertisement).
pub const FKA_PERIODS: RangeInclusive<Duration> =
    Duration::from_millis(250)..=Duration::from_secs(90);

/// The version that FC-BB-5 and FC-BB-6 define.
const VERSION: u8 = 1;

/// Lengths in FIP are told in words.
const WORD: usize = 4;

/// Why bytes are not a FIP operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FipError {
    /// The header, or the list of descriptors that it announces, ends too early.
    #[error("a truncated FIP message")]
    Truncated,
    /// Another version.
    #[error("FIP of version {0}")]
    Version(u8),
    /// A descriptor of no length, or beyond the end of the list.
    #[error("a FIP descriptor of type {0} that leaves the list")]
    Overrun(u8),
    /// A descriptor whose length is not that of its type.
    #[error("a FIP descriptor of type {0} of a wrong length")]
    Length(u8),
}

impl From<Truncated> for FipError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Protocol code and subcode: what a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FipOperation {
    /// Discovery Solicitation.
    Solicitation,
    /// Discovery Advertisement.
    Advertisement,
    /// An ELS request.
    ElsRequest,
    /// The reply to an ELS request.
    ElsReply,
    /// FIP Keep Alive.
    KeepAlive,
    /// FIP Clear Virtual Links.
    ClearVirtualLinks,
    /// VLAN Request.
    VlanRequest,
    /// VLAN Notification.
    VlanNotification,
    /// VN2VN: the VLANs on which there are ports.
    Vn2vnVlanNotification,
    /// VN2VN: is an N_Port_ID in use?
    ProbeRequest,
    /// VN2VN: it is.
    ProbeReply,
    /// VN2VN: an N_Port_ID is being taken into use.
    ClaimNotification,
    /// VN2VN: which other ports there are.
    ClaimResponse,
    /// VN2VN: still there.
    Beacon,
    /// Any other.
    Other {
        /// FIP protocol code.
        protocol: u16,
        /// FIP subcode.
        subcode: u8,
    },
}

/// Operations with their codes.
const OPERATIONS: [(FipOperation, u16, u8); 14] = [
    (FipOperation::Solicitation, 1, 1),
    (FipOperation::Advertisement, 1, 2),
    (FipOperation::ElsRequest, 2, 1),
    (FipOperation::ElsReply, 2, 2),
    (FipOperation::KeepAlive, 3, 1),
    (FipOperation::ClearVirtualLinks, 3, 2),
    (FipOperation::VlanRequest, 4, 1),
    (FipOperation::VlanNotification, 4, 2),
    (FipOperation::Vn2vnVlanNotification, 4, 3),
    (FipOperation::ProbeRequest, 5, 1),
    (FipOperation::ProbeReply, 5, 2),
    (FipOperation::ClaimNotification, 5, 3),
    (FipOperation::ClaimResponse, 5, 4),
    (FipOperation::Beacon, 5, 5),
];

impl FipOperation {
    fn from_codes(protocol: u16, subcode: u8) -> Self {
        let known = OPERATIONS
            .iter()
            .find(|row| (row.1, row.2) == (protocol, subcode));
        known.map_or(Self::Other { protocol, subcode }, |row| row.0)
    }

    fn codes(self) -> (u16, u8) {
        if let Self::Other { protocol, subcode } = self {
            return (protocol, subcode);
        }
        let row = OPERATIONS.iter().find(|row| row.0 == self);
        row.map_or((0, 0), |row| (row.1, row.2))
    }
}

/// The flags of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Fabric-provided MAC addresses.
    pub const FPMA: Self = Self(0x8000);
    /// Server-provided MAC addresses.
    pub const SPMA: Self = Self(0x4000);
    /// Sent by an FCF to other FCFs.
    pub const FCF: Self = Self(0x0020);
    /// Sent by an FCoE data-plane forwarder (FC-BB-6).
    pub const FDF: Self = Self(0x0010);
    /// In a probe: the N_Port_ID is a recorded one. In a claim, its response and a beacon: the
    /// sender is in point-to-point mode.
    pub const REC_P2P: Self = Self(0x0008);
    /// In an Advertisement: the FCF accepts logins.
    pub const AVAILABLE: Self = Self(0x0004);
    /// Solicited.
    pub const SOLICITED: Self = Self(0x0002);
    /// Sent by an FCF.
    pub const F_PORT: Self = Self(0x0001);
}

bit_set!(Flags);

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

/// A message as it came, without what pads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FipMessage<'a> {
    /// What it is.
    pub operation: FipOperation,
    /// Its flags.
    pub flags: Flags,
    descriptors: &'a [u8],
}

impl<'a> FipMessage<'a> {
    /// The message at the front of the payload of an Ethernet frame.
    ///
    /// # Errors
    /// It is not of version 1, or shorter than it says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FipError> {
        let mut reader = ByteReader(bytes);
        let version = reader.u8()? >> 4;
        if version != VERSION {
            return Err(FipError::Version(version));
        }
        reader.skip(1)?;
        let protocol = reader.u16()?;
        reader.skip(1)?;
        let operation = FipOperation::from_codes(protocol, reader.u8()?);
        let words = reader.u16()?;
        Ok(Self {
            operation,
            flags: Flags(reader.u16()?),
            descriptors: reader.take(usize::from(words) * WORD)?,
        })
    }

    /// Its descriptors, in order. After an error there are no more.
    #[must_use]
    pub const fn descriptors(&self) -> Descriptors<'a> {
        Descriptors(ByteReader(self.descriptors))
    }
}

/// The descriptors of a message.
#[derive(Clone, Debug)]
pub struct Descriptors<'a>(ByteReader<'a>);

impl<'a> Descriptors<'a> {
    fn cut(&mut self) -> Result<Descriptor<'a>, FipError> {
        let (kind, words) = (self.0.u8()?, self.0.u8()?);
        let len = (usize::from(words) * WORD).checked_sub(2);
        let body = len.and_then(|len| self.0.take(len).ok());
        Descriptor::parse(DescriptorType(kind), body.ok_or(FipError::Overrun(kind))?)
    }
}

impl<'a> Iterator for Descriptors<'a> {
    type Item = Result<Descriptor<'a>, FipError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.0.is_empty() {
            return None;
        }
        let descriptor = self.cut();
        if descriptor.is_err() {
            self.0.0 = &[];
        }
        Some(descriptor)
    }
}

/// Writes a message. What a descriptor carries must be of whole words, and of 1,018 bytes at most.
#[must_use]
pub fn encode(operation: FipOperation, flags: Flags, descriptors: &[Descriptor<'_>]) -> Vec<u8> {
    let (protocol, subcode) = operation.codes();
    let mut bytes = vec![VERSION << 4, 0];
    bytes.extend(protocol.to_be_bytes());
    bytes.extend([0, subcode, 0, 0]);
    bytes.extend(flags.0.to_be_bytes());
    for descriptor in descriptors {
        descriptor.encode(&mut bytes);
    }
    let words = (bytes.len() - HEADER_LEN) / WORD;
    bytes[6..8].copy_from_slice(&(words as u16).to_be_bytes());
    bytes
}
