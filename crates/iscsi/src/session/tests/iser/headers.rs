//! Messages that initiators may not send, and Hello (RFC 7145 §5.1.3, §9, §10.1.3).

use rdma::verbs::{self, Stag};

use crate::session::SessionEvent;
use crate::session::tests::rig::{IserRig as Rig, pattern};
use crate::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use crate::wire::data::SnackRequest;
use crate::wire::iser::{AdvertisedBuffers, Hello, HelloReply, IserHeader};
use crate::wire::serial::StatSn;

/// The session ends by this rule, and nothing is said to the initiator.
#[track_caller]
fn ends(rig: &mut Rig, rule: &str, clause: &str) {
    match rig.event() {
        Some(SessionEvent::Close(why)) => assert_eq!((why.rule, why.clause), (rule, clause)),
        other => panic!("{other:?} where {rule} was expected"),
    }
    rig.quiet();
    rig.sends_nothing();
}

const NOTHING: AdvertisedBuffers = AdvertisedBuffers {
    write: None,
    read: None,
};

const ANYTHING: Option<verbs::Tag> = Some(verbs::Tag {
    stag: Stag(1),
    offset: 0,
});

const HELLO: Hello = Hello {
    max_version: 10,
    min_version: 10,
    ird: 4,
};

/// The bytes of a PDU whose header says that `len` bytes of data follow, and `rest`.
fn pdu(mut bhs: Bhs, len: u32, rest: &[u8]) -> Vec<u8> {
    bhs.set_data_len(len);
    [&bhs.0[..], rest].concat()
}

/// A message that is made by hand ends the session.
#[track_caller]
fn ends_with(message: &[u8], rule: &str, clause: &str) {
    let mut rig = Rig::new();
    rig.give_raw(message);
    ends(&mut rig, rule, clause);
}

#[test]
fn headers_that_are_none() {
    let hello = IserHeader::Hello(HELLO).encode();
    let table = [
        (
            &[0x10; 27][..],
            "a message shorter than an iSER header",
            "§9.1",
        ),
        (
            &[0x40; 76],
            "an unassigned opcode in an iSER header",
            "§9.1",
        ),
        (&[0x10; 75], "a message shorter than a PDU's header", "§9.2"),
        (&hello, "an iSER Hello that was not agreed upon", "§5.1.3"),
        (
            &[0x20; 29],
            "an iSER Hello with more than its header",
            "§9.3",
        ),
        (&[0x30; 28], "an iSER HelloReply from an initiator", "§9.4"),
    ];
    for (message, rule, clause) in table {
        ends_with(message, rule, &format!("RFC 7145 {clause}"));
    }
}

#[test]
fn lengths_that_are_not_those_of_the_message() {
    let ping = Rig::new().nop_pdu(Itt(1)).encode();
    let rule = "a PDU whose lengths are not that of its message";
    for (len, there) in [(8, 0), (8, 7), (8, 9), (5, 6), (0, 1), (0, 4)] {
        let pdu = pdu(ping, len, &[0; 12][..there]);
        let message = [&IserHeader::Control(NOTHING).encode()[..], &pdu].concat();
        ends_with(&message, rule, "RFC 7145 §10.1.3.3");
    }
}

#[test]
fn a_data_segment_is_as_long_as_was_agreed_upon() {
    for (len, is_allowed) in [(4096, true), (4097, false)] {
        let mut rig = Rig::new();
        let ping = rig.nop_pdu(Itt(1)).encode();
        let message = pdu(ping, len, &vec![0; len.next_multiple_of(4) as usize]);
        rig.give_message(IserHeader::Control(NOTHING), &message);
        if is_allowed {
            rig.quiet();
            assert_eq!(rig.sent().len(), 1);
        } else {
            let rule = "a data segment longer than TargetRecvDataSegmentLength";
            ends(&mut rig, rule, "RFC 7145 §6.4");
        }
    }
}

