//! The thread that starts switches: those that cannot run are tried again by it, and all of their
//! threads have its priority. Threads of the control plane give way to those that do I/O, and would
//! hand that on.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::Switches;
use crate::panics;

/// Something to be done there.
type Job = Box<dyn FnOnce() + Send>;

/// Where jobs are sent to; nowhere once it has been stopped.
pub(super) struct Keeper(Mutex<Option<Sender<Job>>>);

/// Why something was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotStarted {
    /// The thread has been stopped.
    #[error("the daemon ends")]
    Stopped,
    /// It has panicked. The thread goes on.
    #[error("its start has panicked (the log tells why)")]
    Panicked,
}

impl Keeper {
    pub(super) fn new() -> (Self, Receiver<Job>) {
        let (jobs, received) = channel();
        (Self(Mutex::new(Some(jobs))), received)
    }

    /// Starts the thread.
    pub(super) fn start(&self, switches: &Arc<Switches>, jobs: Receiver<Job>) -> io::Result<()> {
        let switches = Arc::downgrade(switches);
        let thread = thread::Builder::new().name("switches".to_owned());
        thread.spawn(move || keep(&switches, &jobs))?;
        Ok(())
    }

    /// Starts something there, and waits until that is done.
    pub(super) fn aside<T: Send + 'static>(
        &self,
        start: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotStarted> {
        let (told, done) = channel();
        let job: Job = Box::new(move || drop(told.send(panics::contained(start))));
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = jobs.as_ref().ok_or(NotStarted::Stopped)?;
        sender.send(job).map_err(|_| NotStarted::Stopped)?;
        drop(jobs);
        let done = done.recv().map_err(|_| NotStarted::Stopped)?;
        done.ok_or(NotStarted::Panicked)
    }

    pub(super) fn stop(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Does what is sent, and looks after switches meanwhile, until they are gone or it is stopped.
fn keep(switches: &Weak<Switches>, jobs: &Receiver<Job>) {
    panics::let_unwind();
    loop {
        match jobs.recv_timeout(LOOK) {
            Ok(job) => {
                let _ = panics::contained(job);
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let Some(switches) = switches.upgrade() else {
                    return;
                };
                let _ = panics::contained(|| switches.look());
            }
        }
    }
}

/// How often it is looked whether all switches run.
const LOOK: Duration = Duration::from_secs(5);
