//! What a switch is told while it runs, by other threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ::io::ring::Waker;
use fc::fabric::zones::Zones;

use super::ids::IdList;
use super::options::Zoning;
use super::survey::SwitchSurvey;
use super::zone_file::{PendingRead, ReadError, ZoneReads, read_zones};

/// An order.
#[derive(Debug)]
pub(super) enum SwitchOrder {
    /// All ports are to be logged out, and then it ends.
    Stop,
    /// These zones are to be active.
    SetZones(Arc<Zones>),
    /// The log is to be told what was counted.
    Tell,
    /// The interface of the port of this number has PFC now, or has it no more.
    PfcChanged(usize),
    /// These N_Port_IDs were given by the other switch of the fabric.
    RestoreIds(IdList),
    /// Requests a survey; the sender receives the answer.
    Survey(Sender<SwitchSurvey>),
}

/// Gives orders to a switch that runs.
#[derive(Debug)]
pub struct SwitchOrders {
    sender: OrderSender,
    zones: Option<PathBuf>,
    pub(super) reads: ZoneReads,
}

/// Where orders go.
#[derive(Clone, Debug)]
pub(super) struct OrderSender {
    told: Sender<SwitchOrder>,
    waker: Waker,
}

impl OrderSender {
    /// Orders for the switch whose ring that waker wakes, and where they arrive.
    pub(super) fn new(waker: Waker) -> (Self, Receiver<SwitchOrder>) {
        let (told, heard) = channel();
        (Self { told, waker }, heard)
    }

    pub(super) fn give(&self, order: SwitchOrder) {
        // A switch that has ended needs no order.
        let _ = self.told.send(order);
        self.waker.wake();
    }
}

impl SwitchOrders {
    pub(super) fn new(sender: OrderSender, zoning: &Zoning) -> Self {
        let zones = match zoning {
            Zoning::File(path) => Some(path.clone()),
            Zoning::Closed | Zoning::Open | Zoning::Given(_) => None,
        };
        Self {
            sender,
            zones,
            reads: ZoneReads::default(),
        }
    }

    /// Logs all ports out, and ends.
    pub fn stop(&self) {
        self.sender.give(SwitchOrder::Stop);
    }

    /// Logs what was forwarded and dropped.
    pub fn tell(&self) {
        self.sender.give(SwitchOrder::Tell);
    }

    /// Has other zones be active. Pairs that stay do not notice.
    pub fn set_zones(&self, zones: Arc<Zones>) {
        self.sender.give(SwitchOrder::SetZones(zones));
    }

    /// What it has and has counted; `None` if it has ended, or does not answer within
    /// [`SURVEY_PATIENCE`].
    #[must_use]
    pub fn survey(&self) -> Option<SwitchSurvey> {
        self.ask().wait().ok()
    }

    /// Asks what it has and has counted. Several switches are asked at once, and waited for then.
    #[must_use]
    pub fn ask(&self) -> PendingSurvey {
        let (told, heard) = channel();
        self.sender.give(SwitchOrder::Survey(told));
        PendingSurvey {
            heard,
            asked: Instant::now(),
        }
    }

    /// Has the zone file read again. If it has an error the zones stay as they are. Nothing waits
    /// for the file, which may lie on a server that does not answer.
    pub fn read_zones(&self) {
        let Some(path) = &self.zones else {
            return tracing::warn!("nothing to read again: the switch was started without --zones");
        };
        let sender = self.sender.clone();
        // Given before the file may be read again, so that the zones read last are in force.
        let read = move |path: &Path| match read_zones(path) {
            Ok(zones) => sender.give(SwitchOrder::SetZones(zones)),
            Err(what) => tracing::error!("{what}; the zones stay as they were"),
        };
        let began = self.reads.begin(path, read).and_then(|pending| {
            let thread = thread::Builder::new().name("zones-wait".to_owned());
            let spawned = thread.spawn(move || tell_late(&pending));
            spawned.map_err(|cause| ReadError::Thread(path.clone(), cause))
        });
        if let Err(what) = began {
            tracing::error!("--zones {what}; the zones stay as they were");
        }
    }
}

/// Waits for a zone file. The log tells when it takes long.
fn tell_late(pending: &PendingRead<()>) {
    if let Err(cause) = pending.wait(Instant::now(), PATIENCE) {
        tracing::error!("--zones {cause}; the zones stay as they were until it is read");
    }
}

/// An answer that a switch owes.
#[derive(Debug)]
pub struct PendingSurvey {
    heard: Receiver<SwitchSurvey>,
    asked: Instant,
}

/// Why a switch does not tell what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSurvey {
    /// It has ended.
    Ended,
    /// It has not answered for [`SURVEY_PATIENCE`].
    Silent,
}

impl PendingSurvey {
    /// Waits for the answer, until [`SURVEY_PATIENCE`] is over since it was asked for.
    ///
    /// # Errors
    ///
    /// See [`NoSurvey`].
    pub fn wait(self) -> Result<SwitchSurvey, NoSurvey> {
        let left = SURVEY_PATIENCE.saturating_sub(self.asked.elapsed());
        let answer = self.heard.recv_timeout(left);
        answer.map_err(|cause| match cause {
            RecvTimeoutError::Timeout => NoSurvey::Silent,
            RecvTimeoutError::Disconnected => NoSurvey::Ended,
        })
    }
}

/// How long a switch may take to tell what it has.
pub const SURVEY_PATIENCE: Duration = Duration::from_secs(5);

/// How long it takes to read a zone file of any disk that answers.
const PATIENCE: Duration = Duration::from_secs(10);
