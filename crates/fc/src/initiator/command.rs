//! SCSI commands: how they are taken in, and how they end.

use scsi::medium::{Lease, Now};
use scsi::task::SenseBytes;
use scsi::wire::sense::Status;

use super::exchanges::{CommandStage, FcpEnding, InitiatorExchange, InitiatorSlot};
use super::{
    ClientCommand, CommandRefusal, Data, Done, Fate, FcpCause, FcpFailed, FcpInitiator,
    FcpInitiatorEvent, FcpRefused, FcpWhy,
};
use crate::remote::RemoteId;
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fcp::{Rsp, response};
use crate::wire::frame::RCtl;

/// Whether what has come of a command fits its response.
enum DataFit {
    Whole,
    /// Data-In is missing, which came or may come.
    Missing,
    /// It cannot be true.
    Wrong,
}

impl<L: Lease> FcpInitiator<L> {
    /// Takes a command in. It leaves with the next [`FcpInitiator::transmit`] that has room.
    ///
    /// # Errors
    /// Gives it back, with the reason.
    pub fn execute(
        &mut self,
        now: Now,
        remote: RemoteId,
        command: ClientCommand<L>,
    ) -> Result<(), FcpRefused<L>> {
        self.now = now;
        let refused = |why, command| FcpRefused { why, command };
        if self.peer(remote).is_none() {
            return Err(refused(CommandRefusal::NotLoggedIn, command));
        }
        let Ok(len) = u32::try_from(command.data.bytes()) else {
            return Err(refused(CommandRefusal::TooLong, command));
        };
        if self.room() == 0 {
            return Err(refused(CommandRefusal::Full, command));
        }
        let deadline = command.ends_by(now, self.config.command);
        let slot = self.tasks.insert(remote, command, len, deadline);
        let slot = slot.map_err(|command| refused(CommandRefusal::Full, command))?;
        self.ready.push_back(slot);
        self.look_by(deadline);
        Ok(())
    }

    /// An FCP_RSP.
    pub(super) fn response(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let Ok(rsp) = Rsp::parse(frame.payload) else {
            return;
        };
        let header = &frame.header;
        let Some((slot, task)) = self.tasks.open(remote, header) else {
            return self.function_answered(remote, header.ox_id, &rsp);
        };
        task.touched = self.now;
        let code = rsp.response.unwrap_or(response::COMPLETE);
        if code != response::COMPLETE {
            return self.fail(slot, Fate::Aborted, FcpWhy::Own(FcpCause::Rejected(code)));
        }
        let ending = FcpEnding {
            status: rsp.status,
            residual: rsp.residual,
            sense: SenseBytes::new(rsp.sense),
            qualifier: rsp.qualifier,
            confirm: rsp.confirm,
        };
        match task.fit(&ending) {
            DataFit::Whole => self.finish(slot, ending),
            DataFit::Wrong => self.fail(slot, Fate::Aborted, FcpWhy::Own(FcpCause::Contradiction)),
            DataFit::Missing => {
                task.ending = Some(ending);
                self.ask_for_missing(slot);
            }
        }
    }

    /// More data has come: the command may be whole now.
    pub(super) fn finish_if_whole(&mut self, slot: InitiatorSlot) {
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let response = task.ending.as_ref();
        let is_whole = response.is_some_and(|ending| matches!(task.fit(ending), DataFit::Whole));
        if let Some(ending) = task.ending.take_if(|_| is_whole) {
            self.finish(slot, ending);
        }
    }

    /// The target has ended a command.
    fn finish(&mut self, slot: InitiatorSlot, ending: FcpEnding) {
        let Some(task) = self.forget(slot) else {
            return;
        };
        self.tasks.ids.release(task.ox_id.0);
        if ending.confirm {
            self.confirm(&task);
        }
        let moved = task.moved();
        self.events.push_back(FcpInitiatorEvent::Done(Done {
            id: task.id,
            status: ending.status,
            sense: ending.sense,
            residual: ending.residual,
            moved,
            qualifier: ending.qualifier,
            data: task.data,
        }));
    }

    /// A command ends without a status.
    pub(super) fn fail(&mut self, slot: InitiatorSlot, fate: Fate, why: FcpWhy) {
        let Some(task) = self.forget(slot) else {
            return;
        };
        match fate {
            Fate::NeverSent => self.tasks.ids.release(task.ox_id.0),
            Fate::Unknown | Fate::Aborted => self.hold(&task),
        }
        self.events.push_back(FcpInitiatorEvent::Failed(FcpFailed {
            id: task.id,
            fate,
            why,
            data: task.data,
        }));
    }

    /// Takes a command out of everything but its OX_ID.
    fn forget(&mut self, slot: InitiatorSlot) -> Option<InitiatorExchange<L>> {
        let task = self.tasks.remove(slot)?;
        if task.stage == CommandStage::Ready {
            self.ready.retain(|waiting| *waiting != slot);
        } else {
            self.awaited -= task.awaits();
            self.expected -= task.awaits().saturating_sub(task.cover.next().into());
        }
        if task.asked.is_some() {
            self.sequences.retain(|(waiting, _)| *waiting != slot);
        }
        if task.is_asking {
            self.end_questions(task.remote, task.ox_id);
        }
        Some(task)
    }

    /// A login is over: everything of it ends.
    pub(super) fn end_nexus(&mut self, remote: RemoteId) {
        self.controls.retain(|(to, _)| *to != remote);
        let queries: Vec<_> = self.queries(remote).collect();
        self.drop_services(|service| service.remote == remote);
        let of_it = self.tasks.iter().filter(|(_, task)| task.remote == remote);
        let ending: Vec<_> = of_it.map(|(slot, task)| (slot, task.stage)).collect();
        for (slot, stage) in ending {
            let fate = match stage {
                CommandStage::Ready => Fate::NeverSent,
                _ => Fate::Unknown,
            };
            self.fail(slot, fate, FcpWhy::Ended);
        }
        self.end_functions(remote);
        for id in queries {
            self.unanswered(remote, id);
        }
        self.keep_held(remote);
    }
}

impl<L: Lease> InitiatorExchange<L> {
    /// Bytes that it asks its target for.
    pub(super) const fn awaits(&self) -> u64 {
        match self.data {
            Data::In(_) => self.len as u64,
            _ => 0,
        }
    }

    /// Bytes that came or went.
    fn moved(&self) -> u32 {
        match self.data {
            Data::In(_) => self.cover.next(),
            _ => self.sent,
        }
    }

    /// A command that did not go well is taken as it is; a good end has to be true.
    fn fit(&self, ending: &FcpEnding) -> DataFit {
        if ending.status != Status::Good as u8 && ending.status != Status::ConditionMet as u8 {
            return DataFit::Whole;
        }
        match (&self.data, ending.residual.moved(self.len)) {
            (_, None) => DataFit::Wrong,
            (Data::In(_), Some(expected)) if self.cover.next() < expected => DataFit::Missing,
            (Data::Out(_), Some(expected)) if self.sent < expected => DataFit::Wrong,
            _ => DataFit::Whole,
        }
    }

    /// Which information unit is the next one that has not come, and from where.
    pub(super) fn missing(&self) -> (RCtl, u32) {
        match (&self.data, &self.ending) {
            (Data::In(_), _) if self.cover.next() < self.len => {
                (RCtl::SOLICITED_DATA, self.cover.next())
            }
            _ => (RCtl::COMMAND_STATUS, 0),
        }
    }
}
