use super::{REMEMBERED, SeekHistory};

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
