//! What a switch is told while it runs, by other threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ::io::ring::Waker;
use fc::fabric::zones::Zones;
use runtime::files;

use super::options::Zoning;

/// An order.
#[derive(Debug)]
pub(super) enum SwitchOrder {
    /// All ports are to be logged out, and then it ends.
    Stop,
    /// These zones are to be active.
    SetZones(Arc<Zones>),
    /// The log is to be told what was counted.
    Tell,
}

/// Gives orders to a switch that runs.
#[derive(Debug)]
pub struct SwitchOrders {
    told: Sender<SwitchOrder>,
    waker: Waker,
    zones: Option<PathBuf>,
}

impl SwitchOrders {
    /// Orders for the switch whose ring that waker wakes, and where they arrive.
    pub(super) fn new(waker: Waker, zoning: &Zoning) -> (Self, Receiver<SwitchOrder>) {
        let (told, heard) = channel();
        let zones = match zoning {
            Zoning::File(path) => Some(path.clone()),
            Zoning::Closed | Zoning::Open => None,
        };
        let orders = Self { told, waker, zones };
        (orders, heard)
    }

    /// Logs all ports out, and ends.
    pub fn stop(&self) {
        self.give(SwitchOrder::Stop);
    }

    /// Logs what was forwarded and dropped.
    pub fn tell(&self) {
        self.give(SwitchOrder::Tell);
    }

    /// Reads the zone file again, on this thread. If it has an error the zones stay as they are.
    pub fn read_zones(&self) {
        let Some(path) = &self.zones else {
            return tracing::warn!("nothing to read again: the switch was started without --zones");
        };
        match read_zones(path) {
            Ok(zones) => self.give(SwitchOrder::SetZones(zones)),
            Err(ZonesError(what)) => tracing::error!("{what}; the zones stay as they were"),
        }
    }

    fn give(&self, order: SwitchOrder) {
        // A switch that has ended needs no order.
        let _ = self.told.send(order);
        self.waker.wake();
    }
}

/// What is wrong with a zone file, with its path, line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ZonesError(pub(super) String);

/// Bytes of a zone file at the most.
const ZONES_MAX: u64 = 1 << 20;

/// The zones of a file.
pub(super) fn read_zones(path: &Path) -> Result<Arc<Zones>, ZonesError> {
    let shown = path.display();
    let failed = |cause: &dyn std::fmt::Display| ZonesError(format!("--zones {shown}: {cause}"));
    let bytes = files::read_regular(path, ZONES_MAX).map_err(|cause| failed(&cause))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| failed(&"it is not UTF-8 text: check that it is the zone file"))?;
    let zones = Zones::parse(&text).map_err(|error| {
        ZonesError(format!(
            "{shown}:{}:{}: {}",
            error.line, error.column, error.what
        ))
    })?;
    Ok(Arc::new(zones))
}

/// The zones that options say.
pub(super) fn zones(zoning: &Zoning) -> Result<Arc<Zones>, ZonesError> {
    match zoning {
        Zoning::Closed => Ok(Arc::new(Zones::closed())),
        Zoning::Open => Ok(Arc::new(Zones::open())),
        Zoning::File(path) => read_zones(path),
    }
}
