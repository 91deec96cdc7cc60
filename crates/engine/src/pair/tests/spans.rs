//! Data and holes of blocks that are smaller than what is worked by.

use scsi::medium::{HeapLease, MediumOp, Outcome, Provisioning};

use crate::pair::Shape;
use crate::pair::spans::{Span, Spans};

#[test]
fn a_unit_that_is_partly_a_hole_is_data() {
    let shape = Shape {
        block_size: 512,
        octets: 10 * 4096,
        unmaps: false,
    };
    let mut spans = Spans::new(shape, 4096, 0..shape.octets);
    // 9 blocks of data, 20 of hole, 3 of data, and hole to the end.
    let state = |lba| match lba {
        0..9 => (9, Provisioning::Mapped),
        9..29 => (29, Provisioning::Deallocated),
        29..32 => (32, Provisioning::Mapped),
        _ => (80, Provisioning::Anchored),
    };
    while let Some(MediumOp::Status { extent }) = spans.question::<HeapLease>() {
        let (end, state) = state(extent.lba);
        let blocks = end - extent.lba;
        spans.answered::<HeapLease>(&Ok(Outcome::Provisioning { blocks, state }));
    }
    let all: Vec<Span> = std::iter::from_fn(|| spans.next()).collect();
    let span = |range: std::ops::Range<u64>, hole| Span {
        range: range.start * 4096..range.end * 4096,
        hole,
    };
    let expected = [span(0..2, false), span(2..3, true), span(3..4, false)];
    assert_eq!(all, [&expected[..], &[span(4..10, true)]].concat());
}
