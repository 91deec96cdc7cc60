//! Task management in every state of a write (RFC 7143 §11.5, §11.6, RFC 7144 §6; UNH FFP 11.x).

use scsi::task::{Function, FunctionResult};

use super::rig::{FIRST_CMD_SN, LUN, Rig, over_each_datamover, over_one_datamover, pattern};
use crate::parameters::{FIRST_WINDOW, TaskReporting};
use crate::session::SessionEvent;
use crate::wire::bhs::{Itt, Ttt};
use crate::wire::data::R2t;
use crate::wire::serial::CmdSn;
use crate::wire::task_management::function;

over_each_datamover! {
    #[test]
    fn a_command_at_the_medium_is_aborted_and_gets_no_response() {
        let mut rig = Rig::new();
        let command = rig.read(1, 512);
        rig.abort(2, 1, FIRST_CMD_SN);
        let (id, function) = rig.managing();
        assert_eq!(function, Function::AbortTask(command.tag));
        rig.sends_nothing();
        rig.aborted(command.tag);
        rig.managed(id, FunctionResult::Complete);
        rig.sends(["Task Response #2 0"]);
    }

    #[test]
    fn a_command_that_ends_while_it_is_to_be_aborted_is_answered_first() {
        let mut rig = Rig::new();
        let command = rig.read(1, 0);
        rig.abort(2, 1, FIRST_CMD_SN);
        let (id, _) = rig.managing();
        rig.good(command.tag, 0, 0);
        rig.managed(id, FunctionResult::NoTask);
        rig.sends(["Response #1 00", "Task Response #2 1"]);
    }

    #[test]
    fn a_command_whose_response_was_sent_does_not_exist() {
        let mut rig = Rig::new();
        let command = rig.read(1, 0);
        rig.good(command.tag, 0, 0);
        rig.abort(2, 1, FIRST_CMD_SN);
        rig.sends(["Response #1 00", "Task Response #2 1"]);
        rig.abort(3, 1, FIRST_CMD_SN);
        rig.sends(["Task Response #3 1"]);
    }

    #[test]
    fn a_command_that_never_came_is_aborted_and_its_number_used_up() {
        let mut rig = Rig::new();
        let lost = rig.skip_cmd_sn();
        let late = rig.read_pdu(2, 512);
        rig.send(late.encode(), &[]);
        rig.quiet();
        rig.abort(3, 1, lost.0);
        let command = rig.executed();
        assert_eq!(command.expected_in, 512);
        rig.sends(["Task Response #3 0"]);
        assert_eq!(rig.exp_cmd_sn, FIRST_CMD_SN + 2);
    }

    #[test]
    fn a_command_that_waits_for_its_turn_is_never_carried_out() {
        let mut rig = Rig::new();
        let lost = rig.read_pdu(1, 512);
        let early = rig.write_pdu(2, 512, true);
        rig.send(early.encode(), &pattern(512));
        rig.abort(3, 2, early.cmd_sn.0);
        rig.sends(["Task Response #3 0"]);
        assert_eq!(rig.session.held, 0);
        rig.send(lost.encode(), &[]);
        assert_eq!(rig.executed().expected_in, 512);
        rig.quiet();
        rig.ping(4, b"");
        rig.sent();
        assert_eq!(rig.exp_cmd_sn, FIRST_CMD_SN + 2);
    }

    #[test]
    fn a_reference_outside_the_window_is_no_task() {
        let mut rig = Rig::new();
        rig.abort(1, 77, FIRST_CMD_SN + 5000);
        rig.abort(2, 77, FIRST_CMD_SN);
        rig.sends(["Task Response #1 1", "Task Response #2 1"]);
    }

    #[test]
    fn a_command_on_another_lun_is_no_task() {
        let mut rig = Rig::new();
        rig.read(1, 512);
        let mut pdu = rig.task_pdu(2, function::ABORT_TASK);
        pdu.referenced = Itt(1);
        pdu.ref_cmd_sn = CmdSn(FIRST_CMD_SN);
        pdu.lun = scsi::wire::lun::Lun::from_index(5);
        rig.send(pdu.encode(), &[]);
        rig.sends(["Task Response #2 1"]);
    }

    #[test]
    fn a_task_management_function_cannot_be_aborted() {
        let mut rig = Rig::new();
        rig.manage(1, function::LOGICAL_UNIT_RESET);
        let (id, _) = rig.managing();
        rig.abort(2, 1, FIRST_CMD_SN);
        rig.sends(["Task Response #2 255"]);
        rig.managed(id, FunctionResult::Complete);
        rig.sends(["Task Response #1 0"]);
    }

    #[test]
    fn a_task_that_another_nexus_aborted_opens_the_window_by_a_nop_in() {
        let mut rig = Rig::new();
        let command = rig.read(1, 512);
        rig.aborted(command.tag);
        rig.sends(["NOP-In - \"\""]);
        assert_eq!(rig.max_cmd_sn, FIRST_CMD_SN + 16);
    }

    #[test]
    fn a_task_set_function_waits_for_the_commands_before_it() {
        let mut rig = Rig::new();
        let one = rig.read_pdu(1, 512);
        let mut pdu = rig.task_pdu(2, function::ABORT_TASK_SET);
        pdu.cmd_sn = CmdSn(FIRST_CMD_SN + 1);
        rig.send(pdu.encode(), &[]);
        rig.quiet();
        rig.send(one.encode(), &[]);
        rig.executed();
        assert_eq!(rig.managing().1, Function::AbortTaskSet);
    }

    #[test]
    fn task_reassign_is_not_supported() {
        let mut rig = Rig::new();
        rig.read(1, 512);
        let mut pdu = rig.task_pdu(2, function::TASK_REASSIGN);
        pdu.referenced = Itt(1);
        rig.send(pdu.encode(), &[]);
        rig.sends(["Task Response #2 4"]);
    }

    #[test]
    fn a_warm_reset_takes_all_commands_before_it_as_received() {
        let mut rig = Rig::new();
        let lost = rig.skip_cmd_sn();
        let early = rig.read_pdu(1, 512);
        rig.send(early.encode(), &[]);
        rig.manage(2, function::TARGET_WARM_RESET);
        assert_eq!(rig.obeys(&[]), Function::TargetReset);
        rig.sends(["Task Response #2 0"]);
        assert_eq!(rig.exp_cmd_sn, lost.0 + 2);
        let next = rig.read(3, 8);
        rig.good(next.tag, 8, 0);
    }

    #[test]
    fn a_cold_reset_closes_every_connection_after_its_response() {
        let mut rig = Rig::new();
        rig.manage(1, function::TARGET_COLD_RESET);
        rig.obeys(&[]);
        assert!(matches!(rig.event(), Some(SessionEvent::ColdReset)));
        assert_eq!(rig.rule(), "TARGET COLD RESET");
        rig.sends(["Task Response #1 0"]);
    }

    #[test]
    fn an_i_t_nexus_reset_closes_the_connection_after_its_response() {
        let mut rig = Rig::new();
        let command = rig.read(1, 512);
        rig.manage(2, function::I_T_NEXUS_RESET);
        assert_eq!(rig.obeys(&[command.tag]), Function::NexusReset);
        assert_eq!(rig.rule(), "I_T NEXUS RESET");
        rig.sends(["Task Response #2 0"]);
    }

    #[test]
    fn query_task_finds_what_is_under_way() {
        let mut rig = Rig::new();
        let command = rig.read(1, 512);
        let query = |rig: &mut Rig, itt, referenced| {
            let mut pdu = rig.task_pdu(itt, function::QUERY_TASK);
            pdu.referenced = Itt(referenced);
            rig.send(pdu.encode(), &[]);
        };
        query(&mut rig, 2, 1);
        let (id, function) = rig.managing();
        assert_eq!(function, Function::QueryTask(command.tag));
        rig.managed(id, FunctionResult::Succeeded([0; 3]));
        query(&mut rig, 3, 99);
        rig.sends(["Task Response #2 7", "Task Response #3 0"]);
    }

    #[test]
    fn the_answer_to_query_asynchronous_event_carries_its_information() {
        let mut rig = Rig::new();
        rig.manage(1, function::QUERY_ASYNCHRONOUS_EVENT);
        let (id, function) = rig.managing();
        assert_eq!(function, Function::QueryAsynchronousEvent);
        rig.managed(id, FunctionResult::Succeeded([0x16, 0x29, 0]));
        rig.sends(["Task Response #1 7 [16, 29, 00]"]);
    }

    #[test]
    fn the_functions_of_rfc_7144_need_its_protocol_level() {
        for code in 9..=13 {
            let mut rig = Rig::agreed(|keys| keys.protocol_level = 1);
            rig.manage(1, code);
            rig.sends(["Task Response #1 5"]);
        }
    }

    #[test]
    fn what_the_device_server_says_is_told() {
        for (result, response) in [
            (FunctionResult::Rejected, 255),
            (FunctionResult::IncorrectLun, 2),
            (FunctionResult::Complete, 0),
        ] {
            let mut rig = Rig::new();
            rig.manage(1, function::CLEAR_ACA);
            let (id, function) = rig.managing();
            assert_eq!(function, Function::ClearAca);
            rig.managed(id, result);
            rig.sends([format!("Task Response #1 {response}")]);
        }
    }

    #[test]
    fn a_numbered_function_takes_its_place_in_the_row() {
        let mut rig = Rig::new();
        let mut pdu = rig.task_pdu(1, function::LOGICAL_UNIT_RESET);
        pdu.immediate = false;
        pdu.cmd_sn = rig.next_cmd_sn();
        rig.send(pdu.encode(), &[]);
        rig.obeys(&[]);
        rig.sends(["Task Response #1 0"]);
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (101, 116));
        assert_eq!(rig.read(2, 8).lun, LUN);
    }

    #[test]
    fn functions_that_are_never_answered_are_bounded() {
        let mut rig = Rig::new();
        for itt in 1..=16 {
            rig.manage(itt, function::QUERY_TASK_SET);
            rig.managing();
        }
        rig.manage(17, function::QUERY_TASK_SET);
        rig.sends(["Reject 06 of TaskRequest"]);
    }
}

