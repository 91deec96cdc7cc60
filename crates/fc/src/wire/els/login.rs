//! Service parameters: what PLOGI, FLOGI, PDISC, FDISC and their LS_ACC tell.

use crate::wire::names::Wwn;
use crate::wire::reader::{ByteReader, Truncated};

/// Common and class 3 service parameters. Those of other classes are ignored and written as not
/// valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceParameters {
    /// Highest and lowest version; 20h in both by custom.
    pub versions: [u8; 2],
    /// Buffer-to-buffer credit, which means nothing on Ethernet.
    pub bb_credit: u16,
    /// Common features.
    pub features: Features,
    /// Buffer-to-buffer receive data field size: bytes of payload, 12 bits.
    pub receive_size: u16,
    /// Total concurrent sequences; with the next field R_A_TOV in an LS_ACC of FLOGI.
    pub total_sequences: u16,
    /// Relative offset by information category, a bit each.
    pub relative_offset: u16,
    /// E_D_TOV, in milliseconds or, by [`Features::E_D_TOV_NS`], nanoseconds.
    pub e_d_tov: u32,
    /// Port name.
    pub wwpn: Wwn,
    /// Node name.
    pub wwnn: Wwn,
    /// Class 3.
    pub class_3: ClassParameters,
}

/// Common features, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features(pub u16);

impl Features {
    /// Relative offsets of consecutive frames increase continuously (PLOGI); clean address or
    /// multiple N_Port_IDs (FLOGI).
    pub const CONTINUOUS_OFFSET: Self = Self(0x8000);
    /// In the LS_ACC of an FLOGI: further N_Port_IDs are given by FDISC (NPIV).
    pub const NPIV: Self = Self(0x2000);
    /// An F_Port sent it.
    pub const F_PORT: Self = Self(0x1000);
    /// E_D_TOV is in nanoseconds.
    pub const E_D_TOV_NS: Self = Self(0x0400);
}

bit_set!(Features);

/// The service parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ClassParameters {
    /// [`Self::VALID`], [`Self::SEQUENTIAL`] and other options.
    pub options: u16,
    /// Initiator control.
    pub initiator: u16,
    /// Recipient control.
    pub recipient: u16,
    /// Receive data field size: bytes of payload, 12 bits.
    pub receive_size: u16,
    /// Concurrent sequences.
    pub concurrent_sequences: u16,
    /// End-to-end credit; 0 in class 3.
    pub credit: u16,
    /// Open sequences of an exchange.
    pub open_sequences: u16,
}

impl ClassParameters {
    /// The class is supported.
    pub const VALID: u16 = 0x8000;
    /// Frames are delivered in order (asked for, or promised by a fabric).
    pub const SEQUENTIAL: u16 = 0x0800;

    /// Whether the class is supported.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.options & Self::VALID != 0
    }

    fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        let class = Self {
            options: reader.u16()?,
            initiator: reader.u16()?,
            recipient: reader.u16()?,
            receive_size: reader.u16()? & SIZE_MASK,
            concurrent_sequences: reader.u16()?,
            credit: reader.u16()?,
            open_sequences: reader.u16()?,
        };
        reader.skip(2)?;
        Ok(class)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let halves = [
            self.options,
            self.initiator,
            self.recipient,
            self.receive_size & SIZE_MASK,
            self.concurrent_sequences,
            self.credit,
            self.open_sequences,
            0,
        ];
        out.extend(halves.into_iter().flat_map(u16::to_be_bytes));
    }
}

impl ServiceParameters {
    /// R_A_TOV in milliseconds, in an LS_ACC of FLOGI.
    #[must_use]
    pub const fn r_a_tov_ms(&self) -> u32 {
        (self.total_sequences as u32) << 16 | self.relative_offset as u32
    }

    /// E_D_TOV in milliseconds, rounded up.
    #[must_use]
    pub const fn e_d_tov_ms(&self) -> u32 {
        if self.features.has(Features::E_D_TOV_NS) {
            self.e_d_tov.div_ceil(1_000_000)
        } else {
            self.e_d_tov
        }
    }

    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        let parameters = Self {
            versions: reader.array()?,
            bb_credit: reader.u16()?,
            features: Features(reader.u16()?),
            receive_size: reader.u16()? & SIZE_MASK,
            total_sequences: reader.u16()?,
            relative_offset: reader.u16()?,
            e_d_tov: reader.u32()?,
            wwpn: Wwn(reader.u64()?),
            wwnn: Wwn(reader.u64()?),
            class_3: {
                reader.skip(2 * CLASS_LEN)?;
                ClassParameters::parse(reader)?
            },
        };
        reader.skip(CLASS_LEN + VENDOR_LEN)?;
        Ok(parameters)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.versions);
        let halves = [
            self.bb_credit,
            self.features.0,
            self.receive_size & SIZE_MASK,
            self.total_sequences,
            self.relative_offset,
        ];
        out.extend(halves.into_iter().flat_map(u16::to_be_bytes));
        out.extend_from_slice(&self.e_d_tov.to_be_bytes());
        out.extend_from_slice(&self.wwpn.0.to_be_bytes());
        out.extend_from_slice(&self.wwnn.0.to_be_bytes());
        out.extend_from_slice(&[0; 2 * CLASS_LEN]);
        self.class_3.put(out);
        out.extend_from_slice(&[0; CLASS_LEN + VENDOR_LEN]);
    }
}

/// Bits of a receive data field size; the others belong to buffer-to-buffer state changes.
const SIZE_MASK: u16 = 0x0fff;

/// Bytes of the parameters of a class.
const CLASS_LEN: usize = 16;

/// Bytes of the vendor version level at the end.
const VENDOR_LEN: usize = 16;
