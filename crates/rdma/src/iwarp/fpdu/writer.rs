//! The way out: FPDUs with padding, CRC, and markers where the peer demands them.

use std::marker::PhantomData;

use scsi::medium::Lease;

use super::{LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN, padding};
use crate::iwarp::crc::{CRC_LEN, RunningCrc};
use crate::iwarp::ddp::UNTAGGED_LEN;
use crate::iwarp::sink::FpduSink;

/// Puts ULPDUs into a stream of bytes.
#[derive(Debug)]
pub struct FpduWriter {
    crc: Option<Box<RunningCrc>>,
    /// Bytes of the stream up to the next marker, where there are markers.
    until_marker: Option<usize>,
}

impl FpduWriter {
    /// For a stream that begins with the next FPDU.
    #[must_use]
    pub fn new(has_crc: bool, has_markers: bool) -> Self {
        Self {
            crc: has_crc.then(|| Box::new(RunningCrc::new())),
            until_marker: has_markers.then_some(0),
        }
    }

    /// Puts one FPDU. Its ULPDU is `header`, that of DDP, then `inline`, then `data`; in all at
    /// most 65,535 bytes. With a CRC the data is copied: the memory is the volume's own and may
    /// change, and the CRC must be that of the bytes that leave.
    #[inline]
    pub fn put<L: Lease, const LEN: usize>(
        &mut self,
        out: &mut impl FpduSink<L>,
        header: &[u8; LEN],
        inline: &[u8],
        data: Option<L>,
    ) {
        let data = data.filter(|data| !data.is_empty());
        let len = LEN + inline.len() + data.as_ref().map_or(0, Lease::len);
        let mut head = [0; LENGTH_LEN + UNTAGGED_LEN];
        head[..LENGTH_LEN].copy_from_slice(&(len as u16).to_be_bytes());
        head[LENGTH_LEN..LENGTH_LEN + LEN].copy_from_slice(header);
        let head = &head[..LENGTH_LEN + LEN];
        if let Some(until) = self.until_marker {
            let until = self.put_marked(out, until, [head, inline], data.as_ref());
            self.until_marker = Some(until);
            return;
        }
        for part in [head, inline] {
            if !part.is_empty() {
                self.sum(part);
                out.bytes(part);
            }
        }
        if let Some(data) = data {
            self.part(out, data);
        }
        let mut trailer = [0; 3 + CRC_LEN];
        let padding = padding(len);
        self.sum(&trailer[..padding]);
        trailer[padding..padding + CRC_LEN].copy_from_slice(&self.crc());
        out.bytes(&trailer[..padding + CRC_LEN]);
    }

    /// The same in a stream with markers, the next one after `until` bytes; returns how far it is
    /// then.
    #[cold]
    fn put_marked<L: Lease>(
        &mut self,
        out: &mut impl FpduSink<L>,
        until_marker: usize,
        [head, inline]: [&[u8]; 2],
        data: Option<&L>,
    ) -> usize {
        let mut fpdu = MarkedFpdu {
            writer: self,
            out,
            of: PhantomData,
            until_marker,
            written: 0,
        };
        fpdu.bytes(head);
        fpdu.bytes(inline);
        if let Some(data) = data {
            fpdu.data(data);
        }
        let len = head.len() + inline.len() + data.map_or(0, Lease::len);
        fpdu.end(padding(len - LENGTH_LEN))
    }

    fn sum(&mut self, bytes: &[u8]) {
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
    }

    /// Data, or a part of it.
    fn part<L: Lease>(&mut self, out: &mut impl FpduSink<L>, data: L) {
        match &mut self.crc {
            Some(crc) => crc.update(out.copied(&data)),
            None => out.lease(data),
        }
    }

    /// The CRC field: zeros where both ends have waived it.
    fn crc(&mut self) -> [u8; CRC_LEN] {
        let crc = self.crc.as_mut();
        crc.map_or([0; CRC_LEN], |crc| crc.finish())
    }
}

/// An FPDU on its way into a stream with markers.
struct MarkedFpdu<'w, L, S> {
    writer: &'w mut FpduWriter,
    out: &'w mut S,
    of: PhantomData<L>,
    /// Bytes of the stream up to the next marker.
    until_marker: usize,
    /// Bytes of the stream since the ULPDU Length field began.
    written: usize,
}

impl<L: Lease, S: FpduSink<L>> MarkedFpdu<'_, L, S> {
    /// How many bytes may follow before the next marker; puts the one that is due.
    fn room(&mut self) -> usize {
        if self.until_marker == 0 {
            let [high, low] = (self.written as u16).to_be_bytes();
            let marker = [0, 0, high, low];
            self.writer.sum(&marker);
            self.out.bytes(&marker);
            // One between two FPDUs belongs to the second, and comes before its length.
            if self.written > 0 {
                self.written += MARKER_LEN;
            }
            self.until_marker = MARKER_INTERVAL - MARKER_LEN;
        }
        self.until_marker
    }

    /// `len` bytes have been put.
    fn advance(&mut self, len: usize) {
        self.written += len;
        self.until_marker -= len;
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(self.room()));
            self.writer.sum(now);
            self.out.bytes(now);
            self.advance(now.len());
            bytes = rest;
        }
    }

    fn data(&mut self, data: &L) {
        let mut at = 0;
        while at < data.len() {
            let len = (data.len() - at).min(self.room());
            self.writer.part(self.out, data.slice(at, len));
            self.advance(len);
            at += len;
        }
    }

    /// Padding and CRC. A marker that falls between the two belongs to this FPDU. Returns how far
    /// the next one is.
    fn end(mut self, padding: usize) -> usize {
        self.bytes(&[0; 3][..padding]);
        self.room();
        let crc = self.writer.crc();
        self.out.bytes(&crc);
        self.advance(CRC_LEN);
        self.until_marker
    }
}
