//! Task management functions and the codes that answer them.

use scsi::task::{self, FunctionResult};

use crate::exchange::tests::pair::{Fate, LUN, Pair, REMOTE, all, decode, peer, plain};
use crate::frame_sink::HeapFrames;
use crate::initiator::{FcpInitiatorEvent, FcpTmf};
use crate::target::{FcpLimits, FcpTarget};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, RCtl};

fn carried_out(function: FcpTmf) -> (Vec<task::Function>, Vec<String>) {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, function),
        Ok(())
    );
    pair.settle();
    let answered = matches!(
        pair.told[..],
        [FcpInitiatorEvent::Managed {
            id: 5,
            response: Some(0),
            ..
        }]
    );
    assert!(answered, "{:?}", pair.told);
    (pair.managed.clone(), pair.traced())
}

#[test]
fn each_function_comes_to_the_device_server() {
    let table = [
        (FcpTmf::AbortTaskSet, task::Function::AbortTaskSet, "02"),
        (FcpTmf::ClearTaskSet, task::Function::ClearTaskSet, "04"),
        (
            FcpTmf::LogicalUnitReset,
            task::Function::LogicalUnitReset,
            "10",
        ),
        (FcpTmf::TargetReset, task::Function::TargetReset, "20"),
        (FcpTmf::ClearAca, task::Function::ClearAca, "40"),
        (FcpTmf::QueryTaskSet, task::Function::QueryTaskSet, "01"),
        (
            FcpTmf::QueryAsynchronousEvent,
            task::Function::QueryAsynchronousEvent,
            "08",
        ),
    ];
    for (asked, came, flags) in table {
        let (managed, trace) = carried_out(asked);
        assert_eq!(managed, [came]);
        let command = format!("> CMND management {flags}");
        assert_eq!(trace, [command.as_str(), "< RSP 00 code 00"]);
    }
}

#[test]
fn commands_that_a_reset_covers_fail_and_later_ones_do_not() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    let reset = FcpTmf::LogicalUnitReset;
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, reset),
        Ok(())
    );
    pair.test(2);
    pair.settle();
    pair.finish_functions();
    pair.settle();
    assert!(matches!(pair.told[..], [FcpInitiatorEvent::Managed { .. }]));
    pair.finish_aborts();
    pair.settle();
    assert!(matches!(&pair.told[1..], [FcpInitiatorEvent::Failed(failed)] if failed.id == 1));
    assert_eq!(
        pair.traced()[2..],
        ["> CMND 00", "< RSP 00 code 00", "> ABTS", "< BA_ACC"]
    );
}

/// A command is in flight while the device server says so of its task set.
#[test]
fn what_a_query_finds_comes_to_who_asked_and_ends_nothing() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
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
        pair.functions_end = result;
        let asked = pair.initiator.manage(pair.now, REMOTE, 5, LUN, function);
        assert_eq!(asked, Ok(()));
        pair.settle();
        pair.finish_functions();
        pair.settle();
        let told = std::mem::take(&mut pair.told);
        let [
            FcpInitiatorEvent::Managed {
                response,
                information,
                ..
            },
        ] = told[..]
        else {
            panic!("{told:?}");
        };
        assert_eq!((response, information), answer);
    }
}

#[test]
fn a_query_is_a_rec() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    let query = FcpTmf::QueryTask(1);
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, query),
        Ok(())
    );
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00", "> REC", "< LS_ACC"]);
    assert!(matches!(
        pair.told[..],
        [FcpInitiatorEvent::Managed {
            response: Some(8),
            ..
        }]
    ));
}

#[test]
fn a_reset_is_carried_out_where_there_is_no_room_for_commands() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.target = FcpTarget::new(FcpLimits {
        commands: 1,
        ..FcpLimits::default()
    });
    pair.target.peer_up(REMOTE, peer(2, 1, all()));
    pair.is_stopped = true;
    pair.test(1);
    pair.read(2, 0, 1);
    pair.settle();
    assert_eq!(
        pair.traced(),
        ["> CMND 00", "> CMND 28", "< RSP 28 under 512"]
    );
    let reset = FcpTmf::LogicalUnitReset;
    assert_eq!(
        pair.initiator.manage(pair.now, REMOTE, 5, LUN, reset),
        Ok(())
    );
    pair.settle();
    assert_eq!(pair.managed, [task::Function::LogicalUnitReset]);
}

/// The OX_ID of a command that the device server aborts begins another command.
fn begun_anew(by_abts: bool) -> usize {
    let mut pair = Pair::new(plain(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    let mut out = HeapFrames::default();
    pair.initiator.transmit(&mut out);
    let command = decode(&out.frames[0]);
    pair.reach_target(command.header, command.payload);
    if by_abts {
        let abts = FrameHeader {
            f_ctl: FCtl::END_SEQUENCE.with(FCtl::SEQUENCE_INITIATIVE),
            kind: FrameType::BLS,
            r_ctl: RCtl::ABTS,
            ..command.header
        };
        pair.reach_target(abts, &[]);
    }
    let tag = pair.stopped[0];
    pair.target.aborted(REMOTE, tag);
    pair.reach_target(command.header, command.payload);
    pair.executed
}

#[test]
fn the_ox_id_of_a_command_that_a_reset_has_ended_may_be_used_at_once() {
    assert_eq!(begun_anew(false), 2);
    assert_eq!(begun_anew(true), 1);
}
