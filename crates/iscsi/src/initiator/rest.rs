//! A session that goes from one holder to another: from the thread that opened a volume to the core
//! that uses it.

use std::marker::PhantomData;
use std::sync::Arc;

use scsi::medium::{Lease, Now};

use super::config::InitiatorConfig;
use super::mover::InitiatorMover;
use super::numbers::SequenceNumbers;
use super::tasks::InitiatorTasks;
use super::tcp::InitiatorTcpMover;
use super::{Initiator, InitiatorEvent, InitiatorPhase, LoginOutcome};

/// A session in which nothing is in flight. It holds no leased memory, so it can go to another
/// thread. What comes on its connection meanwhile, pings of the target too, waits there.
#[derive(Debug)]
pub struct RestingSession<M = InitiatorTcpMover> {
    config: Arc<InitiatorConfig>,
    outcome: LoginOutcome,
    numbers: SequenceNumbers,
    /// The last tag that was given out: an answer that comes twice would else be another's.
    tag: u16,
    mover: PhantomData<fn() -> M>,
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// Lays the session down, to be taken up by [`RestingSession::resume`].
    ///
    /// # Errors
    ///
    /// Gives it back if it has not logged in, or something is in flight.
    pub fn rest(self) -> Result<RestingSession<M>, Box<Self>> {
        let rests = self.is_open()
            && self.is_idle()
            && !self.is_pinging()
            && self.numbers.has_counted(self.numbers.cmd_sn)
            && self.events.is_empty()
            && self.mover.is_at_rest();
        match self.outcome {
            Some(outcome) if rests => Ok(RestingSession {
                config: self.config,
                // A text may have changed them since the login.
                outcome: LoginOutcome {
                    keys: self.keys,
                    ..outcome
                },
                numbers: self.numbers,
                tag: self.tasks.last_tag(),
                mover: PhantomData,
            }),
            outcome => Err(Box::new(Self { outcome, ..self })),
        }
    }
}

impl<L: Lease> Initiator<L> {
    /// Takes a session over TCP up. The next event is [`InitiatorEvent::LoggedIn`], as after a
    /// login.
    #[must_use]
    pub fn resume(resting: RestingSession, now: Now) -> Self {
        resting.resume(now)
    }
}

impl<M: InitiatorMover> RestingSession<M> {
    /// Takes the session up. The next event is [`InitiatorEvent::LoggedIn`], as after a login.
    #[must_use]
    pub fn resume<L: Lease>(self, now: Now) -> Initiator<L, M> {
        let keys = self.outcome.keys;
        Initiator {
            keys,
            outcome: Some(self.outcome),
            mover: M::new(&keys),
            tasks: InitiatorTasks::after(self.tag),
            events: [InitiatorEvent::LoggedIn].into(),
            ..Initiator::idle(self.config, now, InitiatorPhase::Open, self.numbers)
        }
    }
}
