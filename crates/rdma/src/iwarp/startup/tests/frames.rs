//! Request and Reply Frames, byte by byte and at any split.

use super::{peer_to_peer, request};
use crate::iwarp::startup::{
    FrameKind, FrameReader, MAX_PRIVATE, RtrKinds, StartupError, StartupFrame,
};

fn read(kind: FrameKind, bytes: &[u8]) -> Result<Option<StartupFrame>, StartupError> {
    FrameReader::new(kind).receive(bytes)
}

/// A Request whose bytes from 16 on are these.
fn from_16(bytes: &[u8]) -> Vec<u8> {
    [b"MPA ID Req Frame", bytes].concat()
}

#[test]
fn a_request_stands_where_figure_8_has_it() {
    let bytes = request().encode();
    let tail = [0x10, 2, 0, 8, 0x00, 0x80, 0x00, 0x01, 0x80, 0, 0, 0];
    assert_eq!(bytes, from_16(&tail));
    assert_eq!(read(FrameKind::Request, &bytes), Ok(Some(request())));
}

#[test]
fn each_flag_has_its_bit() {
    let plain = StartupFrame {
        kind: FrameKind::Reply,
        enhanced: None,
        ..request()
    };
    let frames = [
        (
            0x80,
            StartupFrame {
                markers: true,
                ..plain.clone()
            },
        ),
        (
            0x40,
            StartupFrame {
                crc: true,
                ..plain.clone()
            },
        ),
        (
            0x20,
            StartupFrame {
                rejected: true,
                ..plain.clone()
            },
        ),
        (
            0x10,
            StartupFrame {
                enhanced: request().enhanced,
                ..plain.clone()
            },
        ),
        (
            0x08,
            StartupFrame {
                long_fpdus: true,
                ..plain.clone()
            },
        ),
        (0x00, plain),
    ];
    for (bit, frame) in frames {
        let bytes = frame.encode();
        assert_eq!(bytes[16], bit);
        assert_eq!(read(FrameKind::Reply, &bytes), Ok(Some(frame)));
    }
}

#[test]
fn each_kind_of_rtr_has_its_bit() {
    let none = RtrKinds {
        send: false,
        write: false,
        read: false,
    };
    let rows = [
        (none, [0x80, 0x05, 0x00, 0x07]),
        (RtrKinds { send: true, ..none }, [0xc0, 0x05, 0x00, 0x07]),
        (
            RtrKinds {
                write: true,
                ..none
            },
            [0x80, 0x05, 0x80, 0x07],
        ),
        (RtrKinds { read: true, ..none }, [0x80, 0x05, 0x40, 0x07]),
        (RtrKinds::ALL, [0xc0, 0x05, 0xc0, 0x07]),
    ];
    for (kinds, data) in rows {
        let frame = StartupFrame {
            enhanced: peer_to_peer(5, 7, kinds),
            ..request()
        };
        let bytes = frame.encode();
        assert_eq!(bytes[20..24], data);
        assert_eq!(read(FrameKind::Request, &bytes), Ok(Some(frame)));
    }
}

#[test]
fn kinds_of_rtr_without_the_peer_to_peer_flag_mean_nothing() {
    let bytes = from_16(&[0x10, 2, 0, 4, 0x40, 0x05, 0xc0, 0x07]);
    let frame = read(FrameKind::Request, &bytes).unwrap().unwrap();
    let enhanced = frame.enhanced.unwrap();
    assert_eq!(
        (enhanced.ird, enhanced.ord, enhanced.peer_to_peer),
        (5, 7, None)
    );
}

#[test]
fn a_frame_that_is_split_at_any_byte() {
    let bytes = request().encode();
    for at in 0..bytes.len() {
        let mut reader = FrameReader::new(FrameKind::Request);
        assert_eq!(reader.receive(&bytes[..at]), Ok(None));
        assert_eq!(
            reader.receive(&bytes[at..]),
            Ok(Some(request())),
            "split at {at}"
        );
    }
}

#[test]
fn a_frame_that_comes_byte_by_byte() {
    let bytes = request().encode();
    let mut reader = FrameReader::new(FrameKind::Request);
    let (last, others) = bytes.split_last().unwrap();
    for byte in others {
        assert_eq!(reader.receive(&[*byte]), Ok(None));
    }
    assert_eq!(reader.receive(&[*last]), Ok(Some(request())));
    assert_eq!(reader.receive(&[]), Ok(None), "it is told once");
}

