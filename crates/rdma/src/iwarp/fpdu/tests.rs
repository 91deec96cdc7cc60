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
        let (header, rest) = ulpdu.split_at(ulpdu.len().min(18));
        let (inline, data) = rest.split_at(rest.len().min(5));
        let data = HeapLease::from_bytes(data.to_vec());
        writer.put(&mut sink, header, inline, Some(data));
    }
    sink.bytes
}
