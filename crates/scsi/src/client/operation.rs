//! Operations on their way through commands to their result.

use std::sync::atomic::Ordering::Relaxed;

use super::answer::CommandStatus;
use super::command::OperationWork;
use super::{BUSY, Client, ClientOutput, ClientStage, Data, TRIES, UnitRequest, pause};
use crate::medium::{Extent, Lease, MediumError, MediumResult, Now};

#[derive(Debug)]
pub(super) struct ClientOperation<L> {
    pub(super) id: u64,
    pub(super) work: OperationWork<L>,
    pub(super) tries: u8,
    /// Tries that a good answer does not take back, as what came before it was done again.
    pub(super) restarts: u8,
    /// Since when the unit is busy with its command, and how often it said so.
    pub(super) busy: Option<(Now, u8)>,
    /// A command is in flight, ...
    pub(super) active: bool,
    /// ... and the transport has it.
    pub(super) sent: bool,
    /// Its next command was sent before, in vain.
    pub(super) is_retry: bool,
    /// A command before it may have been carried out, in part too, or may still be.
    pub(super) begun: bool,
    /// Its result is not wanted any more.
    pub(super) cancelled: bool,
    /// Resets of the unit, when it was begun.
    resets: u64,
    /// Bytes that its last command gives to the unit.
    given: usize,
    /// Volatile writes that had ended when its last command was given out.
    covers: u64,
}

impl<L: Lease> Client<L> {
    pub(super) fn insert(&mut self, id: u64, work: OperationWork<L>) -> usize {
        self.operations.insert(ClientOperation {
            id,
            work,
            tries: 0,
            restarts: 0,
            busy: None,
            active: false,
            sent: false,
            is_retry: false,
            begun: false,
            cancelled: false,
            resets: self.book.resets(),
            given: 0,
            covers: 0,
        })
    }

    /// Gives out the next command of an operation, or its result. Both wait while the unit is
    /// asked what it is: another one may have done what this one was asked for.
    pub(super) fn next_command(&mut self, key: usize) {
        let (Some(operation), Some(facts)) = (self.operations.get_mut(key), &self.facts) else {
            return;
        };
        if operation.active || !matches!(self.stage, ClientStage::Ready) {
            return;
        }
        if operation.is_undone(self.book.resets()) {
            return self.fail(key);
        }
        if let Some((cdb, data)) = operation.work.next(facts, self.book.keeps_all()) {
            operation.active = true;
            if std::mem::take(&mut operation.is_retry) {
                self.retries.fetch_add(1, Relaxed);
            }
            operation.covers = self.book.written();
            operation.given = match &data {
                Data::Out(from) => from.len(),
                Data::None | Data::In(_) => 0,
            };
            let id = key as u32;
            self.outputs
                .push_back(ClientOutput::Execute(UnitRequest { id, cdb, data }));
        } else {
            let result = operation.work.result();
            self.end(key, result);
        }
    }

    pub(super) fn good(&mut self, key: usize, answer: &CommandStatus<'_>) {
        let (Some(operation), Some(facts)) = (self.operations.get_mut(key), &self.facts) else {
            return;
        };
        // What ended well without all of its data cannot have done all that was asked for.
        if answer.moved < operation.given {
            return self.fail(key);
        }
        let taken = operation.work.good(answer.moved, facts);
        self.continue_or_end(key, taken);
    }

    pub(super) fn again(&mut self, key: usize) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if operation.is_given_up() {
            return self.drop_cancelled(key);
        }
        operation.tries += 1;
        if operation.tries < TRIES {
            return self.next_command(key);
        }
        self.fail(key);
    }

    pub(super) fn later(&mut self, now: Now, key: usize, error: MediumError) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if operation.is_given_up() {
            return self.drop_cancelled(key);
        }
        let (since, times) = operation.busy.get_or_insert((now, 0));
        *times = times.saturating_add(1);
        if now.saturating_sub(*since) >= BUSY {
            return self.end(key, Err(error));
        }
        self.later.push((now + pause(*times), key as u32));
    }

    /// Ends an operation that was given up before anything was done of it.
    pub(super) fn drop_cancelled(&mut self, key: usize) {
        if let Some(operation) = self.operations.try_remove(key) {
            self.done(operation.id, Err(MediumError::Cancelled));
        }
    }

    /// Goes on with an operation, or ends it.
    pub(super) fn continue_or_end(&mut self, key: usize, instead: Result<(), MediumError>) {
        match instead {
            Ok(()) => self.next_command(key),
            Err(error) => self.end(key, Err(error)),
        }
    }

    /// Ends an operation that was tried often enough, or that the unit could not do.
    pub(super) fn fail(&mut self, key: usize) {
        if let Some(operation) = self.operations.get(key) {
            let error = operation.work.error();
            self.end(key, Err(error));
        }
    }

    pub(super) fn end(&mut self, key: usize, result: MediumResult<L>) {
        let Some(operation) = self.operations.try_remove(key) else {
            return;
        };
        let result = self.account(&operation, result);
        let result = result.map_err(|error| match error {
            MediumError::Gone => operation.gone(),
            error => error,
        });
        self.done(operation.id, result);
    }

    /// Keeps book on what the unit may hold in its cache.
    fn account(
        &mut self,
        operation: &ClientOperation<L>,
        result: MediumResult<L>,
    ) -> MediumResult<L> {
        let facts = self.facts.as_ref();
        let caches = facts.is_some_and(|facts| facts.traits.write_cache);
        match &operation.work {
            work if caches && work.is_volatile() => {
                let lost = self.book.wrote(operation.resets);
                self.outputs.extend(lost.then_some(ClientOutput::CacheLost));
            }
            OperationWork::Flush { .. }
                if result.is_ok() && self.book.flushed(operation.covers) =>
            {
                return Err(MediumError::Write);
            }
            _ => {}
        }
        result
    }
}

impl<L: Lease> ClientOperation<L> {
    /// Its result is not wanted, no transport has it, and a change was not begun.
    pub(super) fn is_given_up(&self) -> bool {
        self.cancelled && !self.sent && !(self.begun && self.work.changes())
    }

    /// What it may have written, or may still write once the nexus is lost.
    pub(super) fn doubt(&self) -> Option<Extent> {
        let extent = self.work.extent()?;
        (self.begun && self.work.changes()).then_some(extent)
    }

    /// What it ends with as the unit is gone.
    pub(super) fn gone(&self) -> MediumError {
        match self.doubt() {
            Some(_) => MediumError::Unknown,
            None => MediumError::Gone,
        }
    }

    /// Begins again if there was a reset that may have undone what was done. Returns whether that
    /// was so too often.
    fn is_undone(&mut self, resets: u64) -> bool {
        if std::mem::replace(&mut self.resets, resets) == resets || !self.work.restart() {
            return false;
        }
        self.restarts += 1;
        self.restarts >= TRIES
    }
}
