//! What is charged, and what is cleared when.

use std::cell::RefCell;

use super::super::MemoryLimit;
use super::super::granules::{Clear, GRANULE, GROUP, GROUP_GRANULES, Granules, Pages};
use super::super::limit::NoSpace;

fn granules(groups: u64, pages: Pages) -> (Granules, MemoryLimit) {
    let limit = MemoryLimit::new(groups * GROUP);
    let granules = Granules::new(groups * GROUP_GRANULES, pages, &limit).unwrap();
    (granules, limit)
}

/// Whether a group has become ripe.
fn allocate(granules: &Granules, range: std::ops::Range<u64>) -> Result<bool, NoSpace> {
    let mut is_ripe = false;
    granules.allocate(range, || is_ripe = true)?;
    Ok(is_ripe)
}

/// What is cleared when granules are deallocated.
fn deallocate(granules: &Granules, range: std::ops::Range<u64>) -> Vec<Clear> {
    let cleared = RefCell::new(Vec::new());
    granules.deallocate(range, |what| cleared.borrow_mut().push(what));
    cleared.into_inner()
}

/// Each costs a barrier of all processors and a system call.
#[test]
fn scattered_granules_are_given_back_once_a_group() {
    let (granules, limit) = granules(3, Pages::Small);
    for at in (1..2 * GROUP_GRANULES).step_by(2) {
        allocate(&granules, at..at + 1).unwrap();
    }
    let cleared = deallocate(&granules, 0..3 * GROUP_GRANULES);
    let expected = [1..GROUP_GRANULES, GROUP_GRANULES + 1..2 * GROUP_GRANULES];
    assert_eq!(cleared, expected.map(Clear::Discard));
    assert_eq!((granules.charged(), limit.used()), (0, 0));
    assert_eq!(deallocate(&granules, 0..3 * GROUP_GRANULES), []);
}

#[test]
fn only_what_is_deallocated_of_a_group_is_given_back() {
    let (granules, _) = granules(1, Pages::Small);
    allocate(&granules, 0..8).unwrap();
    assert_eq!(deallocate(&granules, 2..5), [Clear::Discard(2..5)]);
    assert_eq!(granules.charged(), 5 * GRANULE);
}

#[test]
fn a_group_is_ripe_once_three_quarters_are_allocated() {
    let (granules, _) = granules(2, Pages::Huge);
    let ripe = GROUP_GRANULES / 4 * 3;
    assert_eq!(allocate(&granules, 0..ripe - 1), Ok(false));
    assert_eq!(granules.next_ripe(0), None);
    assert_eq!(
        granules.replace(0),
        Ok(false),
        "too little of it is allocated"
    );
    assert_eq!(
        allocate(&granules, GROUP_GRANULES - 1..GROUP_GRANULES),
        Ok(true)
    );
    assert_eq!(allocate(&granules, 0..GROUP_GRANULES), Ok(false));
    assert_eq!(granules.next_ripe(0), Some(0));
    assert_eq!(granules.next_ripe(0), None, "it was told of");
    assert_eq!(
        allocate(&granules, GROUP_GRANULES..2 * GROUP_GRANULES),
        Ok(true)
    );
    assert_eq!(granules.next_ripe(0), Some(1));
}

#[test]
fn small_pages_and_the_rest_behind_the_last_group_are_never_ripe() {
    let (small, _) = granules(1, Pages::Small);
    assert_eq!(allocate(&small, 0..GROUP_GRANULES), Ok(false));
    let limit = MemoryLimit::new(GROUP);
    let rest = Granules::new(GROUP_GRANULES - 1, Pages::Huge, &limit).unwrap();
    assert_eq!(allocate(&rest, 0..GROUP_GRANULES - 1), Ok(false));
    assert_eq!((small.next_ripe(0), rest.next_ripe(0)), (None, None));
}

