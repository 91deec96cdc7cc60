//! An initiator between two uses.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::FcpInitiator;
use super::exchanges::InitiatorExchanges;
use crate::remote::RemoteId;

/// What an initiator has with its targets while no command is in flight. It holds no leased memory,
/// so it can go to another thread; and it knows the exchanges that were, so that no number of
/// theirs comes again too soon.
#[derive(Debug)]
pub struct IdleInitiator(FcpInitiator<Infallible>);

impl<L> FcpInitiator<L> {
    /// Whether neither a command nor a function is in flight, and all that happened was told.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.tasks.len() == 0 && self.functions.is_empty() && self.events.is_empty()
    }

    /// What is left of it without commands. Those that are in flight are forgotten.
    #[must_use]
    pub fn rest(self) -> IdleInitiator {
        IdleInitiator(self.emptied())
    }

    /// The same initiator, to be used again.
    #[must_use]
    pub fn resume(rest: IdleInitiator) -> Self {
        rest.0.emptied()
    }

    fn emptied<M>(self) -> FcpInitiator<M> {
        FcpInitiator {
            config: self.config,
            now: self.now,
            nexuses: self.nexuses,
            tasks: InitiatorExchanges::after(self.tasks),
            awaited: 0,
            expected: 0,
            ready: VecDeque::new(),
            sequences: VecDeque::new(),
            controls: self.controls,
            services: self.services,
            functions: Vec::new(),
            held: self.held,
            look: self.look,
            events: VecDeque::new(),
        }
    }
}

impl IdleInitiator {
    /// The login with a target is over.
    pub(crate) fn peer_down(&mut self, remote: RemoteId) {
        if let Some(nexus) = self.0.nexuses.get_mut(remote.index()) {
            *nexus = None;
        }
    }
}
