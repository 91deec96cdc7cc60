//! FPDUs, byte by byte.

mod cutting;
pub(in crate::iwarp) mod markers;
mod vectors;

use scsi::medium::{HeapLease, Lease as _};

use super::FpduWriter;
use crate::test_support::Sink;

/// ULPDUs as they leave one after the other.
fn written(ulpdus: &[Vec<u8>], has_crc: bool, has_markers: bool) -> Vec<u8> {
    let mut writer = FpduWriter::new(has_crc, has_markers);
    let mut sink = Sink::default();
    for ulpdu in ulpdus {
        // As a stream sends them: a header, the beginning of a message, data.
        let (header, rest) = ulpdu.split_first_chunk::<18>().unwrap_or((&[0; 18], ulpdu));
        let (inline, data) = rest.split_at(rest.len().min(5));
        let data = Some(HeapLease::from_bytes(data.to_vec()));
        if rest.len() < ulpdu.len() {
            writer.put(&mut sink, header, inline, data);
        } else {
            writer.put(&mut sink, &[], inline, data);
        }
    }
    sink.bytes
}
