use super::{CachedExtents, RANGES};
use crate::medium::Extent;

#[test]
fn nothing_is_shared_at_first() {
    let shared = CachedExtents::default();
    assert!(!shared.overlaps(Extent::new(0, u64::MAX)));
    assert!(!shared.covers(Extent::new(0, 1)));
}

#[test]
fn neighbours_become_one_range() {
    let mut shared = CachedExtents::default();
    for lba in [5000, 4095, 2047] {
        shared.add(Extent::new(lba, 1));
    }
    assert_eq!(shared.ranges, [Extent::new(0, 6144)]);
    shared.add(Extent::new(6143, 2));
    assert_eq!(shared.ranges, [Extent::new(0, 8192)]);
    assert!(shared.covers(Extent::new(0, 8192)));
    assert!(!shared.covers(Extent::new(8191, 2)));
    assert!(shared.overlaps(Extent::new(8191, 2)));
    assert!(!shared.overlaps(Extent::new(8192, 2)));
}

#[test]
fn many_ranges_grow_together() {
    let mut shared = CachedExtents::default();
    let added: Vec<_> = (0..1000u64)
        .map(|n| Extent::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24, 1 + n % 7))
        .collect();
    for (count, extent) in added.iter().enumerate() {
        shared.add(*extent);
        assert!(shared.ranges.len() <= RANGES);
        assert!(shared.ranges.is_sorted_by(|a, b| a.end() < b.lba));
        let mut until_now = added[..=count].iter();
        assert!(until_now.all(|one| shared.covers(*one) && shared.overlaps(*one)));
    }
}
