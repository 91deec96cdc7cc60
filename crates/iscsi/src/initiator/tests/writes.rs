//! Writes, as packet traces.

use scsi::residual::Residual;

use super::rig::{Rig, bytes_of, config, pattern};
use crate::initiator::Data;

/// The data that a trace carries, in order of its place.
fn carried(pdus: &[(crate::wire::bhs::Bhs, Vec<u8>)]) -> Vec<u8> {
    pdus.iter().flat_map(|(_, data)| data.clone()).collect()
}

#[test]
fn all_of_it_immediate() {
    let mut rig = Rig::open();
    rig.write(7, 512);
    let pdus = rig.pdus();
    assert_eq!(carried(&pdus), pattern(512));
    rig.respond(0x10000, 0);
    let done = rig.done();
    assert_eq!(done.status, 0);
    match done.data {
        Data::Out(from) => assert_eq!(bytes_of(&from), pattern(512)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn immediate_then_unsolicited_then_asked_for() {
    let mut rig = Rig::open();
    rig.write(7, 3000);
    rig.sends([
        "Command #10000 W 2a 3000 [0+512]",
        "Data-Out #10000 sn=0 [512+512] F",
    ]);
    rig.r2t(0x10000, 0xa, 0, 1024, 1976);
    rig.sends([
        "Data-Out #10000 ttt=a sn=0 [1024+512]",
        "Data-Out #10000 ttt=a sn=1 [1536+512]",
        "Data-Out #10000 ttt=a sn=2 [2048+512]",
        "Data-Out #10000 ttt=a sn=3 [2560+440] F",
    ]);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().residual, Residual::Exact);
    assert!(rig.initiator.is_idle());
}

#[test]
fn the_bytes_are_those_of_the_lease() {
    let mut rig = Rig::open();
    rig.write(7, 3000);
    let mut bytes = carried(&rig.pdus());
    rig.r2t(0x10000, 1, 0, 1024, 1000);
    rig.r2t(0x10000, 2, 1, 2024, 976);
    bytes.extend(carried(&rig.pdus()));
    assert_eq!(bytes, pattern(3000));
}

#[test]
fn unsolicited_only() {
    let mut config = config();
    config.offer.keys.immediate_data = false;
    let mut rig = Rig::with(config, &[("ImmediateData=Yes", "ImmediateData=No")]);
    rig.write(7, 700);
    rig.sends([
        "Command #10000 W 2a 700 [0+0]",
        "Data-Out #10000 sn=0 [0+512]",
        "Data-Out #10000 sn=1 [512+188] F",
    ]);
}

#[test]
fn asked_for_only() {
    let answer = [
        ("InitialR2T=No", "InitialR2T=Yes"),
        ("ImmediateData=Yes", "ImmediateData=No"),
    ];
    let mut rig = Rig::with(config(), &answer);
    rig.write(7, 700);
    rig.sends(["Command #10000 F W 2a 700 [0+0]"]);
    rig.r2t(0x10000, 1, 0, 0, 300);
    rig.r2t(0x10000, 2, 1, 300, 400);
    rig.sends([
        "Data-Out #10000 ttt=1 sn=0 [0+300] F",
        "Data-Out #10000 ttt=2 sn=0 [300+400] F",
    ]);
}

#[test]
fn immediate_only() {
    let mut rig = Rig::with(config(), &[("InitialR2T=No", "InitialR2T=Yes")]);
    rig.write(7, 700);
    rig.sends(["Command #10000 F W 2a 700 [0+512]"]);
    rig.r2t(0x10000, 1, 0, 512, 188);
    rig.sends(["Data-Out #10000 ttt=1 sn=0 [512+188] F"]);
}

#[test]
fn asked_for_in_any_order() {
    let mut config = config();
    config.offer.keys.sequence_in_order = false;
    let answer = [("DataSequenceInOrder=Yes", "DataSequenceInOrder=No")];
    let mut rig = Rig::with(config, &answer);
    rig.write(7, 3000);
    rig.sent();
    rig.r2t(0x10000, 1, 0, 2500, 500);
    rig.r2t(0x10000, 2, 1, 1024, 1476);
    assert_eq!(rig.sent().len(), 4);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().status, 0);
}

#[test]
fn ended_by_the_target_before_all_of_it_left() {
    let mut rig = Rig::writing(7, 3000);
    rig.r2t(0x10000, 1, 0, 1024, 1976);
    rig.respond_with(0x10000, 2, |pdu| pdu.residual = Residual::Underflow(3000));
    assert_eq!(rig.done().status, 2);
    assert!(rig.sent().is_empty(), "what is left stays here");
    assert!(rig.initiator.is_idle());
}

#[test]
fn a_command_does_not_wait_behind_data() {
    let mut rig = Rig::writing(1, 3000);
    rig.r2t(0x10000, 1, 0, 1024, 1976);
    rig.read(2, 512);
    let sent = rig.sent();
    assert_eq!(sent[0], "Command #20001 F R 28 512 [0+0]");
    assert_eq!(sent.len(), 5);
}

#[test]
fn unsolicited_data_goes_in_the_order_of_its_commands() {
    let mut rig = Rig::open();
    rig.write(1, 1024);
    rig.write(2, 1024);
    rig.sends([
        "Command #10000 W 2a 1024 [0+512]",
        "Command #20001 W 2a 1024 [0+512]",
        "Data-Out #10000 sn=0 [512+512] F",
        "Data-Out #20001 sn=0 [512+512] F",
    ]);
}

#[test]
fn digests_of_what_leaves() {
    let mut config = config();
    config.offer.header_digest = crate::initiator::config::Digest::Accept;
    let answer = [
        ("HeaderDigest=None", "HeaderDigest=CRC32C"),
        ("DataDigest=None", "DataDigest=CRC32C"),
    ];
    let mut rig = Rig::with(config, &answer);
    rig.write(7, 1023);
    // The rig's framer checks them.
    assert_eq!(carried(&rig.pdus()), pattern(1023));
}
