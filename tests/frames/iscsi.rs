//! PDUs of iSCSI.

use iscsi::wire::bhs::{Bhs, Opcode};
use iscsi::wire::control::{TextRequest, TextResponse};
use iscsi::wire::data::{DataIn, DataOut, R2t};
use iscsi::wire::framer::{Framer, PduPiece};
use iscsi::wire::login::{LoginRequest, LoginResponse, LogoutRequest, LogoutResponse};
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use scsi::residual::Residual;

use crate::frames;

const PLAIN: &str = include_str!("iscsi-plain.hex");
const DIGEST: &str = include_str!("iscsi-digest.hex");

/// The header and data that a framer finds in one frame.
fn cut(title: &str, bytes: &[u8], digests: bool) -> (Bhs, Vec<u8>) {
    let mut framer = Framer::new(1 << 18);
    framer.set_digests(digests, digests);
    let mut rest = bytes;
    let Ok(Some(PduPiece::Header(bhs))) = framer.next(&mut rest) else {
        panic!("{title}: no header");
    };
    let mut data = Vec::new();
    while let Some(piece) = framer.next(&mut rest).unwrap() {
        match piece {
            PduPiece::Data { bytes, .. } => data.extend_from_slice(bytes),
            other => panic!("{title}: {other:?}"),
        }
    }
    assert!(rest.is_empty(), "{title}: bytes left over");
    assert_eq!(framer.is_between(), !title.contains("header"), "{title}");
    (bhs, data)
}

/// Decoded and encoded again; the lengths are those of whoever sends, so they are set apart.
pub(crate) fn again(bhs: &Bhs) -> Bhs {
    let mut encoded = match bhs.opcode() {
        Opcode::LoginRequest => LoginRequest::decode(bhs).encode(),
        Opcode::LoginResponse => LoginResponse::decode(bhs).encode(),
        Opcode::TextRequest => TextRequest::decode(bhs).encode(),
        Opcode::TextResponse => TextResponse::decode(bhs).encode(),
        Opcode::ScsiCommand => ScsiCommand::decode(bhs).encode(),
        Opcode::ScsiResponse => ScsiResponse::decode(bhs).encode(),
        Opcode::DataIn => DataIn::decode(bhs).encode(),
        Opcode::DataOut => DataOut::decode(bhs).encode(),
        Opcode::R2t => R2t::decode(bhs).encode(),
        Opcode::LogoutRequest => LogoutRequest::decode(bhs).encode(),
        Opcode::LogoutResponse => LogoutResponse::decode(bhs).encode(),
        other => panic!("{other:?} was not captured"),
    };
    encoded.set_ahs_len(bhs.ahs_len());
    encoded.set_data_len(bhs.data_len());
    encoded
}

#[test]
fn captured_headers_are_encoded_as_they_came() {
    for (file, digests) in [(PLAIN, false), (DIGEST, true)] {
        for (title, bytes) in frames(file) {
            let (bhs, _) = cut(title, &bytes, digests);
            assert_eq!(again(&bhs), bhs, "{title}");
        }
    }
}

#[test]
fn a_captured_digest_does_not_survive_a_flipped_bit() {
    for (title, mut bytes) in frames(DIGEST) {
        bytes[17] ^= 1;
        let mut framer = Framer::new(1 << 18);
        framer.set_digests(true, true);
        assert!(framer.next(&mut &bytes[..]).is_err(), "{title}");
    }
}

fn frame(title: &str) -> (Bhs, Vec<u8>) {
    let frames = frames(PLAIN);
    let (title, bytes) = frames.iter().find(|frame| frame.0 == title).unwrap();
    cut(title, bytes, false)
}

#[test]
fn captured_fields_mean_what_their_senders_meant() {
    let (bhs, data) = frame("Login Request");
    let login = LoginRequest::decode(&bhs);
    assert_eq!((login.transit, login.current, login.next), (true, 1, 3));
    assert!(data.starts_with(b"InitiatorName=iqn.2026-01.test:initiator\0"));

    let (bhs, _) = frame("SCSI Command, READ(10)");
    let read = ScsiCommand::decode(&bhs);
    assert!(read.read && read.last && !read.write && !read.immediate);
    let blocks = u32::from(u16::from_be_bytes([read.cdb[7], read.cdb[8]]));
    assert_eq!(read.expected, blocks * 512);

    let (bhs, _) = frame("R2T");
    let r2t = R2t::decode(&bhs);
    let (bhs, _) = frame("Data-Out header");
    let answer = DataOut::decode(&bhs);
    assert_eq!((answer.itt, answer.ttt), (r2t.itt, r2t.ttt));
    assert_eq!((answer.offset, bhs.data_len()), (r2t.offset, r2t.desired));

    let (bhs, data) = frame("Data-In with an underflow");
    let ending = DataIn::decode(&bhs).status.unwrap();
    assert_eq!((ending.residual, data.len()), (Residual::Underflow(24), 12));
}
