//! What several parts can do together.

use scsi::medium::{Atomic, SanitizeKind, Traits};

use super::Layout;

/// The traits of a volume of `blocks` blocks made of `parts`, of which there is one at least.
pub(super) fn combine(layout: &dyn Layout, blocks: u64, parts: &[Traits]) -> Traits {
    let read_only = parts.iter().any(|part| part.read_only);
    let can = |kind| !read_only && parts.iter().all(|part| part.sanitize.contains(&kind));
    Traits {
        block_size: parts.first().map_or(0, |part| part.block_size),
        blocks,
        physical_exponent: physical_exponent(layout, parts),
        read_only,
        write_cache: !read_only && parts.iter().any(|part| part.write_cache),
        unmap_granularity: unmap_granularity(layout, parts),
        anchor: parts.iter().all(|part| part.anchor),
        atomic: atomic(layout, parts).filter(|_| !read_only),
        sanitize: match (can(SanitizeKind::Overwrite), can(SanitizeKind::BlockErase)) {
            (true, true) => &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
            (true, false) => &[SanitizeKind::Overwrite],
            (false, true) => &[SanitizeKind::BlockErase],
            (false, false) => &[],
        },
        solid_state: parts.iter().all(|part| part.solid_state),
        write_same_to_end: parts.iter().all(|part| part.write_same_to_end),
        shared: parts.iter().any(|part| part.shared),
    }
}

/// The largest physical block of a part, as far as boundaries leave it whole.
fn physical_exponent(layout: &dyn Layout, parts: &[Traits]) -> u8 {
    let largest = parts.iter().map(|part| part.physical_exponent).max();
    let whole = layout.boundary().trailing_zeros();
    largest.unwrap_or(0).min(u8::try_from(whole).unwrap_or(0))
}

/// A granule of the whole that consists of whole granules of every part. It is told to initiators
/// as a hint, so one that 32 bits do not hold is told as the largest that they do.
fn unmap_granularity(layout: &dyn Layout, parts: &[Traits]) -> Option<u32> {
    let common = parts.iter().try_fold(1, |common, part| {
        let granule = u64::from(part.unmap_granularity?.max(1));
        Some(least_common_multiple(common, granule))
    })?;
    let granule = layout.granule(common);
    Some(u32::try_from(granule).unwrap_or(u32::MAX))
}

/// Writes of up to `n` blocks at multiples of `n`, which cannot cross a boundary as `n` divides
/// them all.
fn atomic(layout: &dyn Layout, parts: &[Traits]) -> Option<Atomic> {
    let kept = parts.iter().map(|part| part.atomic);
    let kept = kept.collect::<Option<Vec<_>>>()?;
    let longest = kept.iter().map(|atomic| atomic.max_blocks).min()?;
    let whole = u32::try_from(layout.boundary()).unwrap_or(1 << 31);
    let longest = whole.min(1 << longest.checked_ilog2()?);
    let granularity = kept.iter().map(|atomic| atomic.granularity.max(1));
    let granularity = granularity.map(u64::from).fold(1, least_common_multiple);
    let granularity = u32::try_from(granularity).ok()?;
    let aligned = |atomic: &Atomic| longest.is_multiple_of(atomic.alignment.max(1));
    let fits = longest.is_multiple_of(granularity) && kept.iter().all(aligned);
    fits.then_some(Atomic {
        max_blocks: longest,
        alignment: longest,
        granularity,
    })
}

pub(crate) fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b)
}