/// A write of 4 KiB that waits for the answer to two R2Ts.
fn waiting_write(rig: &mut Rig) -> scsi::task::Tag {
    let tag = rig.granted(1, 4096, true, &[]);
    rig.sends([
        "R2T #1 ttt=0 sn=0 [0+2048]",
        "R2T #1 ttt=10000 sn=1 [2048+2048]",
    ]);
    tag
}

#[test]
fn a_write_half_way_is_aborted_and_its_data_dropped_quietly() {
    let mut rig = Rig::new();
    let tag = waiting_write(&mut rig);
    rig.data_out(1, Ttt(0), 0, 0, false, &pattern(1024));
    rig.abort(2, 1, FIRST_CMD_SN);
    rig.obeys(&[tag]);
    rig.sends(["Task Response #2 0"]);
    rig.data_out(1, Ttt(0), 1, 1024, true, &pattern(1024));
    rig.data_out(1, Ttt(0x1_0000), 0, 2048, true, &pattern(2048));
    rig.quiet();
    rig.sends_nothing();
    rig.data_out(1, Ttt(0), 2, 2048, true, &pattern(4));
    rig.sends(["Reject 09 of DataOut"]);
}

/// A reset of the unit by another initiator aborts all writes in flight at once.
#[test]
fn data_of_a_window_of_aborted_writes_is_dropped_quietly() {
    let mut rig = Rig::agreed(|keys| keys.outstanding_r2t = 8);
    let mut tags = Vec::new();
    for itt in 1..=FIRST_WINDOW {
        let tag = rig.granted(itt, 16_384, true, &[]);
        tags.push(tag);
    }
    let asked: Vec<R2t> = rig.pdus().iter().map(|(bhs, _)| R2t::decode(bhs)).collect();
    assert_eq!(asked.len(), 8 * tags.len());
    for tag in tags {
        rig.aborted(tag);
    }
    for r2t in &asked {
        rig.data_out(r2t.itt.0, r2t.ttt, 0, r2t.offset, true, &pattern(2048));
    }
    let sent = rig.sent();
    assert!(
        !sent.iter().any(|pdu| pdu.starts_with("Reject")),
        "{sent:?}"
    );
}

