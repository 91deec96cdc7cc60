//! What a core keeps of each nexus: its tasks in the order they came, and a task set and unit
//! attentions for each unit that it sees (TST = 001b).

use std::collections::VecDeque;

use super::DeviceServer;
use super::attention::Attentions;
use super::copy::CopyRecord;
use super::flow::DataFlow;
use super::tasks::TaskSlot;
use crate::medium::Lease;
use crate::nexus::{AttentionHistory, Nexus, NexusId, TargetDevice};
use crate::task::Tag;
use crate::unit::UnitId;
use crate::wire::asc;
use crate::wire::lun::Lun;

/// A nexus of this core.
#[derive(Debug)]
pub(super) struct NexusSlot {
    pub(super) nexus: Nexus,
    /// In the order of `nexus.target.luns`.
    pub(super) units: Vec<NexusUnit>,
    /// Every task that has not ended, oldest first. As most end in the order they came, looking
    /// from the front and removing there is cheap, and no hashing is needed.
    pub(super) tasks: VecDeque<NexusTask>,
    pub(super) leaving: NexusLoss,
    pub(super) flow: DataFlow,
    /// The last copies that have ended.
    pub(super) copies: Vec<CopyRecord>,
}

/// A task of a nexus.
#[derive(Clone, Copy, Debug)]
pub(super) struct NexusTask {
    pub(super) tag: Tag,
    pub(super) slot: TaskSlot,
}

/// How far the loss of a nexus got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NexusLoss {
    /// It is there.
    No,
    /// Its tasks are ending.
    Tasks,
    /// This many owners have not yet taken note.
    Owners(usize),
}

/// A unit as one nexus sees it.
#[derive(Debug, Default)]
pub(super) struct NexusUnit {
    pub(super) attentions: Attentions,
    pub(super) set: TaskSet,
}

/// What must be known of a task set to let most commands begin without looking at others.
#[derive(Debug, Default)]
pub(super) struct TaskSet {
    /// Tasks in it.
    pub(super) tasks: u32,
    /// ORDERED and HEAD OF QUEUE tasks in it.
    pub(super) barriers: u32,
    /// Tasks that wait for others of the set.
    pub(super) dormant: u32,
}

impl<L: Lease> DeviceServer<L> {
    /// An I_T nexus came to be. Its units have POWER ON unit attentions for it where SPC asks.
    /// Numbers should be small: a table is as long as the greatest.
    pub fn nexus_up(&mut self, id: NexusId, nexus: Nexus) {
        let at = id.0 as usize;
        if self.nexuses.len() <= at {
            self.nexuses.resize_with(at + 1, || None);
        }
        let mut slot = NexusSlot::new(nexus);
        for view in &mut slot.units {
            view.attentions.establish(asc::POWER_ON_OR_RESET);
        }
        if let Some(entry) = self.nexuses.get_mut(at) {
            *entry = Some(slot);
        }
    }

    /// A nexus came to be whose port had another one before, since power on. Of units where it has
    /// missed nothing but the loss of that one it is told so (SAM-5 §6.3.4), of others as if power
    /// had been off, which says all that they could.
    pub fn nexus_back(&mut self, id: NexusId, nexus: Nexus, heard: &AttentionHistory) {
        self.nexus_up(id, nexus);
        let Some(Some(slot)) = self.nexuses.get_mut(id.0 as usize) else {
            return;
        };
        let luns = slot.nexus.target.luns.iter();
        for ((view, (_, unit)), heard) in slot.units.iter_mut().zip(luns).zip(&heard.0) {
            let unit = self.units.get(unit.0 as usize);
            let missed = unit.is_none_or(|unit| *heard < Some(unit.state.announced));
            if !missed {
                view.attentions = Attentions::default();
                view.attentions.establish(asc::NEXUS_LOSS);
            }
        }
    }

    /// What the port of a nexus has heard, for [`Self::nexus_back`]; to be asked before the nexus
    /// is lost.
    #[must_use]
    pub fn heard(&self, id: NexusId) -> AttentionHistory {
        let Some(slot) = self.nexus(id) else {
            return AttentionHistory::default();
        };
        let views = slot.units.iter().zip(&slot.nexus.target.luns);
        let version = |(view, (_, unit)): (&NexusUnit, &(Lun, UnitId))| {
            let unit = self.unit(*unit).filter(|_| view.attentions.are_heard());
            unit.map(|unit| unit.state.version)
        };
        AttentionHistory(views.map(version).collect())
    }
}

impl NexusSlot {
    pub(super) fn new(nexus: Nexus) -> Self {
        let mut units = Vec::new();
        units.resize_with(nexus.target.luns.len(), NexusUnit::default);
        Self {
            nexus,
            units,
            tasks: VecDeque::new(),
            leaving: NexusLoss::No,
            flow: DataFlow::default(),
            copies: Vec::new(),
        }
    }

    /// Where in `units` the unit behind `lun` stands.
    pub(super) fn position(&self, lun: Lun) -> Option<usize> {
        let luns = &self.nexus.target.luns;
        let index = lun.index()?;
        let lun = Lun::from_index(index);
        // Most targets number their units from 0 without a gap.
        let guess = usize::from(index);
        match luns.get(guess) {
            Some(entry) if entry.0 == lun => Some(guess),
            _ => luns.binary_search_by_key(&lun, |entry| entry.0).ok(),
        }
    }

    /// The units that it sees, each once, however many LUNs one has.
    pub(super) fn distinct_units(&self) -> Vec<UnitId> {
        let luns = self.nexus.target.luns.iter();
        let mut units: Vec<UnitId> = luns.map(|entry| entry.1).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// The task of this tag.
    pub(super) fn task(&self, tag: Tag) -> Option<TaskSlot> {
        let entry = self.tasks.iter().find(|entry| entry.tag == tag)?;
        Some(entry.slot)
    }

    /// Takes a task off the list.
    pub(super) fn remove(&mut self, slot: TaskSlot) {
        match self.tasks.iter().position(|entry| entry.slot == slot) {
            Some(0) => drop(self.tasks.pop_front()),
            Some(at) => drop(self.tasks.remove(at)),
            None => {}
        }
    }

    /// REPORT LUNS tells what REPORTED LUNS DATA HAS CHANGED would (SPC-5 §6.33).
    pub(super) fn forget_luns_changed(&mut self) {
        for view in &mut self.units {
            view.attentions.clear(asc::REPORTED_LUNS_DATA_CHANGED);
        }
    }
}

/// Whether a target device has a unit.
pub(super) fn sees(target: &TargetDevice, unit: UnitId) -> bool {
    target.luns.iter().any(|entry| entry.1 == unit)
}
