//! How much one command may ask for: what the device server enforces and the block limits VPD page
//! (SBC-4 §6.6.4) tells. All are in logical blocks unless they say otherwise.

use crate::medium::{SEGMENT_BYTES, Traits};

/// The longest READ, WRITE, VERIFY and the like, in bytes (MAXIMUM TRANSFER LENGTH): 65,536 blocks
/// of 512 bytes, the first number that needs more than two bytes. libiscsi's tests write as many
/// at once without asking whether they may.
pub const TRANSFER_BYTES: u64 = 32 << 20;

/// What a PRE-FETCH may ask for and be told CONDITION MET, in bytes (MAXIMUM PREFETCH LENGTH).
pub const PREFETCH_BYTES: u64 = 64 << 20;

/// The longest WRITE SAME, in bytes (MAXIMUM WRITE SAME LENGTH).
pub const WRITE_SAME_BYTES: u64 = 1 << 30;

/// The most blocks that the descriptors of one UNMAP may cover (MAXIMUM UNMAP LBA COUNT):
/// libiscsi's tests take more than 1,048,576 for an error.
pub const UNMAP_BLOCKS: u32 = 1 << 20;

/// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT.
pub const UNMAP_DESCRIPTORS: u32 = 256;

/// MAXIMUM CSCD DESCRIPTOR COUNT of EXTENDED COPY.
pub const COPY_CSCDS: u16 = 16;

/// MAXIMUM SEGMENT DESCRIPTOR COUNT of EXTENDED COPY.
pub const COPY_SEGMENTS: u16 = 64;

/// MAXIMUM DESCRIPTOR LIST LENGTH of EXTENDED COPY, in bytes: as many of both, of 32 and 28
/// bytes.
pub const COPY_LIST_BYTES: u32 = COPY_CSCDS as u32 * 32 + COPY_SEGMENTS as u32 * 28;

/// MAXIMUM SEGMENT LENGTH of EXTENDED COPY, in bytes.
pub const COPY_SEGMENT_BYTES: u32 = 16 << 20;

/// THRESHOLD EXPONENT (SBC-4 §6.6.7): resources are counted in sets of 1 MiB.
#[must_use]
pub const fn threshold_exponent(traits: &Traits) -> u8 {
    (20 - traits.block_size.ilog2()) as u8
}

const fn blocks(bytes: u64, traits: &Traits) -> u32 {
    (bytes / traits.block_size as u64) as u32
}

/// MAXIMUM TRANSFER LENGTH.
#[must_use]
pub const fn transfer(traits: &Traits) -> u32 {
    blocks(TRANSFER_BYTES, traits)
}

/// OPTIMAL TRANSFER LENGTH: what is moved in one piece.
#[must_use]
pub const fn optimal_transfer(traits: &Traits) -> u32 {
    blocks(SEGMENT_BYTES, traits)
}

/// MAXIMUM PREFETCH LENGTH.
#[must_use]
pub const fn prefetch(traits: &Traits) -> u32 {
    blocks(PREFETCH_BYTES, traits)
}

/// MAXIMUM WRITE SAME LENGTH.
#[must_use]
pub const fn write_same(traits: &Traits) -> u32 {
    blocks(WRITE_SAME_BYTES, traits)
}

/// MAXIMUM UNMAP LBA COUNT; 0 where the volume cannot unmap.
#[must_use]
pub const fn unmap(traits: &Traits) -> u32 {
    match traits.unmap_granularity {
        Some(_) => UNMAP_BLOCKS,
        None => 0,
    }
}

/// MAXIMUM COMPARE AND WRITE LENGTH: what to compare with and what to write is held at once, in
/// one segment, and the field in the CDB has one byte; 0 where others use the medium too.
#[must_use]
pub const fn compare_and_write(traits: &Traits) -> u8 {
    if traits.shared {
        return 0;
    }
    let blocks = blocks(SEGMENT_BYTES / 2, traits);
    if blocks > 255 { 255 } else { blocks as u8 }
}

/// MAXIMUM ATOMIC TRANSFER LENGTH: what the volume keeps whole over a power cut, as far as it
/// fits one segment; 0 where it keeps nothing.
#[must_use]
pub fn atomic(traits: &Traits) -> u32 {
    let fits = blocks(SEGMENT_BYTES, traits);
    traits
        .atomic
        .map_or(0, |atomic| atomic.max_blocks.min(fits))
}
