//! Data that is not as it should be, and the conditions that it ends commands with (RFC 7143
//! §11.4.7.2, §7.8, §7.9; UNH FFP 3.1, 7.x, 8.x, 16.3.x, 19.1).

use scsi::task::{Function, Tag};
use scsi::wire::sense::Status;

use super::rig::{Rig, keys, over_each_datamover, over_one_datamover, pattern};
use crate::parameters::Operational;
use crate::session::SessionEvent;
use crate::wire::bhs::{Opcode, Ttt};

over_each_datamover! {
    #[test]
    fn immediate_data_that_was_not_agreed_upon() {
        let mut rig = Rig::agreed(|keys| keys.immediate_data = false);
        let pdu = rig.write_pdu(1, 512, true);
        rig.send(pdu.encode(), &pattern(512));
        rig.quiet();
        rig.sends(["Response #1 02 U=512 sense=b/0c0c"]);
    }

    #[test]
    fn immediate_data_with_a_read() {
        let mut rig = Rig::new();
        let pdu = rig.read_pdu(1, 512);
        rig.send(pdu.encode(), &pattern(16));
        rig.sends(["Response #1 02 U=512 sense=b/0c0c"]);
    }

    #[test]
    fn more_immediate_data_than_first_burst_length() {
        let mut rig = Rig::new();
        let pdu = rig.write_pdu(1, 4096, true);
        rig.send(pdu.encode(), &pattern(2000));
        rig.sends(["Response #1 02 U=4096 sense=b/0c0d"]);
    }

    #[test]
    fn more_immediate_data_than_expected_data_transfer_length() {
        let mut rig = Rig::new();
        let pdu = rig.write_pdu(1, 100, true);
        rig.send(pdu.encode(), &pattern(200));
        rig.sends(["Response #1 02 U=100 sense=b/0c0d"]);
    }
}

/// The session tells the device server to abort the command, which does so, and ends it so.
#[track_caller]
fn ends(rig: &mut Rig, tag: Tag, response: &str) {
    assert_eq!(rig.managing().1, Function::AbortTask(tag));
    rig.aborted(tag);
    rig.sends([response]);
}

#[test]
fn unsolicited_data_that_was_not_agreed_upon_is_waited_for_and_refused() {
    let mut rig = Rig::agreed(|keys| keys.initial_r2t = true);
    let pdu = rig.write_pdu(1, 2048, false);
    rig.send(pdu.encode(), &[]);
    rig.sends_nothing();
    rig.data_out(1, Ttt::NONE, 0, 0, false, &pattern(512));
    rig.sends_nothing();
    rig.data_out(1, Ttt::NONE, 1, 512, true, &pattern(512));
    rig.sends(["Response #1 02 U=2048 sense=b/0c0c"]);
}

#[test]
fn more_unsolicited_data_than_first_burst_length() {
    let mut rig = Rig::new();
    let tag = rig.granted(1, 4096, false, &[]);
    rig.data_out(1, Ttt::NONE, 0, 0, false, &pattern(1024));
    rig.data_out(1, Ttt::NONE, 1, 1024, true, &pattern(512));
    ends(&mut rig, tag, "Response #1 02 U=4096 sense=b/0c0d");
}

#[test]
fn less_unsolicited_data_than_first_burst_length() {
    let mut rig = Rig::new();
    let tag = rig.granted(1, 4096, false, &pattern(512));
    rig.data_out(1, Ttt::NONE, 0, 512, true, &pattern(256));
    ends(&mut rig, tag, "Response #1 02 U=4096 sense=b/0c0d");
}

#[test]
fn less_unsolicited_data_than_announced_by_a_short_command_is_asked_for() {
    let mut rig = Rig::new();
    rig.granted(1, 1000, false, &pattern(500));
    rig.data_out(1, Ttt::NONE, 0, 500, true, &pattern(100));
    rig.sends(["R2T #1 ttt=0 sn=0 [600+400]"]);
}

#[test]
fn unsolicited_data_after_its_end() {
    let mut rig = Rig::new();
    let command = rig.write(1, 4096, true, &[]);
    rig.data_out(1, Ttt::NONE, 0, 0, true, &pattern(512));
    ends(&mut rig, command.tag, "Response #1 02 U=4096 sense=b/0c0c");
}

/// A write that asked for 2 KiB.
fn asked(mut rig: Rig) -> (Rig, Tag) {
    let tag = rig.granted(1, 2048, true, &[]);
    rig.sends(["R2T #1 ttt=0 sn=0 [0+2048]"]);
    (rig, tag)
}

#[test]
fn a_burst_that_ends_too_soon() {
    let (mut rig, tag) = asked(Rig::new());
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(1024));
    ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/0c0d");
}

#[test]
fn a_burst_beyond_what_was_asked_for() {
    let (mut rig, tag) = asked(Rig::new());
    rig.data_out(1, Ttt(0), 0, 1024, true, &pattern(1025));
    ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/0c0d");
}

#[test]
fn an_offset_that_overflows() {
    let (mut rig, tag) = asked(Rig::new());
    rig.data_out(1, Ttt(0), 0, u32::MAX - 3, true, &pattern(1024));
    ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/0c0d");
}

#[test]
fn wrong_data_sn_means_that_data_was_lost() {
    for (first, second) in [(0, 0), (27, 28), (u32::MAX, 0), (1, 0)] {
        let (mut rig, tag) = asked(Rig::new());
        rig.data_out(1, Ttt(0), first, 0, false, &pattern(1024));
        rig.data_out(1, Ttt(0), second, 1024, true, &pattern(1024));
        ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/4705");
    }
}

