//! Every opcode in each kind of session: what is sent and what happens, as a reviewed snapshot.

use std::fmt::Write as _;

use scsi::medium::HeapLease;

use super::rig::{
    Carrier, IserMover, MemoryMover, Rig, RigOver, over_each_datamover, over_one_datamover,
};
use crate::datamover::tcp::TcpMover;
use crate::session::SessionEvent;
use crate::wire::bhs::{Bhs, Opcode};

over_each_datamover! {
    #[test]
    fn a_flood_of_garbage_ends_the_session() {
        let mut rig = Rig::new();
        for _ in 0..256 {
            rig.send(Bhs::new(Opcode::Other(0x1c)), &[]);
            assert_eq!(rig.rule(), "an unassigned opcode");
            rig.sent();
        }
        rig.send(Bhs::new(Opcode::Other(0x1c)), &[]);
        assert_eq!(rig.rule(), "too many rejected PDUs");
    }
}

/// One PDU with nothing but an opcode, the F bit, a tag and the expected CmdSN.
fn outcome<D: Carrier>(mut rig: RigOver<D>, code: u8, data: &[u8]) -> String {
    let mut bhs = Bhs::new(Opcode::from_code(code));
    bhs.0[1] = 0x80;
    bhs.0[19] = 1;
    bhs.0[27] = super::rig::FIRST_CMD_SN as u8;
    if code != Opcode::ScsiCommand.code() {
        bhs.0[20..24].fill(0xff);
    }
    rig.send(bhs, data);
    let mut told = Vec::new();
    while let Some(event) = rig.event() {
        told.push(match event {
            SessionEvent::Execute(_) => "Execute".into(),
            SessionEvent::Manage { function, .. } => format!("{function:?}"),
            SessionEvent::Close(why) => format!("Close: {} ({})", why.rule, why.clause),
            SessionEvent::Remark(why) => format!("Remark: {} ({})", why.rule, why.clause),
            SessionEvent::LoggedOut => "LoggedOut".into(),
            other => format!("{other:?}"),
        });
    }
    told.extend(rig.sent());
    if told.is_empty() {
        "nothing".into()
    } else {
        told.join("; ")
    }
}

#[test]
fn every_opcode_in_each_kind_of_session() {
    let over_tcp = table::<TcpMover<HeapLease>>();
    assert_eq!(table::<MemoryMover>(), over_tcp);
    assert_eq!(table::<IserMover<HeapLease>>(), with_other_snack(&over_tcp));
    insta::assert_snapshot!(over_tcp);
}

/// A SNACK is a protocol error over RDMA (RFC 7145 §7.3.11), and only that differs.
fn with_other_snack(table: &str) -> String {
    let (before, snack) = table.split_once("10 SnackRequest").unwrap();
    let (snack, behind) = snack.split_once("\n11 ").unwrap();
    assert!(snack.contains("Reject 03"), "{snack}");
    let snack = snack.replace("Reject 03", "Reject 04");
    format!("{before}10 SnackRequest{snack}\n11 {behind}")
}

/// A row stands for all opcodes up to the next row.
fn table<D: Carrier>() -> String {
    let mut table = String::new();
    let mut last = String::new();
    for code in 0..0x40 {
        let opcode = Opcode::from_code(code);
        for data in [&b""[..], b"a=b\0"] {
            let normal = outcome(RigOver::<D>::new(), code, data);
            let discovery = outcome(RigOver::<D>::discovery(), code, data);
            let told = format!("   normal:    {normal}\n   discovery: {discovery}\n")
                .replace(&format!("of {opcode:?}"), "of it");
            if told == last {
                continue;
            }
            write!(table, "{code:02x} {opcode:?} with {} bytes", data.len()).unwrap();
            table += if data.is_empty() {
                ", and so on\n"
            } else {
                "\n"
            };
            table += &told;
            last = told;
        }
    }
    table
}

#[test]
fn a_data_segment_longer_than_declared_ends_the_session() {
    let mut rig = Rig::new();
    let pdu = rig.nop_pdu(crate::wire::bhs::Itt(1));
    rig.send_header(pdu.encode(), 4097);
    assert_eq!(
        rig.rule(),
        "a data segment longer than MaxRecvDataSegmentLength"
    );
    rig.sends(["Reject 04 of NopOut"]);
}

#[test]
fn additional_header_segments_elsewhere_end_the_session() {
    let mut rig = Rig::new();
    let pdu = rig.nop_pdu(crate::wire::bhs::Itt(1));
    rig.send_with(pdu.encode(), &[0, 1, 0x3f, 0], &[]);
    assert_eq!(
        rig.rule(),
        "additional header segments on a PDU other than SCSI Command"
    );
}
