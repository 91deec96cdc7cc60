use proptest::prelude::*;

use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe::{self, Eof, FcoeError, ReceivedFrame, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

const ETHERNET: EthernetHeader = EthernetHeader::new(
    Mac([2, 0, 0, 0, 0, 2]),
    Mac([2, 0, 0, 0, 0, 1]),
    ethernet::FCOE,
);

fn header() -> impl Strategy<Value = FrameHeader> {
    let ids = (0..1u32 << 24, 0..1u32 << 24, 0..1u32 << 24);
    let bytes = any::<[u8; 4]>();
    (bytes, ids, any::<(u16, u16, u16)>(), any::<u32>()).prop_map(|(bytes, ids, halves, word)| {
        FrameHeader {
            r_ctl: RCtl(bytes[0]),
            d_id: FcId(ids.0),
            cs_ctl: bytes[1],
            s_id: FcId(ids.1),
            kind: FrameType(bytes[2]),
            f_ctl: FCtl(ids.2).with(FCtl::END_SEQUENCE).with_fill(0),
            seq_id: bytes[3],
            df_ctl: 0,
            seq_cnt: halves.0,
            ox_id: OxId(halves.1),
            rx_id: RxId(halves.2),
            parameter: word,
        }
    })
}

fn encode(ethernet: &EthernetHeader, header: &FrameHeader, payload: &[u8]) -> Vec<u8> {
    crate::tests::frame(ethernet, (Sof::I3, Eof::T), header, payload)
}

/// A frame with five bytes of payload, from its FCoE header on.
fn sample() -> Vec<u8> {
    let header = FrameHeader::parse(&[0x22; 24]).unwrap();
    let header = FrameHeader {
        f_ctl: FCtl::REQUEST,
        df_ctl: 0,
        ..header
    };
    encode(&ETHERNET, &header, b"hello").split_off(ETHERNET.len())
}

/// With the CRC that its bytes ask for.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() - 8;
    let crc = crc_fast::crc32_iso_hdlc(&bytes[14..at]);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        header in header(), payload in proptest::collection::vec(any::<u8>(), 0..=2112),
        tci in proptest::option::of(any::<u16>()),
    ) {
        let ethernet = EthernetHeader { vlan: tci.map(VlanTag::decode), ..ETHERNET };
        let bytes = encode(&ethernet, &header, &payload);
        prop_assert!(bytes.len() >= ethernet::MIN_LEN);
        let (around, inside) = EthernetHeader::parse(&bytes).unwrap();
        prop_assert_eq!(around, ethernet);
        let fill = payload.len().next_multiple_of(4) - payload.len();
        let header = FrameHeader { f_ctl: header.f_ctl.with_fill(fill), ..header };
        let frame = ReceivedFrame { sof: Sof::I3, eof: Eof::T, header, payload: &payload };
        prop_assert_eq!(fcoe::decode(inside), Ok(frame));
    }
}

#[test]
fn any_damage_is_seen() {
    let bytes = sample();
    assert!(fcoe::decode(&bytes).is_ok());
    // From the FC header to the CRC.
    for at in 14..bytes.len() - 4 {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            assert_eq!(
                fcoe::decode(&bytes),
                Err(FcoeError::Crc),
                "byte {at} bit {bit}"
            );
        }
    }
}

#[test]
fn a_frame_cut_short_is_no_frame() {
    let bytes = sample();
    for len in 0..bytes.len() {
        assert!(fcoe::decode(&bytes[..len]).is_err(), "{len}");
    }
    assert_eq!(
        fcoe::decode(&bytes[..14 + 24 + 7]),
        Err(FcoeError::Truncated)
    );
}

#[test]
fn delimiters_and_version_are_looked_at() {
    let wrong = |at: usize, value: u8| {
        let mut bytes = sample();
        bytes[at] = value;
        fcoe::decode(&bytes).unwrap_err()
    };
    let end = sample().len() - 4;
    assert_eq!(wrong(0, 0x10), FcoeError::Version(1));
    assert_eq!(wrong(13, 0x2d), FcoeError::Sof(Sof(0x2d)));
    assert_eq!(wrong(end, 0x50), FcoeError::Eof(Eof(0x50)));
    assert_eq!(
        wrong(end, 0x50).to_string(),
        "EOF 50 instead of EOFn or EOFt"
    );
}

#[test]
fn reserved_bytes_are_not_looked_at() {
    let mut bytes = sample();
    bytes[0] = 0x0f;
    bytes[1..13].fill(0xff);
    let end = bytes.len() - 3;
    bytes[end..].fill(0xff);
    assert_eq!(fcoe::decode(&bytes).unwrap().payload, b"hello");
}

#[test]
fn lengths_that_fibre_channel_does_not_have_are_told() {
    let mut odd = sample();
    odd.insert(14 + 24, 0);
    assert_eq!(fcoe::decode(&summed(odd)), Err(FcoeError::Length));
    let header = FrameHeader::parse(&[0x22; 24]).unwrap();
    let long = encode(&ETHERNET, &header, &[0; 2116]);
    assert_eq!(
        fcoe::decode(&long[ETHERNET.len()..]),
        Err(FcoeError::Length)
    );
}

#[test]
fn optional_headers_are_not_taken_for_payload() {
    let mut extended = sample();
    extended[14 + 13] = 0x20;
    assert_eq!(
        fcoe::decode(&summed(extended)),
        Err(FcoeError::OptionalHeaders(0x20))
    );
}

#[test]
fn fill_bytes_count_in_the_last_frame_of_a_sequence_only() {
    let header = FrameHeader::parse(&[0; 24]).unwrap();
    let filled = |f_ctl: FCtl, payload: &[u8]| {
        let header = FrameHeader { f_ctl, ..header };
        let mut bytes = encode(&ETHERNET, &header, payload).split_off(ETHERNET.len());
        bytes[14 + 11] |= 3;
        summed(bytes)
    };
    let last = filled(FCtl::END_SEQUENCE, b"abcdefgh");
    assert_eq!(fcoe::decode(&last).unwrap().payload, b"abcde");
    let middle = filled(FCtl::NONE, b"abcdefgh");
    assert_eq!(fcoe::decode(&middle).unwrap().payload, b"abcdefgh");
    let empty = filled(FCtl::END_SEQUENCE, b"");
    assert_eq!(fcoe::decode(&empty), Err(FcoeError::Fill));
}