#[test]
fn bytes_behind_a_frame_are_out_of_turn() {
    for kind in [FrameKind::Request, FrameKind::Reply] {
        let frame = StartupFrame { kind, ..request() };
        let mut bytes = frame.encode();
        let mut reader = FrameReader::new(kind);
        assert_eq!(reader.receive(&bytes), Ok(Some(frame)));
        assert_eq!(reader.receive(&[0]), Err(StartupError::OutOfTurn));
        bytes.push(0);
        assert_eq!(read(kind, &bytes), Err(StartupError::OutOfTurn));
    }
}

#[test]
fn the_first_byte_that_is_no_key_ends_it() {
    for at in 0..16 {
        let mut bytes = request().encode();
        bytes[at] ^= 0x20;
        let wrong = read(FrameKind::Request, &bytes[..=at]);
        assert_eq!(wrong, Err(StartupError::Key), "byte {at}");
    }
}

#[test]
fn two_initiators_and_two_responders_notice() {
    let bytes = request().encode();
    // The keys are the same up to `Re`, and what is to be the other one may be garbage.
    assert_eq!(read(FrameKind::Reply, &bytes[..9]), Ok(None));
    let both_ask = Err(StartupError::Kind(FrameKind::Request));
    assert_eq!(read(FrameKind::Reply, &bytes[..15]), Ok(None));
    assert_eq!(read(FrameKind::Reply, &bytes[..16]), both_ask);
    let reply = StartupFrame {
        kind: FrameKind::Reply,
        ..request()
    };
    let both_answer = Err(StartupError::Kind(FrameKind::Reply));
    assert_eq!(read(FrameKind::Request, &reply.encode()), both_answer);
}

/// What begins as the other frame and goes on otherwise is garbage, however it comes.
#[test]
fn garbage_is_told_alike_at_any_split() {
    let bytes = b"MPA ID Req!Frame....";
    for at in 0..=bytes.len() {
        let mut reader = FrameReader::new(FrameKind::Reply);
        let first = reader.receive(&bytes[..at]);
        let told = first.and_then(|_| reader.receive(&bytes[at..]));
        assert_eq!(told, Err(StartupError::Key), "split at {at}");
    }
}

#[test]
fn revisions_1_and_2_are_known() {
    for revision in 0..=255 {
        let known = read(FrameKind::Request, &from_16(&[0, revision, 0, 0]));
        match revision {
            1 | 2 => assert_eq!(known.unwrap().unwrap().revision, revision),
            _ => assert_eq!(known, Err(StartupError::Revision(revision))),
        }
    }
}

#[test]
fn private_data_has_512_bytes_at_most() {
    let mut longest = from_16(&[0, 1, 2, 0]);
    longest.resize(20 + MAX_PRIVATE, 0x77);
    let frame = read(FrameKind::Request, &longest).unwrap().unwrap();
    assert_eq!(frame.private, [0x77; MAX_PRIVATE]);
    let longer = read(FrameKind::Request, &from_16(&[0, 1, 2, 1]));
    assert_eq!(longer, Err(StartupError::PrivateTooLong(513)));
}

#[test]
fn an_enhanced_frame_has_room_for_what_it_says() {
    for len in 0..4 {
        let bytes = from_16(&[0x10, 2, 0, len]);
        let error = StartupError::EnhancedTooShort(u16::from(len));
        assert_eq!(read(FrameKind::Request, &bytes), Err(error));
    }
}

#[test]
fn in_revision_1_the_flag_of_the_enhanced_startup_is_not_looked_at() {
    let bytes = from_16(&[0x17, 1, 0, 2, 0xab, 0xcd]);
    let frame = read(FrameKind::Request, &bytes).unwrap().unwrap();
    assert_eq!(
        (frame.enhanced, &frame.private[..]),
        (None, &[0xab, 0xcd][..])
    );
}

#[test]
fn the_rejected_flag_of_a_request_is_not_looked_at() {
    let frame = read(FrameKind::Request, &from_16(&[0x20, 1, 0, 0]));
    assert!(!frame.unwrap().unwrap().rejected);
}

#[test]
fn private_data_that_is_too_long_to_be_sent_is_cut_off() {
    let frame = StartupFrame {
        private: vec![9; 600],
        ..request()
    };
    let read = read(FrameKind::Request, &frame.encode()).unwrap().unwrap();
    assert_eq!(read.private, [9; 508]);
}
