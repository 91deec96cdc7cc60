//! FC-FS-3 clause 9: the frame header.

use std::fmt;

use super::names::FcId;
use super::reader::{ByteReader, Truncated};

/// Bytes in a frame header.
pub const HEADER_LEN: usize = 24;

/// The most bytes between header and CRC of a frame.
pub const MAX_PAYLOAD: usize = 2112;

/// The least that every port has to take as payload, in bytes (FC-LS-2).
pub const MIN_PAYLOAD: u16 = 256;

/// Routing control: what kind of frame it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RCtl(pub u8);

impl RCtl {
    /// Solicited data: FCP_DATA.
    pub const SOLICITED_DATA: Self = Self(0x01);
    /// Unsolicited control: a CT request.
    pub const UNSOLICITED_CONTROL: Self = Self(0x02);
    /// Solicited control: a CT response; FCP_CONF.
    pub const SOLICITED_CONTROL: Self = Self(0x03);
    /// Data descriptor: FCP_XFER_RDY.
    pub const DATA_DESCRIPTOR: Self = Self(0x05);
    /// Unsolicited command: FCP_CMND.
    pub const UNSOLICITED_COMMAND: Self = Self(0x06);
    /// Command status: FCP_RSP.
    pub const COMMAND_STATUS: Self = Self(0x07);
    /// Extended link service request.
    pub const ELS_REQUEST: Self = Self(0x22);
    /// Extended link service reply.
    pub const ELS_REPLY: Self = Self(0x23);
    /// FC-4 link service request: SRR.
    pub const FC4_REQUEST: Self = Self(0x32);
    /// FC-4 link service reply.
    pub const FC4_REPLY: Self = Self(0x33);
    /// Basic link service: no operation.
    pub const NOP: Self = Self(0x80);
    /// Basic link service: abort sequence.
    pub const ABTS: Self = Self(0x81);
    /// Basic link service: accept.
    pub const BA_ACC: Self = Self(0x84);
    /// Basic link service: reject.
    pub const BA_RJT: Self = Self(0x85);
}

impl fmt::Debug for RCtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

/// TYPE: whose payload it is, if R_CTL does not say it already.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameType(pub u8);

impl FrameType {
    /// Basic link services.
    pub const BLS: Self = Self(0x00);
    /// Extended link services.
    pub const ELS: Self = Self(0x01);
    /// FCP.
    pub const FCP: Self = Self(0x08);
    /// Common transport (FC-GS).
    pub const CT: Self = Self(0x20);
}

impl fmt::Debug for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

/// F_CTL: 24 bits of frame control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FCtl(pub u32);

impl FCtl {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// The responder of the exchange sent it.
    pub const RESPONDER: Self = Self(1 << 23);
    /// The recipient of the sequence sent it.
    pub const SEQUENCE_RECIPIENT: Self = Self(1 << 22);
    /// First sequence of the exchange.
    pub const FIRST_SEQUENCE: Self = Self(1 << 21);
    /// Last sequence of the exchange.
    pub const LAST_SEQUENCE: Self = Self(1 << 20);
    /// Last frame of the sequence.
    pub const END_SEQUENCE: Self = Self(1 << 19);
    /// The other end may begin a sequence after this one.
    pub const SEQUENCE_INITIATIVE: Self = Self(1 << 16);
    /// Parameter is a relative offset.
    pub const RELATIVE_OFFSET: Self = Self(1 << 3);

    /// A request that is a whole exchange's first sequence in one frame.
    pub const REQUEST: Self = Self::FIRST_SEQUENCE
        .with(Self::END_SEQUENCE)
        .with(Self::SEQUENCE_INITIATIVE);
    /// A reply in one frame that ends the exchange.
    pub const REPLY: Self = Self::RESPONDER
        .with(Self::LAST_SEQUENCE)
        .with(Self::END_SEQUENCE);

    /// Whether the responder of the exchange sent it.
    #[must_use]
    pub const fn exchange_responder(self) -> bool {
        self.has(Self::RESPONDER)
    }

    /// Whether it is the last frame of its sequence.
    #[must_use]
    pub const fn end_sequence(self) -> bool {
        self.has(Self::END_SEQUENCE)
    }

