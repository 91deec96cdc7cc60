//! What the peer may reach, and what it may not.

use std::collections::BTreeSet;

use scsi::medium::{HeapLease, Lease as _};

use super::{TagError, Tags};
use crate::iwarp::terminate::TerminateCode;
use crate::test_support::{bytes_of, pattern};
use crate::verbs::{Access, Stag, Tag};

fn tags() -> Tags<HeapLease> {
    Tags::new([1; 32])
}

/// 8 bytes in the middle of 24, so that a step beyond either end is seen.
fn middle() -> (HeapLease, HeapLease) {
    let around = HeapLease::from_bytes(pattern(24));
    let inside = around.slice(8, 8);
    (around, inside)
}

#[test]
fn a_write_goes_where_its_offset_says() {
    let mut tags = tags();
    let (around, inside) = middle();
    let tag = tags.advertise(&inside, Access::Write);
    assert_eq!(tag.offset, 0);
    assert_eq!(tags.place(tag.plus(5), b"abc"), Ok(()));
    let mut expected = pattern(24);
    expected[13..16].copy_from_slice(b"abc");
    assert_eq!(bytes_of(&around), expected);
}

#[test]
fn nothing_is_placed_beyond_either_end() {
    let mut tags = tags();
    let (around, inside) = middle();
    let tag = tags.advertise(&inside, Access::Write);
    // Offset, length, and what comes of it.
    let rows = [
        (0, 8, Ok(())),
        (8, 0, Ok(())),
        (0, 9, Err(TagError::Bounds)),
        (8, 1, Err(TagError::Bounds)),
        (7, 2, Err(TagError::Bounds)),
        (9, 0, Err(TagError::Bounds)),
        (1 << 32, 1, Err(TagError::Bounds)),
        (u64::MAX - 1, 1, Err(TagError::Bounds)),
        (u64::MAX, 1, Err(TagError::Wrap)),
        (u64::MAX - 7, 16, Err(TagError::Wrap)),
    ];
    for (offset, len, expected) in rows {
        let payload = vec![0xee; len];
        let stag = tag.stag;
        assert_eq!(
            tags.place(Tag { stag, offset }, &payload),
            expected,
            "{offset}+{len}"
        );
        let outside = [&bytes_of(&around)[..8], &bytes_of(&around)[16..]].concat();
        let untouched = [&pattern(24)[..8], &pattern(24)[16..]].concat();
        assert_eq!(outside, untouched, "{offset}+{len}");
    }
}

#[test]
fn a_buffer_is_reached_in_the_way_that_it_was_advertised_for() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let written = tags.advertise(&buffer, Access::Write);
    let read = tags.advertise(&buffer, Access::Read);
    assert_eq!(tags.place(read, b"abc"), Err(TagError::Access));
    assert_eq!(tags.ask(written, 1), Err(TagError::Access));
    assert_eq!(tags.part(written, 1).err(), Some(TagError::Access));
    assert_eq!(bytes_of(&buffer), pattern(8));
    assert_eq!(
        bytes_of(&tags.part(read.plus(2), 3).unwrap()),
        pattern(8)[2..5]
    );
}

#[test]
fn an_stag_is_dead_from_its_withdrawal_on() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let old = tags.advertise(&buffer, Access::Write);
    assert_eq!(tags.withdraw(old.stag), Some(0));
    assert_eq!(tags.withdraw(old.stag), None, "it is gone already");
    // Its slot has another one now.
    let new = tags.advertise(&buffer, Access::Write);
    assert_eq!(tags.place(old, b"abc"), Err(TagError::Invalid));
    assert_eq!(tags.place(new, b"abc"), Ok(()));
    tags.clear();
    assert_eq!(tags.place(new, b"abc"), Err(TagError::Invalid));
}

#[test]
fn stag_0_leads_nowhere() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let tag = tags.advertise(&buffer, Access::Write);
    tags.withdraw(tag.stag);
    let zero = Tag {
        stag: Stag(0),
        offset: 0,
    };
    assert_eq!(tags.withdraw(zero.stag), None);
    assert_eq!(tags.place(zero, b"abc"), Err(TagError::Invalid));
    assert_eq!(tags.ask(zero, 1), Err(TagError::Invalid));
}

#[test]
fn stags_are_all_over_the_range_and_none_comes_twice() {
    let mut tags = tags();
    let drawn: BTreeSet<_> = (0..1000).map(|_| tags.draw().0).collect();
    assert_eq!(drawn.len(), 1000);
    for bit in 0..32 {
        let set = drawn.iter().filter(|stag| *stag >> bit & 1 == 1).count();
        assert!((400..600).contains(&set), "bit {bit} is set in {set}");
    }
}

