//! Reads: the target writes into the memory of the command.

use scsi::residual::Residual;

use crate::initiator::tests::rig::{IserRig as Rig, bytes_of, pattern};
use crate::initiator::{Data, Fate, Tmf};

fn filled(data: &Data<scsi::medium::HeapLease>) -> Vec<u8> {
    match data {
        Data::In(into) => bytes_of(into),
        other => panic!("{other:?} where a read was expected"),
    }
}

#[test]
fn written_into_memory_before_the_response() {
    let mut rig = Rig::open();
    rig.read(7, 3000);
    rig.sends(["Command #10000 F R 28 3000 [0+0]"]);
    rig.put(0x10000, 0, 1024);
    rig.put(0x10000, 1024, 1976);
    rig.quiet();
    rig.respond(0x10000, 0);
    let done = rig.done();
    assert_eq!((done.id, done.status, done.moved), (7, 0, 3000));
    assert_eq!(filled(&done.data), pattern(3000));
    assert!(rig.initiator.is_idle());
}

#[test]
fn written_in_any_order_and_twice() {
    let mut rig = Rig::reading(7, 3000);
    rig.put(0x10000, 2000, 1000);
    rig.put(0x10000, 0, 1500);
    rig.put(0x10000, 1000, 1000);
    rig.respond(0x10000, 0);
    assert_eq!(filled(&rig.done().data), pattern(3000));
}

#[test]
fn a_response_that_invalidates_its_stag() {
    let mut rig = Rig::reading(7, 512);
    rig.put(0x10000, 0, 512);
    let stag = rig.tag(0x10000).stag;
    let pdu = rig.response_pdu(0x10000, 0);
    rig.give_pdu(pdu.encode(), &[], Some(stag));
    assert_eq!(rig.done().moved, 512);
    rig.test_unit(8);
    rig.sends(["Command #20000 F 28 0 [0+0]"]);
}

#[test]
fn less_than_was_expected() {
    let mut rig = Rig::reading(7, 512);
    rig.put(0x10000, 0, 36);
    rig.respond_with(0x10000, 0, |pdu| pdu.residual = Residual::Underflow(476));
    let done = rig.done();
    assert_eq!((done.residual, done.moved), (Residual::Underflow(476), 36));
    assert_eq!(filled(&done.data)[..36], pattern(36));
    assert_eq!(filled(&done.data)[36..], [0xee; 476]);
}

#[test]
fn sense_data_with_a_residual_that_is_not_true() {
    let mut rig = Rig::reading(7, 512);
    rig.put(0x10000, 0, 100);
    rig.respond_by(0x10000, 2, &[0, 3, 0x72, 1, 0]);
    let done = rig.done();
    assert_eq!((done.residual, done.moved), (Residual::Exact, 100));
    assert_eq!(done.sense.as_slice(), [0x72, 1, 0]);
}

/// The longest message that a target may send.
#[test]
fn sense_data_as_long_as_a_data_segment() {
    let mut rig = Rig::reading(7, 512);
    let mut data = vec![0; 4096];
    data[1] = 18;
    rig.respond_by(0x10000, 2, &data);
    assert_eq!(rig.done().sense.as_slice(), [0; 18]);
}

#[test]
fn a_command_without_data_has_no_stag() {
    let mut rig = Rig::open();
    rig.test_unit(1);
    rig.read(2, 0);
    rig.write(3, 0);
    let commands = [
        "Command #10000 F 28 0 [0+0]",
        "Command #20001 F 28 0 [0+0]",
        "Command #30002 F 2a 0 [0+0]",
    ];
    rig.sends(commands);
    for itt in [0x10000, 0x20001, 0x30002] {
        assert_eq!(rig.buffers(itt), (None, None));
        rig.respond(itt, 0);
        assert_eq!(rig.done().moved, 0);
    }
}

#[test]
fn memory_is_the_targets_until_an_abort_is_answered() {
    let mut rig = Rig::reading(7, 512);
    rig.initiator
        .manage(
            rig.now,
            1,
            crate::initiator::tests::rig::LUN,
            Tmf::AbortTask(7),
        )
        .unwrap();
    rig.sent();
    rig.put(0x10000, 0, 512);
    rig.answer(0x2fff4, 0);
    let failed = rig.failed();
    assert_eq!(failed.fate, Fate::Aborted);
    assert_eq!(
        filled(&failed.data),
        pattern(512),
        "it was reached until then"
    );
    rig.event();
    rig.put(0x10000, 0, 1);
    assert_eq!(
        rig.rule(),
        "a tagged segment with an STag that is not valid"
    );
    assert_eq!(filled(&failed.data), pattern(512));
}

#[test]
fn as_many_commands_as_there_is_room_for_are_posted() {
    let mut rig = Rig::open();
    for id in 0..8 {
        rig.read(id, 8);
    }
    assert_eq!(rig.sent().len(), 4, "the window");
    rig.window = 8;
    rig.put(0x10000, 0, 8);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().id, 0);
    assert_eq!(rig.sent().len(), 4);
}
