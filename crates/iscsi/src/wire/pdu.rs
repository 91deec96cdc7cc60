//! Headers as tables: which field stands where, told once for reading and writing.

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Stamps, Ttt};
use super::serial::{CmdSn, DataSn, StatSn};

/// A PDU's header as a struct with `decode` and `encode`: each field with its [`HeaderField`].
/// `fixed` lists what is the same in every PDU of the kind, and is ignored when decoded. The struct
/// is called as its [`Opcode`](super::bhs::Opcode).
macro_rules! pdu {
    (
        $(#[$doc:meta])*
        $name:ident: fixed($($at:expr => $value:expr),*) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $place:expr,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Reads a header.
            #[must_use]
            pub fn decode(bhs: &Bhs) -> Self {
                Self {
                    $($field: HeaderField::get($place, bhs),)*
                }
            }

            /// Writes the header; TotalAHSLength and DataSegmentLength are 0.
            #[must_use]
            // Fields are known where it is called: most of it is done when it is compiled.
            #[inline(always)]
            pub fn encode(&self) -> Bhs {
                let mut bhs = Bhs::new(Opcode::$name);
                $(HeaderField::put($at, &mut bhs, $value);)*
                $(HeaderField::put($place, &mut bhs, self.$field);)*
                bhs
            }
        }
    };
}

pub(super) use pdu;

/// Where a value stands in a header, and how. Fields that share a byte are put one after the other
/// into one that was zero.
pub(super) trait HeaderField<T> {
    fn get(self, bhs: &Bhs) -> T;

    fn put(self, bhs: &mut Bhs, value: T);
}

/// A flag: the byte and its mask.
#[derive(Clone, Copy)]
pub(super) struct Bit(pub(super) usize, pub(super) u8);

/// A number within a byte: the byte, the mask of the number, and how far to the left it stands.
#[derive(Clone, Copy)]
pub(super) struct Bits(pub(super) usize, pub(super) u8, pub(super) u8);

/// Whole bytes from this one on.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) usize);

/// A residual: the masks of its overflow and underflow flags in byte 1, and where its count is.
#[derive(Clone, Copy)]
pub(super) struct ResidualAt(pub(super) u8, pub(super) u8, pub(super) usize);

/// The I bit.
pub(super) const IMMEDIATE: Bit = Bit(0, 0x40);
/// The F bit, which is the T bit of a login.
pub(super) const FINAL: Bit = Bit(1, 0x80);
/// The C bit of texts.
pub(super) const CONTINUE: Bit = Bit(1, 0x40);
/// LUN.
pub(super) const LUN: At = At(8);
/// Initiator Task Tag.
pub(super) const ITT: At = At(16);
/// Target Transfer Tag.
pub(super) const TTT: At = At(20);
/// CmdSN of a request.
pub(super) const CMD_SN: At = At(24);
/// ExpStatSN of a request.
pub(super) const EXP_STAT_SN: At = At(28);
/// StatSN, ExpCmdSN and MaxCmdSN of a response.
pub(super) const STAMPS: At = At(24);

impl HeaderField<bool> for Bit {
    fn get(self, bhs: &Bhs) -> bool {
        bhs.0[self.0] & self.1 != 0
    }

    fn put(self, bhs: &mut Bhs, value: bool) {
        if value {
            bhs.0[self.0] |= self.1;
        }
    }
}

impl HeaderField<u8> for Bits {
    fn get(self, bhs: &Bhs) -> u8 {
        bhs.0[self.0] >> self.2 & self.1
    }

    fn put(self, bhs: &mut Bhs, value: u8) {
        bhs.0[self.0] |= (value & self.1) << self.2;
    }
}

impl HeaderField<Residual> for ResidualAt {
    fn get(self, bhs: &Bhs) -> Residual {
        let flags = bhs.0[1];
        Residual::from_flags(flags & self.0 != 0, flags & self.1 != 0, bhs.word(self.2))
    }

    #[inline(always)]
    fn put(self, bhs: &mut Bhs, value: Residual) {
        bhs.0[1] |= value.flag(self.0, self.1);
        At(self.2).put(bhs, value.count());
    }
}

impl<const LEN: usize> HeaderField<[u8; LEN]> for At {
    fn get(self, bhs: &Bhs) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(&bhs.0[self.0..self.0 + LEN]);
        bytes
    }

    fn put(self, bhs: &mut Bhs, value: [u8; LEN]) {
        bhs.0[self.0..self.0 + LEN].copy_from_slice(&value);
    }
}

/// Values that are other ones, seen as such.
macro_rules! seen_as {
    ($($type:ty: $raw:ty, $from:expr, $to:expr;)*) => {$(
        impl HeaderField<$type> for At {
            fn get(self, bhs: &Bhs) -> $type {
                let raw: $raw = self.get(bhs);
                $from(raw)
            }

            fn put(self, bhs: &mut Bhs, value: $type) {
                let raw: $raw = $to(value);
                self.put(bhs, raw);
            }
        }
    )*};
}

seen_as! {
    u8: [u8; 1], u8::from_be_bytes, u8::to_be_bytes;
    u16: [u8; 2], u16::from_be_bytes, u16::to_be_bytes;
    u32: [u8; 4], u32::from_be_bytes, u32::to_be_bytes;
    Lun: [u8; 8], Lun, |lun: Lun| lun.0;
    Itt: u32, Itt, |tag: Itt| tag.0;
    Ttt: u32, Ttt, |tag: Ttt| tag.0;
    CmdSn: u32, CmdSn, |number: CmdSn| number.0;
    StatSn: u32, StatSn, |number: StatSn| number.0;
    DataSn: u32, DataSn, |number: DataSn| number.0;
}

impl HeaderField<[u16; 3]> for At {
    fn get(self, bhs: &Bhs) -> [u16; 3] {
        [0, 2, 4].map(|further| At(self.0 + further).get(bhs))
    }

    fn put(self, bhs: &mut Bhs, value: [u16; 3]) {
        for (further, half) in [0, 2, 4].into_iter().zip(value) {
            At(self.0 + further).put(bhs, half);
        }
    }
}

impl HeaderField<Stamps> for At {
    fn get(self, bhs: &Bhs) -> Stamps {
        Stamps {
            stat_sn: self.get(bhs),
            exp_cmd_sn: At(self.0 + 4).get(bhs),
            max_cmd_sn: At(self.0 + 8).get(bhs),
        }
    }

    fn put(self, bhs: &mut Bhs, value: Stamps) {
        self.put(bhs, value.stat_sn);
        At(self.0 + 4).put(bhs, value.exp_cmd_sn);
        At(self.0 + 8).put(bhs, value.max_cmd_sn);
    }
}
