//! The examples of RFC 5044.

use super::written;
use crate::iwarp::ddp::{Opcode, QueueNumber, UntaggedHeader};
use crate::iwarp::fpdu::mulpdu;
use crate::verbs::Stag;

/// A Send with 24 zeros, as in Figures 5 and 6.
fn send(msn: u32) -> Vec<u8> {
    let header = UntaggedHeader {
        last: true,
        opcode: Opcode::SEND,
        invalidate: Stag(0),
        queue: QueueNumber::SEND,
        msn,
        offset: 0,
    };
    [&header.encode()[..], &[0; 24]].concat()
}

#[rustfmt::skip]
const FIGURE_5: [u8; 0x34] = [
    0x00, 0x00, 0x00, 0x00, // Marker, FPDUPTR 0
    0x00, 0x2a,             // ULPDU Length
    0x41, 0x43,             // DDP and RDMAP control: Send, last
    0x00, 0x00, 0x00, 0x00, // reserved
    0x00, 0x00, 0x00, 0x00, // Queue
    0x00, 0x00, 0x00, 0x01, // MSN
    0x00, 0x00, 0x00, 0x00, // MO
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x52, 0x23, 0x99, 0x83, // CRC
];

#[rustfmt::skip]
const FIGURE_6: [u8; 0x34] = [
    0x00, 0x2a,             // ULPDU Length, at 0x01ec
    0x41, 0x43,             // DDP and RDMAP control: Send, last
    0x00, 0x00, 0x00, 0x00, // reserved
    0x00, 0x00, 0x00, 0x00, // Queue
    0x00, 0x00, 0x00, 0x02, // MSN
    0x00, 0x00, 0x00, 0x00, // MO
    0x00, 0x00, 0x00, 0x14, // Marker, FPDUPTR 20
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x84, 0x92, 0x58, 0x98, // CRC
];

#[test]
fn figure_5() {
    assert_eq!(written(&[send(1)], true, true), FIGURE_5);
}

#[test]
fn figure_6() {
    // The FPDU before it is as long as the figure says, with its marker.
    let first = vec![0; 0x1ec - 4 - 2 - 4];
    let bytes = written(&[first, send(2)], true, true);
    assert_eq!(bytes[0x1ec..], FIGURE_6);
}

#[test]
fn figure_4() {
    // Its FPDU begins 12 bytes before a marker, without a CRC that is told.
    let first = vec![0; 500 - 4 - 2 - 4];
    let bytes = written(&[first, (0..16).collect()], false, true);
    #[rustfmt::skip]
    let expected = [
        0x00, 0x10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
        0x00, 0x00, 0x00, 0x0c,
        10, 11, 12, 13, 14, 15, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00,
    ];
    assert_eq!(bytes[500..], expected);
}

#[test]
fn the_longest_ulpdu_of_a_segment() {
    // EMSS; the longest ULPDU without markers, and with them.
    let rows = [
        (1460, 1454, 1442),
        (1448, 1442, 1430),
        (1463, 1454, 1442),
        (512, 506, 502),
        (513, 506, 498),
        (4144, 4138, 4102),
        (65_483, 64_762, 64_254),
        // RFC 5044 §4.5: never below 128.
        (135, 128, 128),
        (128, 128, 128),
        (0, 128, 128),
    ];
    for (emss, plain, marked) in rows {
        assert_eq!(
            (mulpdu(emss, false), mulpdu(emss, true)),
            (plain, marked),
            "{emss}"
        );
    }
}

#[test]
fn an_fpdu_of_the_longest_ulpdu_fits_its_segment_wherever_it_begins() {
    for emss in (512..2600).step_by(7) {
        for first in [100, 200, 300, 400, 500] {
            let begins = written(&[vec![0; first]], true, true).len();
            let ulpdus = [vec![0; first], vec![0; mulpdu(emss, true)]];
            let len = written(&ulpdus, true, true).len() - begins;
            assert!(len <= emss, "{len} of {emss}, from {begins} on");
        }
    }
}
