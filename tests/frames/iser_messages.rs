//! Messages of iSER, as Linux sends them over its software iWARP and over its software RoCE.

use iscsi::wire::bhs::Opcode;
use iscsi::wire::framer::padding;
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};

use crate::frames;
use crate::iscsi::again;

const MESSAGES: &str = include_str!("iser-messages.hex");
const FPDUS: &str = include_str!("iser-siw.hex");

/// Bytes of MPA and DDP before the message, and of the CRC behind it.
const BEFORE: usize = 2 + 18;
const BEHIND: usize = 4;

fn buffers(title: &str, message: &[u8]) -> AdvertisedBuffers {
    match IserHeader::split(message).unwrap().0 {
        IserHeader::Control(buffers) => buffers,
        header => panic!("{title}: {header:?}"),
    }
}

/// A message, read and written.
pub(crate) fn message_again(message: &[u8]) -> Vec<u8> {
    let (header, rest) = IserHeader::split(message).unwrap();
    let pdu = ControlMessage::split(rest).unwrap();
    let mut encoded = header.encode().to_vec();
    encoded.extend_from_slice(&again(&pdu.bhs).0);
    encoded.extend_from_slice(pdu.ahs);
    encoded.extend_from_slice(pdu.data);
    let padding = padding(pdu.bhs.data_len());
    encoded.resize(encoded.len() + usize::from(padding), 0);
    encoded
}

#[test]
fn captured_messages_are_encoded_as_they_came() {
    let mut messages = frames(MESSAGES);
    messages.retain(|(title, _)| !title.ends_with("header"));
    assert_eq!(messages.len(), 21);
    for (title, message) in messages {
        assert_eq!(message_again(&message), message, "{title}");
    }
}

#[test]
fn captured_initiators_advertise_what_a_command_moves() {
    for (title, message) in frames(MESSAGES) {
        let AdvertisedBuffers { write, read } = buffers(title, &message);
        assert_eq!(write.is_some(), title.contains("WRITE"), "{title}");
        let reads = title.contains("READ") || title.contains("INQUIRY");
        assert_eq!(read.is_some(), reads, "{title}");
        let tag = write.or(read);
        assert!(tag.is_none_or(|tag| tag.stag.0 != 0 && tag.offset != 0));
    }
}

#[test]
fn a_captured_write_brings_what_it_may_at_once() {
    let mut frames = frames(MESSAGES);
    frames.retain(|(title, _)| title.ends_with("WRITE header"));
    assert_eq!(frames.len(), 2);
    for (title, message) in frames {
        let (header, rest) = IserHeader::split(&message).unwrap();
        assert_eq!(header.encode(), message[..28], "{title}");
        assert_eq!(
            ControlMessage::split(rest).unwrap_err().rule,
            "a PDU whose lengths are not that of its message",
            "its data was left out"
        );
        let mut whole = rest.to_vec();
        whole.resize(rest.len() + 8192, 0x5a);
        let pdu = ControlMessage::split(&whole).unwrap();
        assert_eq!(pdu.bhs.opcode(), Opcode::ScsiCommand);
        assert_eq!(pdu.data, [0x5a; 8192], "{title}");
    }
}

#[test]
fn messages_stand_in_captured_sends() {
    let sends = frames(FPDUS).into_iter().filter(|(title, _)| {
        title.ends_with("Send") || title.ends_with("Invalidate") && !title.contains("header")
    });
    let opcodes = sends.map(|(title, fpdu)| {
        let message = &fpdu[BEFORE..fpdu.len() - BEHIND];
        let (header, rest) = IserHeader::split(message).unwrap();
        let pdu = ControlMessage::split(rest).unwrap();
        assert_eq!(header.encode(), message[..28], "{title}");
        pdu.bhs.opcode()
    });
    let expected = [
        Opcode::LoginRequest,
        Opcode::LoginResponse,
        Opcode::ScsiCommand,
        Opcode::ScsiResponse,
        Opcode::ScsiCommand,
        Opcode::ScsiResponse,
    ];
    assert_eq!(opcodes.collect::<Vec<_>>(), expected);
}
