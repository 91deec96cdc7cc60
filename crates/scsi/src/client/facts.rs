//! What a unit says of itself (SPC-5 §6.6, §7.7; SBC-4 §5.21, §6.6).

use super::UnitRefusal;
use super::cdb::NDOB;
use super::wishes::WCE;
use crate::medium::{Atomic, Traits};
use crate::wire::cdb::{Field, be16, be32, be64, bit, byte};

/// What a unit said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its identity.
    pub identity: ReportedIdentity,
    /// What it is and can do.
    pub traits: Traits,
    /// MAXIMUM TRANSFER LENGTH in blocks; 0: none is told.
    pub max_transfer: u32,
    /// The most blocks of a WRITE SAME.
    pub write_same: u64,
    /// A WRITE SAME of zeros that may unmap needs no block of them (NDOB).
    pub ndob: bool,
    /// LBPME and LBPRZ: which blocks have no storage, and so read as zeros, can be asked.
    pub provisioned: bool,
    /// DPOFUA: commands may have the FUA bit.
    pub dpofua: bool,
}

/// The identity of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedIdentity {
    /// T10 VENDOR IDENTIFICATION.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION.
    pub product: String,
    /// PRODUCT REVISION LEVEL.
    pub revision: String,
    /// UNIT SERIAL NUMBER; empty where there is none.
    pub serial: String,
    /// The best designator of the unit, with its first two bytes, which tell its type.
    pub designator: Vec<u8>,
}

/// Parameter data as it comes in, piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct ParameterData {
    pub(super) inquiry: Vec<u8>,
    pub(super) serial: Vec<u8>,
    pub(super) designators: Vec<u8>,
    pub(super) limits: Vec<u8>,
    pub(super) characteristics: Vec<u8>,
    pub(super) provisioning: Vec<u8>,
    /// Of READ CAPACITY(16), or what READ CAPACITY(10) said in that form.
    pub(super) capacity: Vec<u8>,
    /// Of MODE SENSE(6) with the caching page.
    pub(super) mode: Vec<u8>,
    /// What REPORT SUPPORTED OPERATION CODES says of WRITE SAME(16).
    pub(super) write_same: Vec<u8>,
}

impl Facts {
    /// How many blocks one READ or WRITE may have, of `bytes` at the most.
    pub(super) fn most_blocks(&self, bytes: u64) -> u64 {
        let blocks = bytes / u64::from(self.traits.block_size);
        match self.max_transfer {
            0 => blocks,
            most => blocks.min(u64::from(most)),
        }
    }

    /// Why what is there now cannot stand for what was there before.
    pub(super) fn differs(&self, now: &Self) -> Option<UnitRefusal> {
        let (before, after) = (&self.identity, &now.identity);
        if before.designator != after.designator || before.serial != after.serial {
            return Some(UnitRefusal::Another);
        }
        if self.traits.block_size != now.traits.block_size {
            return Some(UnitRefusal::OtherBlocks {
                before: self.traits.block_size,
                now: now.traits.block_size,
            });
        }
        (now.traits.blocks < self.traits.blocks).then_some(UnitRefusal::Shrunk {
            before: self.traits.blocks,
            now: now.traits.blocks,
        })
    }
}

/// Whether a unit can be so large: its bytes are counted with a sign, as those of files are.
pub(super) fn can_be(blocks: u64, block_size: u32) -> bool {
    let bytes = blocks.checked_mul(u64::from(block_size));
    bytes.is_some_and(|bytes| i64::try_from(bytes).is_ok())
}

impl ParameterData {
    /// What it all comes to.
    pub(super) fn facts(&self) -> Result<Facts, UnitRefusal> {
        let block_size = be32(&self.capacity, 8);
        if block_size != 512 && block_size != 4096 {
            return Err(UnitRefusal::BlockSize(block_size));
        }
        let blocks = be64(&self.capacity, 0).saturating_add(1);
        if !can_be(blocks, block_size) {
            return Err(UnitRefusal::TooLarge(blocks));
        }
        // What is unmapped must read as zeros: a medium promises that.
        let zeros = bit(&self.provisioning, 5, LBPRZ) || bit(&self.capacity, 14, LBPRZ_CAPACITY);
        let unmaps = zeros && self.write_same_unmaps() && !self.has_no_write_same();
        Ok(Facts {
            identity: self.identity(),
            traits: Traits {
                block_size,
                blocks,
                physical_exponent: byte(&self.capacity, 13) & 0x0f,
                read_only: bit(&self.mode, 2, WP),
                write_cache: bit(self.caching_page(), 2, WCE),
                unmap_granularity: unmaps.then(|| be32(&self.limits, 28).max(1)),
                anchor: false,
                atomic: self.atomic(),
                sanitize: &[],
                write_same_to_end: false,
                shared: true,
                solid_state: be16(&self.characteristics, 4) == NON_ROTATING,
            },
            max_transfer: be32(&self.limits, 8),
            write_same: most(be64(&self.limits, 36), block_size),
            ndob: bit(&self.write_same, 5, NDOB),
            provisioned: bit(&self.capacity, 14, LBPME) && zeros,
            dpofua: bit(&self.mode, 2, DPOFUA),
        })
    }

