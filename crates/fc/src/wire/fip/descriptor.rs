//! The descriptors of FIP (FC-BB-6): type, length in words, and what the type says.

use super::{FipError, WORD};
use crate::wire::ethernet::Mac;
use crate::wire::frame::{self, HEADER_LEN};
use crate::wire::names::{FcId, Wwn};
use crate::wire::reader::ByteReader;

/// The type of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorType(pub u8);

impl DescriptorType {
    /// Priority of an FCF.
    pub const PRIORITY: Self = Self(1);
    /// MAC address.
    pub const MAC: Self = Self(2);
    /// FC-MAP.
    pub const FC_MAP: Self = Self(3);
    /// Name_Identifier of a node or switch.
    pub const NAME: Self = Self(4);
    /// Fabric.
    pub const FABRIC: Self = Self(5);
    /// Max FCoE Size.
    pub const MAX_FCOE_SIZE: Self = Self(6);
    /// FLOGI in it.
    pub const FLOGI: Self = Self(7);
    /// NPIV FDISC in it.
    pub const FDISC: Self = Self(8);
    /// LOGO in it.
    pub const LOGO: Self = Self(9);
    /// ELP in it.
    pub const ELP: Self = Self(10);
    /// Vx_Port identification.
    pub const VX_PORT: Self = Self(11);
    /// FKA_ADV_Period.
    pub const FKA_ADV_PERIOD: Self = Self(12);
    /// Vendor_ID.
    pub const VENDOR: Self = Self(13);
    /// VLAN.
    pub const VLAN: Self = Self(14);
    /// FC-4 attributes.
    pub const FC4: Self = Self(15);

    /// Whether a port that does not know it has to discard the whole message.
    #[must_use]
    pub const fn is_critical(self) -> bool {
        self.0 < 128
    }
}

/// An ELS, from its frame header to its last byte, with neither SOF nor CRC nor EOF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated<'a> {
    /// Which: [`DescriptorType::FLOGI`], [`DescriptorType::FDISC`], [`DescriptorType::LOGO`] or
    /// [`DescriptorType::ELP`], in a reply too.
    pub kind: DescriptorType,
    /// The frame header.
    pub header: frame::FrameHeader,
    /// The ELS, of whole words.
    pub payload: &'a [u8],
}

impl<'a> Encapsulated<'a> {
    fn read(kind: DescriptorType, reader: &mut ByteReader<'a>) -> Result<Self, super::Truncated> {
        reader.skip(2)?;
        Ok(Self {
            kind,
            header: frame::FrameHeader::parse(reader.take(HEADER_LEN)?)?,
            payload: rest(reader),
        })
    }
}

/// FC-4 types that a port supports, and four bits of features of each (FC-GS).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fc4Features(pub [u8; 160]);

impl Fc4Features {
    /// Where the word of types begins that holds FCP (8), and the one that holds CT (20h).
    const TYPES_FCP: usize = 2;
    const TYPES_CT: usize = 7;
    /// Where the features of FCP are: the low half of the last byte of the second word.
    const FEATURES_FCP: usize = 32 + 7;

    /// FCP and CT, as `target`, `initiator` or both.
    #[must_use]
    pub const fn fcp(target: bool, initiator: bool) -> Self {
        let mut bytes = [0; 160];
        bytes[Self::TYPES_FCP] = 1;
        bytes[Self::TYPES_CT] = 1;
        bytes[Self::FEATURES_FCP] = (initiator as u8) << 1 | target as u8;
        Self(bytes)
    }

    /// Whether it says that the port is an FCP target.
    #[must_use]
    pub const fn is_target(&self) -> bool {
        self.0[Self::FEATURES_FCP] & 1 != 0
    }

    /// Whether it says that the port is an FCP initiator.
    #[must_use]
    pub const fn is_initiator(&self) -> bool {
        self.0[Self::FEATURES_FCP] & 2 != 0
    }
}

impl std::fmt::Debug for Fc4Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fc4")
            .field("target", &self.is_target())
            .field("initiator", &self.is_initiator())
            .finish_non_exhaustive()
    }
}

/// What a descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// Priority of an FCF: the lower, the better.
    Priority(u8),
    /// The sender's address, or the one that is granted.
    Mac(Mac),
    /// FC-MAP.
    FcMap([u8; 3]),
    /// Name of a node or switch.
    Name(Wwn),
    /// Fabric.
    Fabric {
        /// Virtual fabric.
        vf_id: u16,
        /// FC-MAP.
        fc_map: [u8; 3],
        /// Name of the fabric.
        name: Wwn,
    },
    /// The longest FCoE frame that can be received, in bytes between the Ethernet header and its
    /// frame check sequence.
    MaxFcoeSize(u16),
    /// An ELS.
    Els(Encapsulated<'a>),
    /// A VN_Port.
    VxPort {
        /// The address that its FCoE frames have.
        mac: Mac,
        /// Its N_Port_ID.
        fc_id: FcId,
        /// Its WWPN.
        wwpn: Wwn,
    },
    /// FKA_ADV_Period.
    FkaAdvPeriod {
        /// Whether keep alives are not to be sent.
        disabled: bool,
        /// Milliseconds.
        period_ms: u32,
    },
    /// What a vendor put there.
    Vendor {
        /// Which vendor.
        id: [u8; 8],
        /// Of whole words.
        data: &'a [u8],
    },
    /// A VLAN on which FCoE is spoken.
    Vlan(u16),
    /// FC-4 attributes.
    Fc4(Fc4Features),
    /// Of a type that is not known here.
    Unknown {
        /// Its type.
        kind: DescriptorType,
        /// What follows the length: two bytes, and whole words.
        body: &'a [u8],
    },
}

