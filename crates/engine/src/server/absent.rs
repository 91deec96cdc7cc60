//! Volumes, portals and RDMA devices that cannot be used now: a thread tries them again until they
//! are back.
//!
//! | | the unit is | when the volume is back |
//! |---|---|---|
//! | it could not be opened at the start | NOT READY, and nobody knows what it is | another unit takes its LUNs, known by its volume |
//! | it vanished while it was served | NOT READY, with its identity and last capacity | it is swapped in, if it is the same |

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use block::absent::Absent;
use block::file::UndoLog;
use client::open::OpenLeaves;
use scsi::unit::UnitId;

use super::portals::{self, OtherPortals};
use super::prepare::{OpenedVolume, Preparing};
use super::units::Absence;
use super::{DeviceListening, Portal, Served, Server};
use crate::core::Vanished;
use crate::inventory::UnitRow;
use crate::serve::options::ServeError;

/// How often a volume is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// What the thread is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    /// This can no longer be used.
    Vanished(Vanished),
    /// An RDMA device is used that was not before.
    DeviceCame,
    /// There may be units whose volume is absent, or portals on which nothing listens.
    Absent,
}

/// Starts the thread. It sleeps for as long as nothing is absent, and ends with the server.
pub(super) fn look_after(server: &Arc<Server>, notices: Receiver<Notice>) {
    let server = Arc::downgrade(server);
    let started = thread::Builder::new()
        .name("lunar-absent".to_owned())
        .spawn(move || run(&server, &notices));
    if let Err(cause) = started {
        tracing::warn!("volumes that are absent will not be tried again: no thread ({cause})");
    }
}

