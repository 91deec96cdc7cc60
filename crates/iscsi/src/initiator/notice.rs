//! What a target tells of its own accord: Asynchronous Messages and Rejects (RFC 7143 §11.9,
//! §11.17).

use scsi::medium::Lease;

use super::command::sense;
use super::error::SessionEnd;
use super::mover::InitiatorMover;
use super::{Fate, Initiator, InitiatorEvent, IscsiCause, IscsiWhy, TargetNotice};
use crate::wire::bhs::{BHS_LEN, Bhs, Opcode, Ttt};
use crate::wire::control::{AsyncMessage, Reject, event, reason};
use crate::wire::serial::CmdSn;
use crate::wire::task_management::response;
use scsi::violation::Violation;

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    pub(super) fn async_message(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let pdu = AsyncMessage::decode(bhs);
        self.numbers.status(pdu.stamps)?;
        let [first, time2wait, time2retain] = pdu.parameters;
        let notice = match pdu.event {
            event::SCSI => TargetNotice::Scsi {
                lun: pdu.lun,
                sense: sense(data)?,
            },
            event::LOGOUT_REQUEST => TargetNotice::LogoutWanted(time2retain),
            event::CONNECTION_DROP if first != self.config.cid => {
                TargetNotice::ConnectionDrop(first)
            }
            event::CONNECTION_DROP | event::SESSION_DROP => {
                self.end(SessionEnd::Dropped {
                    time2wait,
                    time2retain,
                });
                return Ok(());
            }
            event::NEGOTIATION_REQUEST => {
                self.negotiate_anew();
                TargetNotice::Renegotiated
            }
            event::TASK_TERMINATION => TargetNotice::Terminated(pdu.lun),
            other => TargetNotice::Other(other, pdu.vendor_code),
        };
        self.events.push_back(InitiatorEvent::Notice(notice));
        if pdu.event == event::TASK_TERMINATION {
            self.terminated(&pdu);
        }
        Ok(())
    }

    /// Event 5: the commands that the target had are over, and it waits to hear that we know
    /// (RFC 7143 §4.2.3.4).
    fn terminated(&mut self, pdu: &AsyncMessage) {
        let had = pdu.stamps.exp_cmd_sn;
        self.fail_all(|task| {
            let covered = task.sent.is_some_and(|sent| sent.is_before(had));
            (covered && task.lun == pdu.lun)
                .then_some((Fate::Aborted, IscsiWhy::Own(IscsiCause::Terminated)))
        });
        self.acknowledge(pdu.lun, Ttt::NONE);
    }

    /// A Reject: whatever the rejected PDU was for ends by it.
    pub(super) fn rejected(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let pdu = Reject::decode(bhs);
        self.numbers.status(pdu.stamps)?;
        let header = Bhs(*data.first_chunk::<BHS_LEN>().ok_or(NO_HEADER)?);
        let (itt, reason) = (header.itt(), pdu.reason);
        let known = match header.opcode() {
            Opcode::ScsiCommand => self.command_rejected(&header, reason),
            Opcode::TaskRequest => {
                let answered = self.function_answered(itt, response::REJECTED, [0; 3]);
                answered.ok()
            }
            Opcode::NopOut => self.pong(itt).ok(),
            Opcode::TextRequest => self.text_rejected(itt, reason),
            Opcode::LogoutRequest => self.logout_rejected(itt, reason),
            _ => None,
        };
        if known.is_none() {
            let opcode = header.opcode();
            self.events
                .push_back(InitiatorEvent::Notice(TargetNotice::Rejected {
                    reason,
                    opcode,
                }));
        }
        Ok(())
    }

    /// The command was not executed. If it was not counted either, the target keeps all that
    /// follows until the gap in CmdSN is plugged (RFC 7143 §7.3). At ErrorRecoveryLevel 0 the
    /// session ends instead: a new one costs a round trip, and commands after the gap are repeated
    /// on it.
    fn command_rejected(&mut self, header: &Bhs, reason: u8) -> Option<()> {
        let (slot, task) = self.tasks.sent(header.itt())?;
        let next = task.sent.map(CmdSn::next);
        let fate = match reason {
            reason::DATA_DIGEST => Fate::NeverSent,
            _ => Fate::Aborted,
        };
        self.fail(slot, fate, IscsiWhy::Own(IscsiCause::Rejected(reason)));
        if next.is_some_and(|next| !self.numbers.has_counted(next)) {
            self.end(SessionEnd::CmdSnGap);
        }
        Some(())
    }
}

const NO_HEADER: Violation = Violation {
    rule: "a Reject without the header of the rejected PDU",
    clause: "RFC 7143 §11.17",
};
