//! Sequences on their way out, cut into frames (FC-FS-3).

use std::collections::VecDeque;

use crate::wire::bls::BaAcc;
use crate::wire::els::Els;
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// A frame of class 3 to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFrame {
    /// How it begins.
    pub sof: Sof,
    /// How it ends.
    pub eof: Eof,
    /// Its header; the fill bytes in F_CTL are not yet told.
    pub header: FrameHeader,
    /// Its payload, without fill bytes.
    pub payload: Vec<u8>,
}

/// A request: who asked which service, in which exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) from: FcId,
    pub(super) at: FcId,
    pub(super) ox_id: OxId,
    rx_id: RxId,
}

impl Asked {
    pub(super) const fn by(header: &FrameHeader) -> Self {
        Self {
            from: header.s_id,
            at: header.d_id,
            ox_id: header.ox_id,
            rx_id: header.rx_id,
        }
    }

    const fn header(&self, kind: (RCtl, FrameType)) -> FrameHeader {
        let header = FrameHeader::new(kind, (self.at, self.from), (self.ox_id, self.rx_id));
        FrameHeader {
            f_ctl: FCtl::REPLY,
            ..header
        }
    }
}

/// Frames that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    frames: VecDeque<ServerFrame>,
    /// Of the next exchange of our own.
    ox_id: u16,
}

impl Outbox {
    pub(super) fn pop(&mut self) -> Option<ServerFrame> {
        self.frames.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no more requests are to be answered before something is sent.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= FRAMES_MAX
    }

    /// Sends an answer, in frames of up to `frame_max` bytes of payload: a multiple of 4, not 0.
    pub(super) fn answer(
        &mut self,
        asked: Asked,
        kind: (RCtl, FrameType),
        payload: &[u8],
        frame_max: usize,
    ) {
        let whole = asked.header(kind);
        let count = payload.len().div_ceil(frame_max).max(1);
        for at in 0..count {
            let is_last = at + 1 == count;
            let (f_ctl, eof) = if is_last {
                (FCtl::REPLY, Eof::T)
            } else {
                (FCtl::RESPONDER.with(FCtl::LAST_SEQUENCE), Eof::N)
            };
            let end = payload.len().min((at + 1) * frame_max);
            self.frames.push_back(ServerFrame {
                sof: if at == 0 { Sof::I3 } else { Sof::N3 },
                eof,
                header: FrameHeader {
                    f_ctl,
                    seq_cnt: at as u16,
                    ..whole
                },
                payload: payload[at * frame_max..end].to_vec(),
            });
        }
    }

    /// Sends BA_ACC of an ABTS.
    pub(super) fn accept_abort(&mut self, asked: Asked) {
        let payload = BaAcc::exchange(asked.ox_id, asked.rx_id).encode();
        let header = asked.header((RCtl::BA_ACC, FrameType::BLS));
        self.single(header, payload.to_vec());
    }

    /// Sends a request of a service, in one frame, and tells its exchange.
    pub(super) fn request(&mut self, from: FcId, to: FcId, els: &Els) -> OxId {
        let ox_id = OxId(self.ox_id);
        self.ox_id = (self.ox_id + 1) % OxId::UNASSIGNED.0;
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let header = FrameHeader::new(kind, (from, to), (ox_id, RxId::UNASSIGNED));
        let f_ctl = FCtl::REQUEST;
        self.single(FrameHeader { f_ctl, ..header }, els.encode());
        ox_id
    }

    fn single(&mut self, header: FrameHeader, payload: Vec<u8>) {
        let (sof, eof) = crate::frames::SINGLE;
        self.frames.push_back(ServerFrame {
            sof,
            eof,
            header,
            payload,
        });
    }
}

/// Frames that may wait while requests are still answered. The switch takes all frames after each
/// request, and the longest answer has some 270 of 256 bytes.
const FRAMES_MAX: usize = 1024;
