use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use scsi::violation::Violation;

use super::{Journal, LINES, PeerName, SESSION_LINES, UnsavedReservations};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const JUNK: Violation = Violation {
    rule: "junk",
    clause: "RFC 7143 §6.3",
};
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_rule_broken_a_thousand_times_is_one_line_and_a_count() {
    let journal = Journal::default();
    let first = journal.tell(Duration::ZERO, PEER, JUNK);
    assert_eq!(first.as_deref(), Some("127.0.0.1: junk (RFC 7143 §6.3)"));
    for _ in 0..1000 {
        assert_eq!(journal.tell(SECOND, PEER, JUNK), None);
    }
    let later = journal.tell(SECOND * 60, PEER, JUNK);
    assert_eq!(
        later.as_deref(),
        Some("127.0.0.1: junk (RFC 7143 §6.3) (and 1000 more)")
    );
}

/// Only the name can be put on a list of those that may log in.
#[test]
fn an_initiator_whose_login_failed_is_named() {
    let journal = Journal::default();
    let peer = PeerName::Claimed(PEER, "iqn.2026-01.test:ini".into());
    let line = journal.tell(Duration::ZERO, peer, JUNK);
    let told = "127.0.0.1 as iqn.2026-01.test:ini: junk (RFC 7143 §6.3)";
    assert_eq!(line.as_deref(), Some(told));
}

#[test]
fn a_host_with_many_names_has_one_line() {
    let journal = Journal::default();
    let tell = |name: u32| {
        let peer = PeerName::Claimed(PEER, format!("iqn.2026-01.test:{name}"));
        journal.tell(SECOND, peer, JUNK)
    };
    assert_eq!((0..100).filter_map(tell).count(), 1);
    let other = IpAddr::from([192, 0, 2, 1]);
    assert!(journal.tell(SECOND, other, JUNK).is_some(), "another host");
}

/// Only the WWPN can be put on a list of those that may log in.
#[test]
fn a_port_of_fibre_channel_is_named_by_its_wwpn() {
    let (mac, wwpn) = (Mac([2, 0, 0, 0, 0, 7]), Wwn(0x2001_5254_0012_3456));
    let rule = Violation {
        rule: "a port that is not allowed was discovered",
        clause: "--allow",
    };
    let told = |wwpn| Journal::default().tell(SECOND, (mac, wwpn), rule);
    assert_eq!(
        told(Some(wwpn)).as_deref(),
        Some(
            "20:01:52:54:00:12:34:56 (02:00:00:00:00:07): a port that is not allowed was \
             discovered (--allow)"
        )
    );
    let line = told(None).unwrap();
    assert!(line.starts_with("02:00:00:00:00:07: "), "{line}");
}

#[test]
fn another_rule_and_another_peer_have_lines_of_their_own() {
    let journal = Journal::default();
    assert!(journal.tell(SECOND, PEER, JUNK).is_some());
    assert!(
        journal
            .tell(
                SECOND,
                PEER,
                Violation {
                    rule: "other",
                    clause: "--other"
                }
            )
            .is_some()
    );
    assert!(
        journal
            .tell(SECOND, IpAddr::from([192, 0, 2, 1]), JUNK)
            .is_some()
    );
}

#[test]
fn a_count_is_told_though_the_rule_is_not_broken_again() {
    let journal = Journal::default();
    journal.tell(Duration::ZERO, PEER, JUNK);
    journal.tell(SECOND, PEER, JUNK);
    journal.tell(SECOND, PEER, JUNK);
    assert!(journal.sweep(SECOND * 59).is_empty());
    assert_eq!(
        journal.sweep(SECOND * 60),
        ["127.0.0.1: junk (RFC 7143 §6.3) (and 1 more)"]
    );
    assert!(
        journal.tell(SECOND * 100, PEER, JUNK).is_none(),
        "its line was just written"
    );
    assert_eq!(journal.sweep(SECOND * 120).len(), 1);
    assert!(
        journal.sweep(SECOND * 180).is_empty(),
        "nothing is left to be told"
    );
}

#[test]
fn a_scanner_with_many_addresses_fills_neither_the_log_nor_memory() {
    let journal = Journal::default();
    let told = |number: u32| journal.tell(SECOND, IpAddr::from(number.to_be_bytes()), JUNK);
    let lines: Vec<_> = (0..10_000).filter_map(told).collect();
    assert_eq!(lines.len(), LINES as usize);
    assert_eq!(journal.entries.lock().unwrap().pairs.len(), LINES as usize);
    let other = Violation {
        rule: "other",
        ..JUNK
    };
    assert!(journal.tell(SECOND, PEER, other).is_some(), "another rule");
    let lines = journal.sweep(SECOND * 61);
    assert_eq!(lines, ["others: junk (RFC 7143 §6.3) (and 9983 more)"]);
    assert!(journal.is_empty());
    assert!(journal.tell(SECOND * 61, PEER, JUNK).is_some());
}

/// An initiator that logs in and out in a loop fills the log no more than a scanner does.
#[test]
fn a_host_that_logs_in_again_and_again_has_a_count() {
    let journal = Journal::default();
    let lines = (0..1000).filter(|_| journal.tells_of_session(PEER)).count();
    assert_eq!(lines, SESSION_LINES as usize);
    let other = IpAddr::from([192, 0, 2, 1]);
    assert!(journal.tells_of_session(other), "another host");
    assert!(journal.sweep(SECOND * 59).is_empty());
    assert_eq!(
        journal.sweep(SECOND * 60),
        ["127.0.0.1: 936 more logins and logouts within a minute"]
    );
    assert!(journal.is_empty());
    assert!(journal.tells_of_session(PEER), "the next minute");
}

#[test]
fn reservations_that_cannot_be_saved_are_told_once_a_minute_for_each_unit() {
    let mut unsaved = UnsavedReservations::default();
    let full = io::Error::from(io::ErrorKind::StorageFull);
    let first = unsaved.tell(Duration::ZERO, 0, &full).expect("a line");
    assert!(first.ends_with("check the state directory"), "{first}");
    for _ in 0..1000 {
        assert_eq!(unsaved.tell(SECOND, 0, &full), None);
    }
    assert!(unsaved.tell(SECOND, 1, &full).is_some(), "another unit");
    let later = unsaved.tell(SECOND * 60, 0, &full).expect("a line");
    assert!(later.ends_with(" (and 1000 more)"), "{later}");
}
