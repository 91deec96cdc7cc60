use super::rig::{Lan, alone, config, frames, hear, line, message, ms, multicast, port};
use super::rig::{receive, sent, told, up};
use crate::fip::Fip;
use crate::wire::fip::FipOperation;
use crate::wire::names::FcId;

fn two(pass: impl FnMut(&str) -> bool, until: u64) -> Lan {
    let mut lan = Lan::of(&[config(1)]);
    lan.run(ms(1500));
    lan.add(config(2), 2);
    lan.trace();
    lan.run_with(ms(until), pass);
    lan
}

/// Leaves out the first frame that holds `text`.
fn but_the_first(text: &'static str) -> impl FnMut(&str) -> bool {
    let mut seen = false;
    move |line| !line.contains(text) || std::mem::replace(&mut seen, true)
}

#[test]
fn an_flogi_that_is_lost_is_sent_again() {
    let mut lan = two(but_the_first("FLOGI"), 6000);
    let trace = lan.trace();
    let sent: Vec<_> = trace.iter().filter(|line| line.contains("FLOGI")).collect();
    let again = [
        "0001 > 0002 ElsRequest FLOGI 000001 > 000002 0000, lost",
        "0001 > 0002 ElsRequest FLOGI 000001 > 000002 0001",
    ];
    assert_eq!(sent, again);
    assert!(lan.all_know(1));
}

/// So one that seeks a port knows that there is more to wait for.
#[test]
fn a_port_that_is_heard_is_linking_until_there_is_a_link() {
    let (own, name) = (config(2), config(1).wwpn);
    let mut fip = port(own);
    alone(&mut fip, ms(1000));
    assert!(!fip.is_linking(name));
    let claim = multicast(&config(1), FipOperation::ClaimNotification, 1);
    receive(&mut fip, ms(1000), &claim).unwrap();
    assert!(fip.is_linking(name));
    assert!(!fip.is_linking(config(3).wwpn));
    assert!(!linked().is_linking(name));
}

/// To the one who accepted it the link is up, until the other asks again.
#[test]
fn an_answer_that_is_lost_is_given_again() {
    let mut lan = two(but_the_first("LS_ACC"), 6000);
    assert_eq!(
        lan.told(),
        [
            "1: claimed 000002",
            "1: found 000001",
            "1: lost 000001, Restarted",
            "1: found 000001",
            "0: found 000002",
        ]
    );
}

/// A port that is up: the other has claimed 000001 and beacons.
fn ready() -> Fip {
    let mut fip = up();
    hear(&mut fip, 1000, 1, CLAIM);
    hear(&mut fip, 1000, 1, BEACON);
    fip
}

/// The other end of `ready`, by hand: it knows 000002 and sends FLOGI when told.
fn other() -> Fip {
    let mut fip = port(config(1));
    alone(&mut fip, ms(1000));
    hear(&mut fip, 1000, 2, CLAIM);
    hear(&mut fip, 1000, 2, BEACON);
    fip
}

const CLAIM: FipOperation = FipOperation::ClaimNotification;
const BEACON: FipOperation = FipOperation::Beacon;

/// That 000002 accepts or rejects the FLOGI of 000001.
const ACCEPTED: &str = "0002 > 0001 ElsReply LS_ACC 000002 > 000001 0000";
const REJECTED: &str = "0002 > 0001 ElsReply LS_RJT 000002 > 000001 0000";

/// `ready`, with a link to the other.
pub(super) fn linked() -> Fip {
    let (mut fip, mut peer) = (ready(), other());
    let ours = only(&frames(&mut fip), "FLOGI");
    receive(&mut peer, ms(1010), &ours).unwrap();
    let answer = only(&frames(&mut peer), "LS_ACC");
    receive(&mut fip, ms(1020), &answer).unwrap();
    fip
}

fn only(frames: &[Vec<u8>], text: &str) -> Vec<u8> {
    let found = frames.iter().find(|frame| line(frame).contains(text));
    found.unwrap().clone()
}

