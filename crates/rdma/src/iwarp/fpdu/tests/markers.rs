//! Markers in what is sent, read by a receiver that knows nothing of the writer.

use proptest::prelude::*;

use super::written;
use crate::iwarp::crc::crc32c;

/// Takes FPDUs out of a stream with markers, as RFC 5044 §4.3 and §4.4 describe it: the marker in
/// front of an FPDU is in its CRC, and so is one behind its padding.
#[derive(Default)]
pub(in crate::iwarp) struct MarkedReader {
    /// All of the stream so far.
    stream: Vec<u8>,
    at: usize,
    /// All that the CRC of this FPDU covers.
    covered: Vec<u8>,
    /// Where the ULPDU Length field of this FPDU stands.
    begin: Option<usize>,
}

impl MarkedReader {
    /// The ULPDUs of whole FPDUs that follow those before.
    pub(in crate::iwarp) fn read(&mut self, fpdus: &[u8]) -> Vec<Vec<u8>> {
        self.stream.extend_from_slice(fpdus);
        let mut ulpdus = Vec::new();
        while self.at < self.stream.len() {
            ulpdus.push(self.fpdu());
        }
        ulpdus
    }

    /// The next byte that is not of a marker. Markers are checked.
    fn byte(&mut self) -> u8 {
        self.marker();
        let byte = self.stream[self.at];
        self.at += 1;
        self.covered.push(byte);
        byte
    }

    fn marker(&mut self) {
        if !self.at.is_multiple_of(512) {
            return;
        }
        let marker = &self.stream[self.at..self.at + 4];
        let back = self.begin.map_or(0, |begin| self.at - begin);
        assert_eq!(
            marker,
            [0, 0, (back >> 8) as u8, back as u8],
            "at {}",
            self.at
        );
        self.covered.extend_from_slice(marker);
        self.at += 4;
    }

    fn fpdu(&mut self) -> Vec<u8> {
        self.covered.clear();
        self.begin = None;
        self.marker();
        self.begin = Some(self.at);
        let len = usize::from(self.byte()) << 8 | usize::from(self.byte());
        let ulpdu: Vec<_> = (0..len).map(|_| self.byte()).collect();
        for _ in (2 + len)..(2 + len).next_multiple_of(4) {
            assert_eq!(self.byte(), 0, "padding");
        }
        self.marker();
        assert_eq!(self.stream[self.at..self.at + 4], crc32c(&self.covered));
        self.at += 4;
        ulpdu
    }
}

fn unmarked(stream: &[u8]) -> Vec<Vec<u8>> {
    MarkedReader::default().read(stream)
}

#[test]
fn a_marker_at_every_place_of_an_fpdu() {
    // The second FPDU begins further on each time, so the marker moves from its end through it.
    for first in 360..510 {
        let ulpdus = [vec![1; first], vec![2; 50], vec![3; 50]];
        assert_eq!(unmarked(&written(&ulpdus, true, true)), ulpdus, "{first}");
    }
}

#[test]
fn a_long_fpdu_has_many_markers_that_all_point_to_its_begin() {
    let ulpdus = [vec![1; 100], vec![2; 20_000], vec![3; 9]];
    assert_eq!(unmarked(&written(&ulpdus, true, true)), ulpdus);
}

proptest! {
    #[test]
    fn what_is_written_with_markers_can_be_read(
        lens in proptest::collection::vec(0usize..3000, 1..12),
    ) {
        let ulpdus: Vec<_> = lens.into_iter().map(crate::test_support::pattern).collect();
        prop_assert_eq!(unmarked(&written(&ulpdus, true, true)), ulpdus);
    }
}
