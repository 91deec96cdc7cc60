//! ABTS.

use std::time::Duration;

use crate::initiator::{FcpInitiatorEvent, FcpTmf};
use crate::port::Fc4Layer;
use crate::tests::pair::{Pair, REMOTE, all, decode, plain, request};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

#[test]
fn it_is_answered_when_the_device_server_has_ended_the_command() {
    let mut pair = Pair::stopped(all());
    pair.read(1, 0, 8);
    pair.settle();
    pair.manage(FcpTmf::AbortTask(1));
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 28", "> ABTS"]);
    pair.finish();
    assert_eq!(pair.traced(), ["< BA_ACC"]);
    assert!(matches!(
        pair.told[..],
        [
            FcpInitiatorEvent::Failed(_),
            FcpInitiatorEvent::Managed { id: 5, .. }
        ]
    ));
}

#[test]
fn data_that_waits_is_dropped_with_its_command() {
    let mut pair = Pair::new(plain());
    pair.read(1, 0, 64);
    let sent = pair.sent();
    pair.deliver(&sent[0]);
    assert!(pair.target.data_in_queued(REMOTE) > 0);
    pair.reach_target(abts(decode(&sent[0]).header.ox_id), &[]);
    assert_eq!(pair.target.data_in_queued(REMOTE), 0);
    pair.settle();
    assert_eq!(pair.traced(), ["< BA_ACC"]);
}

pub(super) fn abts(ox_id: OxId) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::END_SEQUENCE.with(FCtl::SEQUENCE_INITIATIVE),
        ..request(RCtl::ABTS, FrameType::BLS, ox_id.0)
    }
}

/// Sends ABTS for a command that has not come, then the command; tells how often that began.
fn overtaken_by_its_abort(wait: Duration) -> usize {
    let mut pair = Pair::new(plain());
    pair.test(1);
    let sent = pair.sent();
    pair.reach_target(abts(decode(&sent[0]).header.ox_id), &[]);
    pair.answered();
    pair.now += wait;
    pair.target.expire(pair.now);
    pair.deliver(&sent[0]);
    pair.disk.executed
}

#[test]
fn a_command_that_its_abort_has_overtaken_is_not_carried_out() {
    assert_eq!(overtaken_by_its_abort(Duration::ZERO), 0);
    assert_eq!(overtaken_by_its_abort(Duration::from_millis(9_999)), 0);
}

#[test]
fn after_r_a_tov_the_ox_id_is_free_again() {
    assert_eq!(overtaken_by_its_abort(Duration::from_secs(10)), 1);
}

#[test]
fn rrq_makes_it_free_at_both_ends() {
    let mut pair = Pair::stopped(plain());
    pair.test(1);
    pair.settle();
    pair.manage(FcpTmf::AbortTask(1));
    pair.settle();
    pair.finish();
    assert_eq!(pair.traced(), ["> CMND 00", "> ABTS", "< BA_ACC"]);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.traced(), ["> RRQ", "< LS_ACC"]);
    assert_eq!(pair.deadlines(), [None, None]);
}

#[test]
fn an_abort_of_another_exchange_leaves_the_one_under_way_alone() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    pair.settle();
    let stale = FrameHeader {
        rx_id: RxId(77),
        ..abts(OxId(0))
    };
    pair.reach_target(stale, &[]);
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00", "< BA_RJT 03"]);
    assert!(pair.told.is_empty());
}

#[test]
fn that_of_a_function_is_answered_when_the_function_has_ended() {
    let mut pair = Pair::stopped(all());
    pair.manage(FcpTmf::LogicalUnitReset);
    pair.settle();
    pair.reach_target(abts(OxId(0)), &[]);
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND management 10"]);
    pair.finish();
    assert_eq!(pair.traced(), ["< BA_ACC"]);
}
