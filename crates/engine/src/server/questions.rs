//! What is asked of a server that runs. Whoever asks waits for the cores, at most 5 s, and no core
//! waits for whoever asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ::io::memory::MemoryLimit;
use scsi::statistics::{ClassCount, Latency, OperationClass, SpaceUsage};

use super::Server;
use super::units::ServedUnit;
use crate::mailbox::{CoreMessage, SessionInfo};
use crate::serve::options::ReadyLun;
use crate::survey::Survey;

/// What a unit is and has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitReport {
    /// Its name in the inventory.
    pub name: String,
    /// Its volume cannot be used now.
    pub is_absent: bool,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// Its capacity; 0 where it was never known.
    pub blocks: u64,
    /// What its hosts have done since it is served: reads, writes, and all else.
    pub classes: [ClassCount; OperationClass::ALL.len()],
    /// What it uses of its storage, where that is counted.
    pub usage: Option<SpaceUsage>,
    /// Commands that were sent again to the targets that have its storage, since it was opened;
    /// `None` where that is here.
    pub retries: Option<u64>,
}

/// How long the cores have for an answer.
const ANSWER: Duration = Duration::from_secs(5);

impl Server {
    /// The sessions that there are.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.ask_sessions().unwrap_or_default()
    }

    /// The same; `None` where core 0 has not answered within 5 s.
    #[must_use]
    pub fn ask_sessions(&self) -> Option<Vec<SessionInfo>> {
        self.ask(CoreMessage::Sessions)
    }

    /// For how long the server has run: the clock of [`SessionInfo::since`].
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// What the cores have counted, those that answer within 5 s.
    #[must_use]
    pub fn survey(&self) -> Survey {
        let (reply, answers) = channel();
        self.to_all(|| CoreMessage::Survey(reply.clone()));
        let names = {
            let served = self.served();
            let units = served.units.iter();
            units.map(|(name, unit)| (unit.id, name.clone())).collect()
        };
        let mut survey = Survey {
            violations: self.journal.counts(),
            ..Survey::default()
        };
        drop(reply);
        let until = Instant::now() + ANSWER;
        let next = || answers.recv_timeout(until.saturating_duration_since(Instant::now()));
        for core in (0..self.cores).map_while(|_| next().ok()) {
            survey.add(core, &names);
        }
        survey.times.sort_by_key(|time| time.core);
        let has_answered = |core: &u16| survey.times.iter().any(|time| time.core == *core);
        survey.silent = (0..self.cores).filter(|core| !has_answered(core)).collect();
        survey
    }

    /// Memory that RAM volumes and written blocks may take together, and how much of it they do.
    #[must_use]
    pub fn memory(&self) -> &MemoryLimit {
        &self.config.open.memory
    }

    /// Ends a session, whatever its peer does. Its tasks end at the medium first, so that nothing
    /// of it comes later. Returns whether there was one, and it has ended.
    pub fn drop_session(&self, tsih: u16) -> bool {
        self.ask(|reply| CoreMessage::Drop(tsih, reply)).is_some()
    }

    pub(super) fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> CoreMessage) -> Option<T> {
        let (reply, answer): (_, Receiver<T>) = channel();
        self.to_control(question(reply));
        answer.recv_timeout(ANSWER).ok()
    }

    /// What each unit is and has done, by its name.
    #[must_use]
    pub fn units(&self) -> Vec<UnitReport> {
        let served = self.served();
        let report = |(name, unit): (&String, &Arc<ServedUnit>)| {
            let traits = unit.volume.traits();
            UnitReport {
                name: name.clone(),
                is_absent: unit.absence.is_some(),
                block_size: traits.block_size,
                blocks: traits.blocks,
                classes: OperationClass::ALL.map(|class| unit.statistics.class(class)),
                usage: unit.statistics.usage(),
                retries: unit.leaves.retries(),
            }
        };
        served.units.iter().map(report).collect()
    }

    /// The units whose volumes cannot be used now, by name, and for how long that has been so.
    #[must_use]
    pub fn absences(&self) -> Vec<(String, Duration)> {
        let served = self.served();
        let units = served.units.iter();
        let absent = |(name, unit): (&String, &Arc<ServedUnit>)| {
            Some((name.clone(), unit.absence?.since().elapsed()))
        };
        units.filter_map(absent).collect()
    }

    /// How long the commands of units were at their volumes, by the name of the unit and the class
    /// of the command, as in [`UnitReport::classes`]. Units that were not used yet are left out.
    #[must_use]
    pub fn medium_latencies(&self) -> BTreeMap<String, [Latency; OperationClass::ALL.len()]> {
        let served = self.served();
        let latencies = |(name, unit): (&String, &Arc<ServedUnit>)| {
            let classes = OperationClass::ALL.map(|class| unit.statistics.medium(class));
            (name.clone(), classes)
        };
        let all = served.units.iter().map(latencies);
        let is_used = |class: &Latency| class.count() > 0;
        all.filter(|(_, classes)| classes.iter().any(is_used))
            .collect()
    }

    /// Whether a unit is served, with its volume.
    #[must_use]
    pub fn has_volume(&self, unit: &str) -> bool {
        let served = self.served();
        let unit = served.units.get(unit);
        unit.is_some_and(|unit| unit.absence.is_none())
    }

    /// A unit's LUNs, by the name of the unit: through iSCSI, and through each Fibre Channel
    /// port.
    #[must_use]
    pub fn luns(&self, unit: &str) -> Vec<ReadyLun> {
        self.served().luns(unit)
    }
}
