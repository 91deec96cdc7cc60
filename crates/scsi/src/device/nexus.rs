//! What a core keeps of each nexus: its tasks in the order they came, and a task set and unit
//! attentions for each unit that it sees (TST = 001b).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use slab::Slab;

use super::DeviceServer;
use super::attention::Attentions;
use super::copy::CopyRecord;
use super::flow::DataFlow;
use super::tasks::TaskSlot;
use crate::medium::Lease;
use crate::medium::ReadMemory;
use crate::nexus::{AttentionHistory, Nexus, NexusId, TargetDevice};
use crate::statistics::CoarseLatency;
use crate::task::Tag;
use crate::unit::UnitId;
use crate::wire::asc;
use crate::wire::lun::Lun;

/// A nexus of this core.
#[derive(Debug)]
pub(super) struct NexusSlot {
    pub(super) nexus: Nexus,
    /// In which memory its reads are wanted.
    pub(super) read_memory: ReadMemory,
    /// What it sees, and what it saw until the last task there has ended. A task knows its place
    /// here, which stays the same when LUNs come and go.
    pub(super) units: Slab<NexusUnit>,
    /// Where in `units` each LUN is, sorted by LUN.
    luns: Vec<(Lun, u32)>,
    /// Every task that has not ended, oldest first. As most end in the order they came, looking
    /// from the front and removing there is cheap, and no hashing is needed.
    pub(super) tasks: VecDeque<NexusTask>,
    pub(super) leaving: NexusLoss,
    pub(super) flow: DataFlow,
    pub(super) counts: NexusCounts,
    /// The last copies that have ended.
    pub(super) copies: Vec<CopyRecord>,
}

/// What a nexus has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NexusCounts {
    /// How long commands took that entered a task set and have ended, aborted or not. That they are
    /// counted by it alone costs an I/O no more than a number of them would.
    pub latency: CoarseLatency,
    /// Bytes that they asked to move to the initiator.
    pub bytes_in: u64,
    /// Bytes that they asked to move from the initiator.
    pub bytes_out: u64,
}

impl NexusCounts {
    /// Commands that entered a task set, and have ended.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.latency.operations()
    }
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
#[derive(Debug)]
pub(super) struct NexusUnit {
    pub(super) lun: Lun,
    pub(super) unit: UnitId,
    /// Whether the nexus still sees it.
    pub(super) is_mapped: bool,
    /// Whether the nexus can only read it through this LUN.
    pub(super) is_read_only: bool,
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
        for (_, view) in &mut slot.units {
            view.attentions.establish(asc::POWER_ON_OR_RESET);
        }
        if let Some(entry) = self.nexuses.get_mut(at) {
            *entry = Some(slot);
        }
    }

    /// A nexus came to be whose port had another one before, since power on. Of units where it has
    /// missed nothing but the loss of that one it is told so (SAM-5 §6.3.4), of others as if power
    /// had been off, which says all that they could. It is told, too, when its LUNs have changed.
    pub fn nexus_back(&mut self, id: NexusId, nexus: Nexus, heard: &AttentionHistory) {
        self.nexus_up(id, nexus);
        let Some(Some(slot)) = self.nexuses.get_mut(id.0 as usize) else {
            return;
        };
        let has_changed = slot.nexus.target.luns != heard.target.luns;
        for (_, view) in &mut slot.units {
            let unit = self.units.get(view.unit.index());
            let version = heard.version(view.lun, view.unit);
            let missed = unit.is_none_or(|unit| version < Some(unit.state.announced));
            if !missed {
                view.attentions = Attentions::default();
                view.attentions.establish(asc::NEXUS_LOSS);
            }
            if has_changed {
                view.attentions.establish(asc::REPORTED_LUNS_DATA_CHANGED);
            }
            if view.is_read_only != heard.target.read_only.contains(&view.lun) {
                view.attentions.establish(asc::MODE_PARAMETERS_CHANGED);
            }
        }
    }

    /// The transport of a nexus has the kernel send what is read, from where it lies, and never
    /// looks at it: reads are asked for as [`ReadMemory::Sent`] from now on.
    pub fn nexus_sends_by_kernel(&mut self, id: NexusId) {
        if let Some(slot) = self.nexus_mut(id) {
            slot.read_memory = ReadMemory::Sent;
        }
    }

    /// What a nexus has done; `None` where there is none of this number.
    #[must_use]
    pub fn nexus_counts(&self, id: NexusId) -> Option<NexusCounts> {
        Some(self.nexus(id)?.counts)
    }

    /// Commands that have not ended, by the unit that they were sent to.
    pub fn queue(&self) -> impl Iterator<Item = UnitId> {
        self.tasks.iter().map(|(_, task)| task.unit)
    }

    /// What the port of a nexus has heard, for [`Self::nexus_back`]; to be asked before the nexus
    /// is lost.
    #[must_use]
    pub fn heard(&self, id: NexusId) -> Option<AttentionHistory> {
        let slot = self.nexus(id)?;
        let version = |&(_, at): &(Lun, u32)| {
            let view = slot.units.get(at as usize)?;
            let unit = self.unit(view.unit);
            let unit = unit.filter(|_| view.attentions.are_heard());
            unit.map(|unit| unit.state.version)
        };
        Some(AttentionHistory {
            target: Arc::clone(&slot.nexus.target),
            versions: slot.luns.iter().map(version).collect(),
        })
    }
}

