//! SCSI Command PDUs (RFC 7143 §11.3, §11.2.2, RFC 7144 §5.1; UNH FFP 16.3.7, 19.1).

use scsi::task::Attribute;

use super::rig::{
    FIRST_CMD_SN, LUN, Rig, over_all_but_iser, over_each_datamover, over_one_datamover,
};
use crate::wire::ahs;
use crate::wire::bhs::Itt;
use crate::wire::scsi_command::ScsiCommand;

over_each_datamover! {
    #[test]
    fn task_attributes_reach_the_device_server() {
        let mut rig = Rig::new();
        for (code, attribute) in [
            (0, Attribute::Simple),
            (1, Attribute::Simple),
            (2, Attribute::Ordered),
            (3, Attribute::HeadOfQueue),
            (4, Attribute::Aca),
        ] {
            rig.send_read(u32::from(code), 8, |pdu| pdu.attribute = code);
            assert_eq!(rig.executed().attribute, attribute);
        }
    }

    #[test]
    fn priority_counts_from_protocol_level_2_on() {
        for (protocol_level, priority) in [(1, 0), (2, 9)] {
            let mut rig = Rig::agreed(|keys| keys.protocol_level = protocol_level);
            rig.send_read(1, 8, |pdu| pdu.priority = 9);
            assert_eq!(rig.executed().priority, priority);
        }
    }

    #[test]
    fn the_cdb_is_sixteen_bytes_and_no_more() {
        let mut rig = Rig::new();
        let command = rig.read(1, 8);
        assert_eq!((command.cdb_len, &command.cdb[16..]), (16, &[0; 16][..]));
    }

    #[test]
    fn headers_that_contradict_themselves_are_rejected() {
        type Change = fn(&mut ScsiCommand);
        let changes: [(&str, Change); 5] = [
            ("neither W nor F", |pdu| pdu.last = false),
            ("data in no direction", |pdu| pdu.read = false),
            ("bidirectional, one length", |pdu| pdu.write = true),
            ("reserved attribute", |pdu| pdu.attribute = 6),
            ("no tag", |pdu| pdu.itt = Itt::NONE),
        ];
        for (why, change) in changes {
            assert_eq!(rejected(change), ["Reject 09 of ScsiCommand"], "{why}");
        }
    }

    #[test]
    fn a_command_without_direction_expects_nothing() {
        let mut rig = Rig::new();
        rig.send_read(1, 0, |pdu| pdu.read = false);
        let command = rig.executed();
        assert_eq!((command.expected_in, command.expected_out), (0, 0));
        rig.good(command.tag, 512, 0);
        rig.sends(["Response #1 00 O=512"]);
    }

    #[test]
    fn a_tag_in_use_is_rejected() {
        let mut rig = Rig::new();
        let one = rig.read(1, 8);
        let pdu = rig.read_pdu(1, 8);
        rig.send(pdu.encode(), &[]);
        assert_eq!(rig.rule(), "a task tag that is in use");
        rig.sends(["Reject 07 of ScsiCommand"]);
        rig.good(one.tag, 8, 0);
        rig.sends(["Response #1 00"]);
        rig.send(pdu.encode(), &[]);
        assert_eq!(rig.executed().expected_in, 8);
    }
}

over_all_but_iser! {
    /// Over iSER the reason is *protocol error*: see `iser.rs`.
    #[test]
    fn a_snack_is_rejected_and_ends_its_command() {
        let mut rig = Rig::new();
        let command = rig.read(1, 8);
        let snack = crate::wire::data::SnackRequest {
            kind: 0,
            lun: LUN,
            itt: Itt(1),
            ttt: crate::wire::bhs::Ttt::NONE,
            exp_stat_sn: crate::wire::serial::StatSn(0),
            first: 0,
            count: 0,
        };
        rig.send(snack.encode(), &[]);
        assert_eq!(rig.rule(), "a SNACK at ErrorRecoveryLevel 0");
        rig.managing();
        rig.aborted(command.tag);
        rig.sends([
                "Reject 03 of SnackRequest",
                "Response #1 02 U=8 sense=b/1113"
            ]);
    }
}

#[test]
fn an_extended_cdb_is_put_together() {
    let mut rig = Rig::new();
    let mut pdu = rig.read_pdu(1, 8);
    pdu.cdb[0] = 0x7f;
    let mut segments = Vec::new();
    ahs::put_extended_cdb(&mut segments, &[9; 16]);
    rig.send_with(pdu.encode(), &segments, &[]);
    let command = rig.executed();
    assert_eq!((command.cdb_len, command.cdb[0]), (32, 0x7f));
    assert_eq!(command.cdb[16..], [9; 16]);
}

#[test]
fn a_cdb_that_is_longer_is_no_command_here() {
    let mut rig = Rig::new();
    let pdu = rig.read_pdu(1, 8);
    let mut segments = Vec::new();
    ahs::put_extended_cdb(&mut segments, &[9; 17]);
    rig.send_with(pdu.encode(), &segments, &[]);
    rig.sends(["Response #1 02 U=8 sense=5/2000"]);
}

#[test]
fn a_bidirectional_command_is_refused_with_both_residuals() {
    let mut rig = Rig::new();
    let mut pdu = rig.write_pdu(1, 512, true);
    pdu.read = true;
    let mut segments = Vec::new();
    ahs::put_bidirectional_read(&mut segments, 1024);
    let bytes = rig.bytes(pdu.encode(), &segments, &[7; 512]);
    rig.give(&bytes);
    rig.sends(["Response #1 02 U=512 read U=1024 sense=5/2000"]);
}

#[test]
fn an_unassigned_additional_header_segment_is_rejected_with_all_of_the_header() {
    let mut rig = Rig::new();
    let pdu = rig.read_pdu(1, 8);
    let bytes = rig.bytes(pdu.encode(), &[0, 1, 0x3f, 0], &[]);
    rig.give(&bytes);
    assert_eq!(rig.pdus()[0].1, bytes);
    assert_eq!(rig.rule(), "an unassigned AHSType");
}

#[test]
fn a_malformed_additional_header_segment_ends_the_session() {
    let mut rig = Rig::new();
    let pdu = rig.read_pdu(1, 8);
    rig.send_with(pdu.encode(), &[0, 200, 1, 0], &[]);
    assert_eq!(
        rig.rule(),
        "an additional header segment of the wrong length"
    );
}

/// What a command is rejected for that is read from its header alone.
fn rejected(change: fn(&mut ScsiCommand)) -> Vec<String> {
    let mut rig = Rig::new();
    let mut pdu = rig.read_pdu(1, 512);
    change(&mut pdu);
    rig.send(pdu.encode(), &[]);
    let sent = rig.sent();
    assert_eq!(
        rig.exp_cmd_sn, FIRST_CMD_SN,
        "a rejected command counts as not received"
    );
    sent
}
