//! iSER headers byte by byte, and every message that is none.

use proptest::prelude::*;
use rdma::verbs::{self, Stag};

use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::iser::{
    AdvertisedBuffers, ControlMessage, Hello, HelloReply, ISER_HEADER_LEN, IserHeader, invalidates,
};

/// ib_iser sends the first, libiscsi the second.
#[test]
fn private_data_tells_of_invalidation() {
    assert!(invalidates(&[0x80, 0, 0, 0]));
    assert!(!invalidates(&[0xc0, 0, 0, 0]));
    assert!(invalidates(&[0, 0, 0, 0, 0xff]));
    assert!(!invalidates(&[0x80, 0, 0]), "too short");
    assert!(!invalidates(&[]));
}

const WRITE: verbs::Tag = verbs::Tag {
    stag: Stag(0x0102_0304),
    offset: 0x1112_1314_1516_1718,
};

const READ: verbs::Tag = verbs::Tag {
    stag: Stag(0x2122_2324),
    offset: 0x3132_3334_3536_3738,
};

const HELLO: Hello = Hello {
    max_version: 0xa,
    min_version: 0x9,
    ird: 0x0102,
};

const REPLY: HelloReply = HelloReply {
    reject: false,
    max_version: 0xa,
    current_version: 0xb,
    ord: 0x0304,
};

/// The words of a header, in hexadecimal.
fn words(header: IserHeader) -> String {
    let encoded = header.encode();
    let word = |word: &[u8]| word.iter().map(|byte| format!("{byte:02x}")).collect();
    encoded
        .chunks(4)
        .map(word)
        .collect::<Vec<String>>()
        .join(" ")
}

fn buffers(write: Option<verbs::Tag>, read: Option<verbs::Tag>) -> IserHeader {
    IserHeader::Control(AdvertisedBuffers { write, read })
}

fn rule(message: &[u8]) -> &'static str {
    IserHeader::split(message).unwrap_err().rule
}

#[test]
fn every_field_stands_where_the_figures_have_it() {
    let none = "00000000 00000000 00000000";
    let zeros = format!("{none} {none}");
    let write = "01020304 11121314 15161718";
    let read = "21222324 31323334 35363738";
    let reject = HelloReply {
        reject: true,
        ..REPLY
    };
    let table = [
        (buffers(None, None), format!("10000000 {zeros}")),
        (
            buffers(Some(WRITE), None),
            format!("18000000 {write} {none}"),
        ),
        (buffers(None, Some(READ)), format!("14000000 {none} {read}")),
        (
            buffers(Some(WRITE), Some(READ)),
            format!("1c000000 {write} {read}"),
        ),
        (IserHeader::Hello(HELLO), format!("20a90102 {zeros}")),
        (IserHeader::HelloReply(REPLY), format!("30ab0304 {zeros}")),
        (IserHeader::HelloReply(reject), format!("31ab0304 {zeros}")),
    ];
    for (header, expected) in table {
        assert_eq!(words(header), expected);
        assert_eq!(IserHeader::split(&header.encode()), Ok((header, &[][..])));
    }
}

#[test]
fn what_is_reserved_or_not_valid_is_ignored() {
    let mut bytes = [0xff; ISER_HEADER_LEN];
    bytes[0] = 0x13;
    let (header, _) = IserHeader::split(&bytes).unwrap();
    assert_eq!(header, buffers(None, None));
    assert!(words(header).starts_with("10000000 00000000"));
    bytes[0] = 0x2f;
    let (header, _) = IserHeader::split(&bytes).unwrap();
    assert!(words(header).starts_with("20ffffff 00000000"), "{header:?}");
    bytes[0] = 0x3f;
    let (header, _) = IserHeader::split(&bytes).unwrap();
    assert!(words(header).starts_with("31ffffff 00000000"), "{header:?}");
}

#[test]
fn a_message_is_at_least_a_header() {
    let header = buffers(Some(WRITE), Some(READ)).encode();
    for len in 0..ISER_HEADER_LEN {
        assert_eq!(
            rule(&header[..len]),
            "a message shorter than an iSER header"
        );
    }
}

#[test]
fn unassigned_opcodes_are_refused() {
    for opcode in (0..16).filter(|code| !(1..=3).contains(code)) {
        let mut header = [0; ISER_HEADER_LEN];
        header[0] = opcode << 4;
        assert_eq!(rule(&header), "an unassigned opcode in an iSER header");
    }
}

#[test]
fn nothing_follows_a_hello() {
    for header in [IserHeader::Hello(HELLO), IserHeader::HelloReply(REPLY)] {
        let mut bytes = header.encode().to_vec();
        bytes.push(0);
        assert_eq!(rule(&bytes), "an iSER Hello with more than its header");
    }
}

/// A PDU with `ahs` and `data` bytes behind its header, cut or filled up to `len`.
fn pdu(ahs: usize, data: u32, len: usize) -> Vec<u8> {
    let mut bhs = Bhs::new(Opcode::ScsiCommand);
    bhs.set_ahs_len(ahs);
    bhs.set_data_len(data);
    let behind = (48..len).map(|at| at as u8);
    let mut bytes = bhs.0.to_vec();
    bytes.truncate(len);
    bytes.extend(behind);
    bytes
}

#[test]
fn a_pdu_is_cut_into_its_parts() {
    for len in [48 + 8 + 5, 48 + 8 + 8] {
        let bytes = pdu(8, 5, len);
        let pdu = ControlMessage::split(&bytes).unwrap();
        assert_eq!(pdu.bhs.opcode(), Opcode::ScsiCommand);
        assert_eq!(pdu.ahs, [48, 49, 50, 51, 52, 53, 54, 55]);
        assert_eq!(pdu.data, [56, 57, 58, 59, 60], "in {len} bytes");
    }
}

#[test]
fn a_pdu_has_the_length_of_its_message() {
    let whole = 48 + 8 + 5;
    for len in 0..whole + 9 {
        let bytes = pdu(8, 5, len);
        let expected = match len {
            0..48 => Some("a message shorter than a PDU's header"),
            61 | 64 => None,
            _ => Some("a PDU whose lengths are not that of its message"),
        };
        let wrong = ControlMessage::split(&bytes).err();
        assert_eq!(wrong.map(|wrong| wrong.rule), expected, "in {len} bytes");
    }
}

proptest! {
    #[test]
    fn what_is_decoded_is_encoded_to_the_same(bytes in any::<[u8; ISER_HEADER_LEN]>()) {
        if let Ok((header, _)) = IserHeader::split(&bytes) {
            let encoded = header.encode();
            prop_assert_eq!(IserHeader::split(&encoded), Ok((header, &[][..])));
            // Nothing is set that was not.
            prop_assert!(encoded.iter().zip(&bytes).all(|(ours, theirs)| ours & !theirs == 0));
        }
    }
}
