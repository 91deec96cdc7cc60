//! Sets of bytes, against a bitmap.

use crate::pair::Ranges;
use fastrand::Rng;

const LEN: usize = 64;

#[test]
fn ranges_hold_what_was_added_and_not_removed() {
    for seed in 0..50 {
        let mut rng = Rng::with_seed(seed);
        let mut ranges = Ranges::default();
        let mut bits = [false; LEN];
        for _ in 0..200 {
            let start = rng.usize(..LEN);
            let end = start + rng.usize(..LEN - start + 1);
            let range = start as u64..end as u64;
            let adds = rng.usize(..2) == 0;
            if adds {
                ranges.add(range);
            } else {
                ranges.remove(&range);
            }
            bits[start..end].fill(adds);
            let held = |at: u64| ranges.iter().any(|range| range.contains(&at));
            assert!(
                (0..LEN).all(|at| held(at as u64) == bits[at]),
                "seed {seed}"
            );
            let bytes = bits.iter().filter(|bit| **bit).count();
            assert_eq!(ranges.bytes(), bytes as u64);
            let starts = bits.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            assert_eq!(ranges.len(), starts + usize::from(bits[0]));
        }
    }
}
