//! A session that goes from one holder to another: from the thread that opened a volume to the core
//! that uses it.

use std::sync::Arc;

use scsi::medium::{Lease, Now};

use super::config::InitiatorConfig;
use super::numbers::SequenceNumbers;
use super::receive::InitiatorInbound;
use super::tasks::InitiatorTasks;
use super::{Initiator, InitiatorEvent, InitiatorPhase, LoginOutcome};
use crate::wire::framer::Framer;

/// A session in which nothing is in flight. It holds no leased memory, so it can go to another
/// thread. What comes on its connection meanwhile, pings of the target too, waits in the socket.
#[derive(Debug)]
pub struct RestingSession {
    config: Arc<InitiatorConfig>,
    outcome: LoginOutcome,
    numbers: SequenceNumbers,
    /// The last tag that was given out: an answer that comes twice would else be another's.
    tag: u16,
}

impl<L: Lease> Initiator<L> {
    /// Lays the session down, to be taken up by [`Self::resume`].
    ///
    /// # Errors
    ///
    /// Gives it back if it has not logged in, or something is in flight.
    pub fn rest(self) -> Result<RestingSession, Box<Self>> {
        let rests = self.is_open()
            && self.is_idle()
            && !self.is_pinging()
            && self.numbers.has_counted(self.numbers.cmd_sn)
            && self.framer.is_between()
            && self.events.is_empty()
            && matches!(self.inbound, InitiatorInbound::Drop);
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
            }),
            outcome => Err(Box::new(Self { outcome, ..self })),
        }
    }

    /// Takes a session up. The next event is [`InitiatorEvent::LoggedIn`], as after a login.
    #[must_use]
    pub fn resume(resting: RestingSession, now: Now) -> Self {
        let keys = resting.outcome.keys;
        let mut framer = Framer::of_target(keys.own_data_segment);
        framer.set_digests(keys.header_digest, keys.data_digest);
        Self {
            keys,
            outcome: Some(resting.outcome),
            framer,
            tasks: InitiatorTasks::after(resting.tag),
            events: [InitiatorEvent::LoggedIn].into(),
            ..Self::idle(resting.config, now, InitiatorPhase::Open, resting.numbers)
        }
    }
}
