//! Targets that break a rule in the full-feature phase: the connection ends, with the rule, and
//! each command fails once.

use super::rig::{Rig, config};
use crate::initiator::error::SessionEnd;
use crate::initiator::{Fate, InitiatorEvent, IscsiCause, IscsiWhy};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::serial::{CmdSn, StatSn};
use scsi::residual::Residual;

type Story = (&'static str, fn(&mut Rig));

/// A read of 3000 bytes is #10000, a write of 3000, its first burst sent, is #20001.
fn begun() -> Rig {
    let mut rig = Rig::open();
    rig.read(1, 3000);
    rig.write(2, 3000);
    rig.sent();
    rig
}

#[track_caller]
fn check(stories: &[Story]) {
    for (rule, story) in stories {
        let mut rig = begun();
        story(&mut rig);
        for id in [1, 2] {
            let failed = rig.failed();
            assert_eq!(failed.id, id, "{rule}");
            assert_eq!((failed.fate, failed.why), (Fate::Unknown, IscsiWhy::Ended));
        }
        assert_eq!(rig.rule(), *rule);
    }
}

#[test]
fn data_in() {
    check(&[
        ("an unknown Initiator Task Tag", |rig| {
            rig.give_data(0x30000, 0, 0, 512, true);
        }),
        ("an unknown Initiator Task Tag", |rig| {
            rig.give_data(0xffff_ffff, 0, 0, 512, true);
        }),
        ("Data-In for a command that does not read", |rig| {
            rig.give_data(0x20001, 0, 0, 512, true);
        }),
        ("a DataSN that is not the next one", |rig| {
            rig.give_data(0x10000, 1, 0, 512, true);
        }),
        ("Data-In that is not the next in order", |rig| {
            rig.give_data(0x10000, 0, 512, 512, true);
        }),
        ("Data-In that is not the next in order", |rig| {
            rig.give_data(0x10000, 0, 0, 512, true);
            rig.give_data(0x10000, 1, 0, 512, true);
        }),
        ("Data-In beyond the Expected Data Transfer Length", |rig| {
            rig.give_data(0x10000, 0, 0, 2048, true);
            rig.give_data(0x10000, 1, 2048, 953, true);
        }),
        ("Data-In beyond the Expected Data Transfer Length", |rig| {
            let mut pdu = rig.data_in(0x10000, 0, u32::MAX, true);
            pdu.offset = u32::MAX;
            rig.send(pdu.encode(), &[0; 4]);
        }),
        (
            "a data segment longer than MaxRecvDataSegmentLength",
            |rig| {
                rig.give_data(0x10000, 0, 0, 4097, true);
            },
        ),
        (
            "a status in a Data-In that is not the last of its sequence",
            |rig| {
                let pdu = rig.ending((0x10000, 0, 0, false), 0, Residual::Underflow(3000));
                rig.send(pdu.encode(), &[]);
            },
        ),
        ("CHECK CONDITION without sense data, in a Data-In", |rig| {
            let pdu = rig.ending((0x10000, 0, 0, true), 2, Residual::Underflow(3000));
            rig.send(pdu.encode(), &[]);
        }),
    ]);
}

#[test]
fn responses() {
    let incomplete = "GOOD for a read whose data does not match its residual";
    let unasked = "GOOD for a write before its data was sent";
    let residual = "a residual above the Expected Data Transfer Length";
    check(&[
        (incomplete, |rig| rig.respond(0x10000, 0)),
        (incomplete, |rig| {
            rig.give_data(0x10000, 0, 0, 512, true);
            rig.give_last(0x10000, 1, 512, 512, Residual::Underflow(1999));
        }),
        (incomplete, |rig| {
            rig.give_last(0x10000, 0, 0, 512, Residual::Overflow(1));
        }),
        (unasked, |rig| rig.respond(0x20001, 0)),
        (unasked, |rig| {
            rig.r2t(0x20001, 1, 0, 1024, 1976);
            rig.respond(0x20001, 0);
        }),
        (residual, |rig| {
            rig.respond_with(0x10000, 2, |pdu| pdu.residual = Residual::Underflow(3001));
        }),
        ("a SenseLength beyond the data segment", |rig| {
            rig.respond_by(0x10000, 2, &[0, 18, 0x70]);
        }),
        ("a SenseLength beyond the data segment", |rig| {
            rig.respond_by(0x10000, 2, &[0]);
        }),
        ("an unknown Initiator Task Tag", |rig| {
            rig.respond(0x30000, 0);
        }),
        ("a StatSN that is not the next one", |rig| {
            rig.respond_with(0x10000, 2, |pdu| {
                pdu.stamps.stat_sn = pdu.stamps.stat_sn.next();
            });
        }),
        ("a StatSN that is not the next one", |rig| {
            rig.respond_with(0x10000, 2, |pdu| {
                pdu.stamps.stat_sn = StatSn(pdu.stamps.stat_sn.0 - 1);
            });
        }),
        ("an ExpCmdSN beyond the last CmdSN sent", |rig| {
            rig.respond_with(0x10000, 2, |pdu| pdu.stamps.exp_cmd_sn = CmdSn(103));
        }),
    ]);
}

#[test]
fn r2ts() {
    check(&[
        ("an unknown Initiator Task Tag", |rig| {
            rig.r2t(0x30000, 1, 0, 1024, 512);
        }),
        ("an R2T for a command that does not write", |rig| {
            rig.r2t(0x10000, 1, 0, 0, 512);
        }),
        ("an R2T with the reserved Target Transfer Tag", |rig| {
            rig.r2t(0x20001, u32::MAX, 0, 1024, 512);
        }),
        ("an R2TSN that is not the next one", |rig| {
            rig.r2t(0x20001, 1, 1, 1024, 512);
        }),
        (
            "an R2T for zero bytes, or for more than MaxBurstLength",
            |rig| {
                rig.r2t(0x20001, 1, 0, 1024, 0);
            },
        ),
        (
            "an R2T for zero bytes, or for more than MaxBurstLength",
            |rig| {
                rig.r2t(0x20001, 1, 0, 0, 2049);
            },
        ),
        ("an R2T beyond the Expected Data Transfer Length", |rig| {
            rig.r2t(0x20001, 1, 0, 1024, 1977);
        }),
        ("an R2T beyond the Expected Data Transfer Length", |rig| {
            rig.r2t(0x20001, 1, 0, u32::MAX, 2);
        }),
        ("an R2T that is not the next in order", |rig| {
            rig.r2t(0x20001, 1, 0, 0, 512);
        }),
        ("an R2T that is not the next in order", |rig| {
            rig.r2t(0x20001, 1, 0, 1025, 512);
        }),
        ("more outstanding R2Ts than MaxOutstandingR2T", |rig| {
            for sn in 0..3 {
                rig.r2t(0x20001, sn, sn, 1024 + 10 * sn, 10);
            }
        }),
        ("an R2T with a data segment", |rig| {
            let mut bhs = Bhs::new(Opcode::R2t);
            bhs.stamp(rig.stamps());
            rig.send(bhs, &[0]);
        }),
    ]);
}

#[test]
fn answers_that_nobody_asked_for() {
    check(&[
        ("a response to a ping that was not sent", |rig| {
            rig.ping(Itt(1), u32::MAX);
        }),
        ("an unexpected Task Management Function Response", |rig| {
            rig.answer(0x10000, 0);
        }),
        ("an unexpected Text Response", |rig| {
            rig.text(0x10000, false, None, "");
        }),
        ("an unexpected Logout Response", |rig| {
            rig.logged_out(0x10000, 0);
        }),
        ("a PDU that a target must not send in this phase", |rig| {
            let pdu = rig.login_pdu(1, Some(3));
            rig.send(pdu.encode(), &[]);
        }),
        ("a PDU that a target must not send in this phase", |rig| {
            rig.send(Bhs::new(Opcode::ScsiCommand), &[]);
        }),
        ("an unassigned opcode", |rig| {
            rig.send(Bhs::new(Opcode::Other(0x3d)), &[]);
        }),
        ("a Reject without the header of the rejected PDU", |rig| {
            let mut bhs = Bhs::new(Opcode::Reject);
            bhs.stamp(rig.next_stamps());
            rig.send(bhs, &[0; 47]);
        }),
    ]);
}

#[test]
fn bytes_that_were_damaged() {
    let answer = [
        ("HeaderDigest=None", "HeaderDigest=CRC32C"),
        ("DataDigest=None", "DataDigest=CRC32C"),
    ];
    for (at, what) in [(40, "header"), (60, "data")] {
        let mut rig = Rig::with(config(), &answer);
        rig.read(1, 512);
        rig.sent();
        let pdu = rig.data_in(0x10000, 0, 0, true);
        let mut bytes = rig.bytes(pdu.encode(), &[0; 512]);
        bytes[at] ^= 1;
        rig.give(&bytes);
        assert_eq!(rig.failed().fate, Fate::Unknown);
        assert_eq!(rig.end(), SessionEnd::Damaged(what));
    }
}

#[test]
fn the_end_tells_what_was_sent() {
    let mut rig = Rig::open();
    rig.window = 4;
    for id in 0..6 {
        rig.write(id, 512);
    }
    rig.sent();
    rig.initiator.lost();
    for id in 0..6 {
        let failed = rig.failed();
        let fate = if id < 4 {
            Fate::Unknown
        } else {
            Fate::NeverSent
        };
        assert_eq!((failed.id, failed.fate), (id, fate));
    }
    assert_eq!(rig.end(), SessionEnd::Lost);
    rig.refused(9);
    assert_eq!(rig.initiator.receive(rig.now, b"more"), 4);
    rig.initiator.lost();
    assert!(rig.event().is_none());
}

#[test]
fn a_target_that_failed() {
    let mut rig = begun();
    rig.respond_with(0x20001, 0, |pdu| pdu.response = 1);
    let failed = rig.failed();
    assert_eq!(
        (failed.fate, failed.why),
        (Fate::Unknown, IscsiWhy::Own(IscsiCause::TargetFailure(1)))
    );
    rig.quiet();
    assert!(!matches!(rig.event(), Some(InitiatorEvent::Ended(_))));
}
