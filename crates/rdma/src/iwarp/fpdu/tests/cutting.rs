//! A stream is cut into the same FPDUs however it arrives, and into no others.

use super::written;
use crate::iwarp::fpdu::{CrcError, FpduReader};
use crate::test_support::pattern;

/// ULPDUs of each length that leads to another padding, and one that is empty.
fn ulpdus() -> Vec<Vec<u8>> {
    [18, 0, 19, 20, 21, 300].map(pattern).to_vec()
}

/// What a reader cuts out of parts of a stream.
fn cut<'p>(
    parts: impl IntoIterator<Item = &'p [u8]>,
    has_crc: bool,
) -> Result<Vec<Vec<u8>>, CrcError> {
    let mut reader = FpduReader::new(has_crc);
    let mut ulpdus = Vec::new();
    for part in parts {
        let mut rest = part;
        while !rest.is_empty() {
            let cut = reader.next(rest)?;
            ulpdus.extend(cut.ulpdu.map(<[u8]>::to_vec));
            rest = &rest[cut.used..];
        }
    }
    Ok(ulpdus)
}

#[test]
fn padding_fills_up_to_four() {
    for len in 0..9 {
        let bytes = written(&[vec![0xff; len]], false, false);
        let padded = (2 + len).next_multiple_of(4);
        assert_eq!(bytes.len(), padded + 4);
        assert!(bytes[2 + len..].iter().all(|byte| *byte == 0), "{len}");
    }
}

#[test]
fn a_stream_that_is_split_at_any_byte() {
    for has_crc in [false, true] {
        let bytes = written(&ulpdus(), has_crc, false);
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(cut([first, second], has_crc), Ok(ulpdus()), "split at {at}");
        }
    }
}

#[test]
fn a_stream_in_pieces_of_any_size() {
    let bytes = written(&ulpdus(), true, false);
    for size in 1..60 {
        assert_eq!(
            cut(bytes.chunks(size), true),
            Ok(ulpdus()),
            "pieces of {size}"
        );
    }
}

#[test]
fn nothing_of_an_fpdu_is_given_out_before_its_last_byte() {
    let bytes = written(&[pattern(300)], true, false);
    let mut reader = FpduReader::new(true);
    let (all_but_one, last) = bytes.split_at(bytes.len() - 1);
    assert_eq!(reader.next(all_but_one).map(|cut| cut.ulpdu), Ok(None));
    assert!(!reader.is_between());
    let ulpdu = pattern(300);
    assert_eq!(reader.next(last).map(|cut| cut.ulpdu), Ok(Some(&ulpdu[..])));
    assert!(reader.is_between());
}

#[test]
fn a_bit_that_flips_is_noticed_by_the_crc() {
    let bytes = written(&[pattern(21)], true, false);
    for at in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[at / 8] ^= 1 << (at % 8);
        // A length that has grown makes the reader wait: the FPDU behind it is then part of it.
        wrong.resize(70_000, 0);
        assert_eq!(cut([&wrong[..]], true), Err(CrcError), "bit {at}");
    }
}

#[test]
fn where_crcs_are_waived_the_field_may_hold_anything() {
    let mut bytes = written(&[pattern(21)], false, false);
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(b"any!");
    assert_eq!(cut([&bytes[..]], false), Ok(vec![pattern(21)]));
}

#[test]
fn the_longest_ulpdu_that_can_be_told() {
    let bytes = written(&[pattern(65_535)], true, false);
    assert_eq!(bytes.len(), 65_544);
    for size in [1, 4096, 65_543, 65_544] {
        assert_eq!(cut(bytes.chunks(size), true), Ok(vec![pattern(65_535)]));
    }
}
