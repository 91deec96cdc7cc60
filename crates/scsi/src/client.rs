//! The application client: a logical unit that is somewhere else, as a medium (SAM-5 §4.5).
//!
//! It asks the unit what it is, turns each [`MediumOp`] into commands, one after the other where
//! one is not enough, and their answers into one [`MediumResult`]. What the unit wants repeated
//! (unit attentions, BUSY, becoming ready) is repeated, with a limit. It knows no transport:
//! its owner carries out what [`Client::poll`] says, and tells how it ended.
//!
//! # When the nexus is lost
//!
//! [`Client::lost`] takes back all commands, whatever became of them, and [`Client::begin`] on the
//! next nexus asks the unit again for its identity. Only if it is the same are they given out once
//! more. That is safe for each of them, as all that a medium is asked for may be done twice: reads,
//! writes of the same data, unmapping, flushing. It is for the transport to see to it that the old
//! nexus is dead by then, and that nothing of it can land later.

mod answer;
mod attention;
mod cache;
mod call;
mod cdb;
mod command;
mod facts;
mod identify;
mod nexus;
mod operation;
mod wishes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use slab::Slab;

use self::answer::AnswerAction;
use self::cache::CacheView;
use self::command::OperationWork;
use self::identify::Identify;
use self::operation::ClientOperation;
use crate::medium::{
    Extent, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Now, SEGMENT_BYTES,
};
pub use answer::CommandStatus;
pub use cache::Cache;
pub use call::{ClientCommand, Done, Failed, Fate, Refused, Why};
pub use facts::{Facts, ReportedIdentity};
pub use identify::UnitRefusal;
pub use wishes::UnitWishes;

/// What is to be done for the client.
#[derive(Debug)]
pub enum ClientOutput<L> {
    /// Carry out a command, and tell [`Client::answered`].
    Execute(UnitRequest<L>),
    /// An operation has ended.
    Done(u64, MediumResult<L>),
    /// The unit said what it is; operations go on.
    Ready,
    /// The unit cannot be used, now or never: operations end with [`MediumError::Gone`].
    Refused(UnitRefusal),
    /// The unit, which was there before, cannot be used now: operations wait for another nexus.
    NotNow(UnitRefusal),
    /// The unit is, or can do, something else now: [`Client::facts`] tells.
    Changed,
    /// The unit was reset while it held writes that were not flushed: they may be lost, and the
    /// next flush says so.
    CacheLost,
    /// RESERVATION CONFLICT, the first since the unit was asked what it is.
    Conflict,
    /// Another initiator has removed our registration, and none is made any more.
    Fenced,
    /// What [`Client::depart`] began is over.
    Departed,
}

/// A command.
#[derive(Debug)]
pub struct UnitRequest<L> {
    /// Names it in the answer.
    pub id: u32,
    /// The CDB, zero-padded.
    pub cdb: [u8; 16],
    /// Its data.
    pub data: Data<L>,
}

/// The data of a command.
#[derive(Clone, Debug)]
pub enum Data<L> {
    /// There is none.
    None,
    /// To be filled from the start.
    In(L),
    /// To be sent whole.
    Out(L),
}

impl<L: Lease> Data<L> {
    /// How many bytes they are.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::In(lease) | Self::Out(lease) => lease.len(),
        }
    }
}

/// A logical unit, seen from the other end.
#[derive(Debug)]
pub struct Client<L> {
    stage: ClientStage<L>,
    /// What the unit said of itself when it was asked first.
    facts: Option<Facts>,
    operations: Slab<ClientOperation<L>>,
    /// Operations that are tried again at an instant.
    later: Vec<(Now, u32)>,
    outputs: VecDeque<ClientOutput<L>>,
    book: CacheView,
    wishes: UnitWishes,
    /// We are registered on this nexus, and whether that persists through power loss.
    registered: Option<bool>,
    /// How often it was asked to be taken back.
    departures: u8,
    /// A conflict was told.
    conflicts: bool,
    doubts: Vec<Extent>,
    /// Commands that were sent again.
    retries: Arc<AtomicU64>,
}

