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

    /// Does something there, and waits for it; `None` once the thread has been stopped.
    pub(super) fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (told, done) = channel();
        let job: Job = Box::new(move || drop(told.send(work())));
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref()?.send(job).ok()?;
        drop(jobs);
        done.recv().ok()
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
