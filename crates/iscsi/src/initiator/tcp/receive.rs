//! From bytes to PDUs (RFC 7143 §11.2, §7.8).

use scsi::medium::{Lease, Now};
use scsi::violation::Violation;

use super::data_in::DataInFill;
use crate::initiator::Initiator;
use crate::initiator::error::SessionEnd;
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::framer::{FrameError, PduPiece};

/// Where the data segment that comes next goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum InitiatorInbound {
    /// Nowhere.
    Drop,
    /// To be looked at when it is whole.
    Collect(Bhs),
    /// To a command.
    Fill(DataInFill),
}

impl<L: Lease> Initiator<L> {
    /// Takes bytes from the wire, as many as can be used now; the rest is to be given again
    /// after `poll` has given `None` and what there is has been transmitted. Stops after each
    /// event, and takes nothing while [`Initiator::is_stalled`].
    pub fn receive(&mut self, now: Now, bytes: &[u8]) -> usize {
        self.now = now;
        if !bytes.is_empty() {
            self.liveness.heard(now);
        }
        let mut rest = bytes;
        while self.takes_more() {
            match self.mover.framer.next(&mut rest) {
                Ok(Some(PduPiece::Header(bhs))) => self.header(&bhs),
                Ok(Some(PduPiece::Data { bytes, end })) => self.data(bytes, end),
                Ok(Some(PduPiece::BadData)) => self.end(SessionEnd::Damaged("data")),
                Ok(None) => break,
                Err(FrameError::HeaderDigest) => self.end(SessionEnd::Damaged("header")),
                Err(FrameError::TooLong { .. }) => self.break_off(TOO_LONG),
            }
        }
        if self.is_ended() {
            bytes.len()
        } else {
            bytes.len() - rest.len()
        }
    }

    fn header(&mut self, bhs: &Bhs) {
        if let Err(violation) = self.fits(bhs) {
            return self.break_off(violation);
        }
        let has_data = bhs.data_len() > 0;
        if bhs.opcode() == Opcode::DataIn {
            match self.data_in(bhs) {
                Ok(fill) if has_data => self.mover.inbound = InitiatorInbound::Fill(fill),
                Ok(fill) => self.filled(fill),
                Err(violation) => self.violated(violation),
            }
        } else if has_data {
            self.mover.inbound = InitiatorInbound::Collect(*bhs);
        } else {
            self.whole(bhs, &[]);
        }
    }

    fn data(&mut self, bytes: &[u8], end: bool) {
        match self.mover.inbound {
            InitiatorInbound::Drop => {}
            InitiatorInbound::Collect(bhs) => {
                self.mover.collected.extend_from_slice(bytes);
                if end {
                    self.mover.inbound = InitiatorInbound::Drop;
                    let collected = std::mem::take(&mut self.mover.collected);
                    self.whole(&bhs, &collected);
                    // Not the memory of a session that has ended.
                    if !self.is_ended() {
                        self.mover.collected = collected;
                        self.mover.collected.clear();
                    }
                }
            }
            InitiatorInbound::Fill(fill) => {
                self.fill(fill, bytes);
                if end {
                    self.mover.inbound = InitiatorInbound::Drop;
                    self.filled(fill);
                } else {
                    self.mover.inbound = InitiatorInbound::Fill(fill.after(bytes.len()));
                }
            }
        }
    }

    /// A PDU with its whole data segment.
    fn whole(&mut self, bhs: &Bhs, data: &[u8]) {
        if bhs.opcode() == Opcode::R2t {
            let taken = self.r2t(bhs);
            self.took(taken);
        } else {
            self.control(bhs, data);
        }
    }
}

const TOO_LONG: Violation = Violation {
    rule: "a data segment longer than MaxRecvDataSegmentLength",
    clause: "RFC 7143 §13.12",
};