impl<'a> Descriptor<'a> {
    /// What the bytes behind type and length say.
    ///
    /// # Errors
    /// A known type has not its length.
    pub(super) fn parse(kind: DescriptorType, body: &'a [u8]) -> Result<Self, FipError> {
        let wrong = FipError::Length(kind.0);
        let mut reader = ByteReader(body);
        let descriptor = Self::read(kind, &mut reader).map_err(|_| wrong)?;
        match reader.0 {
            [] => Ok(descriptor),
            _ => Err(wrong),
        }
    }

    fn read(kind: DescriptorType, reader: &mut ByteReader<'a>) -> Result<Self, super::Truncated> {
        Ok(match kind {
            DescriptorType::PRIORITY => {
                reader.skip(1)?;
                Self::Priority(reader.u8()?)
            }
            DescriptorType::MAC => Self::Mac(Mac(reader.array()?)),
            DescriptorType::FC_MAP => {
                reader.skip(3)?;
                Self::FcMap(reader.array()?)
            }
            DescriptorType::NAME => {
                reader.skip(2)?;
                Self::Name(Wwn(reader.u64()?))
            }
            DescriptorType::FABRIC => {
                let vf_id = reader.u16()?;
                reader.skip(1)?;
                let (fc_map, name) = (reader.array()?, Wwn(reader.u64()?));
                Self::Fabric {
                    vf_id,
                    fc_map,
                    name,
                }
            }
            DescriptorType::MAX_FCOE_SIZE => Self::MaxFcoeSize(reader.u16()?),
            DescriptorType::FLOGI
            | DescriptorType::FDISC
            | DescriptorType::LOGO
            | DescriptorType::ELP => Self::Els(Encapsulated::read(kind, reader)?),
            DescriptorType::VX_PORT => {
                let mac = Mac(reader.array()?);
                reader.skip(1)?;
                let (fc_id, wwpn) = (FcId(reader.u24()?), Wwn(reader.u64()?));
                Self::VxPort { mac, fc_id, wwpn }
            }
            DescriptorType::FKA_ADV_PERIOD => {
                reader.skip(1)?;
                let disabled = reader.u8()? & 1 != 0;
                let period_ms = reader.u32()?;
                Self::FkaAdvPeriod {
                    disabled,
                    period_ms,
                }
            }
            DescriptorType::VENDOR => {
                reader.skip(2)?;
                let id = reader.array()?;
                Self::Vendor {
                    id,
                    data: rest(reader),
                }
            }
            DescriptorType::VLAN => Self::Vlan(reader.u16()?),
            DescriptorType::FC4 => {
                reader.skip(2)?;
                Self::Fc4(Fc4Features(reader.array()?))
            }
            _ => Self::Unknown {
                kind,
                body: rest(reader),
            },
        })
    }

    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> DescriptorType {
        match self {
            Self::Priority(_) => DescriptorType::PRIORITY,
            Self::Mac(_) => DescriptorType::MAC,
            Self::FcMap(_) => DescriptorType::FC_MAP,
            Self::Name(_) => DescriptorType::NAME,
            Self::Fabric { .. } => DescriptorType::FABRIC,
            Self::MaxFcoeSize(_) => DescriptorType::MAX_FCOE_SIZE,
            Self::Els(els) => els.kind,
            Self::VxPort { .. } => DescriptorType::VX_PORT,
            Self::FkaAdvPeriod { .. } => DescriptorType::FKA_ADV_PERIOD,
            Self::Vendor { .. } => DescriptorType::VENDOR,
            Self::Vlan(_) => DescriptorType::VLAN,
            Self::Fc4(_) => DescriptorType::FC4,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend([self.kind().0, 0]);
        match self {
            Self::Priority(priority) => to.extend([0, *priority]),
            Self::Mac(mac) => to.extend(mac.0),
            Self::FcMap(map) => put(to, &[&[0; 3], map]),
            Self::Name(name) => put(to, &[&[0; 2], &name.0.to_be_bytes()]),
            Self::Fabric {
                vf_id,
                fc_map,
                name,
            } => {
                let (vf_id, name) = (vf_id.to_be_bytes(), name.0.to_be_bytes());
                put(to, &[&vf_id, &[0], fc_map, &name]);
            }
            Self::MaxFcoeSize(bytes) => to.extend(bytes.to_be_bytes()),
            Self::Els(els) => put(to, &[&[0; 2], &els.header.encode(), els.payload]),
            Self::VxPort { mac, fc_id, wwpn } => {
                put(to, &[&mac.0, &[0], &fc_id.bytes(), &wwpn.0.to_be_bytes()]);
            }
            Self::FkaAdvPeriod {
                disabled,
                period_ms,
            } => put(to, &[&[0, u8::from(*disabled)], &period_ms.to_be_bytes()]),
            Self::Vendor { id, data } => put(to, &[&[0; 2], id, data]),
            Self::Vlan(vid) => to.extend(vid.to_be_bytes()),
            Self::Fc4(fc4) => put(to, &[&[0; 2], &fc4.0]),
            Self::Unknown { body, .. } => to.extend(*body),
        }
        debug_assert!((to.len() - begin).is_multiple_of(WORD));
        to[begin + 1] = ((to.len() - begin) / WORD) as u8;
    }
}

fn rest<'a>(reader: &mut ByteReader<'a>) -> &'a [u8] {
    std::mem::take(&mut reader.0)
}

fn put(to: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        to.extend_from_slice(part);
    }
}
