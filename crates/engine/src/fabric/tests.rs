//! What is told of frames that were lost.

use super::*;

#[test]
fn only_what_has_grown_is_told() {
    let before = Drops {
        ring_full: 3,
        unsent: 2,
        received: 7,
        ..Drops::default()
    };
    let now = Drops {
        ring_full: 5,
        missed: 1,
        received: 9,
        ..before
    };
    let told = "2 came while our ring was full, 1 came while the interface had no memory";
    assert_eq!(lost(now, before).as_deref(), Some(told));
    assert_eq!(lost(now, now), None);
}