#[test]
fn a_huge_page_is_charged_whole_and_cut_up_when_less_than_half_is_left() {
    let (granules, limit) = granules(1, Pages::Huge);
    let (half, ripe) = (GROUP_GRANULES / 2, GROUP_GRANULES / 4 * 3);
    allocate(&granules, 0..ripe).unwrap();
    assert_eq!(granules.replace(0), Ok(true));
    granules.have_replaced(0, true, |what| panic!("{what:?}"));
    assert_eq!((granules.charged(), limit.used()), (GROUP, GROUP));
    allocate(&granules, ripe..ripe + 2).unwrap();
    assert_eq!(limit.used(), GROUP);
    let cleared = deallocate(&granules, half..ripe + 2);
    assert_eq!(cleared, [Clear::Zero(half..ripe + 2)]);
    assert_eq!(limit.used(), GROUP);
    let cleared = deallocate(&granules, 7..8);
    let holes = [7..8, half..GROUP_GRANULES];
    assert_eq!(cleared, holes.map(Clear::CutUp));
    let left = (half - 1) * GRANULE;
    assert_eq!((granules.charged(), limit.used()), (left, left));
}

#[test]
fn a_replacement_that_fails_gives_back_what_is_free() {
    let (granules, limit) = granules(1, Pages::Huge);
    let ripe = GROUP_GRANULES / 4 * 3;
    allocate(&granules, 0..ripe).unwrap();
    assert_eq!(granules.replace(0), Ok(true));
    assert_eq!(deallocate(&granules, 3..4), [Clear::Zero(3..4)]);
    let cleared = RefCell::new(Vec::new());
    granules.have_replaced(0, false, |what| cleared.borrow_mut().push(what));
    let holes = [3..4, ripe..GROUP_GRANULES];
    assert_eq!(cleared.into_inner(), holes.map(Clear::CutUp));
    assert_eq!(limit.used(), (ripe - 1) * GRANULE);
}

/// The kernel may have made a huge page of what was given back to it.
#[test]
fn what_is_freed_during_a_replacement_is_given_back_after_it() {
    let (granules, limit) = granules(1, Pages::Huge);
    allocate(&granules, 0..GROUP_GRANULES).unwrap();
    assert_eq!(granules.replace(0), Ok(true));
    deallocate(&granules, 1..GROUP_GRANULES);
    let cleared = RefCell::new(Vec::new());
    granules.have_replaced(0, true, |what| cleared.borrow_mut().push(what));
    assert_eq!(cleared.into_inner(), [Clear::CutUp(1..GROUP_GRANULES)]);
    assert_eq!((granules.charged(), limit.used()), (GRANULE, GRANULE));
}

#[test]
fn a_huge_page_that_exceeds_the_limit_is_not_taken() {
    let limit = MemoryLimit::new(GROUP - GRANULE);
    let granules = Granules::new(GROUP_GRANULES, Pages::Huge, &limit).unwrap();
    allocate(&granules, 0..GROUP_GRANULES - 1).unwrap();
    assert_eq!(granules.replace(0), Err(NoSpace), "it stays worth it");
    assert_eq!(limit.used(), GROUP - GRANULE);
}

#[test]
fn a_group_that_ripened_before_the_limit_was_met_is_told_of() {
    let limit = MemoryLimit::new(GROUP);
    let granules = Granules::new(2 * GROUP_GRANULES, Pages::Huge, &limit).unwrap();
    let mut is_ripe = false;
    let all = 0..2 * GROUP_GRANULES;
    assert_eq!(granules.allocate(all, || is_ripe = true), Err(NoSpace));
    assert!(is_ripe);
    assert_eq!(granules.next_ripe(0), Some(0));
}

/// As another core deallocated it meanwhile.
#[test]
fn a_group_that_ripens_after_its_data_was_stored_is_told_of() {
    let (granules, _) = granules(1, Pages::Huge);
    let mut is_ripe = false;
    granules.confirm(0..GROUP_GRANULES, || is_ripe = true);
    assert!(is_ripe);
}
