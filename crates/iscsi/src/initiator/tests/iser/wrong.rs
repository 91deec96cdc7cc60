//! Targets that break a rule of iSER: the session ends with the rule, each command fails once with
//! an unknown fate, and no byte has moved that must not.

use rdma::verbs::Stag;
use scsi::residual::Residual;

use crate::initiator::tests::rig::{IserRig as Rig, bytes_of, pattern};
use crate::initiator::{Data, Fate, InitiatorEvent, IscsiCause, IscsiWhy};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::iser::{AdvertisedBuffers, Hello, HelloReply, IserHeader};

pub(super) type Story = (&'static str, fn(&mut Rig));

/// A read of 3000 bytes is #10000, a write of 3000 is #20001; nothing of either has moved.
pub(super) fn begun() -> Rig {
    let mut rig = Rig::open();
    rig.read(1, 3000);
    rig.write(2, 3000);
    rig.sent();
    rig
}

/// Both commands fail, and the memory of the read is as it was but for `moved` bytes.
#[track_caller]
pub(super) fn fail(rig: &mut Rig, rule: &str, moved: usize) {
    for id in [1, 2] {
        let failed = rig.failed();
        assert_eq!(failed.id, id, "{rule}");
        assert_eq!((failed.fate, failed.why), (Fate::Unknown, IscsiWhy::Ended));
        if let Data::In(into) = &failed.data {
            let expected = [&pattern(moved)[..], &vec![0xee; 3000 - moved]].concat();
            assert_eq!(bytes_of(into), expected, "{rule}");
        }
    }
}

#[track_caller]
fn check(moved: usize, stories: &[Story]) {
    for (rule, story) in stories {
        let mut rig = begun();
        story(&mut rig);
        fail(&mut rig, rule, moved);
        assert_eq!(rig.rule(), *rule);
    }
}

#[test]
fn good_with_bytes_missing() {
    let incomplete = "GOOD for a read whose data does not match its residual";
    check(0, &[(incomplete, |rig| rig.respond(0x10000, 0))]);
    check(
        2999,
        &[(incomplete, |rig| {
            rig.put(0x10000, 0, 2999);
            rig.respond(0x10000, 0);
        })],
    );
    check(
        1000,
        &[
            (incomplete, |rig| {
                rig.put(0x10000, 0, 1000);
                rig.put(0x10000, 0, 1000);
                rig.put(0x10000, 0, 1000);
                rig.respond(0x10000, 0);
            }),
            (incomplete, |rig| {
                rig.put(0x10000, 0, 1000);
                let pdu = |pdu: &mut crate::wire::scsi_command::ScsiResponse| {
                    pdu.residual = Residual::Underflow(1999);
                };
                rig.respond_with(0x10000, 0, pdu);
            }),
        ],
    );
}

/// LIO numbers responses in another order than it posts them.
#[test]
fn a_status_overtakes_another_one_once() {
    let overtaken = || {
        let mut rig = Rig::open();
        rig.test_unit(1);
        rig.test_unit(2);
        rig.sent();
        rig.respond_with(0x10000, 0, |pdu| pdu.stamps.stat_sn.0 += 1);
        assert_eq!(rig.done().id, 1);
        rig
    };
    let mut rig = overtaken();
    rig.respond_with(0x20001, 0, |pdu| pdu.stamps.stat_sn.0 -= 1);
    assert_eq!(rig.done().id, 2);
    // Both are acknowledged.
    rig.test_unit(3);
    assert_eq!(rig.sent().len(), 1);
    let mut rig = overtaken();
    rig.respond(0x20001, 0);
    rig.failed();
    assert_eq!(rig.rule(), "a StatSN that is not the next one");
}

/// What does not count was written all the same.
#[test]
fn more_than_counts() {
    let mut rig = begun();
    rig.put(0x10000, 0, 3000);
    rig.respond_with(0x10000, 0, |pdu| pdu.residual = Residual::Underflow(2984));
    assert_eq!(rig.done().moved, 16);
}

/// As many bytes as there should be, but not those.
#[test]
fn good_with_a_hole() {
    let mut rig = begun();
    rig.put(0x10000, 0, 1000);
    rig.put(0x10000, 1001, 1999);
    rig.respond(0x10000, 0);
    assert_eq!(rig.failed().fate, Fate::Unknown);
    rig.failed();
    assert_eq!(
        rig.rule(),
        "GOOD for a read whose data does not match its residual"
    );
}

#[test]
fn responses() {
    let unasked = "GOOD for a write before its data was sent";
    check(
        0,
        &[
            (unasked, |rig| rig.respond(0x20001, 0)),
            (unasked, |rig| {
                rig.get(0x20001, 0, 2999);
                rig.got();
                rig.respond(0x20001, 0);
            }),
            (
                "a residual above the Expected Data Transfer Length",
                |rig| {
                    rig.respond_with(0x10000, 2, |pdu| pdu.residual = Residual::Underflow(3001));
                },
            ),
            ("an unknown Initiator Task Tag", |rig| {
                rig.respond(0x30000, 0);
            }),
            ("a SenseLength beyond the data segment", |rig| {
                rig.respond_by(0x10000, 2, &[0, 18, 0x70]);
            }),
            (
                "a data segment longer than InitiatorRecvDataSegmentLength",
                |rig| rig.respond_by(0x10000, 2, &[0; 4097]),
            ),
        ],
    );
}

#[test]
fn foreign_invalidations() {
    let foreign = "an invalidated STag that is not that of the command in the response";
    check(
        0,
        &[
            (foreign, |rig| {
                let stag = rig.tag(0x20001).stag;
                let pdu = rig.response_pdu(0x10000, 2);
                rig.give_pdu(pdu.encode(), &[], Some(stag));
            }),
            (foreign, |rig| {
                let stag = rig.tag(0x10000).stag;
                let mut bhs = Bhs::new(Opcode::NopIn);
                bhs.stamp(rig.stamps());
                rig.give_pdu(bhs, &[], Some(stag));
            }),
        ],
    );
    let mut rig = begun();
    let pdu = rig.response_pdu(0x10000, 2);
    rig.give_pdu(pdu.encode(), &[], Some(Stag(0x1234_5678)));
    fail(&mut rig, "unknown", 0);
    assert_eq!(rig.rule(), "an STag that cannot be invalidated");
}

#[test]
fn data_in_pdus() {
    let rule = "a Data-In or an R2T over RDMA";
    check(
        0,
        &[
            (rule, |rig| {
                let mut bhs = Bhs::new(Opcode::DataIn);
                bhs.stamp(rig.stamps());
                rig.send(bhs, &[7; 16]);
            }),
            (rule, |rig| {
                let mut bhs = Bhs::new(Opcode::R2t);
                bhs.stamp(rig.stamps());
                rig.send(bhs, &[]);
            }),
        ],
    );
}

fn header() -> [u8; 28] {
    IserHeader::Control(AdvertisedBuffers::default()).encode()
}

#[test]
fn headers_that_are_none() {
    let lengths = "a PDU whose lengths are not that of its message";
    check(
        0,
        &[
            ("a message shorter than an iSER header", |rig| {
                rig.give_raw(&[0x10; 27], None);
            }),
            ("an unassigned opcode in an iSER header", |rig| {
                rig.give_raw(&[0x40; 76], None);
            }),
            ("a message shorter than a PDU's header", |rig| {
                rig.give_raw(&[&header()[..], &[0; 47]].concat(), None);
            }),
            (lengths, |rig| {
                let mut bhs = Bhs::new(Opcode::NopIn);
                bhs.set_data_len(4);
                rig.give_raw(&[&header()[..], &bhs.0, &[0; 3]].concat(), None);
            }),
            (lengths, |rig| {
                let bhs = Bhs::new(Opcode::NopIn);
                rig.give_raw(&[&header()[..], &bhs.0, &[0; 4]].concat(), None);
            }),
            ("an additional header segment from a target", |rig| {
                let mut bhs = Bhs::new(Opcode::NopIn);
                bhs.set_ahs_len(8);
                rig.give_raw(&[&header()[..], &bhs.0, &[0; 8]].concat(), None);
            }),
            (
                "an iSER Hello or HelloReply that was not asked for",
                |rig| {
                    let hello = Hello {
                        max_version: 10,
                        min_version: 10,
                        ird: 1,
                    };
                    rig.give_raw(&IserHeader::Hello(hello).encode(), None);
                },
            ),
            (
                "an iSER Hello or HelloReply that was not asked for",
                |rig| {
                    let reply = HelloReply {
                        reject: false,
                        max_version: 10,
                        current_version: 10,
                        ord: 1,
                    };
                    rig.give_raw(&IserHeader::HelloReply(reply).encode(), None);
                },
            ),
        ],
    );
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
    rig.get(0x20001, 0, 1);
    assert_eq!(rig.failed().id, 1);
    assert_eq!(
        rig.rule(),
        "an STag that is not valid",
        "its memory is not the target's"
    );
}

#[test]
fn answers_that_nobody_asked_for() {
    check(
        0,
        &[
            ("a response to a ping that was not sent", |rig| {
                rig.ping(Itt(1), u32::MAX);
            }),
            ("an unexpected Task Management Function Response", |rig| {
                rig.answer(0x10000, 0);
            }),
            ("an unassigned opcode", |rig| {
                rig.send(Bhs::new(Opcode::Other(0x3d)), &[]);
            }),
            ("a PDU that a target must not send in this phase", |rig| {
                rig.send(Bhs::new(Opcode::ScsiCommand), &[]);
            }),
        ],
    );
}

#[test]
fn pings_without_end_are_not_hoarded() {
    let mut rig = Rig::open();
    for ttt in 0..200 {
        rig.ping(Itt::NONE, ttt);
    }
    assert_eq!(rig.sent().len(), 200);
    assert!(!rig.initiator.is_stalled());
    assert!(!matches!(rig.event(), Some(InitiatorEvent::Ended(_))));
}

#[test]
fn any_message_is_borne() {
    let mut random = 0x1234_5678_u32;
    let mut byte = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    let mut ended = 0;
    for round in 0..500 {
        let mut rig = begun();
        let mut bhs = rig.response_pdu(0x10000, 2).encode();
        bhs.set_data_len(100);
        let mut message = [&header()[..], &bhs.0, &[0; 100]].concat();
        for _ in 0..round % 5 {
            let at = usize::from(byte()) % message.len();
            message[at] = byte();
        }
        message.truncate(usize::from(byte()).max(usize::from(byte())));
        rig.give_raw(&message, None);
        rig.sent();
        let is_end = |event: &InitiatorEvent<_>| matches!(event, InitiatorEvent::Ended(_));
        ended += u32::from(rig.events.iter().any(is_end));
    }
    assert!((1..500).contains(&ended), "{ended}");
}
