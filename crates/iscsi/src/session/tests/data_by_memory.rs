//! Reads and writes where no PDU moves data: what a session asks of its datamover, and what it does
//! when that is done.

use scsi::task::Function;
use scsi::wire::sense::Status;

use super::rig::{FIRST_CMD_SN, MemoryRig as Rig, keys, pattern};
use crate::parameters::{Operational, TaskReporting};
use crate::wire::task_management::function;

fn without_unsolicited() -> Rig {
    Rig::with(Operational {
        initial_r2t: true,
        immediate_data: false,
        ..keys()
    })
}

#[test]
fn data_goes_whole_and_the_status_in_a_response_of_its_own() {
    let mut rig = Rig::new();
    let command = rig.read(1, 4500);
    rig.data_in(command.tag, 0, &pattern(3000));
    rig.data_in(command.tag, 3000, &pattern(1500));
    rig.good(command.tag, 4500, 0);
    rig.sends(["Data #1 [0+3000]", "Data #1 [3000+1500]", "Response #1 00"]);
    assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (101, 116));
}

#[test]
fn what_the_initiator_does_not_expect_is_cut_off() {
    let mut rig = Rig::new();
    let command = rig.read(1, 600);
    rig.answer(command.tag, 1024);
    rig.sends(["Data #1 [0+600]", "Response #1 00 O=424"]);
}

#[test]
fn memory_is_wanted_whole_whatever_the_burst_length() {
    let mut rig = without_unsolicited();
    let command = rig.write(1, 8192, true, &[]);
    rig.grant(command.tag, 0, 6000);
    rig.grant(command.tag, 6000, 2192);
    assert_eq!(rig.wanted(), ["#1 [0+6000]", "#1 [6000+2192]"]);
    rig.fulfil(&pattern(8192));
    assert_eq!(
        rig.got_data(),
        (command.tag, 0, pattern(8192)[..6000].to_vec())
    );
    rig.fulfil(&pattern(8192));
    assert_eq!(
        rig.got_data(),
        (command.tag, 6000, pattern(8192)[6000..].to_vec())
    );
    rig.good(command.tag, 0, 8192);
    rig.sends(["Response #1 00"]);
}

#[test]
fn only_what_did_not_come_unsolicited_is_wanted() {
    let mut rig = Rig::new();
    let command = rig.write(1, 3000, true, &pattern(3000)[..1000]);
    rig.grant(command.tag, 0, 400);
    rig.grant(command.tag, 400, 2600);
    assert_eq!(rig.got_data().1, 0);
    assert_eq!(rig.wanted(), ["#1 [1000+2000]"]);
    rig.fulfil(&pattern(3000));
    assert_eq!(
        rig.got_data(),
        (command.tag, 400, pattern(3000)[400..].to_vec())
    );
}

#[test]
fn a_write_that_ends_early_wants_nothing_more() {
    let mut rig = without_unsolicited();
    let tag = rig.granted(1, 2048, true, &[]);
    rig.complete(tag, Status::Busy, &[], 0, 0);
    assert_eq!(rig.wanted(), [""; 0]);
    rig.sends(["Response #1 08 U=2048"]);
}

#[test]
fn an_aborted_write_wants_nothing_more() {
    let mut rig = without_unsolicited();
    let tag = rig.granted(1, 2048, true, &[]);
    rig.abort(2, 1, FIRST_CMD_SN);
    assert_eq!(rig.obeys(&[tag]), Function::AbortTask(tag));
    assert_eq!(rig.wanted(), [""; 0]);
    rig.sends(["Task Response #2 0"]);
}

/// RFC 7143 §4.2.3.3: without FastAbort what was asked for has to come first.
#[test]
fn a_function_on_a_task_set_waits_for_wanted_data() {
    let mut rig = without_unsolicited();
    rig.granted(1, 2048, true, &[]);
    rig.manage(2, function::LOGICAL_UNIT_RESET);
    rig.quiet();
    rig.fulfil(&pattern(2048));
    assert_eq!(rig.got_data().1, 0);
    assert_eq!(rig.managing().1, Function::LogicalUnitReset);
}

#[test]
fn with_fast_abort_it_does_not() {
    let mut rig = Rig::with(Operational {
        initial_r2t: true,
        immediate_data: false,
        task_reporting: TaskReporting::FastAbort,
        ..keys()
    });
    rig.granted(1, 2048, true, &[]);
    rig.manage(2, function::LOGICAL_UNIT_RESET);
    assert_eq!(rig.managing().1, Function::LogicalUnitReset);
}

#[test]
fn wanted_data_that_never_comes_ends_the_session() {
    let mut rig = without_unsolicited();
    rig.granted(1, 2048, true, &[]);
    for second in 1..=12 {
        rig.quiet();
        rig.ping(second + 1, b"");
        rig.sent();
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "requested data did not arrive");
}

#[test]
fn a_logout_keeps_what_has_ended_and_drops_the_rest() {
    let mut rig = Rig::new();
    let ended = rig.read(1, 512);
    let running = rig.read(2, 512);
    rig.answer(ended.tag, 512);
    rig.data_in(running.tag, 0, &pattern(512));
    rig.send(rig.logout_pdu(3, 0).encode(), &[]);
    assert_eq!(rig.obeys(&[running.tag]), Function::NexusReset);
    rig.sends(["Data #1 [0+512]", "Response #1 00", "Logout Response #3 0"]);
}
