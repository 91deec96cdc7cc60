//! Sequences of FCP_DATA on their way out: described, not built, and cut into frames as they leave.

use scsi::medium::Lease;

use crate::frames::{self, FrameSink};
use crate::remote::FcpPeer;
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::frame::{FCtl, FrameHeader};

/// Data of a command that is to be sent as one sequence.
#[derive(Debug)]
pub(crate) struct DataSequence<L> {
    pub(crate) data: L,
    /// Where the first byte of `data` belongs in the data of the command.
    pub(crate) base: u32,
    /// Bytes of `data` that have left, or are not to.
    pub(crate) at: u32,
    /// Where in `data` it ends.
    pub(crate) end: u32,
    pub(crate) seq_id: u8,
    pub(crate) seq_cnt: u16,
    /// A frame has left: SEQ_CNT may be 0 again later, as it has 16 bits.
    has_begun: bool,
}

impl<L: Lease> DataSequence<L> {
    /// All of `data`.
    pub(crate) fn new(data: L, base: u32, seq_id: u8) -> Self {
        Self {
            end: data.len() as u32,
            data,
            base,
            at: 0,
            seq_id,
            seq_cnt: 0,
            has_begun: false,
        }
    }

    /// Bytes that have not left.
    pub(crate) const fn left(&self) -> u32 {
        self.end - self.at
    }

    /// Where in the data of the command the next frame begins.
    pub(crate) const fn offset(&self) -> u32 {
        self.base + self.at
    }

    /// Puts as many frames into `out` as it has room for; whether that was all. `header` is what
    /// all of them have in common, `ending` what F_CTL has in the last one besides.
    pub(crate) fn send(
        &mut self,
        out: &mut impl FrameSink,
        peer: &FcpPeer,
        header: &FrameHeader,
        ending: FCtl,
    ) -> bool {
        let ethernet = peer.ethernet();
        let payload_max = u32::from(peer.payload_max);
        while self.at < self.end {
            let len = self.left().min(payload_max);
            let is_last = len == self.left();
            let more = if is_last { ending } else { FCtl::NONE };
            let header = FrameHeader {
                f_ctl: header.f_ctl.with(FCtl::RELATIVE_OFFSET).with(more),
                seq_id: self.seq_id,
                seq_cnt: self.seq_cnt,
                parameter: self.offset(),
                ..*header
            };
            let sof = if self.has_begun { Sof::N3 } else { Sof::I3 };
            let eof = if is_last { Eof::T } else { Eof::N };
            let (data, at) = (&self.data, self.at as usize);
            let copy = |bytes: &mut [u8]| data.copy_out(at, bytes);
            if !frames::put(out, &ethernet, (sof, eof), &header, len as usize, copy) {
                return false;
            }
            self.has_begun = true;
            self.at += len;
            self.seq_cnt = self.seq_cnt.wrapping_add(1);
        }
        true
    }
}