#[test]
fn what_stags_are_depends_on_the_random_bytes() {
    let mut others = Tags::<HeapLease>::new([2; 32]);
    assert_ne!(tags().draw(), others.draw());
    assert_eq!(tags().draw(), tags().draw());
}

#[test]
fn a_buffer_may_be_asked_for_four_times_over() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let tag = tags.advertise(&buffer, Access::Read);
    for _ in 0..8 {
        assert_eq!(tags.ask(tag.plus(4), 4), Ok(()));
    }
    assert_eq!(tags.ask(tag, 1), Err(TagError::TooOften));
    let other = tags.advertise(&buffer, Access::Read);
    assert_eq!(tags.ask(other, 8), Ok(()));
}

#[test]
fn an_invalidated_stag_leads_nowhere_until_it_is_withdrawn() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let tag = tags.advertise(&buffer, Access::Write);
    assert_eq!(tags.place(tag, b"abc"), Ok(()));
    assert!(tags.invalidate(tag.stag));
    assert!(!tags.invalidate(tag.stag), "it is invalid already");
    assert_eq!(tags.place(tag, b"xyz"), Err(TagError::Invalid));
    assert_eq!(tags.withdraw(tag.stag), Some(3));
    assert!(!tags.invalidate(tag.stag));
    assert_eq!(bytes_of(&buffer)[..3], *b"abc");
}

/// What counts is what there is without a gap, however often and in whatever order it was written.
#[test]
fn bytes_that_were_written_are_counted_up_to_the_first_gap() {
    let rows: [(&[(u64, usize)], u32); 6] = [
        (&[], 0),
        (&[(0, 4), (4, 4)], 8),
        (&[(4, 4), (0, 4)], 8),
        (&[(0, 4), (0, 4)], 4),
        (&[(4, 4)], 0),
        (&[(0, 2), (3, 5)], 2),
    ];
    for (writes, expected) in rows {
        let mut tags = tags();
        let buffer = HeapLease::from_bytes(pattern(8));
        let tag = tags.advertise(&buffer, Access::Write);
        for (offset, len) in writes {
            assert_eq!(tags.place(tag.plus(*offset), &vec![0; *len]), Ok(()));
        }
        assert_eq!(tags.withdraw(tag.stag), Some(expected), "{writes:?}");
    }
}

#[test]
fn bytes_count_as_read_when_they_are_sent() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(pattern(8));
    let tag = tags.advertise(&buffer, Access::Read);
    tags.ask(tag, 8).unwrap();
    tags.part(tag, 5).unwrap();
    assert_eq!(tags.withdraw(tag.stag), Some(5));
}

#[test]
fn what_is_written_stands_in_64_pieces_at_the_most() {
    let mut tags = tags();
    let buffer = HeapLease::from_bytes(vec![0; 200]);
    let tag = tags.advertise(&buffer, Access::Write);
    for piece in 1..=64 {
        assert_eq!(tags.place(tag.plus(piece * 2), b"x"), Ok(()));
    }
    assert_eq!(tags.place(tag.plus(150), b"x"), Err(TagError::Scattered));
    assert_eq!(bytes_of(&buffer)[150], 0, "it is not placed");
    assert_eq!(tags.place(tag, &[b'x'; 131]), Ok(()));
    assert_eq!(tags.withdraw(tag.stag), Some(131));
}

#[test]
fn each_layer_has_its_own_code_for_the_same_error() {
    let rows = [
        (
            TagError::Invalid,
            TerminateCode::INVALID_STAG,
            TerminateCode::READ_INVALID_STAG,
        ),
        (
            TagError::Access,
            TerminateCode::INVALID_STAG,
            TerminateCode::ACCESS_RIGHTS,
        ),
        (
            TagError::Wrap,
            TerminateCode::TO_WRAP,
            TerminateCode::READ_TO_WRAP,
        ),
        (
            TagError::Bounds,
            TerminateCode::BOUNDS,
            TerminateCode::READ_BOUNDS,
        ),
        (
            TagError::TooOften,
            TerminateCode::CATASTROPHIC_STREAM,
            TerminateCode::CATASTROPHIC_STREAM,
        ),
        (
            TagError::Scattered,
            TerminateCode::CATASTROPHIC_STREAM,
            TerminateCode::CATASTROPHIC_STREAM,
        ),
    ];
    for (error, segment, request) in rows {
        assert_eq!((error.of_segment(), error.of_request()), (segment, request));
    }
}
