//! What a switch is told while it runs, by other threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use ::io::ring::Waker;
use fc::fabric::zones::Zones;
use runtime::files;

use super::ids::IdList;
use super::options::Zoning;
use super::survey::SwitchSurvey;

/// An order.
#[derive(Debug)]
pub(super) enum SwitchOrder {
    /// All ports are to be logged out, and then it ends.
    Stop,
    /// These zones are to be active.
    SetZones(Arc<Zones>),
    /// The log is to be told what was counted.
    Tell,
    /// These N_Port_IDs were given by the other switch of the fabric.
    RestoreIds(IdList),
    /// Who asks is to be told what it has.
    Survey(Sender<SwitchSurvey>),
}

/// Gives orders to a switch that runs.
#[derive(Debug)]
pub struct SwitchOrders {
    sender: OrderSender,
    zones: Option<PathBuf>,
    /// A zone file is being read.
    is_reading: Arc<AtomicBool>,
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
            is_reading: Arc::default(),
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
        let (told, heard) = channel();
        self.sender.give(SwitchOrder::Survey(told));
        heard.recv_timeout(SURVEY_PATIENCE).ok()
    }

    /// Has the zone file read again. If it has an error the zones stay as they are. Nothing waits
    /// for the file, which may lie on a server that does not answer.
    pub fn read_zones(&self) {
        let Some(path) = self.zones.clone() else {
            return tracing::warn!("nothing to read again: the switch was started without --zones");
        };
        let (shown, sender) = (path.display().to_string(), self.sender.clone());
        let read = move || read_zones(&path);
        let take = move |zones| match zones {
            Ok(zones) => sender.give(SwitchOrder::SetZones(zones)),
            Err(ZonesError(what)) => tracing::error!("{what}; the zones stay as they were"),
        };
        match read_aside(&self.is_reading, PATIENCE, read, take) {
            Ok(true) => {}
            Ok(false) => tracing::error!(
                "--zones {shown}: the file is still being read for the SIGHUP before, and the \
                 zones stay as they were until that has ended: see whether its disk answers"
            ),
            Err(cause) => tracing::error!("--zones {shown}: it cannot be read: {cause}"),
        }
    }
}

/// Has something read by a thread of its own, and `take` it then, unless it is still being read for
/// the call before: at most one such thread hangs. The log tells when it takes longer than
/// `patience`.
pub(super) fn read_aside<T: Send + 'static>(
    is_reading: &Arc<AtomicBool>,
    patience: Duration,
    read: impl FnOnce() -> T + Send + 'static,
    take: impl FnOnce(T) + Send + 'static,
) -> std::io::Result<bool> {
    if is_reading.swap(true, Relaxed) {
        return Ok(false);
    }
    let (ended, end) = channel::<()>();
    let done = Arc::clone(is_reading);
    let reader = thread::Builder::new().name("zones".to_owned());
    let reader = reader.spawn(move || {
        take(read());
        done.store(false, Relaxed);
        drop(ended);
    });
    if let Err(cause) = reader {
        is_reading.store(false, Relaxed);
        return Err(cause);
    }
    let watcher = thread::Builder::new().name("zones-watch".to_owned());
    watcher.spawn(move || {
        if end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            tracing::error!(
                "the zone file is not read after {patience:?}; the zones stay as they were until \
                 it is: see whether its disk answers"
            );
        }
    })?;
    Ok(true)
}

/// How long a switch may take to tell what it has.
const SURVEY_PATIENCE: Duration = Duration::from_secs(5);

/// How long it takes to read a zone file of any disk that answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is wrong with a zone file, with its path, line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ZonesError(pub(super) String);

/// Bytes of a zone file at the most.
const ZONES_MAX: u64 = 1 << 20;

/// The zones of a file.
///
/// # Errors
///
/// See [`ZonesError`].
pub fn read_zones(path: &Path) -> Result<Arc<Zones>, ZonesError> {
    let shown = path.display();
    let failed = |cause: &dyn std::fmt::Display| ZonesError(format!("--zones {shown}: {cause}"));
    let bytes = files::read_regular(path, ZONES_MAX).map_err(|cause| failed(&cause))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| failed(&"it is not UTF-8 text: check that it is the zone file"))?;
    if is_blank(&text) {
        return Err(failed(
            &"the file has no statement, as one that is being written: write another file and \
              rename it; for a fabric in which no port sees another, write: default deny",
        ));
    }
    let zones = Zones::parse(&text).map_err(|error| {
        ZonesError(format!(
            "{shown}:{}:{}: {}",
            error.line, error.column, error.what
        ))
    })?;
    Ok(Arc::new(zones))
}

/// Whether nothing stands in a zone file but comments.
fn is_blank(text: &str) -> bool {
    let mut statements = text.lines().map(|line| line.split('#').next());
    statements.all(|line| line.is_none_or(|line| line.trim().is_empty()))
}

/// The zones that options say.
pub(super) fn zones(zoning: &Zoning) -> Result<Arc<Zones>, ZonesError> {
    match zoning {
        Zoning::Closed => Ok(Arc::new(Zones::closed())),
        Zoning::Open => Ok(Arc::new(Zones::open())),
        Zoning::File(path) => read_zones(path),
        Zoning::Given(zones) => Ok(Arc::clone(zones)),
    }
}
