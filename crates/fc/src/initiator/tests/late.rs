//! Commands that are late, and targets that do not even answer aborts.

use std::time::Duration;

use crate::initiator::{Fate as End, FcpInitiatorEvent, FcpTmf, FcpWhy};
use crate::port::Fc4Layer;
use crate::tests::pair::{Pair, REMOTE, all, lost_if, plain};

#[test]
fn a_command_is_aborted_at_its_deadline() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    pair.pass(Duration::from_secs(30));
    pair.finish();
    let failed = pair.failed();
    assert_eq!((failed.fate, failed.why), (End::Aborted, FcpWhy::Late));
}

#[test]
fn commands_that_are_given_up_are_aborted_and_others_go_on() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    pair.test(2);
    pair.settle();
    pair.initiator.abandon(Duration::ZERO, |id| id == 1);
    pair.settle();
    pair.finish();
    let failed = pair.failed();
    assert_eq!((failed.id, failed.fate), (1, End::Aborted));
    assert!(!pair.initiator.is_at_rest(), "the other one is under way");
}

#[test]
fn a_query_is_told_to_be_unanswered_when_the_login_ends() {
    let mut pair = Pair::new(all());
    pair.test(1);
    pair.manage(FcpTmf::QueryTask(1));
    pair.initiator.peer_down(REMOTE);
    pair.serve();
    let [
        FcpInitiatorEvent::Failed(failed),
        FcpInitiatorEvent::Managed { id, response, .. },
    ] = &pair.told[..]
    else {
        panic!("{:?}", pair.told);
    };
    assert_eq!((failed.id, *id, *response), (1, 5, None));
}

#[test]
fn a_target_that_is_silent_is_stuck_and_said_to_be_so_once() {
    let mut pair = Pair::with(plain(), |_, to_target| lost_if(to_target));
    pair.test(1);
    pair.test(2);
    pair.until_told(1);
    pair.pass(Duration::from_secs(100));
    assert!(matches!(pair.told[..], [FcpInitiatorEvent::Stuck(REMOTE)]));
    let ends = "the port is to end the login";
    assert_eq!(pair.initiator.next_deadline(), None, "{ends}");
    pair.initiator.peer_down(REMOTE);
    pair.serve();
    let unknown =
        |event: &&_| matches!(event, FcpInitiatorEvent::Failed(it) if it.fate == End::Unknown);
    assert_eq!(pair.told.iter().filter(unknown).count(), 2);
}
