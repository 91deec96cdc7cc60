//! An answer of the common transport, which may be of several frames (FC-FS-3, sequences).

use crate::wire::fcoe::{ReceivedFrame, Sof};

/// The frames of an answer that have come, all in order.
#[derive(Debug, Default)]
pub(in crate::port) struct ReceivedSequence {
    bytes: Vec<u8>,
    /// SEQ_CNT of the next frame.
    next: u16,
    /// A frame is missing, or too much came: nothing more is taken.
    is_spoiled: bool,
}

impl ReceivedSequence {
    /// Takes a frame; gives the whole answer when it was the last one. An answer of which a frame
    /// is missing never comes to its end, and is asked for again.
    pub(in crate::port) fn take(&mut self, frame: &ReceivedFrame<'_>) -> Option<Vec<u8>> {
        let header = &frame.header;
        let is_first = frame.sof == Sof::I3;
        if is_first {
            *self = Self {
                next: header.seq_cnt,
                ..Self::default()
            };
        }
        let is_next = header.seq_cnt == self.next && (is_first || !self.bytes.is_empty());
        let len = self.bytes.len() + frame.payload.len();
        if self.is_spoiled || !is_next || len > MAX_LEN {
            *self = Self {
                is_spoiled: true,
                ..Self::default()
            };
            return None;
        }
        self.bytes.extend_from_slice(frame.payload);
        self.next = self.next.wrapping_add(1);
        let is_last = header.f_ctl.end_sequence();
        is_last.then(|| std::mem::take(&mut self.bytes))
    }
}

/// Bytes of an answer: GPN_FT of 4,096 ports, and as many more as fit.
const MAX_LEN: usize = 16 + 16 * 2 * super::ports::MAX_PORTS;
