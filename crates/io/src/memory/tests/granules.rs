//! What is charged, and what is cleared when.

use std::cell::RefCell;

use super::super::MemoryLimit;
use super::super::granules::{Clear, GRANULE, GROUP, GROUP_GRANULES, Granules, Pages};

fn granules(groups: u64, pages: Pages) -> (Granules, MemoryLimit) {
    let limit = MemoryLimit::new(groups * GROUP);
    let granules = Granules::new(groups * GROUP_GRANULES, pages, &limit).unwrap();
    (granules, limit)
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
        granules.allocate(at..at + 1).unwrap();
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
    granules.allocate(0..8).unwrap();
    assert_eq!(deallocate(&granules, 2..5), [Clear::Discard(2..5)]);
    assert_eq!(granules.charged(), 5 * GRANULE);
}
