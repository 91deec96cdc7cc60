//! Digests (RFC 7143 §7.8; UNH FFP 18.x).

use super::rig::{FIRST_CMD_SN, Rig, keys, pattern};
use crate::parameters::Operational;
use crate::wire::bhs::{Itt, Ttt};
use crate::wire::data::DataOut;
use crate::wire::serial::{DataSn, StatSn};

fn rig() -> Rig {
    Rig::with(Operational {
        header_digest: true,
        data_digest: true,
        ..keys()
    })
}

#[test]
fn a_header_digest_error_ends_the_connection() {
    let mut rig = rig();
    let pdu = rig.read_pdu(1, 8).encode();
    rig.send_spoilt(pdu, &[], 20);
    assert_eq!(rig.rule(), "a header digest error");
}

#[test]
fn a_command_whose_immediate_data_is_spoilt_ends_the_session() {
    let mut rig = rig();
    let pdu = rig.write_pdu(1, 512, true).encode();
    rig.send_spoilt(pdu, &pattern(512), 60);
    assert_eq!(rig.rule(), "a data digest error in a numbered request");
    rig.sends(["Reject 02 of ScsiCommand"]);
    assert_eq!(rig.exp_cmd_sn, FIRST_CMD_SN);
}

#[test]
fn an_immediate_command_whose_data_is_spoilt_leaves_no_gap() {
    let mut rig = rig();
    let mut pdu = rig.write_pdu(1, 512, true);
    pdu.immediate = true;
    let right = rig.bytes(pdu.encode(), &[], &pattern(512));
    let mut wrong = right.clone();
    wrong[60] ^= 1;
    rig.give(&wrong);
    assert_eq!(rig.rule(), "a data digest error");
    rig.sends(["Reject 02 of ScsiCommand"]);
    rig.give(&right);
    let command = rig.executed();
    rig.grant(command.tag, 0, 512);
    assert_eq!(rig.got_data(), (command.tag, 0, pattern(512)));
}

#[test]
fn immediate_data_reaches_memory_only_when_its_digest_is_right() {
    let mut rig = rig();
    let pdu = rig.write_pdu(1, 500, true);
    let bytes = rig.bytes(pdu.encode(), &[], &pattern(500));
    rig.give(&bytes[..bytes.len() - 1]);
    rig.quiet();
    rig.give(&bytes[bytes.len() - 1..]);
    let command = rig.executed();
    rig.grant(command.tag, 0, 500);
    assert_eq!(rig.got_data(), (command.tag, 0, pattern(500)));
}

#[test]
fn data_out_that_is_spoilt_ends_the_command_when_all_has_come() {
    let mut rig = rig();
    let tag = rig.granted(1, 2048, true, &[]);
    rig.sent();
    let pdu = DataOut {
        last: false,
        lun: super::rig::LUN,
        itt: Itt(1),
        ttt: Ttt(0),
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(0),
        offset: 0,
    };
    rig.send_spoilt(pdu.encode(), &pattern(1024), 100);
    assert_eq!(rig.rule(), "a data digest error");
    rig.sends(["Reject 02 of DataOut"]);
    rig.managing();
    rig.aborted(tag);
    rig.sends_nothing();
    rig.data_out(1, Ttt(0), 1, 1024, true, &pattern(1024));
    rig.sends(["Response #1 02 U=2048 sense=b/4705"]);
}

#[test]
fn a_whole_write_with_digests() {
    let mut rig = rig();
    let tag = rig.granted(1, 3000, false, &pattern(3000)[..1000]);
    rig.data_out(1, Ttt::NONE, 0, 1000, true, &pattern(3000)[1000..1024]);
    rig.sends(["R2T #1 ttt=0 sn=0 [1024+1976]"]);
    rig.data_out(1, Ttt(0), 0, 1024, true, &pattern(3000)[1024..]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(3000)));
    rig.good(tag, 0, 3000);
    rig.sends(["Response #1 00"]);
}

#[test]
fn a_spoilt_ping_is_rejected() {
    let mut rig = rig();
    let pdu = rig.nop_pdu(Itt(1)).encode();
    rig.send_spoilt(pdu, b"ping", 53);
    rig.sends(["Reject 02 of NopOut"]);
}
