//! Writes: all data goes with the command, or the target reads it.

use crate::initiator::tests::rig::{IserRig as Rig, config, pattern};
use crate::initiator::{Data, Fate, Tmf};

#[test]
fn all_of_a_short_write_goes_with_its_command() {
    let mut rig = Rig::open();
    for len in [1, 511, 512] {
        rig.write(1, len);
        let pdus = rig.pdus();
        assert_eq!((pdus.len(), &pdus[0].1), (1, &pattern(len)));
        let itt = pdus[0].0.itt().0;
        assert_eq!(rig.buffers(itt), (None, None), "nothing is to be read");
        rig.window += 1;
        rig.respond(itt, 0);
        assert_eq!(rig.done().moved as usize, len);
    }
}

/// TargetRecvDataSegmentLength is 512 here, FirstBurstLength 1024.
#[test]
fn nothing_of_a_longer_write_goes_with_its_command() {
    for (segment, len) in [("512", 513), ("8192", 1025)] {
        let length = format!("TargetRecvDataSegmentLength={segment}");
        let mut rig = Rig::with(config(), &[("TargetRecvDataSegmentLength=512", &length)]);
        rig.write(1, len);
        rig.sends([format!("Command #10000 F W 2a {len} [0+0]")]);
        let tag = rig.tag(0x10000);
        assert_eq!(rig.buffers(0x10000), (Some(tag), None));
        assert_eq!(tag.offset, 0, "of the first byte, in either reading");
    }
}

#[test]
fn immediate_data_as_agreed_upon() {
    let no = [("ImmediateData=Yes", "ImmediateData=No")];
    let mut rig = Rig::with(config(), &no);
    rig.write(1, 8);
    rig.sends(["Command #10000 F W 2a 8 [0+0]"]);
    let long = [
        (
            "TargetRecvDataSegmentLength=512",
            "TargetRecvDataSegmentLength=8192",
        ),
        ("FirstBurstLength=1024", "FirstBurstLength=1000"),
    ];
    let mut rig = Rig::with(config(), &long);
    rig.write(1, 1000);
    rig.sends(["Command #10000 F W 2a 1000 [0+1000]"]);
}

#[test]
fn the_target_reads_the_bytes_of_the_lease() {
    let mut rig = Rig::writing(1, 3000);
    rig.get(0x10000, 0, 2048);
    rig.get(0x10000, 2048, 952);
    let got = [
        pattern(3000)[..2048].to_vec(),
        pattern(3000)[2048..].to_vec(),
    ];
    assert_eq!(rig.got(), got);
    rig.respond(0x10000, 0);
    let done = rig.done();
    assert_eq!((done.status, done.moved), (0, 3000));
    assert!(matches!(done.data, Data::Out(_)));
}

#[test]
fn as_many_reads_as_ird_allows_in_any_order() {
    let mut rig = Rig::writing(1, 3000);
    for at in [2000, 0, 1000] {
        rig.get(0x10000, at, 1000);
    }
    assert_eq!(rig.got().len(), 3);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().moved, 3000);
}

#[test]
fn ended_by_the_target_before_all_of_it_was_read() {
    let mut rig = Rig::writing(1, 3000);
    rig.get(0x10000, 0, 1000);
    assert_eq!(rig.got().len(), 1);
    rig.respond_by(0x10000, 2, &[0, 3, 0x72, 3, 0]);
    let done = rig.done();
    assert_eq!((done.status, done.moved), (2, 1000));
    rig.get(0x10000, 1000, 1000);
    assert_eq!(rig.rule(), "an STag that is not valid");
}

#[test]
fn nothing_can_be_read_after_an_abort_was_answered() {
    let mut rig = Rig::writing(7, 3000);
    let lun = crate::initiator::tests::rig::LUN;
    rig.initiator
        .manage(rig.now, 1, lun, Tmf::LogicalUnitReset)
        .unwrap();
    rig.sent();
    rig.get(0x10000, 0, 1000);
    assert_eq!(
        rig.got().len(),
        1,
        "the target may finish what it has begun"
    );
    rig.answer(0x2fff4, 0);
    assert_eq!(rig.failed().fate, Fate::Aborted);
    rig.event();
    rig.get(0x10000, 0, 1000);
    assert_eq!(rig.rule(), "an STag that is not valid");
}

/// Four times is what a retry may need; more would have us send for ever.
#[test]
fn read_four_times_over() {
    let mut rig = Rig::writing(1, 1000);
    for _ in 0..4 {
        rig.get(0x10000, 0, 1000);
        assert_eq!(rig.got().len(), 1);
    }
    rig.get(0x10000, 0, 1);
    assert_eq!(rig.failed().fate, Fate::Unknown);
    assert_eq!(
        rig.rule(),
        "a catastrophic error, localized to the RDMAP stream"
    );
}
