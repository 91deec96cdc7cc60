//! Reads, as packet traces.

use scsi::residual::Residual;

use super::rig::{Rig, bytes_of, config, pattern};
use crate::initiator::Data;
use crate::wire::serial::CmdSn;

fn filled(data: &Data<scsi::medium::HeapLease>) -> Vec<u8> {
    match data {
        Data::In(into) => bytes_of(into),
        other => panic!("{other:?} where a read was expected"),
    }
}

#[test]
fn in_one_pdu_with_its_status() {
    let mut rig = Rig::open();
    rig.read(7, 512);
    rig.sends(["Command #10000 F R 28 512 [0+0]"]);
    rig.give_last(0x10000, 0, 0, 512, Residual::Exact);
    let done = rig.done();
    assert_eq!(
        (done.id, done.status, done.residual),
        (7, 0, Residual::Exact)
    );
    assert_eq!(filled(&done.data), pattern(512));
    assert!(rig.initiator.is_idle());
}

#[test]
fn in_two_sequences_and_a_response() {
    let mut rig = Rig::reading(7, 3000);
    rig.give_data(0x10000, 0, 0, 1024, false);
    rig.give_data(0x10000, 1, 1024, 1024, true);
    rig.give_data(0x10000, 2, 2048, 952, true);
    rig.quiet();
    rig.respond(0x10000, 0);
    assert_eq!(filled(&rig.done().data), pattern(3000));
}

#[test]
fn in_a_sequence_longer_than_a_burst() {
    let mut rig = Rig::reading(7, 3000);
    rig.give_data(0x10000, 0, 0, 2000, false);
    rig.give_last(0x10000, 1, 2000, 1000, Residual::Exact);
    assert_eq!(filled(&rig.done().data), pattern(3000));
}

#[test]
fn in_any_order_that_was_agreed_upon() {
    let mut config = config();
    config.offer.keys.pdu_in_order = false;
    config.offer.keys.sequence_in_order = false;
    let answer = [
        ("DataPDUInOrder=Yes", "DataPDUInOrder=No"),
        ("DataSequenceInOrder=Yes", "DataSequenceInOrder=No"),
    ];
    let mut rig = Rig::with(config, &answer);
    rig.read(7, 3000);
    rig.sent();
    rig.give_data(0x10000, 0, 2048, 952, true);
    rig.give_data(0x10000, 1, 1024, 1024, false);
    rig.give_data(0x10000, 2, 0, 1024, true);
    rig.respond(0x10000, 0);
    assert_eq!(filled(&rig.done().data), pattern(3000));

    rig.read(8, 2000);
    rig.sent();
    rig.give_data(0x20000, 0, 500, 500, true);
    rig.give_data(0x20000, 1, 999, 500, true);
    assert_eq!(rig.failed().id, 8);
    assert_eq!(rig.rule(), "Data-In for bytes already received");
}

#[test]
fn less_than_was_expected() {
    let mut rig = Rig::reading(7, 512);
    rig.give_last(0x10000, 0, 0, 36, Residual::Underflow(476));
    let done = rig.done();
    assert_eq!((done.residual, done.moved), (Residual::Underflow(476), 36));
    assert_eq!(filled(&done.data)[..36], pattern(36));
    assert_eq!(filled(&done.data)[36..], [0xee; 476]);
}

#[test]
fn more_than_was_expected() {
    let mut rig = Rig::reading(7, 512);
    rig.give_last(0x10000, 0, 0, 512, Residual::Overflow(88));
    assert_eq!(rig.done().residual, Residual::Overflow(88));
}

#[test]
fn with_sense_data() {
    let mut rig = Rig::reading(7, 512);
    let mut pdu = rig.response_pdu(0x10000, 2);
    pdu.residual = Residual::Underflow(512);
    pdu.qualifier = 5;
    let sense = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0];
    let mut data = vec![0, 18];
    data.extend(sense);
    data.extend([1, 2, 3]);
    rig.send(pdu.encode(), &data);
    let done = rig.done();
    assert_eq!((done.status, done.qualifier), (2, 5));
    assert_eq!(done.sense.as_slice(), sense);
}

#[test]
fn sense_data_with_a_residual_that_is_not_true() {
    let mut rig = Rig::reading(7, 512);
    rig.give_data(0x10000, 0, 0, 100, true);
    let pdu = rig.response_pdu(0x10000, 2);
    rig.send(pdu.encode(), &[0, 3, 0x72, 1, 0]);
    let done = rig.done();
    assert_eq!((done.residual, done.moved), (Residual::Exact, 100));
}

#[test]
fn a_status_that_is_not_known() {
    let mut rig = Rig::open();
    rig.test_unit(7);
    rig.sends(["Command #10000 F 28 0 [0+0]"]);
    rig.respond(0x10000, 0xfe);
    assert_eq!(rig.done().status, 0xfe);
}

#[test]
fn commands_wait_for_their_place_in_the_window() {
    let mut rig = Rig::open();
    for id in 0..8 {
        rig.read(id, 512);
    }
    assert_eq!(rig.refused(8), crate::initiator::IscsiRefusal::Full);
    assert_eq!(rig.sent().len(), 4);
    rig.sends_nothing();
    rig.window = 1;
    rig.give_last(0x10000, 0, 0, 512, Residual::Exact);
    assert_eq!(rig.done().id, 0);
    rig.sends(["Command #50004 F R 28 512 [0+0]"]);
    rig.window = 10;
    rig.give_last(0x40003, 0, 0, 512, Residual::Exact);
    assert_eq!(rig.done().id, 3);
    assert_eq!(rig.sent().len(), 3);
}

/// RFC 7143 §4.2.2.1: a MaxCmdSN below ExpCmdSN - 1, and the ExpCmdSN beside it.
#[test]
fn numbers_that_contradict_each_other_are_passed_over() {
    let mut rig = Rig::testing(1);
    rig.respond_with(0x10000, 0, |pdu| {
        pdu.stamps.exp_cmd_sn = CmdSn(pdu.stamps.exp_cmd_sn.0.wrapping_add(100));
        pdu.stamps.max_cmd_sn = pdu.stamps.exp_cmd_sn.minus(2);
    });
    rig.done();
    rig.test_unit(2);
    rig.sends(["Command #20000 F 28 0 [0+0]"]);
}

#[test]
fn a_window_that_moves_back_is_passed_over() {
    let mut rig = Rig::testing(1);
    rig.window = 0;
    rig.respond_with(0x10000, 0, |pdu| {
        pdu.stamps.max_cmd_sn = pdu.stamps.exp_cmd_sn.minus(5);
    });
    rig.done();
    rig.window = 3;
    rig.test_unit(2);
    rig.sends(["Command #20000 F 28 0 [0+0]"]);
}
