//! Frames as they should be, and as they should not.

use fc::remote::PeerAddress;
use fc::tests::frame;
use fc::wire::ethernet::{self, EthernetHeader};
use fc::wire::fcoe::{self, Eof, Sof};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

use crate::fuzzing::script::Script;

/// What a port sends can be read, and is its own.
pub(super) fn check(frame: &[u8], own: Option<PeerAddress>) {
    let Ok((header, inside)) = EthernetHeader::parse(frame) else {
        panic!("a frame without an Ethernet header");
    };
    assert!(
        frame.len() >= ethernet::MIN_LEN,
        "a frame that is too short"
    );
    if header.ethertype != ethernet::FCOE {
        assert_eq!(header.ethertype, ethernet::FIP);
        return;
    }
    match (fcoe::decode(inside), own) {
        (Ok(frame), Some(own)) => {
            assert_eq!((header.src, frame.header.s_id), (own.mac, own.fc_id));
        }
        other => panic!("{other:?}"),
    }
}

/// One byte changes; the CRC of an FCoE frame is made right again.
pub(super) fn spoil(bytes: &mut [u8], script: &mut Script<'_>) {
    let (at, change) = (usize::from(script.half()), script.byte());
    let Ok((ethernet, inside)) = EthernetHeader::parse(bytes) else {
        return;
    };
    let Ok(frame) = fcoe::decode(inside) else {
        let at = ethernet.len() + at % inside.len();
        bytes[at] ^= change;
        return;
    };
    let mut payload = frame.payload.to_vec();
    let mut head = frame.header.encode();
    match head.len() + payload.len() {
        len if at % len < head.len() => head[at % len] ^= change,
        len => payload[at % len - head.len()] ^= change,
    }
    let changed = FrameHeader::parse(&head).unwrap_or(frame.header);
    // A length that is no multiple of 4 is only there at the end of a sequence.
    let f_ctl = changed
        .f_ctl
        .with(FCtl(frame.header.f_ctl.0 & FCtl::END_SEQUENCE.0));
    let header = FrameHeader { f_ctl, ..changed };
    let delimiters = (frame.sof, frame.eof);
    let write = |to: &mut [u8]| to.copy_from_slice(&payload);
    fcoe::encode(bytes, &ethernet, delimiters, &header, payload.len(), write);
}

/// A frame of the script's choice, with addresses that are right.
pub(super) fn made(script: &mut Script<'_>, from: PeerAddress, to: PeerAddress) -> Vec<u8> {
    let ethernet = EthernetHeader::new(from.mac, to.mac, ethernet::FCOE);
    let kind = script.pick(&KINDS);
    let f_ctl = script.pick(&[
        FCtl::REQUEST,
        FCtl::REPLY,
        FCtl::REPLY.with(FCtl::SEQUENCE_INITIATIVE),
        FCtl::END_SEQUENCE.with(FCtl::RELATIVE_OFFSET),
        FCtl::RESPONDER
            .with(FCtl::END_SEQUENCE)
            .with(FCtl::RELATIVE_OFFSET),
    ]);
    let (seq_id, seq_cnt) = (script.byte(), u16::from(script.byte()));
    let exchange = (OxId(number(script)), RxId(number(script)));
    let header = FrameHeader {
        f_ctl,
        seq_id,
        seq_cnt,
        parameter: u32::from(script.half()),
        ..FrameHeader::new(kind, (from.fc_id, to.fc_id), exchange)
    };
    let len = script.below(128);
    frame(&ethernet, (Sof::I3, Eof::T), &header, script.take(len))
}

/// Of an exchange: one of the first of FCP or of link services, or none.
fn number(script: &mut Script<'_>) -> u16 {
    match script.byte() {
        low @ 0..0x40 => low.into(),
        low @ 0x40..0x80 => 0xf000 + u16::from(low - 0x40),
        0x80..0xc0 => 0xffff,
        _ => script.half(),
    }
}

const KINDS: [(RCtl, FrameType); 13] = [
    (RCtl::UNSOLICITED_COMMAND, FrameType::FCP),
    (RCtl::SOLICITED_DATA, FrameType::FCP),
    (RCtl::SOLICITED_CONTROL, FrameType::FCP),
    (RCtl::DATA_DESCRIPTOR, FrameType::FCP),
    (RCtl::COMMAND_STATUS, FrameType::FCP),
    (RCtl::FC4_REQUEST, FrameType::FCP),
    (RCtl::FC4_REPLY, FrameType::FCP),
    (RCtl::ELS_REQUEST, FrameType::ELS),
    (RCtl::ELS_REPLY, FrameType::ELS),
    (RCtl::ABTS, FrameType::BLS),
    (RCtl::BA_ACC, FrameType::BLS),
    (RCtl::BA_RJT, FrameType::BLS),
    (RCtl(0xc0), FrameType::CT),
];
