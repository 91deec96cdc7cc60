//! What a server is told while it serves: orders, and that cores have failed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use block::file::{UndoEntries, UndoLog};
use scsi::unit::CoreId;

/// What the thread that waits for the end of a server hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerOrder {
    /// An order to stop.
    Stop,
    /// An order to tell what the volumes have gathered.
    Tell,
    /// A core has ended, or is about to.
    Ended(CoreId),
}

/// Where orders arrive.
#[derive(Debug)]
pub struct Orders {
    told: Sender<ServerOrder>,
    heard: Receiver<ServerOrder>,
    /// What opening the volumes did to files, until they are served.
    pub(super) undo: UndoLog,
}

impl Default for Orders {
    fn default() -> Self {
        let (told, heard) = channel();
        let undo = UndoLog::default();
        Self { told, heard, undo }
    }
}

impl Orders {
    /// Gives orders.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.told.clone(), self.undo.clone())
    }

    /// What is called when a core has ended.
    pub(super) fn ended(&self) -> Arc<dyn Fn(CoreId) + Send + Sync> {
        let told = self.told.clone();
        Arc::new(move |core| {
            // Nobody may wait any more.
            let _ = told.send(ServerOrder::Ended(core));
        })
    }

    /// Waits for the next thing to happen.
    pub(super) fn next(&self) -> ServerOrder {
        // The channel cannot close, as one sender is kept here.
        self.heard.recv().unwrap_or(ServerOrder::Stop)
    }
}

/// Gives orders, first of all to stop.
#[derive(Clone, Debug)]
pub struct Stopper(Sender<ServerOrder>, UndoLog);

impl Stopper {
    /// Orders to stop; see [`super::run`] for what it means the second time.
    pub fn stop(&self) {
        // A server that has stopped needs no order.
        let _ = self.0.send(ServerOrder::Stop);
    }

    /// Leaves files as they were before a server that does not serve yet opened them. It opens no
    /// others while the result is held.
    pub fn undo(&self) -> UndoEntries<'_> {
        self.1.undo()
    }

    /// Orders to log what the volumes have gathered.
    pub fn tell(&self) {
        let _ = self.0.send(ServerOrder::Tell);
    }
}
