//! The switches of a daemon: each row on a thread of its own, started, stopped and told of zones as
//! the gate says, and tried again when it cannot run.
//!
//! What can fail without the ports of a switch that runs is done before a change is kept: zones are
//! read, and ports opened that no switch and no target of this daemon has. All else follows the
//! commit, and where it fails there is an alarm and another attempt every 5 s.

mod keeper;
mod prepare;
mod zone_files;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use engine::switch::options::{RingKind, SwitchOptions};
use engine::switch::{
    NoSurvey, OpenSwitch, RunningSwitch, SURVEY_PATIENCE, SwitchError, SwitchSurvey,
};
use fc::fabric::zones::Zones;

use crate::alarm::{Alarm, AlarmBoard, AlarmKind};
use crate::lower::switch_options;
use crate::tree::{SwitchRow, Tree};
use keeper::Keeper;
use prepare::PreparedSwitch;
pub(crate) use prepare::PreparedSwitches;
use zone_files::ZoneFiles;

/// The switches of a daemon.
pub(crate) struct Switches {
    state: PathBuf,
    ring: RingKind,
    alarms: Arc<AlarmBoard>,
    zone_files: ZoneFiles,
    rows: Mutex<Rows>,
    /// Locked while switches are started or stopped.
    turn: Mutex<()>,
    keeper: Keeper,
}

type Rows = BTreeMap<String, HeldRow>;

/// A row that is to be a switch.
#[derive(Clone)]
struct HeldRow {
    row: SwitchRow,
    zones: Arc<Zones>,
    /// `None`: it cannot run, of which there is an alarm.
    running: Option<Arc<RunningSwitch>>,
}

impl Switches {
    /// None yet. The thread that calls has the priority that their threads will have.
    ///
    /// # Errors
    ///
    /// There can be no thread.
    pub(crate) fn new(
        state: PathBuf,
        ring: RingKind,
        alarms: Arc<AlarmBoard>,
    ) -> std::io::Result<Arc<Self>> {
        Self::with(ZoneFiles::default(), (state, ring), alarms)
    }

    fn with(
        zone_files: ZoneFiles,
        (state, ring): (PathBuf, RingKind),
        alarms: Arc<AlarmBoard>,
    ) -> std::io::Result<Arc<Self>> {
        let (keeper, jobs) = Keeper::new();
        let switches = Arc::new(Self {
            state,
            ring,
            alarms,
            zone_files,
            rows: Mutex::default(),
            turn: Mutex::default(),
            keeper,
        });
        switches.keeper.start(&switches, jobs)?;
        Ok(switches)
    }

    /// Starts those of a tree. One whose zones cannot be read lets no port see another; one that
    /// cannot run is tried again. There is an alarm of both.
    pub(crate) fn start(&self, tree: &Tree) {
        let zones = self.zone_files.read(tree).into_iter();
        let prepared = zones.map(|(name, zones)| {
            let unread = zones.as_ref().err();
            let unread =
                unread.map(|cause| format!("{cause}; no port of switch {name} sees another"));
            let prepared = PreparedSwitch {
                row: tree.switch[name].clone(),
                zones: zones.unwrap_or_else(|_| Arc::new(Zones::closed())),
                unread,
                restarts: true,
                open: None,
            };
            (name.clone(), prepared)
        });
        self.switch(PreparedSwitches(prepared.collect()));
    }

