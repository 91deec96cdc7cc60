use proptest::prelude::*;

use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::framer::{FrameError, Framer, PduPiece, crc32c};

#[test]
fn crc32c_matches_the_examples_of_rfc_7143_appendix_a_4() {
    let rising: Vec<u8> = (0..32).collect();
    let falling: Vec<u8> = (0..32).rev().collect();
    assert_eq!(crc32c(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    assert_eq!(crc32c(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    assert_eq!(crc32c(&rising), [0x4e, 0x79, 0xdd, 0x46]);
    assert_eq!(crc32c(&falling), [0x5c, 0xdb, 0x3f, 0x11]);
}

/// A PDU as its pieces add up: header, additional header segments, data, and whether that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pdu {
    header: Bhs,
    ahs: Vec<u8>,
    data: Vec<u8>,
    right: bool,
}

fn pdu(ahs: &[u8], data: &[u8]) -> Pdu {
    let mut header = Bhs::new(Opcode::NopOut);
    header.set_ahs_len(ahs.len());
    header.set_data_len(data.len() as u32);
    Pdu {
        header,
        ahs: ahs.to_vec(),
        data: data.to_vec(),
        right: true,
    }
}

fn bytes(pdu: &Pdu, header_digest: bool, data_digest: bool) -> Vec<u8> {
    let mut out = [&pdu.header.0[..], &pdu.ahs].concat();
    if header_digest {
        out.extend(crc32c(&out));
    }
    if pdu.data.is_empty() {
        return out;
    }
    let mut data = pdu.data.clone();
    data.resize(data.len().next_multiple_of(4), 0x55);
    out.extend_from_slice(&data);
    if data_digest {
        let mut digest = crc32c(&data);
        if !pdu.right {
            digest[2] ^= 0x10;
        }
        out.extend(digest);
    }
    out
}

/// What a framer makes of the bytes, given in chunks.
fn cut<'a>(
    framer: &mut Framer,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Pdu>, FrameError> {
    let mut pdus: Vec<Pdu> = Vec::new();
    for mut chunk in chunks {
        while let Some(piece) = framer.next(&mut chunk)? {
            match piece {
                PduPiece::Header(header) => pdus.push(Pdu {
                    header,
                    ahs: framer.ahs().to_vec(),
                    data: Vec::new(),
                    right: true,
                }),
                PduPiece::Data { bytes, end } => {
                    let pdu = pdus.last_mut().unwrap();
                    pdu.data.extend_from_slice(bytes);
                    assert_eq!(end, framer.is_between());
                }
                PduPiece::BadData => pdus.last_mut().unwrap().right = false,
            }
        }
        assert!(chunk.is_empty());
    }
    Ok(pdus)
}

fn some_pdus() -> Vec<Pdu> {
    vec![
        pdu(&[], &[]),
        pdu(&[], b"a"),
        pdu(&[1; 8], b"four"),
        pdu(&[2; 4], &[]),
        pdu(&[], b"seven77"),
    ]
}

#[test]
fn a_stream_split_at_every_byte_gives_the_same_pdus() {
    for (header, data) in [(false, false), (true, false), (false, true), (true, true)] {
        let pdus = some_pdus();
        let stream: Vec<u8> = pdus.iter().flat_map(|p| bytes(p, header, data)).collect();
        for at in 0..=stream.len() {
            let mut framer = Framer::new(7);
            framer.set_digests(header, data);
            let (a, b) = stream.split_at(at);
            assert_eq!(cut(&mut framer, [a, b]).unwrap(), pdus, "split at {at}");
        }
        let mut framer = Framer::new(7);
        framer.set_digests(header, data);
        assert_eq!(cut(&mut framer, stream.chunks(1)).unwrap(), pdus);
    }
}

#[test]
fn a_wrong_data_digest_spoils_its_pdu_only() {
    let mut pdus = some_pdus();
    pdus[2].right = false;
    let stream: Vec<u8> = pdus.iter().flat_map(|p| bytes(p, false, true)).collect();
    let mut framer = Framer::new(100);
    framer.set_digests(false, true);
    assert_eq!(cut(&mut framer, [&stream[..]]).unwrap(), pdus);
}

#[test]
fn padding_is_part_of_the_data_digest() {
    let mut stream = bytes(&pdu(&[], b"abc"), false, true);
    let at = stream.len() - 5;
    stream[at] ^= 1;
    let mut framer = Framer::new(100);
    framer.set_digests(false, true);
    assert!(!cut(&mut framer, [&stream[..]]).unwrap()[0].right);
}

#[test]
fn a_wrong_header_digest_ends_the_stream() {
    for byte in [0, 47, 50, 53] {
        let mut stream = bytes(&pdu(&[3; 4], b"data"), true, false);
        stream[byte] ^= 0x04;
        let mut framer = Framer::new(100);
        framer.set_digests(true, false);
        assert_eq!(
            cut(&mut framer, [&stream[..]]),
            Err(FrameError::HeaderDigest)
        );
    }
}

#[test]
fn a_data_segment_past_the_limit_is_told_at_the_header() {
    let long = pdu(&[], b"12345678");
    let stream = bytes(&long, false, false);
    assert_eq!(
        cut(&mut Framer::new(8), [&stream[..]]),
        Ok(vec![long.clone()])
    );
    let too_long = FrameError::TooLong {
        header: long.header,
        length: 8,
        limit: 7,
    };
    assert_eq!(cut(&mut Framer::new(7), [&stream[..48]]), Err(too_long));
}

/// What tells their length may be what was damaged, so a digest is waited for.
#[test]
fn additional_header_segments_of_a_target_are_not_waited_for() {
    for (digest, come) in [(false, 48), (true, 56)] {
        let stream = bytes(&pdu(&[3; 4], b""), digest, false);
        let mut framer = Framer::of_target(8);
        framer.set_digests(digest, false);
        assert_eq!(cut(&mut framer, [&stream[..come - 1]]), Ok(vec![]));
        let header = cut(&mut framer, [&stream[come - 1..come]]).unwrap();
        assert_eq!(header[0].header.ahs_len(), 4);
    }
}

proptest! {
    #[test]
    fn any_stream_cut_anywhere_gives_its_pdus(
        parts in prop::collection::vec((0usize..9, 0usize..60, any::<bool>()), 1..6),
        sizes in prop::collection::vec(1usize..40, 1..80),
        digests in any::<(bool, bool)>(),
    ) {
        let pdus: Vec<Pdu> = parts
            .iter()
            .map(|&(ahs, data, right)| Pdu {
                right: right || !digests.1 || data == 0,
                ..pdu(&vec![7; ahs * 4], &vec![9; data])
            })
            .collect();
        let stream: Vec<u8> =
            pdus.iter().flat_map(|p| bytes(p, digests.0, digests.1)).collect();
        let mut chunks = Vec::new();
        let mut rest = &stream[..];
        for size in sizes {
            let (now, later) = rest.split_at(size.min(rest.len()));
            chunks.push(now);
            rest = later;
        }
        chunks.push(rest);
        let mut framer = Framer::new(60);
        framer.set_digests(digests.0, digests.1);
        prop_assert_eq!(cut(&mut framer, chunks).unwrap(), pdus);
    }

    #[test]
    fn garbage_never_panics(stream in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut framer = Framer::new(1 << 14);
        framer.set_digests(stream.len() % 2 == 0, stream.len() % 3 == 0);
        let _ = cut(&mut framer, stream.chunks(13));
    }
}