#[test]
fn additional_header_segments_are_as_long_as_was_declared() {
    for (len, rule) in [
        (256, "an unassigned AHSType"),
        (260, "additional header segments longer than MaxAHSLength"),
    ] {
        let mut rig = Rig::new();
        let mut bhs = rig.read_pdu(1, 512).encode();
        bhs.set_ahs_len(len);
        let segment = [&(len as u16 - 3).to_be_bytes()[..], &[0x3f; 260]].concat();
        rig.give_command(bhs, &segment[..len]);
        assert_eq!(rig.rule(), rule, "{len} bytes");
    }
}

#[test]
fn a_command_brings_the_stags_that_it_needs() {
    let mut rig = Rig::new();
    let read = rig.read_pdu(1, 512).encode().0;
    let write = rig.write_pdu(2, 512, true).encode().0;
    let both = AdvertisedBuffers {
        write: None,
        read: ANYTHING,
    };
    rig.give_message(IserHeader::Control(both), &read);
    rig.executed();
    rig.give_message(IserHeader::Control(both), &write);
    let rule = "solicited data without a Write STag";
    ends(&mut rig, rule, "RFC 7145 §9.2");
    let mut rig = Rig::new();
    let both = AdvertisedBuffers {
        write: ANYTHING,
        read: None,
    };
    rig.give_message(IserHeader::Control(both), &read);
    ends(&mut rig, "a SCSI read without a Read STag", "RFC 7145 §9.2");
}

#[test]
fn a_write_without_solicited_data_needs_no_stag() {
    let mut rig = Rig::new();
    let mut bhs = rig.write_pdu(1, 512, true).encode();
    bhs.set_data_len(512);
    let message = [&bhs.0[..], &pattern(512)].concat();
    rig.give_message(IserHeader::Control(NOTHING), &message);
    rig.executed();
}

/// A write of which all may be unsolicited needs no STag, until not all of it was.
#[test]
fn a_write_that_lacks_data_needs_a_stag_after_all() {
    let mut rig = Rig::agreed(|keys| keys.initial_r2t = false);
    let bhs = rig.write_pdu(1, 1000, false).encode();
    rig.give_message(IserHeader::Control(NOTHING), &bhs.0);
    let tag = rig.executed().tag;
    rig.grant(tag, 0, 1000);
    rig.data_out(1, Ttt::NONE, 0, 0, true, &pattern(500));
    rig.post();
    let rule = "solicited data without a Write STag";
    ends(&mut rig, rule, "RFC 7145 §9.2");
}

/// What a login over RDMA agrees upon lets no Data-Out come.
#[test]
fn unsolicited_data_out_is_refused() {
    let mut rig = Rig::agreed(|keys| keys.initial_r2t = true);
    let command = rig.write_pdu(1, 1000, false).encode();
    rig.send(command, &[]);
    rig.data_out(1, Ttt::NONE, 0, 0, true, &pattern(1000));
    rig.sends(["Response #1 02 U=1000 sense=b/0c0c"]);
    assert_eq!(rig.peer.requests, [0; 0]);
    let tag = rig.write(2, 1000, true, &[]).tag;
    rig.data_out(2, Ttt::NONE, 0, 0, true, &pattern(1000));
    rig.managing();
    rig.aborted(tag);
    rig.sends(["Response #2 02 U=1000 sense=b/0c0c"]);
}

#[test]
fn data_out_that_says_it_was_asked_for_is_rejected() {
    let mut rig = Rig::new();
    rig.granted(1, 4096, true, &[]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(2048));
    assert_eq!(rig.rule(), "a Data-Out with a Target Transfer Tag");
    rig.sends(["Reject 04 of DataOut"]);
    assert_eq!(rig.got_data().2, pattern(4096), "the write goes on");
}

#[test]
fn a_snack_is_a_protocol_error() {
    let mut rig = Rig::new();
    let command = rig.read(1, 8);
    let snack = SnackRequest {
        kind: 0,
        lun: command.lun,
        itt: Itt(1),
        ttt: Ttt::NONE,
        exp_stat_sn: StatSn(0),
        first: 0,
        count: 0,
    };
    rig.send(snack.encode(), &[]);
    assert_eq!(rig.rule(), "a SNACK at ErrorRecoveryLevel 0");
    rig.managing();
    rig.aborted(command.tag);
    rig.sends([
        "Reject 04 of SnackRequest",
        "Response #1 02 U=8 sense=b/1113",
    ]);
}