fn run(server: &Weak<Server>, notices: &Receiver<Notice>) {
    let (mut is_any_absent, mut told) = (false, BTreeMap::new());
    loop {
        let notice = if is_any_absent {
            notices.recv_timeout(AGAIN)
        } else {
            notices.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let Some(server) = server.upgrade() else {
            return;
        };
        match notice {
            Ok(Notice::Vanished(Vanished::Volume(unit))) => server.vanished(unit),
            Ok(Notice::Vanished(Vanished::RdmaDevice(portal))) => server.device_vanished(portal),
            Ok(Notice::DeviceCame) => server.register_locked(),
            Ok(Notice::Absent) => {}
            Err(RecvTimeoutError::Timeout) => {
                server.try_absent(&mut told);
                server.try_portals();
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        is_any_absent = server.absent().next().is_some() || !server.missing_portals().is_empty();
    }
}

impl Server {
    /// The units without their volumes: names and rows.
    fn absent(&self) -> impl Iterator<Item = (String, Arc<UnitRow>)> {
        let served = self.served();
        let units = served
            .units
            .iter()
            .filter(|(_, unit)| unit.absence.is_some());
        let rows = units.filter_map(|(name, _)| {
            let row = served.inventory.units.get(name)?;
            Some((name.clone(), Arc::clone(row)))
        });
        rows.collect::<Vec<_>>().into_iter()
    }

    /// A volume has gone: its unit stays, and answers what is known.
    fn vanished(&self, id: UnitId) {
        let _turn = self.turn();
        let mut next = self.served().clone();
        let mut units = next.units.iter_mut();
        let Some((name, unit)) = units.find(|(_, unit)| unit.id == id) else {
            return;
        };
        if unit.absence.is_some() {
            return;
        }
        let (name, unit) = (name.clone(), Arc::make_mut(unit));
        unit.absence = Some(Absence::Vanished(Instant::now()));
        unit.volume = Arc::new(Absent::of(unit.volume.traits()));
        // They are closed, so that they can be opened again.
        unit.leaves = OpenLeaves::default();
        let row = &next.inventory.units[&name];
        tracing::error!(
            "{} has vanished: its LUNs are not ready; it is tried again every {} s",
            row.written,
            AGAIN.as_secs()
        );
        let prepared = self.preparing(Instant::now()).exchange(&next, &name);
        match prepared.and_then(|prepared| self.commit(next, prepared)) {
            Ok(next) => *self.served() = next,
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Tries to open what is absent. Opening may take its time, so nobody waits for it. The log is
    /// told once why something that could be opened cannot be served, as `told` knows.
    fn try_absent(&self, told: &mut BTreeMap<String, String>) {
        for (name, row) in self.absent() {
            let undo = UndoLog::default();
            let preparing = self.preparing(Instant::now());
            let Ok(volume) = preparing.open_now(&row, &undo) else {
                continue;
            };
            match self.is_back(&preparing, &name, &row, volume) {
                Ok(true) => {
                    undo.forget();
                    tracing::info!("{} is back", row.written);
                }
                Ok(false) => drop(undo.undo()),
                Err(error) => {
                    drop(undo.undo());
                    let error = error.to_string();
                    if told.insert(name, error.clone()).as_ref() != Some(&error) {
                        tracing::warn!("{} cannot be served again: {error}", row.written);
                    }
                }
            }
        }
    }

    /// Portals on which not all listens that should, with what does not, and why.
    #[must_use]
    pub fn missing_portals(&self) -> Vec<(SocketAddr, String)> {
        let served = self.served();
        let portals = served.portals.iter();
        let missing = portals.filter_map(|portal| {
            let at = portal.asked;
            let detail = match (&portal.missing, &portal.by_devices) {
                (Some(cause), _) => format!("nothing listens on {at} ({cause})"),
                (None, DeviceListening::Missing(cause)) => {
                    format!("no RDMA device listens on {at} ({cause}); iSCSI is served there")
                }
                (None, _) => return None,
            };
            Some((at, detail))
        });
        missing.collect()
    }

    /// Tries to listen where nothing does.
    pub(super) fn try_portals(&self) {
        let is_missing = |portal: &&Portal| portal.missing.is_some();
        let missing: Vec<_> = {
            let served = self.served();
            let portals = served.portals.iter().filter(is_missing);
            portals.map(|portal| portal.asked).collect()
        };
        self.try_sockets(missing);
        self.try_devices();
    }

    fn try_sockets(&self, missing: Vec<SocketAddr>) {
        for asked in missing {
            let Ok((listener, _)) =
                portals::bind(asked, OtherPortals::default(), &self.config.limits)
            else {
                continue;
            };
            let _turn = self.turn();
            let mut next = self.served().clone();
            let preparing = self.preparing(Instant::now());
            let Some(prepared) = preparing.listen(&mut next, asked, listener) else {
                continue;
            };
            match self.commit(next, prepared) {
                Ok(next) => {
                    *self.served() = next;
                    tracing::info!("{asked} is listened to");
                }
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    /// A device has gone that listened on a portal.
    fn device_vanished(&self, number: u32) {
        let _turn = self.turn();
        let mut next = self.served().clone();
        let mut portals = next.portals.iter_mut();
        let Some(portal) = portals.find(|portal| portal.number == number) else {
            return;
        };
        if portal.by_devices != DeviceListening::Yes {
            return;
        }
        let cause = "the RDMA device was taken away".to_owned();
        portal.by_devices = DeviceListening::Missing(cause);
        let prepared = self.preparing(Instant::now()).unchanged(&next);
        match self.commit(next, prepared) {
            Ok(next) => *self.served() = next,
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Tries to have RDMA devices listen where they should.
    fn try_devices(&self) {
        let _turn = self.turn();
        let mut next = self.served().clone();
        let preparing = Preparing {
            may_miss_portals: true,
            ..self.preparing(Instant::now())
        };
        let Some(prepared) = preparing.try_devices(&mut next) else {
            return;
        };
        match self.commit(next, prepared) {
            Ok(next) => {
                *self.served() = next;
                tracing::info!("RDMA devices listen that were missing");
            }
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Serves a volume that was absent; returns whether it was still wanted.
    fn is_back(
        &self,
        preparing: &Preparing<'_>,
        name: &str,
        row: &UnitRow,
        (volume, leaves): OpenedVolume,
    ) -> Result<bool, ServeError> {
        let _turn = self.turn();
        let mut next: Served = self.served().clone();
        if next.inventory.units.get(name).map(Arc::as_ref) != Some(row) {
            return Ok(false);
        }
        let Some(unit) = next.units.get_mut(name) else {
            return Ok(false);
        };
        let unit = Arc::make_mut(unit);
        let prepared = match unit.absence {
            None => return Ok(false),
            Some(_) if preparing.is_same(unit, row, &*volume, name) => {
                unit.absence = None;
                unit.leaves = leaves;
                unit.volume = volume;
                preparing.exchange(&next, name)?
            }
            Some(_) => preparing.replace(&mut next, name, (volume, leaves))?,
        };
        let next = self.commit(next, prepared)?;
        *self.served() = next;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
