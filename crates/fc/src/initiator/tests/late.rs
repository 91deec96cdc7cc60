//! Commands that are late, and targets that do not even answer aborts.

use std::time::Duration;

use scsi::wire::lun::Lun;

use crate::exchange::tests::pair::{Fate, Pair, REMOTE, all, plain};
use crate::initiator::{Fate as End, FcpInitiatorEvent, FcpTmf, FcpWhy};

#[test]
fn a_command_is_aborted_at_its_deadline() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.pass(Duration::from_secs(30));
    pair.finish_aborts();
    pair.settle();
    let [FcpInitiatorEvent::Failed(failed)] = &pair.told[..] else {
        panic!("{:?}", pair.told);
    };
    assert_eq!((failed.fate, failed.why), (End::Aborted, FcpWhy::Late));
}

#[test]
fn commands_that_are_given_up_are_aborted_and_others_go_on() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.test(2);
    pair.settle();
    pair.initiator.abandon(Duration::ZERO, |id| id == 1);
    pair.settle();
    pair.finish_aborts();
    pair.settle();
    let [FcpInitiatorEvent::Failed(failed)] = &pair.told[..] else {
        panic!("{:?}", pair.told);
    };
    assert_eq!((failed.id, failed.fate), (1, End::Aborted));
    assert!(!pair.initiator.is_at_rest(), "the other one is under way");
}

#[test]
fn a_query_is_told_to_be_unanswered_when_the_login_ends() {
    let mut pair = Pair::new(all(), |_, _| Fate::IsLost);
    pair.test(1);
    let (now, lun, query) = (Duration::ZERO, Lun::from_index(0), FcpTmf::QueryTask(1));
    let taken = pair.initiator.manage(now, REMOTE, 2, lun, query);
    assert_eq!(taken, Ok(()));
    pair.initiator.peer_down(REMOTE);
    let told: Vec<_> = std::iter::from_fn(|| pair.initiator.poll()).collect();
    let [
        FcpInitiatorEvent::Failed(failed),
        FcpInitiatorEvent::Managed { id, response, .. },
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!((failed.id, *id, *response), (1, 2, None));
}

#[test]
fn a_target_that_is_silent_is_stuck_and_said_to_be_so_once() {
    let mut pair = Pair::new(plain(), |_, to_target| {
        if to_target {
            Fate::IsLost
        } else {
            Fate::Arrives
        }
    });
    pair.test(1);
    pair.test(2);
    pair.until_told(1);
    pair.pass(Duration::from_secs(100));
    assert!(matches!(pair.told[..], [FcpInitiatorEvent::Stuck(REMOTE)]));
    assert_eq!(
        pair.initiator.next_deadline(),
        None,
        "the port is to end the login"
    );
    pair.initiator.peer_down(REMOTE);
    let failed = std::iter::from_fn(|| pair.initiator.poll());
    let unknown =
        |event: &_| matches!(event, FcpInitiatorEvent::Failed(it) if it.fate == End::Unknown);
    assert_eq!(failed.filter(unknown).count(), 2);
}
