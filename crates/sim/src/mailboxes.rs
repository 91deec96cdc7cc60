//! Mailboxes whose messages arrive in any order that the real ones allow: those of one sender to
//! one receiver in theirs, all others as chance will have it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use scsi::unit::CoreId;

use engine::mailbox::{CoreMessage, Mailer};

/// Messages in order, by whom they are between or for.
type Queues<K> = Rc<RefCell<BTreeMap<K, VecDeque<CoreMessage>>>>;

/// What is on its way, and what has arrived.
#[derive(Clone, Default)]
pub(super) struct SimMailboxes {
    cores: u16,
    in_flight: Queues<(CoreId, CoreId)>,
    arrived: Queues<CoreId>,
    /// Messages between different cores so far.
    sent: Rc<Cell<u64>>,
}

impl SimMailboxes {
    /// Mailboxes for this many cores.
    #[must_use]
    pub(super) fn new(cores: u16) -> Self {
        Self {
            cores,
            ..Self::default()
        }
    }

    /// The pairs of sender and receiver between which something is on its way.
    #[must_use]
    pub(super) fn pending(&self) -> Vec<(CoreId, CoreId)> {
        let in_flight = self.in_flight.borrow();
        in_flight
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(pair, _)| *pair)
            .collect()
    }

    /// How many messages there have been between different cores.
    #[must_use]
    pub(super) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Lets the next message between two cores arrive.
    pub(super) fn arrive(&self, pair: (CoreId, CoreId)) {
        let message = self
            .in_flight
            .borrow_mut()
            .get_mut(&pair)
            .and_then(VecDeque::pop_front);
        self.arrived
            .borrow_mut()
            .entry(pair.1)
            .or_default()
            .extend(message);
    }

    /// A message from outside the cores.
    pub(super) fn order(&self, to: CoreId, message: CoreMessage) {
        self.arrived
            .borrow_mut()
            .entry(to)
            .or_default()
            .push_back(message);
    }

    /// One core's mailbox, and its way to those of the others.
    #[must_use]
    pub(super) fn for_core(&self, core: CoreId) -> SimMailbox {
        SimMailbox {
            mailboxes: self.clone(),
            core,
        }
    }
}

/// One core's mailbox, and its way to those of the others.
pub(super) struct SimMailbox {
    mailboxes: SimMailboxes,
    core: CoreId,
}

impl Mailer for SimMailbox {
    fn send(&mut self, to: CoreId, message: CoreMessage) {
        let sent = &self.mailboxes.sent;
        sent.set(sent.get() + u64::from(to != self.core));
        let mut in_flight = self.mailboxes.in_flight.borrow_mut();
        in_flight
            .entry((self.core, to))
            .or_default()
            .push_back(message);
    }

    fn receive(&mut self) -> Option<CoreMessage> {
        self.mailboxes
            .arrived
            .borrow_mut()
            .get_mut(&self.core)?
            .pop_front()
    }

    fn cores(&self) -> u16 {
        self.mailboxes.cores
    }
}