#[test]
fn a_write_aborted_in_the_middle_of_a_pdu_drops_the_rest() {
    let mut rig = Rig::new();
    let pdu = rig.write_pdu(1, 1024, true);
    let bytes = rig.bytes(pdu.encode(), &[], &pattern(1024));
    rig.give(&bytes[..48 + 100]);
    let command = rig.executed();
    rig.aborted(command.tag);
    rig.give(&bytes[48 + 100..]);
    rig.quiet();
    rig.ping(3, b"still there");
    assert_eq!(rig.sent().last().unwrap(), "NOP-In #3 \"still there\"");
    assert_eq!(rig.session.held, 0);
}

#[test]
fn a_task_set_is_aborted_when_the_data_asked_for_has_come() {
    let mut rig = Rig::new();
    let tag = waiting_write(&mut rig);
    rig.manage(2, function::ABORT_TASK_SET);
    rig.quiet();
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    rig.quiet();
    rig.data_out(1, Ttt(0x1_0000), 0, 2048, true, &pattern(2048));
    rig.got_data();
    assert_eq!(rig.obeys(&[tag]), Function::AbortTaskSet);
    rig.sends(["Task Response #2 0"]);
}

#[test]
fn no_more_data_is_asked_for_from_a_task_set_to_be_aborted() {
    let mut rig = Rig::new();
    rig.granted(1, 8192, true, &[]);
    rig.manage(2, function::CLEAR_TASK_SET);
    assert_eq!(rig.sent(), [""; 0], "R2Ts that had not left are withdrawn");
    assert_eq!(rig.managing().1, Function::ClearTaskSet);
}