    /// Whether the parameter field is a relative offset.
    #[must_use]
    pub const fn relative_offset(self) -> bool {
        self.has(Self::RELATIVE_OFFSET)
    }

    /// Bytes, 0 to 3, that fill the payload up to a multiple of 4; meaningful in the last frame of
    /// a sequence.
    #[must_use]
    pub const fn fill(self) -> usize {
        (self.0 & 3) as usize
    }

    /// With this many fill bytes, 0 to 3.
    #[must_use]
    pub const fn with_fill(self, bytes: usize) -> Self {
        Self(self.0 & !3 | bytes as u32 & 3)
    }
}

bit_set!(FCtl);

impl fmt::Debug for FCtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// Originator exchange identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OxId(pub u16);

impl OxId {
    /// Not assigned.
    pub const UNASSIGNED: Self = Self(0xffff);
}

impl fmt::Debug for OxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

/// Responder exchange identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RxId(pub u16);

impl RxId {
    /// Not assigned.
    pub const UNASSIGNED: Self = Self(0xffff);
}

impl fmt::Debug for RxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Routing control.
    pub r_ctl: RCtl,
    /// To which port.
    pub d_id: FcId,
    /// Class specific control, or priority.
    pub cs_ctl: u8,
    /// From which port.
    pub s_id: FcId,
    /// TYPE.
    pub kind: FrameType,
    /// Frame control.
    pub f_ctl: FCtl,
    /// Sequence identifier.
    pub seq_id: u8,
    /// Which optional headers the payload begins with; 0 for none.
    pub df_ctl: u8,
    /// Number of the frame in its sequence, or in consecutive ones.
    pub seq_cnt: u16,
    /// The originator's name for the exchange.
    pub ox_id: OxId,
    /// The responder's name for the exchange.
    pub rx_id: RxId,
    /// Relative offset in bytes, if F_CTL says so; else by R_CTL.
    pub parameter: u32,
}

impl FrameHeader {
    /// The header of a frame from one port to another: the first of its sequence, without what only
    /// some frames have.
    #[must_use]
    pub const fn new(
        (r_ctl, kind): (RCtl, FrameType),
        (s_id, d_id): (FcId, FcId),
        (ox_id, rx_id): (OxId, RxId),
    ) -> Self {
        Self {
            r_ctl,
            d_id,
            cs_ctl: 0,
            s_id,
            kind,
            f_ctl: FCtl::NONE,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id,
            rx_id,
            parameter: 0,
        }
    }

    /// That of the only frame of a sequence that begins an exchange and hands the turn over.
    #[must_use]
    pub const fn request(kind: (RCtl, FrameType), ids: (FcId, FcId), ox_id: OxId) -> Self {
        Self {
            f_ctl: FCtl::REQUEST,
            ..Self::new(kind, ids, (ox_id, RxId::UNASSIGNED))
        }
    }

    /// Reads a header from the front of `bytes`.
    ///
    /// # Errors
    /// There are fewer than 24 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Truncated> {
        let mut reader = ByteReader(bytes);
        Ok(Self {
            r_ctl: RCtl(reader.u8()?),
            d_id: FcId(reader.u24()?),
            cs_ctl: reader.u8()?,
            s_id: FcId(reader.u24()?),
            kind: FrameType(reader.u8()?),
            f_ctl: FCtl(reader.u24()?),
            seq_id: reader.u8()?,
            df_ctl: reader.u8()?,
            seq_cnt: reader.u16()?,
            ox_id: OxId(reader.u16()?),
            rx_id: RxId(reader.u16()?),
            parameter: reader.u32()?,
        })
    }

    /// Writes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let words = [
            u32::from(self.r_ctl.0) << 24 | self.d_id.0 & 0xff_ffff,
            u32::from(self.cs_ctl) << 24 | self.s_id.0 & 0xff_ffff,
            u32::from(self.kind.0) << 24 | self.f_ctl.0 & 0xff_ffff,
            u32::from(self.seq_id) << 24 | u32::from(self.df_ctl) << 16 | u32::from(self.seq_cnt),
            u32::from(self.ox_id.0) << 16 | u32::from(self.rx_id.0),
            self.parameter,
        ];
        let mut bytes = [0; HEADER_LEN];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}