#[test]
fn flogis_that_cross_are_both_accepted_and_make_one_link() {
    let (mut fip, mut peer) = (ready(), other());
    let ours = only(&frames(&mut fip), "FLOGI");
    let theirs = only(&frames(&mut peer), "FLOGI");
    receive(&mut fip, ms(1010), &theirs).unwrap();
    receive(&mut peer, ms(1010), &ours).unwrap();
    assert_eq!(told(&mut fip).len(), 0, "ours is not answered");
    let answer = only(&frames(&mut peer), "LS_ACC");
    receive(&mut fip, ms(1020), &answer).unwrap();
    assert_eq!(told(&mut fip), ["found 000001"]);
    receive(&mut fip, ms(1020), &answer).unwrap();
    assert_eq!(told(&mut fip).len(), 0);
}

/// The other side has what it needs, so the link is up though nobody answers ours.
#[test]
fn of_flogis_that_cross_one_answer_suffices() {
    let (mut fip, mut peer) = (ready(), other());
    let theirs = only(&frames(&mut peer), "FLOGI");
    receive(&mut fip, ms(1010), &theirs).unwrap();
    alone(&mut fip, ms(2900));
    assert_eq!(told(&mut fip).len(), 0);
    assert!(alone(&mut fip, ms(3100)).is_empty(), "no other FLOGI");
    assert_eq!(told(&mut fip), ["found 000001"]);
}

/// So does Linux with one that is back after a restart. Its PLOGI follows at once, and comes again
/// after 8 s only.
#[test]
fn a_port_that_rejects_our_flogi_and_sends_its_own_is_linked_at_once() {
    let mut fip = ready();
    let ours = only(&frames(&mut fip), "FLOGI");
    let mut busy = port(config(1));
    alone(&mut busy, ms(700));
    receive(&mut busy, ms(700), &ours).unwrap();
    let rejected = only(&frames(&mut busy), "LS_RJT");
    receive(&mut fip, ms(1010), &rejected).unwrap();
    let theirs = only(&frames(&mut other()), "FLOGI");
    receive(&mut fip, ms(1020), &theirs).unwrap();
    assert_eq!(told(&mut fip), ["found 000001"]);
    assert_eq!(sent(&mut fip), [ACCEPTED]);
    let later = alone(&mut fip, ms(8000));
    assert!(later.iter().all(|line| !line.contains("FLOGI")));
}

#[test]
fn a_duplicate_flogi_is_answered_and_changes_nothing() {
    let mut fip = ready();
    let mut peer = other();
    let theirs = only(&frames(&mut peer), "FLOGI");
    let ours = only(&frames(&mut fip), "FLOGI");
    receive(&mut peer, ms(1000), &ours).unwrap();
    let accepted = only(&frames(&mut peer), "LS_ACC");
    receive(&mut fip, ms(1010), &theirs).unwrap();
    receive(&mut fip, ms(1010), &accepted).unwrap();
    assert_eq!(told(&mut fip), ["found 000001"]);
    frames(&mut fip);
    receive(&mut fip, ms(1020), &theirs).unwrap();
    assert_eq!(told(&mut fip).len(), 0);
    assert_eq!(sent(&mut fip), [ACCEPTED]);
    // The same number much later is another one: Linux takes the lowest that is free.
    receive(&mut fip, ms(8000), &theirs).unwrap();
    assert_eq!(told(&mut fip), ["lost 000001, Restarted", "found 000001"]);
}

#[test]
fn one_that_is_not_answered_is_sent_four_times_a_beacon() {
    let mut fip = ready();
    let flogis = |lines: Vec<String>| lines.iter().filter(|line| line.contains("FLOGI")).count();
    let first = flogis(sent(&mut fip));
    assert_eq!(first + flogis(alone(&mut fip, ms(12_000))), 4);
    hear(&mut fip, 12_000, 1, BEACON);
    let asked = sent(&mut fip);
    let (answer, claim) = (FipOperation::ClaimResponse, FipOperation::ClaimNotification);
    assert!(asked[0].contains(&format!("{claim:?}")), "{asked:?}");
    let answer = message(&config(1), answer, 1, config(2).mac);
    receive(&mut fip, ms(12_000), &answer).unwrap();
    assert_eq!(flogis(sent(&mut fip)), 1);
}

