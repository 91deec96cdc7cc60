//! From bytes to PDUs, and to their handlers (RFC 7143 §11.2, §7.7, §7.8).

use scsi::medium::Lease;

use super::Session;
use super::task::SessionTaskSlot;
use crate::wire::bhs::{Bhs, Opcode, Ttt};
use crate::wire::data::DataOut;
use crate::wire::framer::{FrameError, PduPiece};
use crate::wire::reject::reason;

/// Where the data segment that comes next goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentSink {
    /// Nowhere.
    Drop,
    /// To be looked at when it is whole: text, pings, and everything with a data digest.
    Collect(Bhs),
    /// To a command.
    Fill(DataFill),
}

/// Data of a command that is coming in.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFill {
    pub(super) slot: SessionTaskSlot,
    /// Where the next byte belongs.
    pub(super) offset: u32,
    /// The sequence that ends with this PDU.
    pub(super) closes: Option<Ttt>,
}

impl<L: Lease> Session<L> {
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        self.place_collected();
        while self.is_open && self.events.is_empty() && !self.is_stalled() {
            match self.framer.next(&mut rest) {
                Ok(Some(PduPiece::Header(bhs))) => self.header(bhs),
                Ok(Some(PduPiece::Data { bytes, end })) => self.data(bytes, end),
                Ok(Some(PduPiece::BadData)) => self.bad_data(),
                Ok(None) => break,
                Err(error) => self.broken(error),
            }
        }
        if self.is_open {
            bytes.len() - rest.len()
        } else {
            bytes.len()
        }
    }

    /// Gives collected data to the task that waited for it, in case that has memory for it by now.
    pub(super) fn place_collected(&mut self) {
        if std::mem::take(&mut self.unsettled) {
            let collected = std::mem::take(&mut self.collected);
            self.data(&collected, true);
            self.collected = collected;
            self.collected.clear();
        }
    }

    fn header(&mut self, bhs: Bhs) {
        if bhs.data_len() == 0 {
            if let SegmentSink::Fill(fill) = self.dispatch(&bhs)
                && let Some(ttt) = fill.closes
            {
                self.close_sequence(fill.slot, ttt);
            }
        } else if self.framer.has_data_digest() || is_read_whole(bhs.opcode()) {
            self.collected.clear();
            self.inbound = SegmentSink::Collect(bhs);
        } else {
            self.inbound = self.dispatch(&bhs);
        }
    }

    fn data(&mut self, bytes: &[u8], end: bool) {
        match &mut self.inbound {
            SegmentSink::Drop => {}
            SegmentSink::Collect(bhs) => {
                let bhs = *bhs;
                self.collected.extend_from_slice(bytes);
                if end {
                    self.collected_whole(&bhs);
                }
            }
            SegmentSink::Fill(fill) => {
                let now = *fill;
                // Where the data was refused, its offset is whatever the initiator says.
                fill.offset = fill.offset.saturating_add(bytes.len() as u32);
                self.fill(now.slot, now.offset, bytes);
                if end {
                    self.filled(now);
                }
            }
        }
    }

    fn filled(&mut self, fill: DataFill) {
        self.inbound = SegmentSink::Drop;
        if let Some(ttt) = fill.closes {
            self.close_sequence(fill.slot, ttt);
        }
    }

    fn collected_whole(&mut self, bhs: &Bhs) {
        self.inbound = self.dispatch(bhs);
        match self.inbound {
            SegmentSink::Fill(_) => {
                self.unsettled = true;
                // Events mean that the device server may be about to give memory for the data.
                if self.events.is_empty() {
                    self.place_collected();
                }
            }
            _ => self.collected.clear(),
        }
    }

    /// RFC 7143 §7.8: the PDU is discarded; for Data-Out that ends the command. A request that has
    /// a CmdSN leaves a gap there, which few initiators plug: they would wait until their command
    /// is late. So the session ends, which is recovery at ErrorRecoveryLevel 0.
    fn bad_data(&mut self) {
        let SegmentSink::Collect(bhs) = self.inbound else {
            return;
        };
        self.inbound = SegmentSink::Drop;
        self.reject(reason::DATA_DIGEST, &bhs);
        match bhs.opcode() {
            Opcode::DataOut => {
                self.remark("a data digest error", "RFC 7143 §7.8");
                self.lost_data(&DataOut::decode(&bhs));
            }
            _ if bhs.is_immediate() => self.remark("a data digest error", "RFC 7143 §7.8"),
            _ => self.violated("a data digest error in a numbered request", "RFC 7143 §7.8"),
        }
    }

    /// What is to be done with the data segment that follows; whatever is collected of it lies
    /// in `collected`.
    fn dispatch(&mut self, bhs: &Bhs) -> SegmentSink {
        if bhs.ahs_len() > 0 && bhs.opcode() != Opcode::ScsiCommand {
            self.violated(
                "additional header segments on a PDU other than SCSI Command",
                "RFC 7143 §11.2.1.5",
            );
            return SegmentSink::Drop;
        }
        self.told.acknowledged(bhs.exp_stat_sn());
        match bhs.opcode() {
            Opcode::DataOut if !self.is_discovery() => return self.data_out(bhs),
            Opcode::ScsiCommand | Opcode::TaskRequest if !self.is_discovery() => {
                return self.request(bhs);
            }
            Opcode::SnackRequest if !self.is_discovery() => self.snack(bhs),
            Opcode::NopOut if !self.is_discovery() => return self.request(bhs),
            Opcode::TextRequest | Opcode::LogoutRequest => return self.request(bhs),
            opcode => self.out_of_place(opcode, bhs),
        }
        SegmentSink::Drop
    }

    fn out_of_place(&mut self, opcode: Opcode, bhs: &Bhs) {
        let (reason, rule, clause) = match opcode {
            Opcode::LoginRequest => (
                reason::PROTOCOL_ERROR,
                "a login request after login",
                "RFC 7143 §6.3",
            ),
            Opcode::Other(code) if code < 0x20 => (
                reason::COMMAND_NOT_SUPPORTED,
                "an unassigned opcode",
                "RFC 7143 §11.2.1.2",
            ),
            opcode if opcode.is_request() => (
                reason::PROTOCOL_ERROR,
                "a request other than text or logout in a discovery session",
                "RFC 7143 §4.3",
            ),
            _ => (
                reason::PROTOCOL_ERROR,
                "a target opcode from an initiator",
                "RFC 7143 §11.2.1.2",
            ),
        };
        self.reject(reason, bhs);
        self.remark(rule, clause);
    }

    /// The stream cannot be followed any more.
    fn broken(&mut self, error: FrameError) {
        match error {
            FrameError::HeaderDigest => self.violated("a header digest error", "RFC 7143 §7.8"),
            FrameError::TooLong { header, .. } => {
                self.reject(reason::PROTOCOL_ERROR, &header);
                self.violated(
                    "a data segment longer than MaxRecvDataSegmentLength",
                    "RFC 7143 §13.12",
                );
            }
        }
    }
}

/// Whether a PDU is looked at only when its data segment is there.
const fn is_read_whole(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::NopOut | Opcode::TextRequest)
}
