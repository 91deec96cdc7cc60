//! The last line, by what answered.

use super::*;

#[test]
fn ports_and_fcfs_are_counted_apart() {
    for (ports, fcfs, told) in [
        (1, 0, "1 other port and no FCF"),
        (2, 1, "2 other ports and 1 FCF"),
        (0, 2, "no other port and 2 FCFs"),
    ] {
        let expected = format!("; full frames pass, with {told} heard");
        assert_eq!(heard("eth0", ports, fcfs, false), expected);
    }
}

/// An interface at which a floor answers is the right one.
#[test]
fn other_vlans_are_named_only_where_nothing_answers() {
    let silent = heard("eth0", 0, 0, false);
    assert!(silent.contains("no FCF: lunar fipvlan eth0"), "{silent}");
    assert_eq!(
        heard("eth0", 0, 0, true),
        "; no other port answers, and no FCF"
    );
}
