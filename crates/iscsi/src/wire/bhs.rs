//! RFC 7143 §11.2.1: the Basic Header Segment, and what all PDUs have in common.

use scsi::wire::lun::Lun;

use super::pdu::{CMD_SN, EXP_STAT_SN, HeaderField, STAMPS};
use super::serial::{CmdSn, StatSn};

/// Bytes in a Basic Header Segment.
pub const BHS_LEN: usize = 48;

/// The longest DataSegmentLength that the field can hold.
pub const MAX_DATA_LEN: u32 = (1 << 24) - 1;

/// A Basic Header Segment as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bhs(pub [u8; BHS_LEN]);

impl Bhs {
    /// All zero but for the opcode.
    #[must_use]
    pub const fn new(opcode: Opcode) -> Self {
        let mut bytes = [0; BHS_LEN];
        bytes[0] = opcode.code();
        Self(bytes)
    }

    /// The opcode, without the Immediate bit.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        Opcode::from_code(self.0[0] & 0x3f)
    }

    /// The I bit of a request.
    #[must_use]
    pub const fn is_immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    /// TotalAHSLength, in bytes: a multiple of 4 up to 1,020.
    #[must_use]
    pub const fn ahs_len(&self) -> usize {
        self.0[4] as usize * 4
    }

    /// Sets TotalAHSLength from bytes, which must be a multiple of 4 up to 1,020.
    pub const fn set_ahs_len(&mut self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(4) && bytes <= 1020);
        self.0[4] = (bytes / 4) as u8;
    }

    /// DataSegmentLength: bytes of the data segment without padding.
    #[must_use]
    pub const fn data_len(&self) -> u32 {
        self.word(4) & MAX_DATA_LEN
    }

    /// Sets DataSegmentLength, up to [`MAX_DATA_LEN`].
    pub const fn set_data_len(&mut self, bytes: u32) {
        debug_assert!(bytes <= MAX_DATA_LEN);
        let [_, a, b, c] = bytes.to_be_bytes();
        self.0[5] = a;
        self.0[6] = b;
        self.0[7] = c;
    }

    /// The LUN field.
    #[must_use]
    pub const fn lun(&self) -> Lun {
        let o = &self.0;
        Lun([o[8], o[9], o[10], o[11], o[12], o[13], o[14], o[15]])
    }

    /// The Initiator Task Tag.
    #[must_use]
    pub const fn itt(&self) -> Itt {
        Itt(self.word(16))
    }

    /// The CmdSN of a request that has one.
    #[must_use]
    pub const fn cmd_sn(&self) -> CmdSn {
        CmdSn(self.word(24))
    }

    /// The ExpStatSN of a request.
    #[must_use]
    pub const fn exp_stat_sn(&self) -> StatSn {
        StatSn(self.word(28))
    }

    /// Sets the numbers that every response carries, at the same place in all of them.
    pub fn stamp(&mut self, stamps: Stamps) {
        STAMPS.put(self, stamps);
    }

    pub(crate) const fn word(&self, at: usize) -> u32 {
        let o = &self.0;
        u32::from_be_bytes([o[at], o[at + 1], o[at + 2], o[at + 3]])
    }

    /// Sets the numbers that every request carries, at the same place in all of them.
    pub(crate) fn put_request(&mut self, cmd_sn: CmdSn, exp_stat_sn: StatSn) {
        CMD_SN.put(self, cmd_sn);
        EXP_STAT_SN.put(self, exp_stat_sn);
    }
}

impl std::fmt::Debug for Bhs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} ", self.opcode())?;
        self.0.chunks_exact(4).try_for_each(|word| {
            write!(
                f,
                "{:02x}{:02x}{:02x}{:02x} ",
                word[0], word[1], word[2], word[3]
            )
        })
    }
}

/// The assigned opcodes, and those of each code, so that decoding is one load.
macro_rules! opcodes {
    ($($name:ident = $code:literal,)*) => {
        /// RFC 7143 §11.2.1.2: what kind of PDU it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are those of the PDUs")]
        pub enum Opcode {
            $($name,)*
            /// Vendor-specific or unassigned; up to 0x3f.
            Other(u8),
        }

        const BY_CODE: [Opcode; 64] = {
            let mut table = [Opcode::Other(0); 64];
            let mut code = 0;
            while code < table.len() {
                table[code] = Opcode::Other(code as u8);
                code += 1;
            }
            $(table[$code] = Opcode::$name;)*
            table
        };

        impl Opcode {
            /// The code.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Other(code) => code & 0x3f,
                }
            }
        }
    };
}

opcodes! {
    NopOut = 0x00,
    ScsiCommand = 0x01,
    TaskRequest = 0x02,
    LoginRequest = 0x03,
    TextRequest = 0x04,
    DataOut = 0x05,
    LogoutRequest = 0x06,
    SnackRequest = 0x10,
    NopIn = 0x20,
    ScsiResponse = 0x21,
    TaskResponse = 0x22,
    LoginResponse = 0x23,
    TextResponse = 0x24,
    DataIn = 0x25,
    LogoutResponse = 0x26,
    R2t = 0x31,
    AsyncMessage = 0x32,
    Reject = 0x3f,
}

impl Opcode {
    /// The opcode with this code, of which the upper two bits are ignored.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        BY_CODE[(code & 0x3f) as usize]
    }

    /// Whether initiators may send it (codes 0x00 to 0x1f).
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.code() < 0x20
    }
}

/// An Initiator Task Tag: names a task of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Itt(pub u32);

impl Itt {
    /// The reserved value: no task.
    pub const NONE: Self = Self(u32::MAX);
}

/// A Target Transfer Tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ttt(pub u32);

impl Ttt {
    /// The reserved value: not supplied.
    pub const NONE: Self = Self(u32::MAX);
}

/// The numbers that every response carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stamps {
    /// StatSN: of this response, or the next one where the PDU is not numbered.
    pub stat_sn: StatSn,
    /// The next CmdSN that is expected.
    pub exp_cmd_sn: CmdSn,
    /// The last CmdSN that may be sent.
    pub max_cmd_sn: CmdSn,
}
