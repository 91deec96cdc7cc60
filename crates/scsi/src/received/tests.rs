//! Which bytes have come, against a set of bytes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::ReceivedBytes;

proptest! {
    #[test]
    fn the_first_byte_missing_is_that_of_a_set(
        ranges in prop::collection::vec((0_u32..200, 0_u32..40), 0..60),
    ) {
        let (mut cover, mut come) = (ReceivedBytes::default(), BTreeSet::new());
        for (start, len) in ranges {
            let again = (start..start + len).any(|byte| come.contains(&byte));
            prop_assert_eq!(cover.overlaps(start, start + len), again);
            prop_assert!(cover.add(start, start + len));
            come.extend(start..start + len);
            let missing = (0..).find(|byte| !come.contains(byte));
            prop_assert_eq!(Some(cover.next()), missing);
        }
    }
}

#[test]
fn what_stands_apart_too_often_counts_as_lost() {
    let mut cover = ReceivedBytes::default();
    let noted = (1..=100).take_while(|at| cover.add(at * 10, at * 10 + 1));
    assert_eq!(noted.count(), 64);
    assert!(
        cover.add(0, 10),
        "what comes in order is noted all the same"
    );
    assert_eq!(cover.next(), 11);
    assert!(cover.add(15, 16), "there is room again");
    assert!(!cover.add(17, 18));
    assert!(cover.add(11, 13), "not even what touches it needs room");
    assert_eq!(cover.next(), 13);
}
