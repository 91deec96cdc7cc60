//! The mover over TCP: PDUs with their digests, Data-In, and Data-Out by R2T (RFC 7143 §11.7,
//! §11.8).

mod data_in;
mod data_out;
mod receive;
mod transmit;

use std::collections::VecDeque;

use scsi::received::ReceivedBytes;
use scsi::violation::Violation;

use self::data_out::DataOutSequence;
use self::receive::InitiatorInbound;
use super::config::OperationalOffer;
use super::mover::{InitiatorMover, InitiatorTaskSlot};
use crate::parameters::Operational;
use crate::wire::framer::Framer;

/// A connection's mover over TCP, at an initiator.
#[derive(Debug)]
pub struct InitiatorTcpMover {
    framer: Framer,
    inbound: InitiatorInbound,
    /// The data segment of a PDU that is looked at only when all of it is there.
    collected: Vec<u8>,
    /// Data-Out that may be sent.
    sequences: VecDeque<DataOutSequence>,
}

/// Where the Data-In or the Data-Out of a command has come to.
#[derive(Debug, Default)]
pub struct InitiatorTcpTransfer {
    /// Where the next data in order begins: the next Data-In, or what the next R2T asks for.
    next_offset: u32,
    /// What came or was asked for, where order was not agreed upon.
    spans: ReceivedBytes,
    /// DataSN of the next Data-In, or R2TSN of the next R2T.
    next_sn: u32,
    /// A sequence of Data-In is in flight.
    in_sequence: bool,
    /// R2Ts whose data has not been sent whole.
    outstanding: u16,
    /// Sequences of Data-Out in the queue: one more than there are R2Ts, at the most.
    queued: u32,
}

impl InitiatorTcpTransfer {
    /// Notes that the bytes from `start` to `end` have come, or were asked for, where no order was
    /// agreed upon.
    ///
    /// # Errors
    ///
    /// One of these rules: the first where some of them were there, the second where too much
    /// stands apart.
    fn note_span(
        &mut self,
        start: u32,
        end: u32,
        [overlap, scattered]: [Violation; 2],
    ) -> Result<(), Violation> {
        if self.spans.overlaps(start, end) {
            return Err(overlap);
        }
        if self.spans.add(start, end) {
            Ok(())
        } else {
            Err(scattered)
        }
    }
}

impl InitiatorMover for InitiatorTcpMover {
    type Transfer = InitiatorTcpTransfer;

    const TARGET_CLOSES: bool = false;
    const MAY_OVERTAKE: bool = false;
    const MAY_COUNT_LOGINS: bool = false;
    const MAX_TASKS: usize = usize::MAX;

    fn new(keys: &Operational) -> Self {
        Self {
            framer: framer(keys),
            inbound: InitiatorInbound::Drop,
            collected: Vec::new(),
            sequences: VecDeque::new(),
        }
    }

    fn offer(configured: &OperationalOffer) -> OperationalOffer {
        *configured
    }

    fn notice_keys(&mut self, keys: &Operational) {
        self.framer = framer(keys);
    }

    fn deallocate(&mut self, transfer: &InitiatorTcpTransfer) -> bool {
        transfer.queued > 0
    }

    fn retain(&mut self, mut keep: impl FnMut(InitiatorTaskSlot) -> bool) {
        self.sequences.retain(|sequence| keep(sequence.slot));
    }

    fn is_at_rest(&self) -> bool {
        self.framer.is_between() && matches!(self.inbound, InitiatorInbound::Drop)
    }

    fn end(&mut self) {
        self.inbound = InitiatorInbound::Drop;
        self.collected = Vec::new();
    }

    fn trim(&mut self) {
        self.sequences.shrink_to_fit();
        if self.framer.is_between() {
            self.collected = Vec::new();
        }
    }
}

fn framer(keys: &Operational) -> Framer {
    let mut framer = Framer::of_target(keys.own_data_segment);
    framer.set_digests(keys.header_digest, keys.data_digest);
    framer
}
