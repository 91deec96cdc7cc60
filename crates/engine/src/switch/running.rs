//! A switch on a thread of its own, for a process that does other things too.

use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use fc::fabric::zones::Zones;

use super::{OpenSwitch, PendingSurvey, ReadyPort, SwitchError, SwitchOrders, SwitchSurvey};

/// A switch that runs. Dropping it does not end it: [`RunningSwitch::stop`] does.
#[derive(Debug)]
pub struct RunningSwitch {
    ports: Vec<ReadyPort>,
    orders: SwitchOrders,
    /// `None` once somebody has waited for its end.
    thread: Mutex<Option<JoinHandle<Result<(), SwitchError>>>>,
}

impl OpenSwitch {
    /// Has it switch on a thread of its own, and waits until it does.
    ///
    /// # Errors
    ///
    /// See [`SwitchError`].
    pub fn start(self) -> Result<RunningSwitch, SwitchError> {
        let (told, ready) = channel();
        let run = move || {
            self.run(|ports, orders| {
                let there = told.send((ports.to_vec(), orders));
                there.map_err(|_| io::ErrorKind::BrokenPipe.into())
            })
        };
        let thread = thread::Builder::new().name("switch".to_owned());
        let thread = thread.spawn(run)?;
        match ready.recv() {
            Ok((ports, orders)) => Ok(RunningSwitch {
                ports,
                orders,
                thread: Mutex::new(Some(thread)),
            }),
            // It has ended before it was ready.
            Err(_) => Err(cause(thread.join()).unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }
}

impl RunningSwitch {
    /// Its ports, as they were when it was ready.
    #[must_use]
    pub fn ports(&self) -> &[ReadyPort] {
        &self.ports
    }

    /// Has other zones be active, and waits until they are, or the switch has ended or does not
    /// answer for 5 s. Pairs that stay do not notice.
    pub fn set_zones(&self, zones: Arc<Zones>) {
        self.orders.set_zones(zones);
        // Orders are obeyed as they came, so the answer tells that the one before was.
        let _ = self.orders.survey();
    }

    /// What it has and has counted; `None` if it has ended or does not answer.
    #[must_use]
    pub fn survey(&self) -> Option<SwitchSurvey> {
        self.orders.survey()
    }

    /// Asks for the same, and waits for nothing.
    #[must_use]
    pub fn ask(&self) -> PendingSurvey {
        self.orders.ask()
    }

    /// Whether it has ended, by order or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Logs all ports out, and waits for its end. Why it has failed, if it has.
    pub fn stop(&self) -> Option<SwitchError> {
        self.orders.stop();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.take().and_then(|thread| cause(thread.join()))
    }
}

fn cause(ended: thread::Result<Result<(), SwitchError>>) -> Option<SwitchError> {
    match ended {
        Ok(result) => result.err(),
        Err(_) => Some(io::Error::other("its thread has panicked").into()),
    }
}

impl From<io::ErrorKind> for SwitchError {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Io(kind.into())
    }
}
