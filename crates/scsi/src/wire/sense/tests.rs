use proptest::prelude::*;

use super::*;

const INVALID: Sense = Sense::cdb_field(2, Some(5));

#[test]
fn fixed_field_pointer() {
    assert_eq!(
        INVALID.encode(Format::Fixed).as_slice(),
        [
            0x70, 0, 0x05, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0x24, 0x00, 0, 0xcd, 0x00, 0x02
        ]
    );
}

#[test]
fn descriptor_field_pointer() {
    assert_eq!(
        INVALID.encode(Format::Descriptor).as_slice(),
        [
            0x72, 0x05, 0x24, 0x00, 0, 0, 0, 8, 0x02, 0x06, 0, 0, 0xcd, 0x00, 0x02, 0
        ]
    );
}

#[test]
fn parameter_field_pointer_to_a_whole_byte_has_no_bit() {
    let sense = Sense::parameter_field(0x0102, None);
    let fixed = sense.encode(Format::Fixed);
    assert_eq!(fixed.as_slice()[12..18], [0x26, 0x00, 0, 0x80, 0x01, 0x02]);
}

#[test]
fn fixed_information_of_a_medium_error() {
    let sense = Sense {
        information: Some(0x1234),
        ..Sense::new(SenseKey::MediumError, asc::UNRECOVERED_READ_ERROR)
    };
    assert_eq!(
        sense.encode(Format::Fixed).as_slice(),
        [
            0xf0, 0, 0x03, 0, 0, 0x12, 0x34, 0x0a, 0, 0, 0, 0, 0x11, 0x00, 0, 0, 0, 0
        ]
    );
}

#[test]
fn fixed_leaves_out_what_needs_more_than_32_bits() {
    let sense = Sense {
        information: Some(1 << 32),
        command_specific: Some(1 << 32),
        ..Sense::new(SenseKey::MediumError, asc::UNRECOVERED_READ_ERROR)
    };
    let fixed = sense.encode(Format::Fixed);
    assert_eq!(
        fixed.as_slice()[..12],
        [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0]
    );
}

#[test]
fn descriptors_of_everything() {
    let sense = Sense {
        information: Some(0x0102_0304_0506_0708),
        command_specific: Some(0x0a0b),
        specific: Some(SenseSpecific::Progress(0x8000)),
        ..Sense::new(SenseKey::NotReady, 0x041b)
    };
    assert_eq!(
        sense.encode(Format::Descriptor).as_slice(),
        [
            0x72, 0x02, 0x04, 0x1b, 0, 0, 0, 32, //
            0x00, 0x0a, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, //
            0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b, //
            0x02, 0x06, 0, 0, 0x80, 0x80, 0x00, 0,
        ]
    );
}

#[test]
fn segment_pointer_sets_sd() {
    let specific = SenseSpecific::Segment {
        in_segments: true,
        byte: 3,
        bit: None,
    };
    assert_eq!(specific.bytes(), [0xa0, 0, 3]);
}

proptest! {
    /// What an initiator reads out of either format is what was put in.
    #[test]
    fn both_formats_tell_the_same(
        code: u16,
        information in proptest::option::of(any::<u32>()),
        command_specific in proptest::option::of(1u32..),
        byte: u16,
        bit in proptest::option::of(0u8..8),
        in_cdb: bool,
    ) {
        let sense = Sense {
            key: SenseKey::IllegalRequest,
            code,
            information: information.map(u64::from),
            command_specific: command_specific.map(u64::from),
            specific: Some(SenseSpecific::Field { in_cdb, byte, bit }),
        };
        prop_assert_eq!(decode_fixed(sense.encode(Format::Fixed).as_slice()), sense);
        prop_assert_eq!(decode_descriptors(sense.encode(Format::Descriptor).as_slice()), sense);
    }
}

fn decode_fixed(bytes: &[u8]) -> Sense {
    assert_eq!((bytes.len(), bytes[7], bytes[2]), (18, 10, 5));
    let number = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    Sense {
        key: SenseKey::IllegalRequest,
        code: u16::from_be_bytes([bytes[12], bytes[13]]),
        information: (bytes[0] & 0x80 != 0).then(|| number(3)),
        command_specific: Some(number(8)).filter(|&value| value != 0),
        specific: Some(decode_pointer(&bytes[15..])),
    }
}

fn decode_descriptors(bytes: &[u8]) -> Sense {
    assert_eq!((bytes[0], bytes[1]), (0x72, 5));
    assert_eq!(usize::from(bytes[7]), bytes.len() - 8);
    let mut sense = Sense::new(
        SenseKey::IllegalRequest,
        u16::from_be_bytes([bytes[2], bytes[3]]),
    );
    let mut rest = &bytes[8..];
    while let [kind, len, body @ ..] = rest {
        let (body, tail) = body.split_at(usize::from(*len));
        let number = || u64::from_be_bytes(body[2..10].try_into().unwrap());
        match kind {
            0 => sense.information = Some(number()),
            1 => sense.command_specific = Some(number()),
            2 => sense.specific = Some(decode_pointer(&body[2..])),
            other => panic!("descriptor {other}"),
        }
        rest = tail;
    }
    sense
}

fn decode_pointer(bytes: &[u8]) -> SenseSpecific {
    assert_eq!(bytes[0] & 0x80, 0x80);
    SenseSpecific::Field {
        in_cdb: bytes[0] & 0x40 != 0,
        byte: u16::from_be_bytes([bytes[1], bytes[2]]),
        bit: (bytes[0] & 0x08 != 0).then_some(bytes[0] & 0x07),
    }
}
