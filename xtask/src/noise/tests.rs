//! What is made of looks and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control::plane::Session;
use tests::process::ThreadSwitches;

use super::noise_threads::{NoiseCounts, change};
use super::session::{is_same, logins, of_load};
use super::{LOAD, Turn, idle, judge, median};

fn session(id: u16, commands: u64, age_s: u64) -> Session {
    Session {
        id: Some(id),
        initiator: "iqn.2026-11.org.example:host".to_owned(),
        isid: Some("80000000000a".to_owned()),
        target: Some(LOAD.to_owned()),
        address: "127.0.0.1:40000".to_owned(),
        portal: "127.0.0.1:3260".to_owned(),
        user: None,
        proof: "none".to_owned(),
        transport: "tcp".to_owned(),
        device: None,
        digests: "none".to_owned(),
        core: 0,
        age_s,
        commands,
        read_bytes: 0,
        written_bytes: 0,
        latency: Default::default(),
    }
}

#[test]
fn the_session_of_the_load_is_that_which_reads() {
    let elsewhere = Session {
        target: Some("iqn.2026-11.org.example:t1".to_owned()),
        ..session(4, 5000, 9)
    };
    let sessions = vec![session(1, 9000, 9), elsewhere, session(2, 3, 0)];
    assert_eq!(of_load(sessions.clone(), 1), None);
    let sessions = [sessions, vec![session(3, 5000, 1)]].concat();
    assert_eq!(of_load(sessions, 1), Some(session(3, 5000, 1)));
}

#[test]
fn a_number_that_is_used_again_is_of_another_session() {
    let first = session(3, 5000, 5);
    assert!(is_same(&first, &session(3, 9000, 23)));
    assert!(!is_same(&first, &session(4, 9000, 23)));
    assert!(!is_same(&first, &session(3, 9000, 2)));
}

#[test]
fn logins_are_those_that_were_let_in() {
    let metrics = "# HELP lunar_logins_total Logins\n\
                   lunar_logins_total{portal=\"127.0.0.1:1\",result=\"accepted\"} 12\n\
                   lunar_logins_total{portal=\"127.0.0.1:1\",result=\"refused\"} 5\n\
                   lunar_logins_total{portal=\"127.0.0.1:2\",result=\"accepted\"} 3\n";
    assert_eq!(logins(metrics).unwrap(), 15);
}

#[test]
fn changes_take_back_what_they_have_made() {
    let mut there = BTreeSet::new();
    for number in 0..400 {
        let change = change(number, 10);
        for path in &change.unset {
            let before = there.len();
            there.retain(|set: &String| set != path && !set.starts_with(&format!("{path}.")));
            assert_eq!(
                there.len() + 1,
                before,
                "{path} was not set before {number}"
            );
        }
        there.extend(change.set.into_iter().map(|(path, _)| path));
        assert!(there.len() <= 3, "{there:?}");
    }
    assert_eq!(there, BTreeSet::new());
}

#[test]
fn wake_ups_are_those_between_two_looks_by_the_names_of_threads() {
    let thread = |name: &str, waits, preemptions| ThreadSwitches {
        name: name.to_owned(),
        waits,
        preemptions,
    };
    let before = BTreeMap::from([(1, thread("lunar", 10, 1)), (2, thread("file", 5, 0))]);
    let after = BTreeMap::from([
        (1, thread("lunar", 12, 1)),
        (3, thread("lunar", 4, 2)),
        (4, thread("file", 1, 0)),
    ]);
    let expected = [("file".to_owned(), (1, 0)), ("lunar".to_owned(), (6, 2))];
    assert_eq!(idle::by_name(&before, &after), BTreeMap::from(expected));
}

#[test]
fn medians_of_both_kinds_are_compared() {
    let turn = |iops, noise: Option<NoiseCounts>| Turn {
        iops,
        p999_us: 1e8 / iops,
        noise,
    };
    let noise = || {
        Some(NoiseCounts {
            applies: vec![1.0; 25],
            time: Duration::from_secs(25),
            ..NoiseCounts::default()
        })
    };
    let turns = [
        turn(1e5, None),
        turn(9e4, noise()),
        turn(8e4, noise()),
        turn(2e5, None),
        turn(1e5, None),
        turn(4e4, noise()),
    ];
    let judged = |applies| {
        let verdicts = judge(&turns, Duration::from_secs(20), applies);
        verdicts.iter().map(|one| one.good).collect::<Vec<_>>()
    };
    assert_eq!(judged(20), [false, true, true]);
    assert_eq!(judged(21), [false, true, false]);
    assert!(judge(&[], Duration::from_secs(20), 20).is_empty());
}

#[test]
fn a_median_of_an_even_number_lies_between_two() {
    assert_eq!(median(vec![]), None);
    assert_eq!(median(vec![3.0]), Some(3.0));
    assert_eq!(median(vec![9.0, 1.0, 3.0, 2.0]), Some(2.5));
}
