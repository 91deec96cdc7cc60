//! From what a queue pair tells to PDUs, and the rules for messages that targets send (RFC 7145
//! §7.3, §9, §10.1.3).

use rdma::verbs::{Completion, QueuePair, QueuePairEnd, Stag};
use scsi::medium::{Lease, Now};
use scsi::violation::Violation;

use super::InitiatorIserMover;
use crate::initiator::error::{LoginError, SessionEnd};
use crate::initiator::{Initiator, InitiatorPhase};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::iser::{ControlMessage, IserHeader};
use crate::wire::scsi_command::ScsiResponse;

impl<L: Lease> Initiator<L, InitiatorIserMover> {
    /// Takes in what the queue pair tells. Stops after each event, and while
    /// [`Initiator::is_stalled`]. Returns whether that was all: if it was not, it is to be called
    /// again after `poll` has given `None` and what there is has been transmitted; no more
    /// messages are to be received until then.
    pub fn receive(&mut self, now: Now, pair: &mut impl QueuePair<L>) -> bool {
        self.now = now;
        self.settle(pair);
        let mut is_all = false;
        while !is_all && self.takes_more() {
            match pair.poll() {
                Some(completion) => self.completed(completion, pair),
                None => is_all = true,
            }
        }
        self.settle(pair);
        if self.is_ended() {
            drop_completions(pair);
        }
        is_all || self.is_ended()
    }

    /// Bytes have come from the target, whatever they are.
    pub fn heard(&mut self, now: Now) {
        self.liveness.heard(now);
    }

    fn completed(&mut self, completion: Completion<L>, pair: &mut impl QueuePair<L>) {
        match completion {
            Completion::Received { bytes, invalidated } => {
                self.liveness.heard(self.now);
                if let Err(violation) = self.message(&bytes, invalidated, pair) {
                    self.break_off(violation);
                }
                pair.recycle(bytes);
            }
            Completion::Ended(why) => self.pair_ended(why),
            Completion::Sent
            | Completion::Written
            | Completion::Got { .. }
            | Completion::Drained(_) => {}
        }
    }

    /// The queue pair could not be made: why, in words that follow a colon.
    pub fn no_pair(&mut self, why: &'static str) {
        self.end(LoginError::NoQueuePair(why).into());
    }

    /// The connection was closed before there was a queue pair.
    pub fn closed_at_startup(&mut self) {
        self.end(LoginError::ClosedAtStartup.into());
    }

    fn pair_ended(&mut self, why: QueuePairEnd) {
        let in_login = matches!(self.phase, InitiatorPhase::Login(..));
        self.end(match why {
            _ if self.is_logged_out() => SessionEnd::LoggedOut,
            QueuePairEnd::Requested => SessionEnd::GivenUp,
            QueuePairEnd::Violation(violation) if in_login => {
                LoginError::Violated(violation).into()
            }
            QueuePairEnd::Violation(violation) => SessionEnd::Violated(violation),
            QueuePairEnd::ByPeer { reason, .. } if in_login => {
                LoginError::Terminated(reason).into()
            }
            QueuePairEnd::ByPeer { reason, .. } => SessionEnd::Terminated(reason),
        });
    }

    fn message(
        &mut self,
        message: &[u8],
        invalidated: Option<Stag>,
        pair: &mut impl QueuePair<L>,
    ) -> Result<(), Violation> {
        let (header, rest) = IserHeader::split(message)?;
        if !matches!(header, IserHeader::Control(_)) {
            return Err(HELLO);
        }
        let pdu = ControlMessage::split(rest)?;
        if pdu.data.len() > self.mover.own_data_segment as usize {
            return Err(LONG_DATA);
        }
        self.fits(&pdu.bhs)?;
        if matches!(pdu.bhs.opcode(), Opcode::DataIn | Opcode::R2t) {
            return Err(DATA_PDU);
        }
        self.check_invalidated(&pdu.bhs, invalidated)?;
        if pdu.bhs.opcode() == Opcode::ScsiResponse {
            self.close_buffer(&pdu.bhs, pair);
        }
        self.control(&pdu.bhs, pdu.data);
        Ok(())
    }

    /// A response may invalidate the STag of its command, and nothing else is invalidated.
    fn check_invalidated(&mut self, bhs: &Bhs, invalidated: Option<Stag>) -> Result<(), Violation> {
        let Some(stag) = invalidated else {
            return Ok(());
        };
        let task = self.tasks.sent(bhs.itt());
        let own = task.and_then(|(_, task)| task.transfer.advertised);
        let is_own = bhs.opcode() == Opcode::ScsiResponse && own == Some(stag);
        is_own.then_some(()).ok_or(FOREIGN_STAG)
    }

    /// A response has come: its command's memory is not the target's any more, and it is known how
    /// much was moved. Where the queue pair does not know that, what the target says has to do. A
    /// target may write more than it says that counts: LIO writes all of its buffer, whatever the
    /// length of its answer to REPORT LUNS.
    fn close_buffer(&mut self, bhs: &Bhs, pair: &mut impl QueuePair<L>) {
        let pdu = ScsiResponse::decode(bhs);
        if let Some((_, task)) = self.tasks.sent(pdu.itt)
            && let Some(stag) = task.transfer.advertised.take()
        {
            let told = pdu.residual.moved(task.len).unwrap_or(0);
            let moved = pair.withdraw(stag).unwrap_or(told);
            task.moved = moved.min(told);
        }
    }
}

/// The session is over: what still comes is not looked at.
fn drop_completions<L>(pair: &mut impl QueuePair<L>) {
    while let Some(completion) = pair.poll() {
        if let Completion::Received { bytes, .. } = completion {
            pair.recycle(bytes);
        }
    }
}

const HELLO: Violation = Violation {
    rule: "an iSER Hello or HelloReply that was not asked for",
    clause: "RFC 7145 §5.1.3",
};

const LONG_DATA: Violation = Violation {
    rule: "a data segment longer than InitiatorRecvDataSegmentLength",
    clause: "RFC 7145 §6.5",
};

const DATA_PDU: Violation = Violation {
    rule: "a Data-In or an R2T over RDMA",
    clause: "RFC 7145 §7.3.5, §7.3.6",
};

const FOREIGN_STAG: Violation = Violation {
    rule: "an invalidated STag that is not that of the command in the response",
    clause: "RFC 7145 §7.3.2",
};
