//! Nexuses that come and go under a client, and commands that are late.

use std::ops::Range;

use slab::Slab;

use super::identify::Identify;
use super::operation::ClientOperation;
use super::{Client, ClientOutput, ClientStage, CommandStatus, DEPARTURE, Fate, IDENTIFY, TRIES};
use crate::medium::{Extent, Lease, MediumError, Now};
use crate::wire::sense::Status;

impl<L: Lease> Client<L> {
    /// There is a nexus: asks the unit what it is.
    pub fn begin(&mut self) {
        if matches!(self.stage, ClientStage::Refused) {
            return;
        }
        self.identify(Identify::new(self.wishes(), None));
    }

    pub(super) fn identify(&mut self, identify: Identify<L>) {
        let mut identify = Box::new(identify);
        let first = identify.first();
        self.stage = ClientStage::Identifying(identify);
        self.ask(first);
    }

    /// A command has ended with its nexus, and so much is known of it. [`Self::lost`] follows, for
    /// which one that is not told of may have been carried out.
    pub fn unanswered(&mut self, id: u32, fate: Fate) {
        if let Some(operation) = self.operations.get_mut(id as usize) {
            operation.sent = false;
            operation.begun |= fate != Fate::NeverSent;
            operation.is_retry |= fate != Fate::NeverSent;
        }
    }

    /// The nexus is gone, and all commands with it. One that was in flight on several in turn that
    /// it may be what ends them is given up.
    pub fn lost(&mut self) {
        self.take_back(1);
    }

    /// The nexus was ended, as commands had no answer, not even to their abort.
    pub fn stuck(&mut self) {
        self.take_back(LATE);
    }

    /// A command took too long, and was aborted.
    pub fn late(&mut self, now: Now, id: u32) {
        if let ClientStage::Identifying(identify) = &mut self.stage
            && id == IDENTIFY
        {
            identify.late(LATE - 1);
        } else if let Some(operation) = self.operations.get_mut(id as usize) {
            operation.tries += LATE - 1;
        }
        self.answered(now, id, &CommandStatus::bare(Status::TaskAborted));
    }

    /// Nothing more will come of the unit: every operation ends.
    pub fn give_up(&mut self) {
        self.stage = ClientStage::Refused;
        self.abandon();
    }

    /// The nexus is gone, and none has come in its place for too long: every operation ends. Those
    /// to come wait again. What may have been carried out ends with [`MediumError::Unknown`].
    pub fn abandon(&mut self) {
        self.lost();
        for operation in self.operations.drain() {
            self.doubts.extend(operation.doubt());
            let gone = Err(operation.gone());
            self.outputs
                .push_back(ClientOutput::Done(operation.id, gone));
        }
    }

    /// Operations on blocks that are barred end; those to come are for the caller to refuse.
    pub fn bar(&mut self, is_barred: impl Fn(Extent) -> bool) {
        let barred = |(key, operation): (usize, &ClientOperation<L>)| {
            let extent = operation.work.extent()?;
            is_barred(extent).then_some(key)
        };
        let keys: Vec<usize> = self.operations.iter().filter_map(barred).collect();
        for key in keys {
            let gone = self.operations[key].gone();
            self.end(key, Err(gone));
        }
    }

    /// Blocks of writes that have ended as failed since the last call, while a nexus that was lost
    /// may still carry them out.
    pub fn take_doubts(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.doubts)
    }

    /// Gives up these operations: those that no transport has and nothing was done of end with
    /// [`MediumError::Cancelled`] now. A command that a transport has goes on, but is not tried
    /// again: where the unit did not carry it out (BUSY, TASK SET FULL), or the nexus is lost, its
    /// operation ends in the same way. What changes nothing may wait to be done again, too.
    pub fn cancel(&mut self, ids: &Range<u64>) {
        for (_, operation) in &mut self.operations {
            operation.cancelled |= ids.contains(&operation.id);
        }
        self.end_cancelled();
        let operations = &self.operations;
        self.outputs.retain(|output| match output {
            ClientOutput::Execute(request) => is_wanted(operations, request.id),
            _ => true,
        });
        self.later.retain(|(_, id)| is_wanted(operations, *id));
    }

    /// Whether a command is still to be carried out that [`Self::poll`] gave.
    #[must_use]
    pub fn wants(&self, id: u32) -> bool {
        is_wanted(&self.operations, id)
    }

    /// Ends what was given up, where no command of it is in flight.
    fn end_cancelled(&mut self) {
        let given_up = |(key, one): (usize, &ClientOperation<L>)| one.is_given_up().then_some(key);
        let keys: Vec<usize> = self.operations.iter().filter_map(given_up).collect();
        for key in keys {
            self.drop_cancelled(key);
        }
    }

    fn take_back(&mut self, counts: u8) {
        self.outputs
            .retain(|output| !matches!(output, ClientOutput::Execute(_)));
        self.later.clear();
        self.registered = None;
        if !matches!(self.stage, ClientStage::Refused) {
            self.book.nexus_lost();
            self.stage = ClientStage::Away;
        }
        let mut hopeless = Vec::new();
        for (key, operation) in &mut self.operations {
            operation.tries += if operation.active { counts } else { 0 };
            operation.active = false;
            operation.busy = None;
            let was_sent = std::mem::take(&mut operation.sent);
            operation.begun |= was_sent;
            operation.is_retry |= was_sent;
            if operation.work.restart() {
                operation.restarts = operation.tries;
            }
            if operation.tries >= TRIES {
                hopeless.push(key);
            }
        }
        for key in hopeless {
            match self.operations[key].doubt() {
                Some(extent) => {
                    self.doubts.push(extent);
                    self.end(key, Err(MediumError::Unknown));
                }
                None => self.fail(key),
            }
        }
        self.end_cancelled();
    }
}

/// Whether an operation has this command, or it belongs to no operation.
fn is_wanted<L>(operations: &Slab<ClientOperation<L>>, id: u32) -> bool {
    id >= DEPARTURE || operations.contains(id as usize)
}

/// What a try counts for that was late: each has cost all the time that a command is given.
const LATE: u8 = TRIES / 4;