#[derive(Debug)]
enum ClientStage<L> {
    /// There is no nexus.
    Away,
    Identifying(Box<Identify<L>>),
    Ready,
    /// For good.
    Refused,
}

/// How often a command is repeated at once because the unit wants it so, or because its nexus was
/// lost.
const TRIES: u8 = 16;

/// How long a unit may be busy or not ready with one command before that fails. A failover between
/// the controllers of an array takes a minute and more.
const BUSY: Duration = Duration::from_secs(120);

/// How long it is waited until a busy unit is asked again, the first time; it doubles up to
/// [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Names the commands of [`Identify`].
const IDENTIFY: u32 = u32::MAX;

/// Names the command by which a registration is taken back.
const DEPARTURE: u32 = u32::MAX - 1;

impl<L: Lease> Default for Client<L> {
    fn default() -> Self {
        Self {
            stage: ClientStage::Away,
            facts: None,
            operations: Slab::new(),
            later: Vec::new(),
            outputs: VecDeque::new(),
            book: CacheView::default(),
            wishes: UnitWishes::default(),
            registered: None,
            departures: 0,
            conflicts: false,
            doubts: Vec::new(),
            retries: Arc::default(),
        }
    }
}

impl<L: Lease> Client<L> {
    /// A client of a unit that was asked before, without a nexus: operations wait for one. All
    /// clients of one unit share its `cache`.
    #[must_use]
    pub fn of(facts: Facts, cache: Arc<Cache>) -> Self {
        Self {
            facts: Some(facts),
            book: CacheView::of(cache),
            ..Self::default()
        }
    }

    /// Counts in `retries` what it has to ask for again: commands of operations that a transport
    /// has taken before, and that did not go well because of BUSY, a unit attention, an abort, or
    /// the loss of the nexus. Several clients may share the counter.
    #[must_use]
    pub fn counting(mut self, retries: Arc<AtomicU64>) -> Self {
        self.retries = retries;
        self
    }

    /// What the unit said of itself; `None` before it was asked.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// Whether a flush would make something stable, or has a loss to tell.
    #[must_use]
    pub fn owes_flush(&self) -> bool {
        self.book.owes_flush()
    }

    /// Whether operations wait for an end.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// Starts an operation. What memory it needs comes from `memory`, which may have none now.
    pub fn submit(&mut self, id: u64, op: MediumOp<L>, memory: &mut dyn FnMut(usize) -> Option<L>) {
        let Some(facts) = self.facts.as_ref().filter(|_| !self.is_refused()) else {
            return self.done(id, Err(MediumError::Gone));
        };
        if matches!(op, MediumOp::Flush { .. })
            && !facts.traits.write_cache
            && !self.book.owes_flush()
        {
            return self.done(id, Ok(MediumOutcome::Done));
        }
        let work = match OperationWork::new(op, facts, memory) {
            Ok(work) => work,
            Err(ended) => return self.done(id, ended),
        };
        let key = self.insert(id, work);
        if matches!(self.stage, ClientStage::Ready) {
            self.next_command(key);
        }
    }

    /// A command has ended, in whatever way the unit says.
    pub fn answered(&mut self, now: Now, id: u32, answer: &CommandStatus<'_>) {
        if id == IDENTIFY {
            return self.identified(now, answer);
        }
        if id == DEPARTURE {
            return self.departed(answer);
        }
        let key = id as usize;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.active = false;
        let verdict = answer.verdict();
        operation.is_retry |= std::mem::take(&mut operation.sent) && verdict.is_again();
        // What is aborted may have been done in part.
        operation.begun |= matches!(verdict, AnswerAction::Good | AnswerAction::Again);
        match verdict {
            AnswerAction::Good => {
                operation.tries = operation.restarts;
                operation.busy = None;
                self.good(key, answer);
            }
            AnswerAction::Again => self.again(key),
            AnswerAction::Attention(code) => {
                self.attention(code);
                self.again(key);
            }
            AnswerAction::Later(error) => self.later(now, key, error),
            AnswerAction::Refused => {
                let instead = operation.work.refused();
                self.continue_or_end(key, instead);
            }
            AnswerAction::Failed(error) => self.continue_or_end(key, Err(error)),
            AnswerAction::Conflict => {
                self.continue_or_end(key, Err(MediumError::ReadOnly));
                if !std::mem::replace(&mut self.conflicts, true) {
                    self.outputs.push_back(ClientOutput::Conflict);
                }
            }
            AnswerAction::Protected => {
                self.continue_or_end(key, Err(MediumError::ReadOnly));
                self.check_protection();
            }
            AnswerAction::Unable => self.fail(key),
        }
    }

