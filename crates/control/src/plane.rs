//! The control plane of a server that runs: what all of its front ends use.
//!
//! A change may take as long as a volume takes to be opened. Who only looks never waits for it: it
//! reads the files of the store, asks the cores, and takes what is served as a whole.

mod changes;
mod fabric;
mod session;
mod turns;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use engine::mailbox::SessionInfo;
use engine::server::{LongOperationReport, ReservationReport, ServerHandle};
use engine::survey::Survey;
use io::memory::MemoryLimit;
use scsi::statistics::Latency;

use crate::alarm::{Alarm, AlarmBoard, AlarmKind};
use crate::audit::Audit;
use crate::gate::{Author, Gate, GateError, Generation, Store};
use crate::metrics::{OperationStats, VolumeStats};
use crate::serving::ServedTree;
use crate::store::FileStore;
use crate::tree::Tree;
pub use fabric::{Fabric, FabricMember, FabricPort};
pub use session::Session;
pub(crate) use turns::MOST_CHANGING;
pub use turns::TurnInfo;
use turns::Turns;

/// What is served: one generation, whole.
#[derive(Debug)]
pub struct Served {
    /// Its number.
    pub generation: u64,
    /// Its document.
    pub text: Arc<str>,
    /// Its tree.
    pub tree: Arc<Tree>,
}

/// The cores have not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("core 0 has not answered within 5 s")]
pub struct Unanswered;

/// What came of an order to end a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// It has ended.
    Ended,
    /// There is none of this number.
    Unknown,
    /// It has not ended within 5 s. It ends when its commands do.
    Late,
    /// Nobody knows whether there is one.
    Unanswered,
}

/// The control plane.
pub struct Plane {
    turns: Turns,
    /// Locked in a turn alone.
    gate: Mutex<Gate<FileStore, ServedTree>>,
    served: RwLock<Arc<Served>>,
    /// The files of the gate's store, and its engine, for those who only look.
    store: FileStore,
    engine: ServedTree,
    server: ServerHandle,
    alarms: Arc<AlarmBoard>,
    audit: Arc<Audit>,
}

/// How long a change waits for the one before.
const PATIENCE: Duration = Duration::from_secs(20);

impl Plane {
    /// The control plane of a server that serves what is behind the gate.
    #[must_use]
    pub(crate) fn new(
        gate: Gate<FileStore, ServedTree>,
        server: ServerHandle,
        alarms: Arc<AlarmBoard>,
        audit: Arc<Audit>,
    ) -> Self {
        Self {
            turns: Turns::default(),
            served: RwLock::new(Arc::new(served(&gate))),
            store: gate.store().clone(),
            engine: gate.engine().onlooker(),
            gate: Mutex::new(gate),
            server,
            alarms,
            audit,
        }
    }

