use proptest::prelude::*;

use super::*;

fn pairs(bytes: &[u8]) -> Result<Vec<(&str, &str)>, MalformedText> {
    Ok(parse(bytes)?
        .into_iter()
        .map(|pair| (pair.key, pair.value))
        .collect())
}

#[test]
fn pairs_end_with_a_null_each() {
    assert_eq!(pairs(b""), Ok(vec![]));
    assert_eq!(pairs(b"A=1\0"), Ok(vec![("A", "1")]));
    assert_eq!(pairs(b"A=1\0B=\0"), Ok(vec![("A", "1"), ("B", "")]));
    assert_eq!(pairs(b"A=1=2\0"), Ok(vec![("A", "1=2")]));
    assert_eq!(pairs(b"A=1"), Err(MalformedText::Unterminated));
    assert_eq!(pairs(b"A=1\0B=2"), Err(MalformedText::Unterminated));
}

#[test]
fn padding_counted_as_data_is_passed_over() {
    assert_eq!(pairs(b"A=1\0\0\0"), Ok(vec![("A", "1")]));
    assert_eq!(pairs(b"\0\0\0\0"), Ok(vec![]));
}

#[test]
fn a_pair_needs_a_key_name_and_a_value() {
    assert_eq!(pairs(b"A\0"), Err(MalformedText::NoValue));
    assert_eq!(pairs(b"=1\0"), Err(MalformedText::BadKey));
    assert_eq!(pairs(b"9A=1\0"), Err(MalformedText::BadKey));
    assert_eq!(pairs(b"A b=1\0"), Err(MalformedText::BadKey));
    assert_eq!(pairs(b"A\xff=1\0"), Err(MalformedText::BadKey));
    assert_eq!(pairs(b"A=\xff\0"), Err(MalformedText::NotUtf8));
    assert_eq!(pairs("A=ö\0".as_bytes()), Ok(vec![("A", "ö")]));
    assert_eq!(
        pairs(b"iSCSIProtocolLevel=1\0X#NodeArchitecture=x\0").map(|v| v.len()),
        Ok(2)
    );
}

/// CVE-2013-2850: a longer key was copied into the answer `key=NotUnderstood`.
#[test]
fn a_key_has_at_most_63_bytes() {
    let text = |length| format!("{}=1\0", "K".repeat(length)).into_bytes();
    assert_eq!(pairs(&text(63)).map(|found| found.len()), Ok(1));
    assert_eq!(pairs(&text(64)), Err(MalformedText::BadKey));
    assert_eq!(pairs(&text(8000)), Err(MalformedText::BadKey));
}

#[test]
fn text_is_assembled_from_segments_up_to_a_limit() {
    let mut assembly = Assembly::default();
    for segment in [&b"Initiat"[..], b"", b"orName=a\0"] {
        assembly.push(segment).unwrap();
    }
    assert_eq!(assembly.take(), b"InitiatorName=a\0");
    assert!(assembly.is_empty());

    assembly.push(&[b'x'; MAX_TEXT]).unwrap();
    assert_eq!(assembly.push(b"x"), Err(MalformedText::TooLong));
    assert!(assembly.is_empty());
}

#[test]
fn text_is_sent_in_segments() {
    let mut text = Text::default();
    text.put("A", "1");
    text.put("B", "23");
    assert_eq!(text.next_segment(4), (&b"A=1\0"[..], true));
    assert_eq!(text.next_segment(5), (&b"B=23\0"[..], false));
    assert!(text.is_empty());
    assert_eq!(text.next_segment(5), (&b""[..], false));
}

#[test]
fn numerical_values() {
    let good = [
        ("0", 0),
        ("7", 7),
        ("262144", 262_144),
        ("0x1F", 31),
        ("0X00ff", 255),
    ];
    for (value, expected) in good {
        assert_eq!(number(value), Some(expected), "{value}");
    }
    assert_eq!(number("18446744073709551615"), Some(u64::MAX));
    for bad in [
        "",
        "007",
        "+1",
        "-1",
        " 1",
        "1 ",
        "0x",
        "0xg",
        "0x+1",
        "1e3",
        "18446744073709551616",
        "1~2",
    ] {
        assert_eq!(number(bad), None, "{bad}");
    }
}

#[test]
fn boolean_values_are_case_sensitive() {
    assert_eq!([boolean("Yes"), boolean("No")], [Some(true), Some(false)]);
    for bad in ["yes", "NO", "", "1", "Yes,No"] {
        assert_eq!(boolean(bad), None, "{bad}");
    }
}

#[test]
fn binary_values_in_hexadecimal() {
    assert_eq!(binary("0x00ff1A", 3), Some(vec![0, 0xff, 0x1a]));
    assert_eq!(
        binary("0Xabc", 3),
        Some(vec![0x0a, 0xbc]),
        "an odd digit leads"
    );
    assert_eq!(binary("0x00ff1A", 2), None);
    for bad in ["", "0x", "ff", "0xfg", "12", "x12"] {
        assert_eq!(binary(bad, 1024), None, "{bad}");
    }
}

#[test]
fn binary_values_in_base64() {
    assert_eq!(binary("0bZm9vYmFy", 6), Some(b"foobar".to_vec()));
    assert_eq!(binary("0BZm9vYmE=", 6), Some(b"fooba".to_vec()));
    assert_eq!(binary("0bZm9vYg==", 6), Some(b"foob".to_vec()));
    assert_eq!(binary("0bZm9vYmFy", 5), None);
    for bad in [
        "0b",
        "0bZ",
        "0bZm9",
        "0bZm9vYh==",
        "0b====",
        "0bZ===",
        "0bZm=v",
        "0bZm9v-_==",
    ] {
        assert_eq!(binary(bad, 1024), None, "{bad}");
    }
}

#[test]
fn text_that_was_sent_is_not_kept() {
    let mut text = Text::default();
    for _ in 0..3 {
        text.put("A", "NotUnderstood");
        assert_eq!(text.next_segment(512), (&b"A=NotUnderstood\0"[..], false));
    }
    text.put("B", "1");
    assert_eq!(text.bytes, b"B=1\0");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        written in
            proptest::collection::vec(("[A-Z][A-Za-z0-9.+@_-]{0,62}", "[^\0]{0,300}"), 0..20),
        limit in 1_u32..100,
    ) {
        let mut text = Text::default();
        for (key, value) in &written {
            text.put(key, value);
        }
        let mut assembly = Assembly::default();
        loop {
            let (segment, more) = text.next_segment(limit);
            prop_assert!(assembly.push(segment).is_ok());
            if !more {
                break;
            }
        }
        let bytes = assembly.take();
        let read: Vec<_> = parse(&bytes).unwrap();
        prop_assert_eq!(read.len(), written.len());
        for (pair, (key, value)) in read.iter().zip(&written) {
            prop_assert_eq!((pair.key, pair.value), (key.as_str(), value.as_str()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_value_is_read_without_panic(value: String) {
        let _ = (number(&value), binary(&value, 64), boolean(&value));
    }

    #[test]
    fn binary_values_round_trip(bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
        prop_assert_eq!(binary(&hex(&bytes), 64), Some(bytes));
    }
}