    /// LBPWS. LBPU is no substitute: UNMAP is a hint, and what it leaves keeps its data.
    pub(super) fn write_same_unmaps(&self) -> bool {
        bit(&self.provisioning, 5, LBPWS)
    }

    /// The unit contradicts itself.
    fn has_no_write_same(&self) -> bool {
        byte(&self.write_same, 1) & SUPPORT == NOT_SUPPORTED
    }

    fn identity(&self) -> ReportedIdentity {
        let text = |at: usize, len: usize| {
            let bytes = self.inquiry.get(at..at + len).unwrap_or_default();
            plain(bytes)
        };
        let length = usize::from(be16(&self.serial, 2));
        let serial = self.serial.get(4..4 + length).unwrap_or_default();
        ReportedIdentity {
            vendor: text(8, 8),
            product: text(16, 16),
            revision: text(32, 4),
            serial: plain(serial),
            designator: designator(&self.designators),
        }
    }

    /// The caching page, behind the header and block descriptors of MODE SENSE(6).
    pub(super) fn caching_page(&self) -> &[u8] {
        let start = 4 + usize::from(byte(&self.mode, 3));
        let page = self.mode.get(start..).unwrap_or_default();
        match byte(page, 0) & 0x3f {
            0x08 => page,
            _ => &[],
        }
    }

    fn atomic(&self) -> Option<Atomic> {
        let told = be32(&self.limits, 44);
        // It would be split there, and be no longer whole or absent.
        let max_blocks = match be32(&self.limits, 8) {
            0 => told,
            most => told.min(most),
        };
        (max_blocks > 0).then(|| Atomic {
            max_blocks,
            alignment: be32(&self.limits, 48).max(1),
            granularity: be32(&self.limits, 52).max(1),
        })
    }
}

/// A limit that is told, or else, and where it is very large, what one command gets done in a time
/// that a transport waits.
fn most(told: u64, block_size: u32) -> u64 {
    let ours = AT_ONCE / u64::from(block_size);
    match told {
        0 => ours,
        told => told.min(ours),
    }
}

/// Text as it can be shown.
fn plain(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        0x20..=0x7e => char::from(*byte),
        _ => '.',
    };
    let text: String = bytes.iter().map(shown).collect();
    text.trim_matches([' ', '.']).to_owned()
}

/// The designator that names the unit best: NAA before EUI-64, T10 and names; of those that stand
/// for the unit itself.
fn designator(page: &[u8]) -> Vec<u8> {
    let mut best: Option<(usize, &[u8])> = None;
    let end = 4 + usize::from(be16(page, 2));
    let mut rest = page.get(4..end.min(page.len())).unwrap_or_default();
    while let Some(one) = rest.get(..4 + usize::from(byte(rest, 3)))
        && rest.len() >= 4
    {
        rest = &rest[one.len()..];
        let (association, kind) = (byte(one, 1) >> 4 & 3, byte(one, 1) & 0x0f);
        let rank = PREFERRED.iter().position(|preferred| *preferred == kind);
        if let (0, Some(rank)) = (association, rank)
            && best.is_none_or(|(before, _)| rank < before)
        {
            best = Some((rank, one));
        }
    }
    best.map(|(_, one)| [&one[..2], &one[4..]].concat())
        .unwrap_or_default()
}

/// What READ CAPACITY(10) said, as READ CAPACITY(16) says it.
pub(super) fn widened(short: &[u8]) -> Vec<u8> {
    let mut long = vec![0; 32];
    Field::new(0, 8).write(&mut long, u64::from(be32(short, 0)));
    Field::new(8, 4).write(&mut long, u64::from(be32(short, 4)));
    long
}

/// NAA, EUI-64, T10 vendor, name string: by how surely it is unique.
const PREFERRED: [u8; 4] = [3, 2, 8, 1];

const LBPWS: u8 = 0x40;
/// Of the provisioning page: it has three bits, of which this one means zeros.
const LBPRZ: u8 = 0x04;
/// Of READ CAPACITY(16).
const LBPRZ_CAPACITY: u8 = 0x40;
const LBPME: u8 = 0x80;
const WP: u8 = 0x80;
const DPOFUA: u8 = 0x10;
const NON_ROTATING: u16 = 1;

/// Of REPORT SUPPORTED OPERATION CODES.
const SUPPORT: u8 = 0x07;
const NOT_SUPPORTED: u8 = 0x01;

/// Bytes that one WRITE SAME covers at the most.
const AT_ONCE: u64 = 1 << 30;
