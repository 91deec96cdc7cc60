//! Data and holes of blocks that are smaller than what is worked by; and sets of bytes, against a
//! bitmap.

use scsi::medium::{HeapLease, MediumOp, MediumOutcome, Provisioning};

use crate::pair::spans::{MappedSpan, RemainingSpans};
use crate::pair::{Ranges, VolumeShape};
use fastrand::Rng;

#[test]
fn a_unit_that_is_partly_a_hole_is_data() {
    let shape = VolumeShape {
        block_size: 512,
        bytes: 10 * 4096,
        unmaps: false,
    };
    let mut spans = RemainingSpans::new(shape, 4096, 0..shape.bytes);
    // 9 blocks of data, 20 of hole, 3 of data, and hole to the end.
    let state = |lba| match lba {
        0..9 => (9, Provisioning::Mapped),
        9..29 => (29, Provisioning::Deallocated),
        29..32 => (32, Provisioning::Mapped),
        _ => (80, Provisioning::Anchored),
    };
    while let Some((number, MediumOp::Status { extent })) = spans.question::<HeapLease>() {
        let (end, state) = state(extent.lba);
        let blocks = end - extent.lba;
        let answer = Ok(MediumOutcome::Provisioning { blocks, state });
        spans.answered::<HeapLease>(number, &answer);
    }
    let all: Vec<MappedSpan> = std::iter::from_fn(|| spans.next()).collect();
    let span = |range: std::ops::Range<u64>, hole| MappedSpan {
        range: range.start * 4096..range.end * 4096,
        hole,
    };
    let expected = [span(0..2, false), span(2..3, true), span(3..4, false)];
    assert_eq!(all, [&expected[..], &[span(4..10, true)]].concat());
}

/// 750 data and holes of 1 MiB in turn, asked with an answer for all questions in flight at a time.
#[test]
fn spans_of_a_fragmented_volume_are_asked_at_the_same_time() {
    let shape = VolumeShape {
        block_size: 4096,
        bytes: 750 << 20,
        unmaps: false,
    };
    let mut spans = RemainingSpans::new(shape, 4096, 0..shape.bytes);
    let (mut rounds, mut at, mut questions) = (0, 0, 0);
    while spans.start().is_some() {
        let mut asked = Vec::new();
        while let Some((number, MediumOp::Status { extent })) = spans.question::<HeapLease>() {
            asked.push((number, extent));
        }
        questions += asked.len();
        for (number, extent) in asked {
            let state = match extent.lba / 256 % 2 {
                0 => Provisioning::Mapped,
                _ => Provisioning::Deallocated,
            };
            let blocks = 256 - extent.lba % 256;
            let answer = Ok(MediumOutcome::Provisioning { blocks, state });
            spans.answered::<HeapLease>(number, &answer);
        }
        while let Some(span) = spans.next() {
            assert_eq!(span.range.start, at);
            assert_eq!(span.hole, (at >> 20) % 2 == 1);
            at = span.range.end;
        }
        rounds += 1;
    }
    assert_eq!(at, shape.bytes);
    assert!(
        rounds < 80 && questions < 1000,
        "{questions} in {rounds} rounds"
    );
}

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