#[test]
fn one_that_is_rejected_is_sent_again_after_a_while() {
    // 000002 does not know 000001, which sends FLOGI, for as long as it is not answered.
    let mut lan = two(|line| !line.contains("ClaimResponse"), 6000);
    let trace = lan.trace();
    assert!(trace.contains(&REJECTED.to_owned()));
    lan.run(ms(20_000));
    assert!(lan.all_know(1));
}

#[test]
fn logout_ends_the_link_on_both_sides_until_the_next_beacon() {
    let mut lan = two(|_| true, 4000);
    lan.trace();
    let now = lan.now;
    lan.ports[0].log_out(now, FcId(2));
    lan.run(ms(4100));
    assert_eq!(
        lan.trace(),
        [
            "0: lost 000002, LoggedOut",
            "0001 > 0002 ElsRequest LOGO 000001 > 000002 0001",
            "1: lost 000001, LoggedOut",
            "0002 > 0001 ElsReply LS_ACC 000002 > 000001 0001",
        ]
    );
    lan.run(ms(13_000));
    assert!(lan.all_know(1));
}

/// As Linux does 20 ms after a LOGO.
#[test]
fn who_logs_in_again_after_our_logout_is_rejected_until_its_next_beacon() {
    let (mut fip, mut peer) = (ready(), other());
    let theirs = only(&frames(&mut peer), "FLOGI");
    frames(&mut fip);
    fip.log_out(ms(1000), FcId(1));
    frames(&mut fip);
    receive(&mut fip, ms(1020), &theirs).unwrap();
    assert_eq!(sent(&mut fip), [REJECTED]);
    hear(&mut fip, 9000, 1, BEACON);
    frames(&mut fip);
    receive(&mut fip, ms(9010), &theirs).unwrap();
    assert!(sent(&mut fip)[0].contains("LS_ACC"));
}

#[test]
fn nobody_is_logged_out_of_who_is_not_known() {
    let mut fip = ready();
    frames(&mut fip);
    fip.log_out(ms(1000), FcId(77));
    assert!(frames(&mut fip).is_empty());
}

#[test]
fn a_stranger_is_told_that_he_is_no_neighbour() {
    let mut fip = up();
    let theirs = only(&frames(&mut other()), "FLOGI");
    receive(&mut fip, ms(1000), &theirs).unwrap();
    let answer = frames(&mut fip).remove(0);
    assert!(line(&answer).contains("LS_RJT"));
    let reason = &answer[14 + 10 + 4 + 24 + 4..][..4];
    assert_eq!(reason, [0, 0x20, 0x62, 0]);
}

/// Who logs in before we are up has a Beacon in mind that we sent in another life. Left without an
/// answer, Linux refuses all that we say as long as it waits for one.
#[test]
fn a_port_that_still_claims_is_not_logged_in_to() {
    for at in [ms(50), ms(700)] {
        let mut fip = port(config(2));
        alone(&mut fip, at);
        receive(&mut fip, at, &multicast(&config(1), CLAIM, 1)).unwrap();
        frames(&mut fip);
        let theirs = only(&frames(&mut other()), "FLOGI");
        receive(&mut fip, at, &theirs).unwrap();
        assert_eq!(told(&mut fip).len(), 0);
        assert_eq!(sent(&mut fip), [REJECTED]);
    }
}

/// A probe for its own N_Port_ID alone does not end a link: Linux sends such ones to ports in
/// point-to-point mode.
#[test]
fn a_neighbour_that_only_probes_has_not_begun_anew() {
    let mut lan = two(|_| true, 4000);
    lan.told();
    for operation in [FipOperation::ProbeRequest, BEACON, CLAIM] {
        hear(&mut lan.ports[1], 4000, 1, operation);
    }
    assert_eq!(told(&mut lan.ports[1]).len(), 0);
}
