//! What is in doubt, until when, and for whom.

use scsi::medium::Extent;

use super::{AllIndeterminateWrites, DOUBTS, IndeterminateWrites, REMEMBERED, SeekHistory};

const PLACE: Extent = Extent::new(3, 1);

#[test]
fn to_be_back_in_another_place_ends_no_doubt() {
    let mut doubts = IndeterminateWrites::default();
    doubts.add(0, vec![PLACE]);
    doubts.trust(1);
    assert!(doubts.touch(Extent::new(0, 4)));
    doubts.trust(0);
    assert!(doubts.is_empty());
}

#[test]
fn very_many_doubts_are_one() {
    let mut doubts = IndeterminateWrites::default();
    let every_other = (0..=DOUBTS as u64).map(|n| Extent::new(2 * n, 1));
    doubts.add(0, every_other.collect());
    assert!(doubts.touch(Extent::new(1, 1)));
    assert!(!doubts.touch(Extent::new(2 * DOUBTS as u64 + 1, 1)));
}

#[test]
fn doubts_in_very_many_places_are_one_that_no_place_ends() {
    let mut doubts = IndeterminateWrites::default();
    for place in 0..=DOUBTS {
        doubts.add(place, vec![Extent::new(place as u64, 1)]);
    }
    assert_eq!(doubts.extents().count(), 1);
    (0..=DOUBTS).for_each(|place| doubts.trust(place));
    assert!(doubts.touch(Extent::new(DOUBTS as u64, 1)));
}

#[test]
fn all_are_told_but_who_needs_not_mind() {
    let (all, mut doubts) = (
        AllIndeterminateWrites::default(),
        IndeterminateWrites::default(),
    );
    doubts.add(0, vec![PLACE]);
    all.set(7, &doubts);
    assert!(all.touch(PLACE, |_| true));
    assert!(!all.touch(PLACE, |session| session != 7));
    assert!(!all.touch(Extent::new(4, 9), |_| true));
    all.set(7, &IndeterminateWrites::default());
    assert!(!all.touch(PLACE, |_| true));
}

#[test]
fn a_target_that_moves_for_ever_costs_no_memory() {
    let mut places = SeekHistory::default();
    assert!(places.come_to(7));
    for place in 100..100 + 10 * REMEMBERED {
        assert!(!places.come_to(place));
        assert!(places.come_to(place));
    }
    assert_eq!(places.known.len(), REMEMBERED);
    assert!(!places.come_to(7));
    assert_ne!(places.last(), 0, "what was forgotten is another place");
}
