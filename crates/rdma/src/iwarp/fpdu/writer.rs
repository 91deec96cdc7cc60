//! The way out: FPDUs with padding, CRC, and markers where the peer demands them.

use std::marker::PhantomData;

use scsi::medium::Lease;

use super::{LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN, padding};
use crate::iwarp::crc::{CRC_LEN, RunningCrc};
use crate::iwarp::ddp::UNTAGGED_LEN;
use crate::iwarp::sink::FpduSink;
use crate::verbs::SendHeader;

/// Puts ULPDUs into a stream of bytes.
#[derive(Debug)]
pub struct FpduWriter {
    crc: Option<Box<RunningCrc>>,
    /// Bytes of the stream up to the next marker, where there are markers.
    until_marker: Option<usize>,
}

/// What an FPDU begins with: its length, the header of DDP, and the beginning of a message.
const HEAD_LEN: usize = LENGTH_LEN + UNTAGGED_LEN + SendHeader::MAX;

impl FpduWriter {
    /// For a stream that begins with the next FPDU.
    #[must_use]
    pub fn new(has_crc: bool, has_markers: bool) -> Self {
        Self {
            crc: has_crc.then(|| Box::new(RunningCrc::new())),
            until_marker: has_markers.then_some(0),
        }
    }

    /// Puts one FPDU. Its ULPDU is `header` and `inline`, in all no longer than an untagged header
    /// and a [`SendHeader`], and then `data`; in all at most 65,535 bytes. With a CRC the data is
    /// copied: the memory is the volume's own and may change, and the CRC must be that of the bytes
    /// that leave.
    pub fn put<L: Lease>(
        &mut self,
        out: &mut impl FpduSink<L>,
        header: &[u8],
        inline: &[u8],
        data: Option<L>,
    ) {
        let data_len = data.as_ref().map_or(0, Lease::len);
        let len = header.len() + inline.len() + data_len;
        let mut head = [0; HEAD_LEN];
        let mut end = 0;
        for part in [&(len as u16).to_be_bytes(), header, inline] {
            head[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        let mut fpdu = FpduInStream {
            writer: self,
            out,
            of: PhantomData,
            written: 0,
        };
        fpdu.bytes(&head[..end]);
        if let Some(data) = data.filter(|_| data_len > 0) {
            fpdu.data(data);
        }
        fpdu.end(padding(len));
    }
}

/// An FPDU on its way into the stream.
struct FpduInStream<'w, L, S> {
    writer: &'w mut FpduWriter,
    out: &'w mut S,
    of: PhantomData<L>,
    /// Bytes of the stream since the ULPDU Length field began.
    written: usize,
}

impl<L: Lease, S: FpduSink<L>> FpduInStream<'_, L, S> {
    /// How many bytes may follow before the next marker; puts the one that is due.
    fn room(&mut self) -> usize {
        let Some(until) = self.writer.until_marker else {
            return usize::MAX;
        };
        if until > 0 {
            return until;
        }
        let [high, low] = (self.written as u16).to_be_bytes();
        let marker = [0, 0, high, low];
        self.sum(&marker);
        self.out.bytes(&marker);
        // One between two FPDUs belongs to the second, and comes before its length.
        if self.written > 0 {
            self.written += MARKER_LEN;
        }
        self.writer.until_marker = Some(MARKER_INTERVAL - MARKER_LEN);
        MARKER_INTERVAL - MARKER_LEN
    }

    fn sum(&mut self, bytes: &[u8]) {
        if let Some(crc) = &mut self.writer.crc {
            crc.update(bytes);
        }
    }

    /// `len` bytes have been put.
    fn advance(&mut self, len: usize) {
        self.written += len;
        if let Some(until) = &mut self.writer.until_marker {
            *until -= len;
        }
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(self.room()));
            self.sum(now);
            self.out.bytes(now);
            self.advance(now.len());
            bytes = rest;
        }
    }

    fn data(&mut self, data: L) {
        let mut at = 0;
        while at < data.len() {
            let len = (data.len() - at).min(self.room());
            if len == data.len() {
                return self.part(data);
            }
            self.part(data.slice(at, len));
            at += len;
        }
    }

    /// Data up to the next marker.
    fn part(&mut self, data: L) {
        let len = data.len();
        match &mut self.writer.crc {
            Some(crc) => crc.update(self.out.copied(&data)),
            None => self.out.lease(data),
        }
        self.advance(len);
    }

    /// Padding and CRC. A marker that falls between the two belongs to this FPDU.
    fn end(mut self, padding: usize) {
        if self.room() >= padding + CRC_LEN {
            let mut trailer = [0; 3 + CRC_LEN];
            self.sum(&trailer[..padding]);
            trailer[padding..padding + CRC_LEN].copy_from_slice(&self.crc());
            self.out.bytes(&trailer[..padding + CRC_LEN]);
            return self.advance(padding + CRC_LEN);
        }
        self.bytes(&[0; 3][..padding]);
        self.room();
        let crc = self.crc();
        self.out.bytes(&crc);
        self.advance(CRC_LEN);
    }

    /// The CRC field: zeros where both ends have waived it.
    fn crc(&mut self) -> [u8; CRC_LEN] {
        let crc = self.writer.crc.as_mut();
        crc.map_or([0; CRC_LEN], |crc| crc.finish())
    }
}