    /// What is served. It does not wait for a change that is being made.
    #[must_use]
    pub fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something that no tree has, once the audit log has its line.
    ///
    /// # Errors
    ///
    /// The line cannot be written, and nothing was done.
    pub(crate) fn audited<T, E: Display>(
        &self,
        author: &Author,
        what: String,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, GateError> {
        let told = self.audit.act(author, what.clone());
        told.map_err(GateError::Store)?;
        let failed = |error: &E| self.audit.failed(author, what, &error.to_string());
        Ok(work().inspect_err(failed))
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> &Path {
        self.store.config()
    }

    /// Whether the file says something that is not served, or is missing. What is just being
    /// applied is in the history first, and no edit.
    #[must_use]
    pub fn is_edited(&self) -> bool {
        let served = self.served();
        let is_coming = |file: &String| {
            let next = self.store.text(served.generation + 1);
            next.as_ref() == Some(file)
        };
        let file = self.store.file();
        file.is_ok_and(|file| {
            file.as_deref() != Some(&*served.text) && !file.as_ref().is_some_and(is_coming)
        })
    }

    /// The generations that are kept, from the first.
    #[must_use]
    pub fn history(&self) -> Vec<Generation> {
        self.store.generations()
    }

    /// The document of a generation that is kept.
    #[must_use]
    pub fn text_of(&self, generation: u64) -> Option<String> {
        let served = self.served();
        if generation == served.generation {
            return Some(served.text.to_string());
        }
        self.store.text(generation)
    }

    /// What somebody should look at.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        let served = self.served();
        let file = self.store.file();
        let is_as_served = matches!(&file, Ok(Some(text)) if **text == *served.text);
        if is_as_served || !matches!(file, Ok(Some(_))) {
            self.alarms.clear(AlarmKind::Configuration);
        }
        let mut alarms = self.alarms.list();
        let is_told = |kind| alarms.iter().any(|alarm: &Alarm| alarm.kind == kind);
        if !is_as_served && !is_told(AlarmKind::Configuration) {
            alarms.extend(match file {
                Ok(Some(_)) => self.is_edited().then(|| edited(served.generation)),
                Ok(None) => Some(missing_file(served.generation)),
                Err(cause) => Some(unreadable(cause)),
            });
        }
        let missing = self.missing_portals().into_iter();
        alarms.extend(missing.map(|(portal, detail)| {
            Alarm::new(AlarmKind::Portal, detail)
                .at(portal)
                .way_out("it is tried again every few seconds")
        }));
        let absent = self.absent().into_iter();
        alarms.extend(absent.map(|(volume, _)| absent_alarm(&volume)));
        alarms
    }

    /// Portals on which not all listens that should, with what does not, and why.
    #[must_use]
    pub fn missing_portals(&self) -> Vec<(String, String)> {
        let missing = self.server.missing_portals().into_iter();
        missing
            .map(|(portal, detail)| (portal.to_string(), detail))
            .collect()
    }

    /// The change that is made now, and those that wait for it.
    #[must_use]
    pub fn turns(&self) -> Vec<TurnInfo> {
        self.turns.all()
    }

    /// Volumes that cannot be used, and for how long.
    #[must_use]
    pub fn absent(&self) -> Vec<(String, Duration)> {
        self.server.absences()
    }

    /// What hosts format or sanitize.
    ///
    /// # Errors
    ///
    /// The cores do not answer.
    pub fn long_operations(&self) -> Result<Vec<LongOperationReport>, Unanswered> {
        self.answered(self.server.long_operations())
    }

    /// The volumes that are reserved, or may be.
    ///
    /// # Errors
    ///
    /// The cores do not answer.
    pub fn reservations(&self) -> Result<Vec<ReservationReport>, Unanswered> {
        self.answered(self.server.reservations())
    }

    fn gate(&self) -> MutexGuard<'_, Gate<FileStore, ServedTree>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fabrics of switches that run and answer, by the names of their rows.
    #[must_use]
    pub fn fabrics(&self) -> Vec<Fabric> {
        let told = self.fabrics_told().into_iter();
        told.filter_map(Result::ok).collect()
    }

    /// The same; of a switch that does not answer, its name.
    pub(crate) fn fabrics_told(&self) -> Vec<Result<Fabric, String>> {
        let surveys = self.engine.switches().surveys().into_iter();
        let told = surveys.map(|(name, survey)| match survey {
            Some(survey) => Ok(Fabric::of((name, survey))),
            None => Err(name),
        });
        told.collect()
    }

    /// What each volume is and has done, by name.
    #[must_use]
    pub fn stats(&self) -> Vec<VolumeStats> {
        self.server.units().into_iter().map(Into::into).collect()
    }

    /// How long commands were at their volumes, by the name of the volume: reads, writes, and all
    /// else.
    #[must_use]
    pub(crate) fn medium_stats(&self) -> BTreeMap<String, [OperationStats; 3]> {
        let latencies = self.server.medium_latencies().into_iter();
        let stats = |classes: [Latency; 3]| classes.each_ref().map(Into::into);
        latencies
            .map(|(name, classes)| (name, stats(classes)))
            .collect()
    }

    /// What the cores have counted beside volumes.
    #[must_use]
    pub fn survey(&self) -> Survey {
        self.server.survey()
    }

    /// What volumes have of memory.
    #[must_use]
    pub fn memory(&self) -> &MemoryLimit {
        self.server.memory()
    }

    /// The sessions that there are, and logins by Fibre Channel, in the order of their targets and
    /// initiators.
    ///
    /// # Errors
    ///
    /// The core that knows them has not answered within 5 s, of which there is an alarm.
    pub fn sessions(&self) -> Result<Vec<Session>, Unanswered> {
        self.sessions_of(&self.survey())
    }

    /// The same, with what has been counted of them.
    ///
    /// # Errors
    ///
    /// As for [`Self::sessions`].
    pub fn sessions_of(&self, survey: &Survey) -> Result<Vec<Session>, Unanswered> {
        let told = self.told_sessions()?;
        let uptime = self.server.uptime();
        let counts = |info: &SessionInfo| survey.sessions.get(&info.tsih).copied();
        let session = |info: SessionInfo| {
            let counts = counts(&info).unwrap_or_default();
            Session::of(info, counts, uptime)
        };
        let by_fc = survey.fc_logins.iter().cloned();
        let by_fc = by_fc.map(|login| Session::of_fc(login, uptime));
        let sessions = told.into_iter().map(session);
        let mut sessions: Vec<_> = sessions.chain(by_fc).collect();
        sessions.sort_by(|one, other| {
            (&one.target, &one.initiator, one.id).cmp(&(&other.target, &other.initiator, other.id))
        });
        Ok(sessions)
    }

    fn told_sessions(&self) -> Result<Vec<SessionInfo>, Unanswered> {
        self.answered(self.server.ask_sessions())
    }

    /// What the cores have told, if they have.
    fn answered<T>(&self, told: Option<T>) -> Result<T, Unanswered> {
        // The first core knows the sessions, and which units there are.
        self.core_answered(0, told.is_some());
        told.ok_or(Unanswered)
    }

    fn core_answered(&self, core: u16, has_answered: bool) {
        let at = format!("core {core}");
        if has_answered {
            self.alarms.clear_at(AlarmKind::Core, &at);
            return;
        }
        let alarm = Alarm::new(
            AlarmKind::Core,
            format!("core {core} has not answered within 5 s"),
        );
        self.alarms.raise(alarm.at(at).way_out(
            "read the log; if it stays so, restart the daemon: hosts are not served either",
        ));
    }

    /// How many sessions with targets and logins by Fibre Channel there are, if every core answers
    /// within 5 s. Each is woken once for it; there is an alarm of each that does not answer.
    #[must_use]
    pub fn pulse(&self) -> Option<usize> {
        let survey = self.survey();
        for time in &survey.times {
            self.core_answered(time.core, true);
        }
        for core in &survey.silent {
            self.core_answered(*core, false);
        }
        let is_whole = survey.silent.is_empty();
        is_whole.then(|| survey.sessions.len() + survey.fc_logins.len())
    }

    /// Ends a session, whatever its peer does.
    ///
    /// # Errors
    ///
    /// The audit log cannot be written; the session goes on.
    pub fn drop_session(&self, id: u16, author: &Author) -> Result<SessionEnd, GateError> {
        let Ok(sessions) = self.told_sessions() else {
            return Ok(SessionEnd::Unanswered);
        };
        if !sessions.iter().any(|session| session.tsih == id) {
            return Ok(SessionEnd::Unknown);
        }
        let end = || {
            if self.server.drop_session(id) {
                Ok(SessionEnd::Ended)
            } else {
                Err("it has not ended within 5 s")
            }
        };
        let ended = self.audited(author, format!("end session {id}"), end)?;
        Ok(ended.unwrap_or(SessionEnd::Late))
    }
}

fn edited(generation: u64) -> Alarm {
    let detail = "the configuration file was edited and not applied";
    Alarm::new(AlarmKind::Edited, detail).way_out(format!(
        "lunar plan shows what has changed, lunar apply takes it, lunar rollback {generation} \
         drops it"
    ))
}

/// What is at its place is not read as a file: a link that leads nowhere, or a folder.
fn unreadable(cause: String) -> Alarm {
    let way_out = "make it a file that can be read, or remove it: the next change writes another";
    Alarm::new(AlarmKind::Edited, cause).way_out(way_out)
}

/// There is no file.
fn missing_file(generation: u64) -> Alarm {
    let way_out = "writes what is served, and any other change writes what is served then";
    Alarm::new(AlarmKind::Edited, "the configuration file is missing")
        .way_out(format!("lunar rollback {generation} {way_out}"))
}

fn absent_alarm(volume: &str) -> Alarm {
    let detail = "what holds its blocks cannot be opened, and hosts are told NOT READY";
    Alarm::new(AlarmKind::Absent, format!("volume {volume}: {detail}"))
        .at(format!("volume.{volume}"))
        .way_out("bring it back: it is tried again every 5 s")
}

fn served(gate: &Gate<FileStore, ServedTree>) -> Served {
    let (text, tree) = gate.shared();
    Served {
        generation: gate.generation(),
        text,
        tree,
    }
}
