use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::ethernet::Mac;
use crate::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, Fc4Features, FipError, FipMessage,
    FipOperation, Flags,
};
use crate::wire::frame::FrameHeader;
use crate::wire::names::{FcId, Wwn};

/// A descriptor of each type, of any content; `words` is what those of no fixed length hold.
fn descriptor(number: usize, bytes: &[u8; 160], words: &[u8]) -> Descriptor<'static> {
    let words: &'static [u8] = words.to_vec().leak();
    let mac = Mac(*bytes.first_chunk().unwrap());
    let name = Wwn(u64::from_be_bytes(*bytes.first_chunk().unwrap()));
    let fc_map = *bytes.first_chunk().unwrap();
    let half = u16::from_be_bytes(*bytes.first_chunk().unwrap());
    let els = |kind| {
        Descriptor::Els(Encapsulated {
            kind,
            header: FrameHeader::parse(bytes).unwrap(),
            payload: words,
        })
    };
    match number {
        1 => Descriptor::Priority(bytes[0]),
        2 => Descriptor::Mac(mac),
        3 => Descriptor::FcMap(fc_map),
        4 => Descriptor::Name(name),
        5 => Descriptor::Fabric {
            vf_id: half,
            fc_map,
            name,
        },
        6 => Descriptor::MaxFcoeSize(half),
        7..=10 => els(DescriptorType(number as u8)),
        11 => Descriptor::VxPort {
            mac,
            fc_id: FcId::from_bytes(fc_map),
            wwpn: name,
        },
        12 => Descriptor::FkaAdvPeriod {
            disabled: bytes[0] & 1 != 0,
            period_ms: u32::from(half),
        },
        13 => Descriptor::Vendor {
            id: *bytes.first_chunk().unwrap(),
            data: words,
        },
        14 => Descriptor::Vlan(half),
        15 => Descriptor::Fc4(Fc4Features(*bytes)),
        _ => Descriptor::Unknown {
            kind: DescriptorType(number as u8),
            body: [&[0; 2], words].concat().leak(),
        },
    }
}

prop_compose! {
    fn any_descriptor()(
        number in prop_oneof![1usize..=17, Just(128), Just(255)],
        bytes in vec(any::<u8>(), 160),
        words in (0usize..=40).prop_flat_map(|words| vec(any::<u8>(), words * 4)),
    ) -> Descriptor<'static> {
        descriptor(number, bytes[..].try_into().unwrap(), &words)
    }
}

fn any_operation() -> impl Strategy<Value = FipOperation> {
    let known = [
        FipOperation::Solicitation,
        FipOperation::Advertisement,
        FipOperation::ElsRequest,
        FipOperation::ElsReply,
        FipOperation::KeepAlive,
        FipOperation::ClearVirtualLinks,
        FipOperation::VlanRequest,
        FipOperation::VlanNotification,
        FipOperation::Vn2vnVlanNotification,
        FipOperation::ProbeRequest,
        FipOperation::ProbeReply,
        FipOperation::ClaimNotification,
        FipOperation::ClaimResponse,
        FipOperation::Beacon,
        FipOperation::Other {
            protocol: 0xfff8,
            subcode: 7,
        },
    ];
    proptest::sample::select(known.to_vec())
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_back(
        operation in any_operation(),
        flags: u16,
        descriptors in vec(any_descriptor(), 0..8),
        padding in 0usize..40,
    ) {
        let mut bytes = fip::encode(operation, Flags(flags), &descriptors);
        prop_assert!(bytes.len().is_multiple_of(2));
        bytes.resize(bytes.len() + padding, 0);
        let message = FipMessage::parse(&bytes).unwrap();
        prop_assert_eq!((message.operation, message.flags), (operation, Flags(flags)));
        let read: Vec<_> = message.descriptors().map(Result::unwrap).collect();
        prop_assert_eq!(read, descriptors);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = 0x10;
        }
        if let Some(length) = bytes.get_mut(6..8) {
            length.copy_from_slice(&[0, length[1] & 0x1f]);
        }
        if let Ok(message) = FipMessage::parse(&bytes) {
            let all: Vec<_> = message.descriptors().collect();
            let last = all.len().saturating_sub(1);
            prop_assert!(all.iter().take(last).all(Result::is_ok), "it goes on after an error");
        }
    }
}

/// A beacon with its descriptors' bytes.
fn beacon() -> Vec<u8> {
    let descriptors = [
        Descriptor::Mac(Mac([2, 0, 0, 0, 0, 1])),
        Descriptor::Name(Wwn(0x1000_0200_0000_0001)),
    ];
    fip::encode(FipOperation::Beacon, Flags::default(), &descriptors)
}

/// The first error that its reader meets.
fn error(bytes: &[u8]) -> Option<FipError> {
    match FipMessage::parse(bytes) {
        Err(error) => Some(error),
        Ok(message) => message.descriptors().find_map(Result::err),
    }
}

#[test]
fn what_is_cut_off_is_told() {
    let whole = beacon();
    assert_eq!(error(&whole), None);
    for len in 0..whole.len() {
        assert_eq!(error(&whole[..len]), Some(FipError::Truncated), "{len}");
    }
}

#[test]
fn another_version_is_told() {
    let mut bytes = beacon();
    bytes[0] = 0x2f;
    assert_eq!(error(&bytes), Some(FipError::Version(2)));
}

#[test]
fn lengths_of_descriptors_are_held_against_the_list_and_their_types() {
    let with = |at: usize, length: u8| {
        let mut bytes = beacon();
        bytes[at] = length;
        error(&bytes)
    };
    assert_eq!(with(11, 0), Some(FipError::Overrun(2)), "no length");
    assert_eq!(with(11, 6), Some(FipError::Overrun(2)), "beyond the list");
    assert_eq!(with(11, 1), Some(FipError::Length(2)), "too short");
    assert_eq!(with(11, 5), Some(FipError::Length(2)), "as long as both");
    assert_eq!(with(7, 2), None, "a shorter list");
    assert_eq!(
        with(7, 3),
        Some(FipError::Overrun(4)),
        "the list ends in the second"
    );
}

/// What FC-BB-6 gives as numbers, which no round trip would show to be wrong.
#[test]
fn flags_and_codes_are_those_of_the_standard() {
    let flags = [
        (Flags::FPMA, 0x8000),
        (Flags::SPMA, 0x4000),
        (Flags::FCF, 0x0020),
        (Flags::FDF, 0x0010),
        (Flags::REC_P2P, 0x0008),
        (Flags::AVAILABLE, 0x0004),
        (Flags::SOLICITED, 0x0002),
        (Flags::F_PORT, 0x0001),
    ];
    for (flag, number) in flags {
        assert_eq!(flag, Flags(number));
    }
    let notification = fip::encode(FipOperation::Vn2vnVlanNotification, Flags::default(), &[]);
    assert_eq!(notification, [0x10, 0, 0, 4, 0, 3, 0, 0, 0, 0]);
}

#[test]
fn fc4_attributes_tell_the_role() {
    for (target, initiator) in [(false, false), (false, true), (true, false), (true, true)] {
        let fc4 = Fc4Features::fcp(target, initiator);
        assert_eq!((fc4.is_target(), fc4.is_initiator()), (target, initiator));
    }
}