impl NexusSlot {
    pub(super) fn new(nexus: Nexus) -> Self {
        let luns = &nexus.target.luns;
        let mut units = Slab::with_capacity(luns.len());
        let enter = |&(lun, unit)| (lun, units.insert(NexusUnit::new(lun, unit)) as u32);
        let luns = luns.iter().map(enter).collect();
        let mut new = Self {
            nexus,
            read_memory: ReadMemory::Lent,
            units,
            luns,
            tasks: VecDeque::new(),
            leaving: NexusLoss::No,
            flow: DataFlow::default(),
            counts: NexusCounts::default(),
            copies: Vec::new(),
        };
        new.protect();
        new
    }

    /// Goes by the target device for what can only be read. Returns the places where that is news.
    pub(super) fn protect(&mut self) -> Vec<u32> {
        let read_only = &self.nexus.target.read_only;
        let mut changed = Vec::new();
        for &(lun, at) in &self.luns {
            let view = &mut self.units[at as usize];
            let is_read_only = !read_only.is_empty() && read_only.contains(&lun);
            if std::mem::replace(&mut view.is_read_only, is_read_only) != is_read_only {
                changed.push(at);
            }
        }
        changed
    }

    /// Whether no LUN lets the nexus write to a unit.
    pub(super) fn only_reads(&self, unit: UnitId) -> bool {
        let mut views = self.units.iter().map(|(_, view)| view);
        !views.any(|view| view.unit == unit && view.is_mapped && !view.is_read_only)
    }

    /// Where in `units` the unit behind `lun` stands.
    pub(super) fn position(&self, lun: Lun) -> Option<usize> {
        let index = lun.index()?;
        let lun = Lun::from_index(index);
        // Most targets number their units from 0 without a gap.
        match self.luns.get(usize::from(index)) {
            Some(entry) if entry.0 == lun => Some(entry.1 as usize),
            _ => self.search(lun),
        }
    }

    fn search(&self, lun: Lun) -> Option<usize> {
        let found = self.luns.binary_search_by_key(&lun, |entry| entry.0);
        found.ok().map(|found| self.luns[found].1 as usize)
    }

    /// Sees other LUNs from now on. Returns the places of those that it no longer sees, or `None`
    /// if it sees what it saw.
    pub(super) fn remap(&mut self, target: Arc<TargetDevice>) -> Option<Vec<u32>> {
        let is_same = self.nexus.target.luns == target.luns;
        self.nexus.target = target;
        if is_same {
            return None;
        }
        let before = std::mem::take(&mut self.luns);
        let mut lost: BTreeMap<Lun, u32> = before.into_iter().collect();
        for &(lun, unit) in &self.nexus.target.luns {
            let at = match lost.get(&lun) {
                Some(&at) if self.units[at as usize].unit == unit => lost.remove(&lun),
                _ => None,
            };
            let at = at.unwrap_or_else(|| {
                let mut view = NexusUnit::new_here(lun, unit);
                view.is_read_only = self.nexus.target.read_only.contains(&lun);
                self.units.insert(view) as u32
            });
            self.luns.push((lun, at));
        }
        Some(lost.into_values().collect())
    }

    /// A unit is no longer seen; its place is free when its last task has ended.
    pub(super) fn unmap(&mut self, at: u32) {
        self.units[at as usize].is_mapped = false;
        self.vacate(at);
    }

    /// Frees the place of a unit that is no longer seen, unless it still has tasks.
    #[cold]
    pub(super) fn vacate(&mut self, at: u32) {
        let view = &self.units[at as usize];
        if !view.is_mapped && view.set.tasks == 0 {
            self.units.remove(at as usize);
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
        for (_, view) in &mut self.units {
            view.attentions.clear(asc::REPORTED_LUNS_DATA_CHANGED);
        }
    }
}

impl NexusUnit {
    fn new(lun: Lun, unit: UnitId) -> Self {
        Self {
            lun,
            unit,
            is_mapped: true,
            is_read_only: false,
            attentions: Attentions::default(),
            set: TaskSet::default(),
        }
    }

    /// A unit that came to be seen while the nexus was there. Its LUN may have been another's.
    fn new_here(lun: Lun, unit: UnitId) -> Self {
        let mut view = Self::new(lun, unit);
        view.attentions.establish(asc::POWER_ON_OR_RESET);
        view
    }
}

/// Whether a target device has a unit.
pub(super) fn sees(target: &TargetDevice, unit: UnitId) -> bool {
    target.luns.iter().any(|entry| entry.1 == unit)
}
