//! What the unit lets the daemon do.

use super::UNIT;

/// `setpriority` is one of @resources, which are refused before.
#[test]
fn the_control_plane_may_give_way() {
    let lines = UNIT.lines();
    let filters: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("SystemCallFilter="))
        .collect();
    let place = |wanted: &str| filters.iter().position(|one| one.contains(wanted));
    let (refused, allowed) = (place("@resources"), place("setpriority"));
    assert!(refused.is_some() && allowed > refused, "{filters:?}");
}
