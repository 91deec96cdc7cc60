//! Exchange identifiers.

use crate::exchange::Ids;

#[test]
fn an_identifier_rests_while_all_others_are_used() {
    let mut ids = Ids::new(4);
    let first = ids.assign(7);
    ids.release(0);
    assert_eq!(first, Some(0));
    assert_eq!(
        [1, 2, 3].map(|place| ids.assign(place)),
        [Some(1), Some(2), Some(3)]
    );
    assert_eq!(ids.assign(9), Some(0));
    assert_eq!(ids.find(0), Some(9));
}

#[test]
fn one_that_is_held_names_nothing_and_is_not_given_out() {
    let mut ids = Ids::new(2);
    assert_eq!(ids.assign(5), Some(0));
    ids.hold(0);
    assert_eq!(ids.find(0), None);
    assert_eq!([ids.assign(6), ids.assign(6)], [Some(1), None]);
    ids.release(0);
    assert_eq!(ids.assign(6), Some(0));
}

#[test]
fn one_that_is_out_of_range_names_nothing() {
    let ids = Ids::new(2);
    assert_eq!(ids.find(0xffff), None);
}
