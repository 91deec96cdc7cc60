//! Every frame of a captured session over software iWARP, and every message of one over RoCE, from
//! the discovery to the logout: read layer by layer, and written again to the very same bytes.
//!
//! `iser_frames.py` has made the two files, and says what stands in them. What is left out of the
//! first is the data of READs and WRITEs behind the headers, 190 payloads of random bytes, for
//! which others stand in here: no layer looks at them. With a text that has them, as
//! `iser_frames.py siw CAPTURE --whole` makes it, at `LUNAR_SIW_FRAMES`, the test reads that.

use std::borrow::Cow;

use rdma::iwarp::ddp::{DdpHeader, Opcode, ReadRequest};
use rdma::iwarp::fpdu::FpduReader;
use rdma::iwarp::startup::{FrameKind, FrameReader};
use rdma::test_support::pattern;

use crate::iser::{fpdu_of, ulpdu};
use crate::iser_messages::message_again;

const SIW: &str = include_str!("iser-siw-frames.hex");
const RXE: &str = include_str!("iser-rxe-messages.hex");

/// The two senders, and what each has sent of a message.
const SENDERS: [&str; 2] = [">", "<"];
type Messages = [Vec<u8>; 2];

/// The frames of a file, and the place of each sender in [`SENDERS`].
fn captured(file: &str) -> Vec<(usize, Vec<u8>)> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    let frames = lines.map(|line| {
        let (from, words) = line.split_once(' ').unwrap();
        let sender = SENDERS.iter().position(|sender| *sender == from);
        (sender.unwrap(), words.split(' ').flat_map(bytes).collect())
    });
    frames.collect()
}

/// A word of a line.
fn bytes(word: &str) -> Vec<u8> {
    match word.split_once('*') {
        Some(("random", left_out)) => {
            let (len, _) = left_out.split_once('=').unwrap();
            pattern(len.parse().unwrap())
        }
        Some((byte, count)) => hex(byte).repeat(count.parse().unwrap()),
        None => hex(word),
    }
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// A frame of MPA, read and written.
fn startup_again(sender: usize, frame: &[u8]) -> Vec<u8> {
    let kind = [FrameKind::Request, FrameKind::Reply][sender];
    let read = FrameReader::new(kind).receive(frame).unwrap();
    read.unwrap().encode()
}

/// An FPDU, read and written, and so the message that it ends; tells what it is of.
fn fpdu_again(message: &mut Vec<u8>, fpdu: &[u8]) -> (Opcode, Vec<u8>) {
    let ulpdu = ulpdu(fpdu);
    let (header, payload) = DdpHeader::parse(&ulpdu).unwrap();
    let (opcode, payload) = match header {
        DdpHeader::Tagged(header) => (header.opcode, payload.to_vec()),
        DdpHeader::Untagged(header) if header.opcode == Opcode::READ_REQUEST => {
            let request = ReadRequest::parse(payload.try_into().unwrap());
            (header.opcode, request.encode().to_vec())
        }
        DdpHeader::Untagged(header) => {
            assert_eq!(header.offset as usize, message.len());
            message.extend_from_slice(payload);
            let mut again = message.clone();
            if header.last {
                again = message_again(&std::mem::take(message));
            }
            (header.opcode, again.split_off(header.offset as usize))
        }
    };
    // The peers have waived the CRC. With one the same is read.
    let with_crc = fpdu_of(&header, &payload, true);
    let mut reader = FpduReader::new(true);
    assert_eq!(reader.next(&with_crc).unwrap().ulpdu, Some(&ulpdu[..]));
    (opcode, fpdu_of(&header, &payload, false))
}

#[test]
fn every_frame_over_siw_is_written_as_it_came() {
    let file = std::env::var("LUNAR_SIW_FRAMES").map_or(Cow::Borrowed(SIW), |path| {
        std::fs::read_to_string(path).unwrap().into()
    });
    let (mut messages, mut startups, mut fpdus) = (Messages::default(), 0, [0; 5]);
    for (at, (sender, frame)) in captured(&file).into_iter().enumerate() {
        let again = if frame.starts_with(b"MPA") {
            startups += 1;
            startup_again(sender, &frame)
        } else {
            let (opcode, again) = fpdu_again(&mut messages[sender], &frame);
            fpdus[usize::from(opcode.0)] += 1;
            again
        };
        assert_eq!(again, frame, "frame {at}");
    }
    assert!(messages.iter().all(Vec::is_empty));
    // Two connections; segments of RDMA Writes and of Read Requests, of Read Responses, of Sends
    // with and without Invalidate.
    assert_eq!((startups, fpdus), (4, [139, 3, 90, 71, 49]));
}

#[test]
fn every_message_over_rxe_is_written_as_it_came() {
    let messages = captured(RXE);
    for (at, (_, message)) in messages.iter().enumerate() {
        assert_eq!(message_again(message), *message, "message {at}");
    }
    let of_initiator = messages.iter().filter(|(sender, _)| *sender == 0);
    assert_eq!((messages.len(), of_initiator.count()), (114, 57));
}