    /// The transport has taken a command, which may be carried out from now on.
    pub fn sent(&mut self, id: u32) {
        let operation = self.operations.get_mut(id as usize);
        operation.into_iter().for_each(|one| one.sent = true);
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<ClientOutput<L>> {
        self.outputs.pop_front()
    }

    /// When [`Self::expire`] is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Asks busy units again whose time has come.
    pub fn expire(&mut self, now: Now) {
        let due = |&(at, id): &(Now, u32)| (at <= now).then_some(id);
        let ids: Vec<u32> = self.later.iter().filter_map(due).collect();
        self.later.retain(|(at, _)| *at > now);
        for id in ids {
            match &mut self.stage {
                ClientStage::Identifying(identify) if id == IDENTIFY => {
                    let first = identify.first();
                    self.ask(first);
                }
                ClientStage::Ready => self.next_command(id as usize),
                _ => {}
            }
        }
    }

    /// Whether the unit is not the one it was, or is unusable: every operation fails.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.stage, ClientStage::Refused)
    }

    fn done(&mut self, id: u64, result: MediumResult<L>) {
        self.outputs.push_back(ClientOutput::Done(id, result));
    }

    fn ask(&mut self, (cdb, data): ([u8; 16], Data<L>)) {
        self.outputs.push_back(ClientOutput::Execute(UnitRequest {
            id: IDENTIFY,
            cdb,
            data,
        }));
    }

    fn identified(&mut self, now: Now, answer: &CommandStatus<'_>) {
        let ClientStage::Identifying(identify) = &mut self.stage else {
            return;
        };
        let code = answer.attention();
        let next = identify.answered(answer);
        self.registered = identify.registered();
        if let Some(code) = code {
            self.attention_while_asking(code);
        }
        match next {
            identify::IdentifyStep::Ask((cdb, data)) => self.ask((cdb, data)),
            identify::IdentifyStep::Later(pause) => self.later.push((now + pause, IDENTIFY)),
            identify::IdentifyStep::Is(facts) => self.is(*facts),
            identify::IdentifyStep::Refused(refusal) => self.refuse(refusal),
        }
    }

    /// The unit said what it is; it must be the one that it was.
    fn is(&mut self, facts: Facts) {
        let before = self.facts.take();
        if let Some(refusal) = before.as_ref().and_then(|before| before.differs(&facts)) {
            self.facts = before;
            return self.refuse(refusal);
        }
        let caches = facts.traits.write_cache;
        let changed = before.filter(|before| before.traits != facts.traits);
        if changed
            .as_ref()
            .is_some_and(|before| caches && !before.traits.write_cache)
        {
            self.book.now_caches();
        }
        self.outputs.extend(changed.map(|_| ClientOutput::Changed));
        self.facts = Some(facts);
        self.stage = ClientStage::Ready;
        self.conflicts = false;
        self.book.open();
        self.outputs.push_back(ClientOutput::Ready);
        let keys: Vec<usize> = self.operations.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.next_command(key);
        }
    }

    fn refuse(&mut self, refusal: UnitRefusal) {
        if self.facts.is_some() && refusal.may_pass() {
            return self.outputs.push_back(ClientOutput::NotNow(refusal));
        }
        self.outputs.push_back(ClientOutput::Refused(refusal));
        self.give_up();
    }
}

fn pause(tries: u8) -> Duration {
    PAUSE
        .saturating_mul(1 << u32::from(tries.min(TRIES)))
        .min(LONGEST_PAUSE)
}

/// Bytes of a piece that is read or written by one command, at the most.
const PIECE_BYTES: u64 = SEGMENT_BYTES;

#[cfg(test)]
mod tests;