#[test]
fn data_out_of_order_where_order_was_agreed_upon() {
    let (mut rig, tag) = asked(Rig::new());
    rig.data_out(1, Ttt(0), 0, 1024, false, &pattern(1024));
    rig.data_out(1, Ttt(0), 1, 0, true, &pattern(1024));
    ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/0c0d");
}

fn disordered() -> Rig {
    Rig::with(Operational {
        pdu_in_order: false,
        sequence_in_order: false,
        ..keys()
    })
}

#[test]
fn data_in_any_order_where_none_was_agreed_upon() {
    let (mut rig, tag) = asked(disordered());
    rig.data_out(1, Ttt(0), 0, 1536, false, &pattern(2048)[1536..]);
    rig.data_out(1, Ttt(0), 1, 0, false, &pattern(2048)[..512]);
    rig.data_out(1, Ttt(0), 2, 1024, false, &pattern(2048)[1024..1536]);
    rig.data_out(1, Ttt(0), 3, 512, true, &pattern(2048)[512..1024]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(2048)));
    rig.good(tag, 0, 2048);
    rig.sends(["Response #1 00"]);
}

/// The R2T for what is missing would ask for the data behind the hole too, and bytes that were
/// never sent would count as come: what the memory held before would be written.
#[test]
fn unsolicited_data_with_a_hole() {
    let mut rig = disordered();
    let tag = rig.granted(1, 1024, false, &[]);
    rig.data_out(1, Ttt::NONE, 0, 512, true, &pattern(512));
    ends(&mut rig, tag, "Response #1 02 U=1024 sense=b/0c0d");
}

#[test]
fn bytes_that_come_twice_do_not_fill_a_hole() {
    let (mut rig, tag) = asked(disordered());
    rig.data_out(1, Ttt(0), 0, 1024, false, &pattern(1024));
    rig.data_out(1, Ttt(0), 1, 1024, true, &pattern(1024));
    ends(&mut rig, tag, "Response #1 02 U=2048 sense=b/0c0d");
}

#[test]
fn bursts_in_any_order() {
    let mut rig = disordered();
    let tag = rig.granted(1, 4096, true, &[]);
    rig.sent();
    rig.data_out(1, Ttt(0x1_0000), 0, 2048, true, &pattern(4096)[2048..]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(4096)[..2048]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(4096)));
}

/// Found by fuzzing.
#[test]
fn a_reject_is_no_longer_than_the_initiator_takes() {
    let mut rig = Rig::new();
    for (ahs_len, told) in [(1020, 48), (976, 1024)] {
        let pdu = rig.read_pdu(1, 8);
        let segment = [&(ahs_len as u16 - 3).to_be_bytes()[..], &[0x3f; 1018]].concat();
        rig.send_with(pdu.encode(), &segment[..ahs_len], &[]);
        let (bhs, data) = rig.pdus().remove(0);
        assert_eq!((bhs.opcode(), data.len()), (Opcode::Reject, told));
    }
}

#[test]
fn data_for_no_task_or_r2t_is_rejected() {
    let (mut rig, _) = asked(Rig::new());
    rig.data_out(1, Ttt(0x99_0000), 0, 0, true, &pattern(16));
    rig.data_out(2, Ttt(0), 0, 0, true, &pattern(16));
    rig.data_out(3, Ttt::NONE, 0, 0, true, &pattern(16));
    rig.sends(vec!["Reject 09 of DataOut"; 3]);
}

#[test]
fn an_r2t_is_not_answered_before_it_was_sent() {
    let mut rig = Rig::new();
    rig.granted(1, 2048, true, &[]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    rig.sends(["R2T #1 ttt=0 sn=0 [0+2048]", "Reject 09 of DataOut"]);
}

#[test]
fn a_failed_write_is_answered_when_all_that_was_asked_for_has_come() {
    let (mut rig, tag) = asked(Rig::new());
    rig.complete(tag, Status::CheckCondition, &[0x70; 18], 0, 2048);
    rig.sends_nothing();
    rig.data_out(1, Ttt(0), 0, 0, false, &pattern(1024));
    rig.sends_nothing();
    rig.data_out(1, Ttt(0), 1, 1024, true, &pattern(1024));
    rig.sends(["Response #1 02 sense=70/7070"]);
}

#[test]
fn data_beyond_what_can_be_held_ends_its_command_and_no_other() {
    let mut rig = Rig::limited(|limits| limits.held_bytes = 1500);
    let one = rig.write(1, 1000, true, &pattern(1000));
    // The window is closed, but for commands for immediate delivery.
    let mut pdu = rig.write_pdu(2, 1000, true);
    pdu.immediate = true;
    rig.send(pdu.encode(), &pattern(1000));
    let two = rig.executed();
    ends(&mut rig, two.tag, "Response #2 28 U=1000");
    rig.grant(one.tag, 0, 1000);
    assert_eq!(rig.got_data(), (one.tag, 0, pattern(1000)));
}

#[test]
fn a_command_that_ends_while_the_session_ends_it_has_the_sessions_status() {
    let mut rig = Rig::new();
    let command = rig.write(1, 4096, true, &[]);
    rig.data_out(1, Ttt::NONE, 0, 0, true, &pattern(512));
    assert!(matches!(rig.event(), Some(SessionEvent::Manage { .. })));
    rig.good(command.tag, 0, 4096);
    rig.sends(["Response #1 02 U=4096 sense=b/0c0c"]);
}
