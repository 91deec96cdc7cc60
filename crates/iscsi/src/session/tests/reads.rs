//! Reads: Data-In, phase collapse and residuals (RFC 7143 §11.4, §11.7; UNH FFP 9.x, 16.1, 16.2).

use scsi::wire::sense::Status;

use super::rig::{Rig, keys, pattern};
use crate::parameters::Operational;
use crate::wire::task_management::function;

#[test]
fn a_read_ends_with_the_status_in_its_last_data_in() {
    let mut rig = Rig::new();
    let command = rig.read(1, 1000);
    assert_eq!((command.expected_in, command.expected_out), (1000, 0));
    rig.answer(command.tag, 1000);
    rig.sends(["Data-In #1 sn=0 [0+1000] F S 00"]);
    assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (101, 116));
}

#[test]
fn data_in_is_cut_by_data_segment_and_burst() {
    let mut rig = Rig::new();
    let command = rig.read(1, 4500);
    rig.answer(command.tag, 4500);
    rig.sends([
        "Data-In #1 sn=0 [0+1024]",
        "Data-In #1 sn=1 [1024+1024] F",
        "Data-In #1 sn=2 [2048+1024]",
        "Data-In #1 sn=3 [3072+1024] F",
        "Data-In #1 sn=4 [4096+404] F S 00",
    ]);
}

#[test]
fn data_given_piece_by_piece_is_one_row_of_data_sn() {
    let mut rig = Rig::new();
    let command = rig.read(1, 3000);
    rig.data_in(command.tag, 0, &pattern(1500));
    rig.sends(["Data-In #1 sn=0 [0+1024]", "Data-In #1 sn=1 [1024+476] F"]);
    rig.data_in(command.tag, 1500, &pattern(1500));
    rig.good(command.tag, 3000, 0);
    rig.sends([
        "Data-In #1 sn=2 [1500+1024]",
        "Data-In #1 sn=3 [2524+476] F S 00",
    ]);
}

#[test]
fn the_bytes_of_data_in_are_those_given() {
    for data_digest in [false, true] {
        let mut rig = Rig::with(Operational {
            data_digest,
            header_digest: data_digest,
            ..keys()
        });
        let command = rig.read(1, 1501);
        rig.answer(command.tag, 1501);
        let data: Vec<u8> = rig.pdus().into_iter().flat_map(|pdu| pdu.1).collect();
        assert_eq!(data, pattern(1501));
    }
}

#[test]
fn less_data_than_expected_is_an_underflow() {
    let mut rig = Rig::new();
    let command = rig.read(1, 255);
    rig.answer(command.tag, 36);
    rig.sends(["Data-In #1 sn=0 [0+36] F S 00 U=219"]);
}

#[test]
fn more_data_than_expected_is_cut_off_and_an_overflow() {
    let mut rig = Rig::new();
    let command = rig.read(1, 200);
    rig.answer(command.tag, 512);
    rig.sends(["Data-In #1 sn=0 [0+200] F S 00 O=312"]);
}

#[test]
fn a_read_of_nothing_is_answered_by_a_response_with_the_overflow() {
    let mut rig = Rig::new();
    let command = rig.read(1, 0);
    rig.answer(command.tag, 512);
    rig.sends(["Response #1 00 O=512"]);
}

#[test]
fn a_failure_after_data_is_told_in_a_response_of_its_own() {
    let mut rig = Rig::new();
    let command = rig.read(1, 2000);
    rig.data_in(command.tag, 0, &pattern(512));
    let sense = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
    rig.complete(command.tag, Status::CheckCondition, &sense, 2000, 0);
    rig.sends(["Data-In #1 sn=0 [0+512] F", "Response #1 02 sense=3/1100"]);
}

#[test]
fn a_read_flagged_as_a_write_ends_without_data() {
    let mut rig = Rig::new();
    let command = rig.write(1, 512, true, &pattern(512));
    rig.good(command.tag, 512, 0);
    rig.sends(["Response #1 00 U=512"]);
}

#[test]
fn reads_answered_in_another_order_keep_their_tags() {
    let mut rig = Rig::new();
    let one = rig.read(1, 8);
    let two = rig.read(2, 8);
    rig.data_in(two.tag, 0, &[2; 8]);
    rig.good(two.tag, 8, 0);
    rig.data_in(one.tag, 0, &[1; 8]);
    rig.good(one.tag, 8, 0);
    rig.sends([
        "Data-In #2 sn=0 [0+8] F S 00",
        "Data-In #1 sn=0 [0+8] F S 00",
    ]);
}

#[test]
fn bytes_that_wait_are_counted_until_they_leave() {
    let mut rig = Rig::new();
    let (one, two) = (rig.read(1, 4500), rig.read(2, 1000));
    rig.data_in(one.tag, 0, &pattern(4500));
    rig.data_in(two.tag, 0, &pattern(1500));
    assert_eq!(rig.session.data_in_queued(), 5500, "what is cut off is not");
    rig.aborted(two.tag);
    assert_eq!(rig.session.data_in_queued(), 4500);
    rig.sent();
    assert_eq!(rig.session.data_in_queued(), 0);
}

#[test]
fn what_waits_is_dropped_with_the_session() {
    let mut rig = Rig::new();
    let command = rig.read(1, 4500);
    rig.data_in(command.tag, 0, &pattern(4500));
    rig.send(rig.task_pdu(2, function::I_T_NEXUS_RESET).encode(), &[]);
    rig.obeys(&[]);
    assert_eq!(rig.session.data_in_queued(), 0);
}
