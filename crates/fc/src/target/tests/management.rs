//! Task management functions and the codes that answer them.

use scsi::task::{Function, FunctionResult};

use super::aborts::abts;
use crate::initiator::{FcpInitiatorConfig, FcpInitiatorEvent, FcpTmf};
use crate::target::FcpLimits;
use crate::tests::pair::{Pair, REMOTE, all, decode, plain};

/// The response to the function, if that is all that was told, and what came with it.
#[track_caller]
fn response(pair: &mut Pair) -> (Option<u8>, [u8; 3]) {
    let told = std::mem::take(&mut pair.told);
    let [
        FcpInitiatorEvent::Managed {
            id: 5,
            response,
            information,
            ..
        },
    ] = told[..]
    else {
        panic!("{told:?}");
    };
    (response, information)
}

#[test]
fn each_function_comes_to_the_device_server() {
    for (asked, came, flags) in [
        (FcpTmf::AbortTaskSet, Function::AbortTaskSet, "02"),
        (FcpTmf::ClearTaskSet, Function::ClearTaskSet, "04"),
        (FcpTmf::LogicalUnitReset, Function::LogicalUnitReset, "10"),
        (FcpTmf::TargetReset, Function::TargetReset, "20"),
        (FcpTmf::ClearAca, Function::ClearAca, "40"),
        (FcpTmf::QueryTaskSet, Function::QueryTaskSet, "01"),
        (
            FcpTmf::QueryAsynchronousEvent,
            Function::QueryAsynchronousEvent,
            "08",
        ),
    ] {
        let mut pair = Pair::new(all());
        pair.manage(asked);
        pair.settle();
        assert_eq!(response(&mut pair).0, Some(0));
        assert_eq!(pair.disk.managed, [came]);
        let command = format!("> CMND management {flags}");
        assert_eq!(pair.traced(), [command.as_str(), "< RSP 00 code 00"]);
    }
}

#[test]
fn commands_that_a_reset_covers_fail_and_later_ones_do_not() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    pair.settle();
    pair.manage(FcpTmf::LogicalUnitReset);
    pair.test(2);
    pair.settle();
    pair.finish();
    response(&mut pair);
    pair.finish();
    assert_eq!(pair.failed().id, 1);
    assert_eq!(
        pair.traced()[2..],
        ["> CMND 00", "< RSP 00 code 00", "> ABTS", "< BA_ACC"]
    );
}

/// A command is in flight while the device server says so of its task set.
#[test]
fn what_a_query_finds_comes_to_who_asked_and_ends_nothing() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    let found = [0x16, 0x29, 0];
    for (function, result, answer) in [
        (
            FcpTmf::QueryAsynchronousEvent,
            FunctionResult::Succeeded(found),
            (Some(8), found),
        ),
        (
            FcpTmf::QueryTaskSet,
            FunctionResult::Complete,
            (Some(0), [0; 3]),
        ),
    ] {
        pair.disk.functions_end = result;
        pair.manage(function);
        pair.settle();
        pair.finish();
        assert_eq!(response(&mut pair), answer);
    }
}

#[test]
fn a_query_is_a_rec() {
    let mut pair = Pair::stopped(all());
    pair.test(1);
    pair.settle();
    pair.manage(FcpTmf::QueryTask(1));
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00", "> REC", "< LS_ACC"]);
    assert_eq!(response(&mut pair).0, Some(8));
}

#[test]
fn a_reset_is_carried_out_where_there_is_no_room_for_commands() {
    let limits = FcpLimits {
        commands: 1,
        ..FcpLimits::default()
    };
    let mut pair = Pair::limited(all(), FcpInitiatorConfig::default(), limits);
    pair.disk.is_stopped = true;
    pair.test(1);
    pair.read(2, 0, 1);
    pair.settle();
    assert_eq!(
        pair.traced(),
        ["> CMND 00", "> CMND 28", "< RSP 28 under 512"]
    );
    pair.manage(FcpTmf::LogicalUnitReset);
    pair.settle();
    assert_eq!(pair.disk.managed, [Function::LogicalUnitReset]);
}

/// The OX_ID of a command that the device server aborts begins another command.
fn begun_anew(by_abts: bool) -> usize {
    let mut pair = Pair::stopped(plain());
    pair.test(1);
    let sent = pair.sent();
    pair.deliver(&sent[0]);
    if by_abts {
        pair.reach_target(abts(decode(&sent[0]).header.ox_id), &[]);
    }
    pair.target.aborted(REMOTE, pair.tag());
    pair.deliver(&sent[0]);
    pair.disk.executed
}

#[test]
fn the_ox_id_of_a_command_that_a_reset_has_ended_may_be_used_at_once() {
    assert_eq!(begun_anew(false), 2);
    assert_eq!(begun_anew(true), 1);
}
