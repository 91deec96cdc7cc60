//! Frames on their way out, each written in place.

use crate::wire::ethernet;
use crate::wire::fcoe::{self, Eof, Sof};
use crate::wire::frame::FrameHeader;

/// Memory for Ethernet frames on their way out: a transmit ring.
pub trait FrameSink {
    /// Memory for one frame of up to `len` bytes; what it holds is not told. `None` when no more
    /// fits now. A slot that is not committed is given again.
    fn slot(&mut self, len: usize) -> Option<&mut [u8]>;

    /// The slot given last holds a frame of `len` bytes, at most what was asked for.
    fn commit(&mut self, len: usize);
}

/// A sequence of one frame that is whole.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    pub(crate) ethernet: ethernet::EthernetHeader,
    pub(crate) header: FrameHeader,
    pub(crate) payload: Vec<u8>,
}

impl Single {
    /// Puts it into `out`; `false` if it has no room for it now.
    pub(crate) fn put(&self, out: &mut impl FrameSink) -> bool {
        let copy = |bytes: &mut [u8]| bytes.copy_from_slice(&self.payload);
        put_single(out, &self.ethernet, &self.header, self.payload.len(), copy)
    }
}

/// Puts one frame into `out`; `false` if it has no room for it now.
pub(crate) fn put(
    out: &mut impl FrameSink,
    ethernet: &ethernet::EthernetHeader,
    delimiters: (Sof, Eof),
    header: &FrameHeader,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> bool {
    let Some(slot) = out.slot(fcoe::frame_len(ethernet, len)) else {
        return false;
    };
    let len = fcoe::encode(slot, ethernet, delimiters, header, len, fill);
    out.commit(len);
    true
}

/// The delimiters of a sequence of one frame.
pub(crate) const SINGLE: (Sof, Eof) = (Sof::I3, Eof::T);

/// Puts a sequence of one frame into `out`, which `fill` writes `len` bytes of payload into.
pub(crate) fn put_single(
    out: &mut impl FrameSink,
    ethernet: &ethernet::EthernetHeader,
    header: &FrameHeader,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> bool {
    put(out, ethernet, SINGLE, header, len, fill)
}
