//! Units and LUNs come and go while the server runs.
//!
//! Every core is told alike, in this order, and core 0 waits for all of them between the steps:
//!
//! | step | here | acknowledged when |
//! |---|---|---|
//! | a unit comes | [`DeviceServer::attach`] | at once |
//! | LUN maps change | [`DeviceServer::remap`] for each nexus | at once; what is on LUNs that are gone is being cut off |
//! | units go | [`DeviceServer::detach`], [`DeviceServer::fence`] | all that was cut off has ended at the medium; volumes can be closed |
//!
//! Tasks that are cut off end with TASK ABORTED, whatever TAS says: a host that tries again is told
//! then that there is no such unit, instead of waiting for what never comes.

use std::sync::Arc;

use super::ask::RequestOrigin;
use super::publish::UnitSlot;
use super::tasks::{TaskEnd, TaskSlot};
use super::{DeviceOutput, DeviceServer, TaskJob};
use crate::medium::Lease;
use crate::nexus::{NexusId, TargetDevice};
use crate::owner::UnitChange;
use crate::unit::{UnitId, UnitState};
use crate::wire::asc;
use crate::wire::lun::Lun;

impl<L: Lease> DeviceServer<L> {
    /// A unit comes, in a slot that is free or the next new one. No nexus sees it yet.
    pub fn attach(&mut self, unit: UnitId, state: &Arc<UnitState>) {
        while self.units.len() <= unit.index() {
            let slot = UnitId::first(self.units.len() as u32);
            self.units.push(UnitSlot::new(slot, Arc::clone(state)));
        }
        self.units[unit.index()] = UnitSlot::new(unit, Arc::clone(state));
    }

    /// A unit goes, which no nexus sees any more. Whatever concerns it is cut off, also what had
    /// been answered and went on in the background.
    pub fn detach(&mut self, unit: UnitId) {
        for slot in self.slots(|task| task.concerns(unit)) {
            self.cut_off(slot);
        }
        self.wake_waiters();
    }

    /// A nexus sees other LUNs from now on: where it keeps any, it is told so by REPORTED LUNS DATA
    /// HAS CHANGED (SPC-5 §5.14, SAM-5 §5.14); units that are new to it tell POWER ON. Writes that
    /// have begun on a LUN that can only be read from now on go on.
    pub fn remap(&mut self, id: NexusId, target: Arc<TargetDevice>) {
        let Some(nexus) = self.nexus_mut(id) else {
            return;
        };
        let before = Arc::clone(&nexus.nexus.target);
        let lost = nexus.remap(target);
        self.tell_protection_changed(id);
        let Some(lost) = lost else { return };
        self.tell_luns_changed(id);
        self.cut_off_unmapped(id, &lost, &before);
        self.wake_waiters();
    }

    /// [`DeviceOutput::Fenced`] follows with this number when what was cut off before has ended at
    /// the medium.
    pub fn fence(&mut self, number: u64) {
        self.fences.push(number);
        self.progressed = true;
        self.wake_waiters();
    }

    pub(super) fn conclude_fences(&mut self) {
        if self.cut_off == 0 {
            let fenced = self.fences.drain(..).map(DeviceOutput::Fenced);
            self.outputs.extend(fenced);
        }
    }

    fn tell_luns_changed(&mut self, id: NexusId) {
        let Some(Some(nexus)) = self.nexuses.get_mut(id.0 as usize) else {
            return;
        };
        let code = asc::REPORTED_LUNS_DATA_CHANGED;
        for (_, view) in &mut nexus.units {
            if view.attentions.establish(code) {
                self.outputs.push_back(DeviceOutput::Attention {
                    nexus: id,
                    lun: view.lun,
                    code,
                });
            }
        }
    }

    /// WP of the mode parameter header has changed for a nexus (SBC-4 §6.5.1).
    fn tell_protection_changed(&mut self, id: NexusId) {
        let Some(nexus) = self.nexus_mut(id) else {
            return;
        };
        let code = asc::MODE_PARAMETERS_CHANGED;
        let mut told = Vec::new();
        for at in nexus.protect() {
            let view = &mut nexus.units[at as usize];
            if view.attentions.establish(code) {
                told.push(view.lun);
            }
        }
        let attention = |lun| DeviceOutput::Attention {
            nexus: id,
            lun,
            code,
        };
        self.outputs.extend(told.into_iter().map(attention));
    }

    /// Ends what a nexus has on units that it no longer sees: its tasks, copies from or to them,
    /// and what their owners keep for as long as it is there.
    fn cut_off_unmapped(&mut self, id: NexusId, lost: &[u32], before: &TargetDevice) {
        let Some(nexus) = self.nexus(id) else { return };
        let seen = nexus.distinct_units();
        let all = before.luns.iter().map(|entry: &(Lun, UnitId)| entry.1);
        let mut unseen: Vec<_> = all
            .filter(|unit| seen.binary_search(unit).is_err())
            .collect();
        unseen.sort_unstable();
        unseen.dedup();
        let met = self.slots(|task| {
            let copies = || unseen.iter().any(|unit| task.concerns(*unit));
            task.nexus == id && !task.detached && (lost.contains(&task.at) || copies())
        });
        for slot in met {
            match &self.tasks[slot as usize].job {
                // A SANITIZE goes on: it is the unit's.
                TaskJob::Long(long) if long.outlives_task() => {
                    self.abort(slot, TaskEnd::TaskAborted);
                }
                _ => self.cut_off(slot),
            }
        }
        if let Some(nexus) = self.nexus_mut(id) {
            lost.iter().for_each(|at| nexus.unmap(*at));
        }
        for unit in unseen {
            self.ask(unit, id, RequestOrigin::NotAwaited, UnitChange::NexusLoss);
        }
    }

    fn cut_off(&mut self, slot: TaskSlot) {
        // Others may have ended along with one before.
        let Some(task) = self.tasks.get_mut(slot as usize) else {
            return;
        };
        self.cut_off += usize::from(!std::mem::replace(&mut task.is_cut_off, true));
        self.end_by_force(slot, TaskEnd::TaskAborted);
    }
}
