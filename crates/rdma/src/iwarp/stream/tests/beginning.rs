//! Which end may send when (RFC 5044 §7.1.2), and what an initiator may begin with (RFC 6581 §9.2).

use super::rig::{Rig, read, send, write};
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::terminate::TerminateCode;
use crate::test_support::{agreed, pattern};
use crate::verbs::{QueuePair as _, Stag, Tag};

const NOWHERE: Tag = Tag {
    stag: Stag(0),
    offset: 0,
};

fn responder() -> Agreed {
    agreed(MpaRole::Responder)
}

/// A responder to a peer-to-peer initiator.
fn with_rtr() -> Agreed {
    Agreed {
        rtr: true,
        ..responder()
    }
}

#[test]
fn a_responder_sends_nothing_before_it_has_heard_an_fpdu() {
    let mut rig = Rig::fresh(responder());
    rig.post_send(b"eager", None);
    assert!(rig.sent().is_empty());
    let first = send(1, b"login");
    let (all_but_one, last) = first.split_at(first.len() - 1);
    rig.receive(all_but_one);
    assert!(rig.sent().is_empty());
    rig.receive(last);
    assert_eq!(rig.sent(), ["Send msn 1 mo 0: 5 last"]);
}

#[test]
fn an_initiator_that_hears_an_fpdu_before_it_has_sent_one_ends_without_a_word() {
    let mut rig = Rig::fresh(agreed(MpaRole::Initiator));
    rig.receive(&send(1, b"eager"));
    assert_eq!(rig.told(), ["broken: an invalid startup of MPA"]);
    assert!(rig.sent().is_empty());
    assert!(rig.stream.is_over());
}

#[test]
fn a_first_fpdu_that_cannot_be_read_is_not_answered() {
    let mut rig = Rig::fresh(responder());
    let mut first = send(1, b"login");
    first[10] ^= 1;
    rig.receive(&first);
    assert_eq!(rig.told(), ["broken: an FPDU with a wrong CRC"]);
    assert!(rig.sent().is_empty());
    assert!(rig.stream.is_over());
}

#[test]
fn a_first_fpdu_that_breaks_a_rule_of_ddp_is() {
    let mut rig = Rig::fresh(responder());
    rig.receive(&send(2, b"login"));
    assert_eq!(rig.sent_terminate().code, TerminateCode::INVALID_MSN);
}

#[test]
fn an_empty_send_that_means_ready_to_receive_is_not_told() {
    let mut rig = Rig::fresh(with_rtr());
    rig.post_send(b"eager", None);
    rig.receive(&send(1, b""));
    assert!(rig.told().is_empty());
    assert_eq!(rig.sent(), ["Send msn 1 mo 0: 5 last"]);
    // Only the first one means that.
    rig.receive(&send(2, b""));
    assert_eq!(rig.told(), ["sent", "received 0"]);
}

#[test]
fn an_empty_write_means_the_same() {
    let mut rig = Rig::fresh(with_rtr());
    rig.post_send(b"eager", None);
    rig.receive(&write(NOWHERE, b""));
    assert_eq!(rig.sent(), ["Send msn 1 mo 0: 5 last"]);
    assert_eq!(rig.told(), ["sent"]);
}

#[test]
fn an_empty_read_means_the_same_and_is_answered() {
    let mut rig = Rig::fresh(with_rtr());
    rig.receive(&read(1, NOWHERE, 0));
    assert_eq!(rig.sent(), ["Read Response 77+1000: 0 last"]);
    assert!(rig.told().is_empty());
}

#[test]
fn a_first_message_with_contents_is_a_message() {
    let mut rig = Rig::fresh(with_rtr());
    rig.receive(&send(1, &pattern(9)));
    assert_eq!(rig.told(), ["received 9"]);
}

#[test]
fn without_that_agreement_an_empty_send_is_a_message() {
    let mut rig = Rig::fresh(responder());
    rig.receive(&send(1, b""));
    assert_eq!(rig.told(), ["received 0"]);
}

#[test]
fn what_cannot_be_kept_is_refused_in_the_first_fpdu() {
    let refused = Agreed {
        refused: Some(TerminateCode::INSUFFICIENT_IRD),
        ..agreed(MpaRole::Initiator)
    };
    let mut rig = Rig::fresh(refused);
    rig.post_send(b"first", None);
    assert_eq!(rig.told(), ["broken: insufficient IRD resources"]);
    assert!(!rig.stream.is_over());
    assert_eq!(rig.sent(), ["Terminate: insufficient IRD resources"]);
    assert!(rig.stream.is_over());
    assert_eq!(rig.stream.limits().room, 0);
}