#[test]
fn an_initiator_that_owes_data_is_not_waited_for_long() {
    let mut rig = Rig::new();
    waiting_write(&mut rig);
    rig.manage(2, function::LOGICAL_UNIT_RESET);
    rig.quiet();
    assert_eq!(
        rig.session.next_deadline(),
        Some(std::time::Duration::from_secs(2))
    );
    rig.wait(2);
    assert_eq!(rig.managing().1, Function::LogicalUnitReset);
}

#[test]
fn fast_abort_does_not_wait_for_data() {
    let mut rig = Rig::agreed(|keys| keys.task_reporting = TaskReporting::FastAbort);
    let tag = waiting_write(&mut rig);
    rig.manage(2, function::ABORT_TASK_SET);
    rig.obeys(&[tag]);
    rig.sends(["Task Response #2 0"]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    rig.quiet();
}

#[test]
fn fast_abort_tells_of_tasks_that_another_nexus_aborted() {
    let mut rig = Rig::agreed(|keys| keys.task_reporting = TaskReporting::FastAbort);
    let tag = waiting_write(&mut rig);
    rig.aborted(tag);
    rig.sends(["Async 5 [0, 0, 0] []"]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    rig.quiet();
}

#[test]
fn commands_after_a_task_set_function_wait_until_it_has_been_passed_on() {
    let mut rig = Rig::new();
    waiting_write(&mut rig);
    rig.manage(2, function::ABORT_TASK_SET);
    let next = rig.read_pdu(3, 512);
    rig.send(next.encode(), &[]);
    rig.quiet();
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    rig.data_out(1, Ttt(0x1_0000), 0, 2048, true, &pattern(2048));
    rig.got_data();
    rig.managing();
    assert_eq!(rig.executed().expected_in, 512);
}

#[test]
fn a_task_set_function_ends_commands_that_failed_and_still_wait_for_data() {
    let mut rig = Rig::new();
    let command = rig.write(1, 4096, false, &[]);
    rig.complete(command.tag, scsi::wire::sense::Status::Busy, &[], 0, 0);
    rig.sends_nothing();
    rig.manage(2, function::LOGICAL_UNIT_RESET);
    rig.obeys(&[]);
    rig.sends(["Task Response #2 0"]);
    rig.data_out(1, Ttt::NONE, 0, 0, true, &pattern(1024));
    rig.quiet();
}
