use super::*;

const NAME: &str = "iqn.2026-11.org.test:host";
const ISID: [u8; 6] = [0x80, 0x12, 0x34, 0x56, 0xab, 0xcd];

fn with(text: &[u8]) -> Vec<u8> {
    let len = text.len() as u16;
    [&[0x45, 0], &len.to_be_bytes()[..], text].concat()
}

fn padded(text: &str) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    text.resize((text.len() + 1).next_multiple_of(4), 0);
    with(&text)
}

#[test]
fn iscsi_has_name_and_isid_and_padding() {
    let expected = [
        b"\x45\0\0\x2c".as_slice(),
        b"iqn.2026-11.org.test:host,i,0x80123456abcd\0\0",
    ];
    assert_eq!(*iscsi(NAME, ISID), *expected.concat());
    assert_eq!(iscsi("a", ISID).len(), 24, "never shorter");
}

#[test]
fn one_port_has_one_form() {
    let one = iscsi(NAME, ISID);
    let shouted = padded("IQN.2026-11.org.TEST:host,i,0x80123456ABCD");
    let mut long = padded("iqn.2026-11.org.test:host,i,0x80123456abcd");
    long.extend([0; 8]);
    long[3] += 8;
    for bytes in [one.to_vec(), shouted, long] {
        assert_eq!(take(&bytes, ISCSI), Ok((one.clone(), &[][..])));
    }
}

#[test]
fn a_port_is_named_by_its_transport_id() {
    let host = iscsi(NAME, ISID);
    let port = fcp([7; 8]);
    let named = [&host, &port].map(|id| port_name(id));
    let expected = [
        InitiatorPortName::Iscsi(NAME, ISID),
        InitiatorPortName::Fcp([7; 8]),
    ];
    assert_eq!(named, expected.map(Some));
    for cut in [&host[..3], &host[..24], &port[..15], &[], &[6; 24]] {
        assert_eq!(port_name(cut), None, "{cut:?}");
    }
}

#[test]
fn what_follows_is_left() {
    let list = [&iscsi(NAME, ISID)[..], b"rest"].concat();
    assert_eq!(take(&list, ISCSI).map(|(_, rest)| rest), Ok(&b"rest"[..]));
    let list = [&fcp([1, 2, 3, 4, 5, 6, 7, 8])[..], b"rest"].concat();
    assert_eq!(take(&list, FCP).map(|(_, rest)| rest), Ok(&b"rest"[..]));
}

#[test]
fn every_truncation_is_an_error() {
    for (bytes, protocol) in [(iscsi(NAME, ISID), ISCSI), (fcp([7; 8]), FCP)] {
        for len in 0..bytes.len() {
            assert_eq!(take(&bytes[..len], protocol), Err(Truncated), "{len}");
        }
    }
}

#[test]
fn another_protocol_or_format_is_an_error_of_byte_0() {
    for first in [0x00, 0x06, 0x05, 0x85, 0xc5] {
        let mut bytes = iscsi(NAME, ISID).to_vec();
        bytes[0] = first;
        assert_eq!(take(&bytes, ISCSI), Err(Byte(0)), "{first:02x}h");
    }
}

/// As a name is brought to lower case when its initiator logs in (RFC 3722 §3).
#[test]
fn a_sigma_at_the_end_of_a_word_is_one_like_any_other() {
    let shouted = padded("iqn.2026-11.org.test:\u{391}\u{3a3},i,0x80123456abcd");
    let (one, _) = take(&shouted, ISCSI).unwrap();
    assert_eq!(one, iscsi("iqn.2026-11.org.test:\u{3b1}\u{3c3}", ISID));
}

#[test]
fn a_length_that_is_short_or_odd_is_an_error_of_byte_2() {
    for len in [0, 16, 21, 43] {
        let mut bytes = iscsi(NAME, ISID).to_vec();
        bytes[3] = len;
        assert_eq!(take(&bytes, ISCSI), Err(Byte(2)), "{len}");
    }
}

#[test]
fn a_text_that_names_no_port_is_an_error_of_byte_4() {
    let long = format!("iqn.{},i,0x80123456abcd", "x".repeat(220));
    let texts = [
        ",i,0x80123456abcd---",
        "iqn.2026-11.org.test:host",
        "iqn.2026-11.org.test:host,i,0x80123456abc",
        "iqn.2026-11.org.test:host,i,0x80123456abcde",
        "iqn.2026-11.org.test:host,i,0x+0123456abcd",
        "iqn.2026-11.org.test:host,i,80123456abcd",
        "iqn.2026-11.org.test:\u{7}host,i,0x80123456abcd",
        &long,
    ];
    for text in texts {
        assert_eq!(take(&padded(text), ISCSI), Err(Byte(4)), "{text:?}");
    }
    let mut unfinished = padded("iqn.2026-11.org.test:host,i,0x80123456abcd");
    unfinished[46..].copy_from_slice(b"ab");
    assert_eq!(take(&unfinished, ISCSI), Err(Byte(4)), "no zero at the end");
    unfinished[46..].copy_from_slice(b"\0b");
    assert_eq!(
        take(&unfinished, ISCSI),
        Err(Byte(4)),
        "padding that is not zero"
    );
    assert_eq!(take(&with(&[0xff; 20]), ISCSI), Err(Byte(4)), "not UTF-8");
}