    /// Makes those that were prepared the ones that there are.
    pub(crate) fn switch(&self, prepared: PreparedSwitches) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(|name| {
            let stays = prepared.0.get(name);
            stays.is_none_or(|prepared| prepared.restarts)
        });
        for (name, prepared) in prepared.0 {
            self.tell_of_zones(&name, prepared.unread.as_deref());
            if prepared.restarts {
                self.begin(&name, prepared);
            } else {
                self.exchange_zones(&name, prepared);
            }
        }
    }

    /// The alarm of zones that cannot be read, as it is with the rows that are served now.
    fn tell_of_zones(&self, name: &str, unread: Option<&str>) {
        match unread {
            Some(detail) => self.alarms.raise(zones_alarm(name, detail.to_owned())),
            None => self.alarms.clear_at(AlarmKind::Zones, &at(name)),
        }
    }

    /// What each of those that run has, by the names of their rows; `None` of one that does not
    /// answer, of which there is an alarm. All are asked at once, and have one deadline.
    pub(crate) fn surveys(&self) -> Vec<(String, Option<SwitchSurvey>)> {
        let running = |(name, held): (&String, &HeldRow)| {
            let running = held.running.as_ref()?;
            Some((name.clone(), Arc::clone(running)))
        };
        let running: Vec<_> = self.rows().iter().filter_map(running).collect();
        let asked = running.into_iter();
        let asked: Vec<_> = asked.map(|(name, one)| (name, one.ask())).collect();
        let answers = asked.into_iter().filter_map(|(name, asked)| {
            let answer = match asked.wait() {
                Ok(survey) => Some(survey),
                Err(NoSurvey::Silent) => None,
                Err(NoSurvey::Ended) => return None,
            };
            self.tell_of_silence(&name, answer.is_none());
            Some((name, answer))
        });
        answers.collect()
    }

    fn tell_of_silence(&self, name: &str, is_silent: bool) {
        if !is_silent {
            return self.alarms.clear_at(AlarmKind::Switch, &at(name));
        }
        let detail = format!("switch {name} has not answered for {SURVEY_PATIENCE:?}");
        let way_out = "see in the log what its thread waits for";
        let alarm = Alarm::new(AlarmKind::Switch, detail).at(at(name));
        self.alarms.raise(alarm.way_out(way_out));
    }

    /// Logs all ports out, and ends.
    pub(crate) fn stop(&self) {
        self.keeper.stop();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(|_| true);
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends those that match, at the same time.
    fn end(&self, matches: impl Fn(&str) -> bool) {
        let ended: Vec<_> = self
            .rows()
            .extract_if(.., |name, _| matches(name))
            .collect();
        thread::scope(|scope| {
            for (name, held) in &ended {
                for kind in [AlarmKind::Switch, AlarmKind::Zones] {
                    self.alarms.clear_at(kind, &at(name));
                }
                let Some(running) = &held.running else {
                    continue;
                };
                scope.spawn(move || {
                    if let Some(cause) = running.stop() {
                        tracing::error!("switch {name}: {cause}");
                    }
                });
            }
        });
    }

    /// Starts one, in its turn.
    fn begin(&self, name: &str, prepared: PreparedSwitch) {
        let PreparedSwitch {
            row, zones, open, ..
        } = prepared;
        let options = self.options(name, &row, &zones);
        let running = self.start_aside(name, move || run(open, &options));
        let held = HeldRow {
            row,
            zones,
            running,
        };
        self.rows().insert(name.to_owned(), held);
    }

    /// Starts it on the thread for that, so that it has its priority.
    fn start_aside(
        &self,
        name: &str,
        start: impl FnOnce() -> Result<RunningSwitch, SwitchError> + Send + 'static,
    ) -> Option<Arc<RunningSwitch>> {
        let started = self.keeper.aside(start);
        let failed = |cause| Err(std::io::Error::other(cause).into());
        self.told(name, started.unwrap_or_else(failed))
    }

    /// A start, as the alarms have it.
    fn told(
        &self,
        name: &str,
        started: Result<RunningSwitch, SwitchError>,
    ) -> Option<Arc<RunningSwitch>> {
        match started {
            Ok(running) => {
                self.alarms.clear_at(AlarmKind::Switch, &at(name));
                for port in running.ports() {
                    let (place, mac, fabric) = (&port.place, &port.mac, &port.fabric_name);
                    tracing::info!("switch {name}: {place} is {mac} of fabric {fabric}");
                }
                Some(Arc::new(running))
            }
            Err(cause) => {
                let alarm = Alarm::new(AlarmKind::Switch, format!("switch {name}: {cause}"));
                let way_out = "it is tried again every 5 s";
                self.alarms.raise(alarm.at(at(name)).way_out(way_out));
                None
            }
        }
    }

    /// Has its zones be active, and waits until they are. Who asks for the rows does not wait.
    fn exchange_zones(&self, name: &str, prepared: PreparedSwitch) {
        let PreparedSwitch { row, zones, .. } = prepared;
        let running = {
            let mut rows = self.rows();
            let Some(held) = rows.get_mut(name) else {
                return;
            };
            let are_same = held.zones == zones;
            (held.row, held.zones) = (row, Arc::clone(&zones));
            held.running.clone().filter(|_| !are_same)
        };
        if let Some(running) = running {
            running.set_zones(zones);
        }
    }

    fn options(&self, name: &str, row: &SwitchRow, zones: &Arc<Zones>) -> SwitchOptions {
        switch_options((name, row), Arc::clone(zones), (&self.state, self.ring))
    }

    /// Starts those that do not run, unless a change is being made.
    fn look(&self) {
        let Ok(_turn) = self.turn.try_lock() else {
            return;
        };
        let is_dead = |held: &HeldRow| held.running.as_ref().is_none_or(|one| one.has_ended());
        let rows = self.rows().clone();
        for (name, held) in rows.into_iter().filter(|(_, held)| is_dead(held)) {
            if let Some(cause) = held.running.as_ref().and_then(|one| one.stop()) {
                tracing::error!("switch {name} has ended: {cause}");
            }
            let options = self.options(&name, &held.row, &held.zones);
            let running = self.told(&name, run(None, &options));
            self.rows().insert(name, HeldRow { running, ..held });
        }
    }
}

/// Has a switch run, whose ports may be open.
fn run(open: Option<OpenSwitch>, options: &SwitchOptions) -> Result<RunningSwitch, SwitchError> {
    let open = open.map_or_else(|| OpenSwitch::open(options), Ok);
    open?.start()
}

/// The row that an alarm is about.
fn at(name: &str) -> String {
    format!("switch.{name}")
}

fn zones_alarm(name: &str, detail: String) -> Alarm {
    let way_out = "mend it, then systemctl reload lunar";
    Alarm::new(AlarmKind::Zones, detail)
        .at(at(name))
        .way_out(way_out)
}

#[cfg(test)]
mod tests;
