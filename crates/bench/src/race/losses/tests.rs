//! Counters as the kernel writes them.

use super::{BACKLOG, LossCounts, Losses, backlog, counter, sent_again};
use crate::outcome::race::LossCount;

const DEV: &str = "\
Inter-|   Receive                                    |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo
    lo:       0       0 0 0 0 0 0 0       0       0 0 0 0 0 0 0
  san0: 1234567    1000 1 2 3 0 0 9 7654321    2000 4 5 6 0 0 0
";

#[test]
fn an_interface_tells_both_directions() {
    let mut counts = LossCounts::default();
    counts.interfaces("client", DEV);
    let mut lost = Vec::new();
    counts.add_since(&LossCounts::default(), &mut lost);
    lost.sort_by_key(|loss| loss.count);
    let counts: Vec<_> = lost.iter().map(|loss| loss.count).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6]);
    let places: Vec<_> = lost.iter().map(|loss| loss.place.as_str()).collect();
    let expected = [
        "san0 of the client: receive errors",
        "san0 of the client: receive drops (no receiver or no memory)",
        "san0 of the client: receive ring full",
        "san0 of the client: transmit errors",
        "san0 of the client: transmit drops (a queue or the other end's ring full)",
        "san0 of the client: transmit ring full",
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_counter_is_found_by_its_group_and_name() {
    let text = "Ip: Forwarding InErrs\nIp: 1 7\nTcp: InSegs RetransSegs InErrs\nTcp: 10 3 2\n";
    assert_eq!(counter(text, "Tcp:", "RetransSegs"), Some(3));
    assert_eq!(counter(text, "Tcp:", "InErrs"), Some(2));
    assert_eq!(counter(text, "Tcp:", "TCPOFODrop"), None);
    assert_eq!(counter("Tcp: InErrs\n", "Tcp:", "InErrs"), None);
}

#[test]
fn segments_that_came_twice_were_not_lost() {
    let snmp = "Tcp: InSegs RetransSegs\nTcp: 10 599\n";
    let netstat = "TcpExt: TCPDSACKRecv TCPDSACKRecvSegs\nTcpExt: 34 590\n";
    assert_eq!(sent_again(snmp, netstat), Some(9));
    // Linux before 5.10 does not count them.
    let old = "TcpExt: TCPDSACKRecv\nTcpExt: 34\n";
    assert_eq!(sent_again(snmp, old), Some(599));
    assert_eq!(sent_again("", netstat), None);
}

#[test]
fn the_backlogs_of_all_processors_add_up() {
    let text = "00000010 0000000a 00000000\n00000020 00000001 00000000\n";
    assert_eq!(backlog(text), 11);
    assert_eq!(backlog("none\n"), 0);
}

#[test]
fn what_was_lost_before_is_not_told_and_turns_add_up() {
    let counts = |count| LossCounts([("here".to_owned(), count)].into());
    let mut lost = Vec::new();
    counts(5).add_since(&counts(5), &mut lost);
    assert_eq!(lost, []);
    counts(7).add_since(&counts(5), &mut lost);
    counts(10).add_since(&counts(9), &mut lost);
    let place = "here".to_owned();
    assert_eq!(lost, [LossCount { place, count: 3 }]);
}

#[test]
fn the_places_of_this_machine_are_known() {
    let counts = Losses::between(std::process::id()).count();
    for place in [
        "TCP of the client: retransmitted segments",
        "TCP of the target: retransmitted segments",
        "lo of the target: receive ring full",
        BACKLOG,
    ] {
        assert!(counts.0.contains_key(place), "{place}: {counts:?}");
    }
}