fn said_hello(hello: Hello) -> (Rig, HelloReply) {
    let mut rig = Rig::agreed(|keys| keys.iser.hello_required = true);
    rig.give_message(IserHeader::Hello(hello), &[]);
    let reply = HelloReply {
        reject: false,
        max_version: 10,
        current_version: 10,
        ord: 4,
    };
    (rig, reply)
}

#[test]
fn a_hello_is_answered_before_all_else() {
    let (mut rig, reply) = said_hello(HELLO);
    assert_eq!(rig.session.queued(), 1);
    rig.ping(1, b"");
    rig.sends([format!("{reply:?}"), "NOP-In #1 \"\"".to_owned()]);
    rig.give_message(IserHeader::Hello(HELLO), &[]);
    ends(
        &mut rig,
        "an iSER Hello that was not agreed upon",
        "RFC 7145 §5.1.3",
    );
}

#[test]
fn reads_are_as_many_as_a_hello_allows() {
    let (mut rig, reply) = said_hello(Hello {
        ird: 2,
        max_version: 15,
        min_version: 0,
    });
    rig.peer.is_silent = true;
    rig.granted(1, 8192, true, &[]);
    let reply = HelloReply { ord: 2, ..reply };
    rig.sends([format!("{reply:?}")]);
    assert_eq!(rig.peer.requests, [2048; 2]);
}

#[test]
fn a_hello_of_another_version_is_refused() {
    for (min_version, max_version) in [(9, 9), (11, 15), (11, 9)] {
        let (mut rig, reply) = said_hello(Hello {
            min_version,
            max_version,
            ..HELLO
        });
        assert_eq!(rig.rule(), "an iSER Hello without version 10");
        let reply = HelloReply {
            reject: true,
            ..reply
        };
        rig.sends([format!("{reply:?}")]);
    }
}

#[test]
fn without_reads_nothing_can_be_asked_for() {
    let (mut rig, reply) = said_hello(Hello { ird: 0, ..HELLO });
    let reply = HelloReply { ord: 0, ..reply };
    rig.sends([format!("{reply:?}")]);
    let read = rig.read(1, 512);
    rig.answer(read.tag, 512);
    rig.sends(["Response #1 00"]);
    rig.granted(2, 512, true, &[]);
    rig.sends_nothing();
    assert_eq!(rig.rule(), "a connection without RDMA Reads");
}

#[test]
fn a_hello_that_was_announced_has_to_come() {
    let mut rig = Rig::agreed(|keys| keys.iser.hello_required = true);
    rig.ping(1, b"");
    ends(
        &mut rig,
        "another message in place of an iSER Hello",
        "RFC 7145 §10.1.3.4",
    );
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
        let mut rig = Rig::new();
        let write = rig.write_pdu(1, 512, true).encode();
        let advertised = AdvertisedBuffers {
            write: ANYTHING,
            read: ANYTHING,
        };
        let header = IserHeader::Control(advertised).encode();
        let mut message = [&header[..], &pdu(write, 100, &[7; 100])].concat();
        for _ in 0..round % 5 {
            let at = usize::from(byte()) % message.len();
            message[at] = byte();
        }
        message.truncate(usize::from(byte()).max(usize::from(byte())));
        rig.give_raw(&message);
        rig.sent();
        ended += u32::from(!rig.session.is_open());
    }
    assert!((1..500).contains(&ended), "{ended}");
}

#[test]
fn login_requests_are_out_of_place() {
    let mut rig = Rig::new();
    rig.send(Bhs::new(Opcode::LoginRequest), &[]);
    assert_eq!(rig.rule(), "a login request after login");
    rig.sends(["Reject 04 of LoginRequest"]);
}
