//! SCSI commands: how they are taken in, and how they end (RFC 7143 §11.3, §11.4).

use scsi::medium::{Lease, Now};
use scsi::residual::Residual;
use scsi::task::SenseBytes;
use scsi::wire::sense::Status;

use super::mover::InitiatorMover;
use super::tasks::{InitiatorTask, InitiatorTaskSlot};
use super::{
    ClientCommand, Data, Done, Fate, Initiator, InitiatorEvent, IscsiCause, IscsiFailed,
    IscsiRefusal, IscsiRefused, IscsiWhy,
};
use crate::wire::bhs::Bhs;
use crate::wire::scsi_command::{COMPLETED, ScsiResponse};
use scsi::violation::Violation;

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Takes a command in. Those that the target's window has no place for wait here, in order,
    /// and count among [`super::config::InitiatorLimits::tasks`] with the others.
    ///
    /// # Errors
    /// Gives it back, with the reason.
    pub fn execute(&mut self, now: Now, command: ClientCommand<L>) -> Result<(), IscsiRefused<L>> {
        self.now = now;
        let len = match (self.refusal(), u32::try_from(command.data.bytes())) {
            (Some(why), _) => Err(why),
            (None, _) if self.config.is_discovery() => Err(IscsiRefusal::Discovery),
            (None, Err(_)) => Err(IscsiRefusal::TooLong),
            (None, _) if self.room() == 0 => Err(IscsiRefusal::Full),
            (None, Ok(len)) => Ok(len),
        };
        let len = match len {
            Ok(len) => len,
            Err(why) => return Err(IscsiRefused { why, command }),
        };
        let deadline = command.ends_by(now, self.config.times.command);
        let slot = self.tasks.insert(command, len, deadline);
        self.ready.push_back(slot);
        self.look_by(deadline);
        Ok(())
    }

    /// A SCSI Response.
    pub(super) fn scsi_response(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let pdu = ScsiResponse::decode(bhs);
        self.numbers.response(pdu.stamps)?;
        let (slot, _) = self.tasks.sent(pdu.itt).ok_or(NO_TASK)?;
        if pdu.response != COMPLETED {
            let why = IscsiWhy::Own(IscsiCause::TargetFailure(pdu.response));
            self.fail(slot, Fate::Unknown, why);
            return Ok(());
        }
        let ending = InitiatorEnding {
            status: pdu.status,
            residual: pdu.residual,
            sense: sense(data)?,
            qualifier: match self.keys.protocol_level {
                0 | 1 => 0,
                _ => pdu.qualifier,
            },
        };
        self.finish(slot, ending)
    }

    /// The target has ended a command.
    pub(super) fn finish(
        &mut self,
        slot: InitiatorTaskSlot,
        ending: InitiatorEnding,
    ) -> Result<(), Violation> {
        let Some(task) = self.tasks.at(slot) else {
            return Ok(());
        };
        task.check(&ending)?;
        if let Some(task) = self.forget(slot) {
            self.events.push_back(InitiatorEvent::Done(Done {
                id: task.id,
                status: ending.status,
                sense: ending.sense,
                residual: ending.residual,
                moved: task.moved,
                qualifier: ending.qualifier,
                data: task.data,
            }));
        }
        Ok(())
    }

    /// A command ends without a status.
    pub(super) fn fail(&mut self, slot: InitiatorTaskSlot, fate: Fate, why: IscsiWhy) {
        if let Some(task) = self.forget(slot) {
            self.events
                .push_back(InitiatorEvent::Failed(task.failed(fate, why)));
        }
    }

    /// Ends all commands of which `pick` tells the fate, with one look at the queues.
    pub(super) fn fail_all(
        &mut self,
        pick: impl Fn(&InitiatorTask<L, M::Transfer>) -> Option<(Fate, IscsiWhy)>,
    ) {
        let picked = self
            .tasks
            .iter()
            .filter_map(|(slot, task)| pick(task).map(|why| (slot, why)));
        let picked: Vec<_> = picked.collect();
        if picked.is_empty() {
            return;
        }
        let mut is_queued = false;
        for (slot, (fate, why)) in picked {
            if let Some(task) = self.tasks.remove(slot) {
                is_queued |= self.mover.deallocate(&task.transfer);
                self.events
                    .push_back(InitiatorEvent::Failed(task.failed(fate, why)));
            }
        }
        let tasks = &mut self.tasks;
        self.ready.retain(|slot| tasks.at(*slot).is_some());
        if is_queued {
            self.mover.retain(|slot| tasks.at(slot).is_some());
        }
    }

    /// Takes a command out of everything.
    fn forget(&mut self, slot: InitiatorTaskSlot) -> Option<InitiatorTask<L, M::Transfer>> {
        let task = self.tasks.remove(slot)?;
        if task.sent.is_none() {
            self.ready.retain(|waiting| *waiting != slot);
        }
        if self.mover.deallocate(&task.transfer) {
            self.mover.retain(|queued| queued != slot);
        }
        Some(task)
    }
}

/// How a target ended a command.
#[derive(Clone, Debug)]
pub(super) struct InitiatorEnding {
    pub(super) status: u8,
    pub(super) residual: Residual,
    pub(super) sense: SenseBytes,
    pub(super) qualifier: u16,
}

impl InitiatorEnding {
    fn is_good(&self) -> bool {
        self.status == Status::Good as u8 || self.status == Status::ConditionMet as u8
    }
}

impl<L: Lease, T> InitiatorTask<L, T> {
    /// Whether a good end is true: as much was moved as the residual says. What the target says it
    /// sent (ExpDataSN) is not compared; several targets leave it 0, and the bytes tell more.
    fn check(&self, ending: &InitiatorEnding) -> Result<(), Violation> {
        let moved = ending.residual.moved(self.len).ok_or(RESIDUAL)?;
        if !ending.is_good() {
            return Ok(());
        }
        match self.data {
            Data::In(_) if self.moved != moved => Err(INCOMPLETE),
            Data::Out(_) if self.moved < moved => Err(UNASKED),
            _ => Ok(()),
        }
    }

    pub(super) fn failed(self, fate: Fate, why: IscsiWhy) -> IscsiFailed<L> {
        IscsiFailed {
            id: self.id,
            fate,
            why,
            data: self.data,
        }
    }
}

/// The sense data of a SCSI Response or an Asynchronous Message: SenseLength and as many bytes.
pub(super) fn sense(data: &[u8]) -> Result<SenseBytes, Violation> {
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return if data.is_empty() {
            Ok(SenseBytes::EMPTY)
        } else {
            Err(SENSE)
        };
    };
    let sense = rest.get(..usize::from(u16::from_be_bytes(*length)));
    Ok(SenseBytes::new(sense.ok_or(SENSE)?))
}

pub(super) const NO_TASK: Violation = Violation {
    rule: "an unknown Initiator Task Tag",
    clause: "RFC 7143 §11.2.1.8",
};

const RESIDUAL: Violation = Violation {
    rule: "a residual above the Expected Data Transfer Length",
    clause: "RFC 7143 §11.4.5",
};

const INCOMPLETE: Violation = Violation {
    rule: "GOOD for a read whose data does not match its residual",
    clause: "RFC 7143 §11.4.5",
};

const UNASKED: Violation = Violation {
    rule: "GOOD for a write before its data was sent",
    clause: "RFC 7143 §11.4.2",
};

const SENSE: Violation = Violation {
    rule: "a SenseLength beyond the data segment",
    clause: "RFC 7143 §11.4.7",
};
