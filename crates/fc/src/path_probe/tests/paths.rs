//! Ports behind a bridge whose MTU is right, or wrong one way or both.

use std::time::Duration;

use super::rig::{Segment, deaf, port, probe};
use crate::path_probe::{EchoResult, PathVerdict};
use crate::tests::Machine;

const LONG: Duration = Duration::from_secs(5);

fn behind(other: impl Machine + 'static, passes: fn(usize, bool) -> bool) -> Segment {
    let mut segment = Segment::new(probe(2500), vec![Box::new(other)], passes);
    segment.run(LONG);
    segment
}

#[test]
fn full_frames_pass_both_ways() {
    let segment = behind(port(0x41, 2500), |_, _| true);
    assert_eq!(segment.verdict(), PathVerdict::Full);
    let path = segment.path();
    assert_eq!((path.max_fcoe, path.answer), (Some(2158), Some(2158)));
    let full = EchoResult::Passed {
        longest: 2112,
        full: 2112,
    };
    assert_eq!(path.echo, full);
    assert_eq!(path.wwpn, Some(crate::tests::config(0x41).wwpn));
}

/// What an end takes by its own MTU is no fault of the way.
#[test]
fn a_port_with_a_smaller_mtu_is_reached_by_its_full_frames() {
    let segment = behind(port(0x41, 1500), |_, _| true);
    assert_eq!(segment.verdict(), PathVerdict::Full);
    assert_eq!(segment.path().max_fcoe, Some(1498));
}

#[test]
fn long_frames_that_do_not_arrive_there_are_found_and_measured() {
    let segment = behind(port(0x41, 2500), |len, comes_in| comes_in || len <= 1500);
    // 1,452 bytes of payload, by the words that fit 1,500.
    assert_eq!(segment.verdict(), PathVerdict::NarrowOut(1498));
}

/// The answer to our claim does not come, so there is no virtual link, but the port asks for one.
#[test]
fn long_frames_that_do_not_come_in_are_found() {
    let segment = behind(port(0x41, 2500), |len, comes_in| !comes_in || len <= 1500);
    assert_eq!(segment.verdict(), PathVerdict::NarrowIn);
    assert_eq!(segment.path().answer, None);
}

#[test]
fn a_way_that_is_narrow_both_ways_is_found() {
    let segment = behind(port(0x41, 2500), |len, _| len <= 1500);
    assert_eq!(segment.verdict(), PathVerdict::NarrowIn);
}

/// One that comes up later answers no claim of ours: only ECHO shows the way in.
#[test]
fn a_port_that_comes_later_is_measured_too() {
    let mut segment = Segment::new(probe(2500), Vec::new(), |len, _| len <= 1500);
    segment.run(LONG);
    let mut late = port(0x41, 2500);
    late.link(Duration::from_secs(7), true);
    segment.others.push(Box::new(late));
    segment.run(LONG);
    let path = segment.path();
    // Our answer to its claim is lost as its answer to ours would be.
    assert_eq!((path.answer, path.echo), (None, EchoResult::Untried));
    assert_eq!(segment.verdict(), PathVerdict::NarrowIn);
}

#[test]
fn a_port_that_answers_no_echo_says_nothing_about_the_way_out() {
    let segment = behind(deaf(0x41), |_, _| true);
    assert_eq!(segment.path().echo, EchoResult::Silent);
    assert_eq!(segment.verdict(), PathVerdict::Unknown);
}

#[test]
fn two_probes_measure_each_other() {
    let other = crate::path_probe::PathProbe::new(
        crate::path_probe::PathProbeConfig {
            mac: crate::tests::config(0x41).mac,
            wwpn: crate::tests::config(0x41).wwpn,
            wwnn: crate::tests::config(0x41).wwnn,
            mtu: 2500,
        },
        Duration::ZERO,
        [5; 8],
    );
    assert_eq!(behind(other, |_, _| true).verdict(), PathVerdict::Full);
}

/// A port that is told goes at once, in place of missing us for 20 s.
#[test]
fn leaving_is_told() {
    let mut segment = behind(port(0x41, 2500), |_, _| true);
    segment.seen.clear();
    segment.probe.leave(Duration::from_secs(7));
    segment.run(Duration::from_millis(100));
    let logo = |frame: &Vec<u8>| frame[12..14] == [0x89, 0x14] && frame[16..20] == [0, 2, 0, 1];
    assert_eq!(segment.seen.iter().filter(|frame| logo(frame)).count(), 1);
}
