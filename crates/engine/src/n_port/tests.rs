//! What is told of frames that were lost, and of what is in their way.

use ::io::ether::Drops;

use super::*;

#[test]
fn only_what_has_grown_is_told() {
    let before = Lost(Drops {
        ring_full: 3,
        unsent: 2,
        received: 7,
        ..Drops::default()
    });
    let now = Lost(Drops {
        ring_full: 5,
        missed: 1,
        received: 9,
        ..before.0
    });
    let told = "2 came while our ring was full, 1 came while the interface had no memory";
    assert_eq!(now.told_since(&before).as_deref(), Some(told));
    assert_eq!(now.told_since(&now), None);
}

#[test]
fn the_worst_obstacle_is_named_with_what_mends_it() {
    let eth0 = Place::Interface("eth0".to_owned());
    let at = |up, mtu| Obstacle::at(&eth0, Link { up, mtu });
    for (obstacle, is_barrier, ways) in [
        (at(true, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 302), true, ["down", "ip link set eth0 up"]),
        (
            at(true, 302),
            false,
            ["256 of 2112", "ip link set eth0 mtu"],
        ),
        (at(true, 2157), false, ["2108 of", "ip link set eth0 mtu"]),
    ] {
        let obstacle = obstacle.expect("an obstacle");
        let line = obstacle.to_string();
        assert_eq!(obstacle.is_barrier(), is_barrier, "{line}");
        assert!(ways.iter().all(|way| line.contains(way)), "{line}");
        assert!(line.starts_with("eth0: "), "{line}");
    }
    assert_eq!(at(true, 2158), None);
}
