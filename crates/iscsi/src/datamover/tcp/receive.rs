//! From bytes to notices (RFC 7143 §11.2, §7.8).

use scsi::medium::{Lease, Now};
use scsi::violation::Violation;

use super::TcpMover;
use super::data_out::DataOutFill;
use crate::datamover::{Notice, SolicitedFault};
use crate::session::Session;
use crate::wire::bhs::{Bhs, Opcode, Ttt};
use crate::wire::data::DataOut;
use crate::wire::framer::{FrameError, PduPiece};

/// Where the data segment that comes next goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum TcpInbound {
    /// Nowhere.
    Drop,
    /// To the session, piece by piece.
    Pass,
    /// It has a digest, so it is looked at when it is whole.
    Collect(Bhs),
    /// It is whole, and the session was told the header.
    Collected,
    /// To memory that waits for it.
    Fill(DataOutFill),
}

impl<L: Lease> Session<L, TcpMover<L>> {
    /// Takes bytes from the wire, as many as can be used now; the rest is to be given again
    /// after `poll` has given `None` and what came of it is done. Stops after each event, and
    /// takes nothing while [`Session::is_stalled`].
    pub fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        self.heard(now, bytes.len());
        let mut rest = bytes;
        while self.takes_more() {
            match self.connection.mover.next(now, &mut rest) {
                Some(notice) => self.notice(notice),
                None => break,
            }
        }
        if self.is_open() {
            bytes.len() - rest.len()
        } else {
            bytes.len()
        }
    }
}

impl<L: Lease> TcpMover<L> {
    /// What comes next in `bytes`, which become shorter by what was used; `None` when more is
    /// needed.
    fn next<'a>(&mut self, now: Now, bytes: &mut &'a [u8]) -> Option<Notice<'a, L>> {
        if matches!(self.inbound, TcpInbound::Collected) {
            return Some(Notice::Collected);
        }
        loop {
            let notice = match self.framer.next(bytes) {
                Ok(Some(PduPiece::Header(bhs))) => self.header(now, bhs),
                Ok(Some(PduPiece::Data { bytes, end })) => self.data(now, bytes, end),
                Ok(Some(PduPiece::BadData)) => self.bad_data(now),
                Ok(None) => return None,
                Err(error) => Some(broken(error)),
            };
            if notice.is_some() {
                return notice;
            }
        }
    }

    fn header<'a>(&mut self, now: Now, bhs: Bhs) -> Option<Notice<'a, L>> {
        if bhs.data_len() > 0 && self.framer.has_data_digest() {
            self.collected.clear();
            self.inbound = TcpInbound::Collect(bhs);
            return None;
        }
        if is_solicited(&bhs) {
            return self.data_out(now, &bhs);
        }
        self.inbound = TcpInbound::Pass;
        Some(Notice::Header(bhs))
    }

    fn data<'a>(&mut self, now: Now, bytes: &'a [u8], end: bool) -> Option<Notice<'a, L>> {
        match &mut self.inbound {
            TcpInbound::Pass => return Some(Notice::Data { bytes, end }),
            TcpInbound::Fill(fill) => {
                let mut now_at = *fill;
                let solicited = self.fill(now, &mut now_at, bytes, end);
                self.inbound = TcpInbound::Fill(now_at);
                return solicited.map(Notice::Solicited);
            }
            TcpInbound::Collect(bhs) => {
                let bhs = *bhs;
                self.collected.extend_from_slice(bytes);
                if end {
                    return self.collected(now, bhs);
                }
            }
            TcpInbound::Drop | TcpInbound::Collected => {}
        }
        None
    }

    /// All of a data segment is here, and its digest is right.
    fn collected<'a>(&mut self, now: Now, bhs: Bhs) -> Option<Notice<'a, L>> {
        if !is_solicited(&bhs) {
            self.inbound = TcpInbound::Collected;
            return Some(Notice::Header(bhs));
        }
        let notice = self.data_out(now, &bhs);
        if let TcpInbound::Fill(mut fill) = self.inbound {
            self.inbound = TcpInbound::Drop;
            let collected = std::mem::take(&mut self.collected);
            let solicited = self.fill(now, &mut fill, &collected, true);
            self.collected = collected;
            return solicited.map(Notice::Solicited);
        }
        notice
    }

    /// A Data-Out that answers an R2T, or says so.
    fn data_out<'a>(&mut self, now: Now, bhs: &Bhs) -> Option<Notice<'a, L>> {
        let pdu = DataOut::decode(bhs);
        self.inbound = TcpInbound::Drop;
        match self.expect_data_out(&pdu, bhs.data_len()) {
            Ok(mut fill) if bhs.data_len() == 0 => {
                let solicited = self.fill(now, &mut fill, &[], true);
                solicited.map(Notice::Solicited)
            }
            Ok(fill) => {
                self.inbound = TcpInbound::Fill(fill);
                None
            }
            Err(Some(fault)) => {
                let lost = self.lost_data_out(now, &pdu, fault);
                lost.map(Notice::Solicited)
            }
            Err(None) if self.is_retired(&pdu) => None,
            Err(None) => Some(Notice::Stray(*bhs)),
        }
    }

    fn bad_data<'a>(&mut self, now: Now) -> Option<Notice<'a, L>> {
        let TcpInbound::Collect(bhs) = self.inbound else {
            return None;
        };
        self.inbound = TcpInbound::Drop;
        let lost = is_solicited(&bhs)
            .then(|| self.lost_data_out(now, &DataOut::decode(&bhs), SolicitedFault::Lost));
        Some(Notice::BadData(bhs, lost.flatten()))
    }
}

/// Whether the datamover itself takes the PDU in. Additional header segments are the session's to
/// complain of.
fn is_solicited(bhs: &Bhs) -> bool {
    bhs.opcode() == Opcode::DataOut && Ttt(bhs.word(20)) != Ttt::NONE && bhs.ahs_len() == 0
}

/// The stream cannot be followed any more.
fn broken<'a, L>(error: FrameError) -> Notice<'a, L> {
    match error {
        FrameError::HeaderDigest => Notice::Broken(
            None,
            Violation {
                rule: "a header digest error",
                clause: "RFC 7143 §7.8",
            },
        ),
        FrameError::TooLong { header, .. } => Notice::Broken(
            Some(header),
            Violation {
                rule: "a data segment longer than MaxRecvDataSegmentLength",
                clause: "RFC 7143 §13.12",
            },
        ),
    }
}
