//! From what the datamover tells to the handlers of PDUs (RFC 7143 §11.2, §7.7, §7.8).

use scsi::medium::Lease;

use super::Session;
use crate::datamover::{Datamover, Notice, Solicited, TaskSlot};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::control::reason;
use crate::wire::data::DataOut;

/// Where the data segment that comes next goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentSink {
    /// Nowhere.
    Drop,
    /// To be looked at when it is whole: text and pings.
    Collect(Bhs),
    /// To a command.
    Fill(DataFill),
}

/// Data of a command that is coming in.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFill {
    pub(super) slot: TaskSlot,
    /// Where the next byte belongs.
    pub(super) offset: u32,
    /// The unsolicited data ends with this PDU.
    pub(super) closes: bool,
}

impl<L: Lease, D: Datamover<L>> Session<L, D> {
    /// Whether the datamover should tell what came next. It should not before what the last PDU
    /// led to is done.
    pub(crate) fn takes_more(&self) -> bool {
        self.is_open && self.events.is_empty() && !self.is_stalled()
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes in what the datamover tells.
    pub(crate) fn notice(&mut self, notice: Notice<'_, L>) {
        match notice {
            Notice::Header(bhs) => self.header(bhs),
            Notice::Data { bytes, end } => self.data(bytes, end),
            Notice::Collected => self.place_collected(),
            Notice::Solicited(solicited) => self.solicited(solicited),
            Notice::BadData(bhs, lost) => self.bad_data(&bhs, lost),
            Notice::Stray(bhs) => self.stray(&bhs),
            Notice::Broken(bhs, violation) => {
                if let Some(bhs) = bhs {
                    self.reject(reason::PROTOCOL_ERROR, &bhs);
                }
                self.violated(violation.rule, violation.clause);
            }
        }
    }

    /// Takes a data segment that the datamover has collected.
    pub(super) fn place_collected(&mut self) {
        if let Some(collected) = self.connection.mover.take_collected() {
            self.data(&collected, true);
            self.connection.mover.recycle(collected);
        }
    }

    fn header(&mut self, bhs: Bhs) {
        if bhs.data_len() == 0 {
            if let SegmentSink::Fill(fill) = self.dispatch(&bhs)
                && fill.closes
            {
                self.close_unsolicited(fill.slot);
            }
        } else if is_read_whole(bhs.opcode()) {
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
                    self.inbound = self.dispatch(&bhs);
                    self.collected.clear();
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
        if fill.closes {
            self.close_unsolicited(fill.slot);
        } else {
            self.get_rest(fill.slot);
        }
    }

    /// RFC 7143 §7.8: the PDU is discarded; for Data-Out that ends the command. A request that has
    /// a CmdSN leaves a gap there, which few initiators plug: they would wait until their command
    /// is late. So the session ends, which is recovery at ErrorRecoveryLevel 0.
    fn bad_data(&mut self, bhs: &Bhs, lost: Option<Solicited<L>>) {
        self.reject(reason::DATA_DIGEST, bhs);
        match bhs.opcode() {
            Opcode::DataOut => {
                self.remark("a data digest error", "RFC 7143 §7.8");
                match lost {
                    Some(lost) => self.solicited(lost),
                    None => self.lost_data(&DataOut::decode(bhs)),
                }
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
        self.connection.attentions.acknowledged(bhs.exp_stat_sn());
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

    pub(super) fn out_of_place(&mut self, opcode: Opcode, bhs: &Bhs) {
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
}

/// Whether a PDU is looked at only when its data segment is there.
const fn is_read_whole(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::NopOut | Opcode::TextRequest)
}
