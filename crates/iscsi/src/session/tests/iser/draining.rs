//! What waits until RDMA Reads that were given up are over: an initiator may withdraw their memory
//! when it is told (RFC 7145 §7.3.3).

use scsi::task::{Function, Tag};
use scsi::wire::sense::Status;

use super::{attention, lend, sends_attentions, solicited};
use crate::session::SessionEvent;
use crate::session::tests::rig::{FIRST_CMD_SN, IserRig as Rig, bytes_of, pattern};
use crate::wire::task_management::function;

#[test]
fn an_aborted_write_is_answered_when_its_reads_are_over() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let command = rig.write(1, 12_288, true, &[]);
    let memory = lend(&mut rig, command.tag, 0, 12_288);
    rig.sends_nothing();
    rig.abort(2, 1, FIRST_CMD_SN);
    assert_eq!(rig.obeys(&[command.tag]), Function::AbortTask(command.tag));
    rig.sends_nothing();
    rig.peer.is_silent = false;
    rig.sends(["Task Response #2 0"]);
    assert_eq!(
        rig.peer.requests, [2048; 4],
        "those that waited are not sent"
    );
    assert_eq!(bytes_of(&memory), [0xee; 12_288], "not a byte moved");
    rig.quiet();
}

/// A write of which reads are outstanding is aborted, and that is not answered yet.
fn draining() -> (Rig, Tag) {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 12_288, true, &[]);
    rig.sends_nothing();
    rig.abort(2, 1, FIRST_CMD_SN);
    rig.obeys(&[tag]);
    rig.sends_nothing();
    (rig, tag)
}

/// Over iWARP the Read Responses that end the wait come behind them.
#[test]
fn messages_are_taken_while_an_answer_waits_for_reads() {
    let (mut rig, _) = draining();
    for itt in 3..100 {
        rig.ping(itt, b"");
        assert!(!rig.session.is_stalled());
    }
    rig.sends_nothing();
    rig.peer.is_silent = false;
    let sent = rig.sent();
    assert_eq!(sent.len(), 98, "{sent:?}");
    assert_eq!(sent[..2], ["Task Response #2 0", "NOP-In #3 \"\""]);
    assert!(!rig.session.is_stalled());
    rig.quiet();
}

#[test]
fn a_flood_while_an_answer_waits_for_reads_ends_the_session() {
    let (mut rig, _) = draining();
    for itt in 3..258 {
        rig.ping(itt, b"");
    }
    rig.quiet();
    rig.ping(258, b"");
    assert_eq!(
        rig.rule(),
        "over 256 requests while aborted RDMA Reads are not over"
    );
}

/// They are not of the initiator's making.
#[test]
fn what_units_tell_does_not_count_as_a_flood() {
    let (mut rig, _) = draining();
    for _ in 0..300 {
        attention(&mut rig);
    }
    sends_attentions(&mut rig, 1);
    rig.ping(3, b"");
    sends_attentions(&mut rig, 1);
    rig.quiet();
    rig.peer.is_silent = false;
    rig.sends(["Task Response #2 0", "NOP-In #3 \"\""]);
}

/// The initiator may withdraw its memory after it.
#[test]
fn a_logout_is_answered_when_the_reads_of_its_commands_are_over() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 12_288, true, &[]);
    rig.sends_nothing();
    rig.send(rig.logout_pdu(2, 0).encode(), &[]);
    assert_eq!(rig.obeys(&[tag]), Function::NexusReset);
    rig.sends_nothing();
    rig.peer.is_silent = false;
    rig.sends(["Logout Response #2 0"]);
    assert_eq!(rig.peer.requests, [2048; 4]);
}

/// So is one behind a command that has failed, and is to be answered no more.
#[test]
fn a_logout_waits_for_reads_of_commands_that_have_ended() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 2048, true, &[]);
    rig.sends_nothing();
    rig.complete(tag, Status::CheckCondition, &[0x70; 18], 0, 0);
    rig.send(rig.logout_pdu(2, 0).encode(), &[]);
    assert!(matches!(rig.event(), Some(SessionEvent::LoggedOut)));
    rig.sends_nothing();
    rig.peer.is_silent = false;
    rig.sends(["Logout Response #2 0"]);
}

/// The command is not known any more, but its memory is read still.
#[test]
fn an_abort_of_a_command_that_has_ended_waits_for_its_reads() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 2048, true, &[]);
    rig.sends_nothing();
    rig.complete(tag, Status::CheckCondition, &[0x70; 18], 0, 0);
    rig.abort(2, 1, FIRST_CMD_SN);
    rig.sends_nothing();
    rig.peer.is_silent = false;
    rig.sends(["Task Response #2 0"]);
    rig.quiet();
}

#[test]
fn a_task_in_the_place_of_an_aborted_one_gets_its_own_data() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let aborted = rig.write(1, 2048, true, &[]);
    let memory = lend(&mut rig, aborted.tag, 0, 2048);
    rig.sends_nothing();
    rig.aborted(aborted.tag);
    let tag = rig.granted(2, 1024, true, &[]);
    assert_eq!(tag, aborted.tag);
    rig.peer.is_silent = false;
    rig.sends(["NOP-In - \"\""]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(1024)));
    assert_eq!(bytes_of(&memory), [0xee; 2048]);
    rig.quiet();
}

/// Its response would let the initiator withdraw what is being read.
#[test]
fn a_write_that_fails_is_answered_when_its_reads_are_over() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 12_288, true, &[]);
    rig.sends_nothing();
    rig.complete(tag, Status::CheckCondition, &[0x70; 18], 0, 0);
    rig.sends_nothing();
    rig.peer.is_silent = false;
    rig.sends(["Response #1 02 U=12288 sense=70/7070"]);
    assert_eq!(rig.peer.requests, [2048; 4]);
    rig.quiet();
}

#[test]
fn a_function_on_a_task_set_waits_for_reads() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    rig.granted(1, 2048, true, &[]);
    rig.sends_nothing();
    rig.manage(2, function::LOGICAL_UNIT_RESET);
    rig.quiet();
    rig.peer.is_silent = false;
    rig.sends_nothing();
    assert_eq!(rig.got_data().1, 0);
    assert_eq!(rig.managing().1, Function::LogicalUnitReset);
}

#[test]
fn a_read_that_is_never_answered_ends_the_session() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    rig.granted(1, 2048, true, &[]);
    for itt in 2..=13 {
        rig.quiet();
        rig.ping(itt, b"");
        rig.sent();
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "requested data did not arrive");
}

/// Also one whose command is gone: its response has to wait.
#[test]
fn a_read_that_was_given_up_and_is_never_answered_ends_the_session() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 2048, true, &[]);
    rig.sends_nothing();
    rig.abort(2, 1, FIRST_CMD_SN);
    rig.obeys(&[tag]);
    for itt in 3..=14 {
        rig.quiet();
        rig.ping(itt, b"");
        rig.sends_nothing();
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "requested data did not arrive");
}
