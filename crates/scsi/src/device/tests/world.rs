//! Some cores, their nexuses, a unit pair, and everything in between delivered in any order. What
//! has locked blocks is alone there, or it panics.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::rig::{BLOCK, identity, traits};
use crate::device::{DeviceOutput, DeviceServer, OpId};
use crate::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning,
};
use crate::nexus::NexusId;
use crate::owner::{Input, OwnerOutput, UnitOwner};
use crate::task::{Attribute, Command, Function, Tag};
use crate::unit::{CoreId, UnitId, UnitState};
use crate::wire::lun::Lun;

pub(super) const CORES: usize = 3;
pub(super) const NEXUSES: u32 = 2;
const UNITS: u32 = 2;

/// A lease that is counted.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    lease: HeapLease,
    _token: Rc<()>,
}

thread_local! {
    static TOKEN: Rc<()> = Rc::new(());
}

/// Leases that somebody holds.
pub(super) fn leases() -> usize {
    TOKEN.with(|token| Rc::strong_count(token) - 1)
}

impl Counted {
    fn new(lease: HeapLease) -> Self {
        Self {
            lease,
            _token: TOKEN.with(Rc::clone),
        }
    }
}

impl Lease for Counted {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        Self::new(HeapLease::from_bytes(bytes))
    }

    fn len(&self) -> usize {
        self.lease.len()
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        Self::new(self.lease.slice(offset, len))
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) {
        self.lease.copy_in(offset, bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.lease.copy_out(offset, bytes);
    }

    fn difference(&self, other: &Self) -> Option<usize> {
        self.lease.difference(&other.lease)
    }

    fn or_with(&mut self, other: &Self) {
        self.lease.or_with(&other.lease);
    }
}

/// What is on its way from an owner to a core.
#[derive(Debug)]
enum Mail {
    Publication(UnitId, crate::owner::Publication),
    Reply(UnitId, u64, Result<(), crate::task::CommandFailure>),
    Recalled(UnitId),
}

/// What is left of a command, or of a function, to happen.
type Name = (usize, NexusId, u32);

pub(super) struct World {
    cores: Vec<DeviceServer<Counted>>,
    owners: Vec<UnitOwner>,
    to_owners: Vec<VecDeque<(UnitId, Input)>>,
    to_cores: Vec<VecDeque<Mail>>,
    medium: Vec<(usize, OpId, UnitId, MediumOp<Counted>)>,
    data: Vec<(usize, NexusId, Tag, u32, Counted)>,
    /// Bytes of Data-In that a nexus has not taken.
    untaken: BTreeMap<(usize, NexusId), usize>,
    /// Commands that have not ended.
    pub(super) open: BTreeMap<Name, ()>,
    /// Functions that have not ended.
    pub(super) functions: BTreeMap<Name, ()>,
    /// Which nexuses are there.
    up: Vec<Vec<bool>>,
    /// Which are being lost.
    leaving: Vec<Vec<bool>>,
    count: u32,
}

impl World {
    pub(super) fn new() -> Self {
        let states: Vec<_> = (0..UNITS)
            .map(|unit| UnitState::new(identity(unit), traits()))
            .collect();
        let shared: Vec<_> = states.iter().cloned().map(Arc::new).collect();
        let core = |core| DeviceServer::new(CoreId(core as u16), shared.clone());
        let mut world = Self {
            cores: (0..CORES).map(core).collect(),
            owners: states
                .into_iter()
                .map(|state| UnitOwner::new(state, CORES as u16))
                .collect(),
            to_owners: (0..CORES).map(|_| VecDeque::new()).collect(),
            to_cores: (0..CORES).map(|_| VecDeque::new()).collect(),
            medium: Vec::new(),
            data: Vec::new(),
            untaken: BTreeMap::new(),
            open: BTreeMap::new(),
            functions: BTreeMap::new(),
            up: vec![vec![false; NEXUSES as usize]; CORES],
            leaving: vec![vec![false; NEXUSES as usize]; CORES],
            count: 0,
        };
        // None is on the last core yet.
        for core in 0..CORES - 1 {
            for nexus in 0..NEXUSES {
                world.log_in((core, nexus));
            }
        }
        world
    }

    /// A nexus comes, if it is neither there nor being lost.
    pub(super) fn log_in(&mut self, (core, nexus): (usize, u32)) {
        if self.up[core][nexus as usize] || self.leaving[core][nexus as usize] {
            return;
        }
        let host = NexusId(core as u32 * NEXUSES + nexus);
        self.cores[core].nexus_up(NexusId(nexus), super::rig::nexus(host, UNITS));
        self.up[core][nexus as usize] = true;
    }

    pub(super) fn execute(
        &mut self,
        (core, nexus): (usize, u32),
        lun: u16,
        cdb: &[u8],
        attribute: Attribute,
        out: u32,
    ) {
        if !self.up[core][nexus as usize] {
            return;
        }
        self.count += 1;
        let mut padded = [0; 32];
        padded[..cdb.len()].copy_from_slice(cdb);
        self.open.insert((core, NexusId(nexus), self.count), ());
        let command = Command {
            nexus: NexusId(nexus),
            tag: Tag(self.count),
            lun: Lun::from_index(lun),
            cdb: padded,
            cdb_len: 16,
            attribute,
            priority: 0,
            expected_in: 1 << 24,
            expected_out: out,
        };
        self.cores[core].execute(command);
        self.drain(core);
    }

    pub(super) fn manage(&mut self, (core, nexus): (usize, u32), function: Function) {
        if !self.up[core][nexus as usize] {
            return;
        }
        self.count += 1;
        self.functions
            .insert((core, NexusId(nexus), self.count), ());
        let lun = Lun::from_index(0);
        self.cores[core].manage(NexusId(nexus), self.count, lun, function);
        self.drain(core);
    }

    /// ABORT TASK of an open command of the nexus, if it has one.
    pub(super) fn abort_one(&mut self, (core, nexus): (usize, u32), which: usize) {
        let of_nexus = |name: &&Name| name.0 == core && name.1 == NexusId(nexus);
        let open: Vec<Name> = self.open.keys().filter(of_nexus).copied().collect();
        if let Some(name) = open.get(which % open.len().max(1)) {
            self.manage((core, nexus), Function::AbortTask(Tag(name.2)));
        }
    }

    pub(super) fn lose(&mut self, (core, nexus): (usize, u32)) {
        if std::mem::replace(&mut self.up[core][nexus as usize], false) {
            self.leaving[core][nexus as usize] = true;
            self.functions
                .retain(|name, ()| name.0 != core || name.1 != NexusId(nexus));
            self.cores[core].nexus_lost(NexusId(nexus));
            self.drain(core);
        }
    }

    fn drain(&mut self, core: usize) {
        while let Some(output) = self.cores[core].poll() {
            self.carry_out(core, output);
        }
    }

    fn carry_out(&mut self, core: usize, output: DeviceOutput<Counted>) {
        match output {
            DeviceOutput::Medium { id, unit, op } => {
                self.medium.push((core, id, unit, op));
                self.check_locks();
            }
            DeviceOutput::SendDataIn {
                nexus, tag, data, ..
            } => {
                assert!(
                    self.open.contains_key(&(core, nexus, tag.0)),
                    "data of an ended command"
                );
                *self.untaken.entry((core, nexus)).or_default() += data.len();
            }
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => {
                self.data.push((core, nexus, tag, offset, into));
            }
            DeviceOutput::Complete { nexus, tag, .. } | DeviceOutput::Aborted { nexus, tag } => {
                let open = self.open.remove(&(core, nexus, tag.0));
                assert!(open.is_some(), "{tag:?} ended twice");
                // What was lent to receive into is let go.
                self.data
                    .retain(|data| (data.0, data.1, data.2) != (core, nexus, tag));
            }
            DeviceOutput::Managed { nexus, id, .. } => {
                let open = self.functions.remove(&(core, nexus, id));
                assert!(open.is_some(), "function {id} ended twice");
            }
            DeviceOutput::NexusGone(nexus) => {
                let left = self
                    .open
                    .keys()
                    .any(|name| name.0 == core && name.1 == nexus);
                assert!(!left, "a nexus is gone before its commands are");
                self.untaken.remove(&(core, nexus));
                self.leaving[core][nexus.0 as usize] = false;
            }
            DeviceOutput::Attention { .. }
            | DeviceOutput::Cancel { .. }
            | DeviceOutput::Fenced(_) => {}
            DeviceOutput::Ask { unit, request } => {
                self.to_owners[core].push_back((unit, Input::Request(request)));
            }
            DeviceOutput::Recall { unit } => self.to_cores[core].push_back(Mail::Recalled(unit)),
            DeviceOutput::Acknowledge { unit, version } => {
                let core_id = CoreId(core as u16);
                let input = Input::Acknowledged {
                    core: core_id,
                    version,
                };
                self.to_owners[core].push_back((unit, input));
            }
        }
    }

    /// The medium answers one operation.
    pub(super) fn answer(&mut self, which: usize, error: Option<MediumError>) {
        if self.medium.is_empty() {
            return;
        }
        let (core, id, _, op) = self.medium.swap_remove(which % self.medium.len());
        let result = error.map_or_else(|| outcome(&op), Err);
        drop(op);
        self.cores[core].medium_done(id, result);
        self.drain(core);
    }

    /// An initiator takes what it was sent.
    pub(super) fn take_data(&mut self, (core, nexus): (usize, u32)) {
        if self.untaken.remove(&(core, NexusId(nexus))).is_some() {
            self.cores[core].data_in_queued(NexusId(nexus), 0);
            self.drain(core);
        }
    }

    /// An initiator sends what was asked for.
    pub(super) fn send_data(&mut self, which: usize) {
        if self.data.is_empty() {
            return;
        }
        let (core, nexus, tag, offset, into) = self.data.swap_remove(which % self.data.len());
        self.cores[core].data_out(nexus, tag, offset, into);
        self.drain(core);
    }

    /// A message gets from a core to an owner.
    pub(super) fn tell_owner(&mut self, core: usize) {
        let Some((unit, input)) = self.to_owners[core].pop_front() else {
            return;
        };
        let owner = &mut self.owners[unit.index()];
        owner.handle(input);
        while let Some(output) = owner.poll() {
            match output {
                OwnerOutput::Publish { to, publication } => {
                    for core in to {
                        let mail = &mut self.to_cores[usize::from(core.0)];
                        mail.push_back(Mail::Publication(unit, publication.clone()));
                    }
                }
                OwnerOutput::Reply { core, id, result } => {
                    self.to_cores[usize::from(core.0)].push_back(Mail::Reply(unit, id, result));
                }
                OwnerOutput::Persist(_) => owner.handle(Input::Persisted(true)),
            }
        }
    }

    /// A message gets from an owner to a core.
    pub(super) fn tell_core(&mut self, core: usize) {
        match self.to_cores[core].pop_front() {
            Some(Mail::Publication(unit, publication)) => {
                self.cores[core].publish(unit, publication);
            }
            Some(Mail::Reply(unit, id, result)) => self.cores[core].replied(unit, id, result),
            Some(Mail::Recalled(unit)) => self.cores[core].recalled(unit),
            None => return,
        }
        self.check_locks();
        self.drain(core);
    }

    /// Whoever was granted a lock has the blocks for itself, on all cores.
    fn check_locks(&self) {
        for (holder, core) in self.cores.iter().enumerate() {
            let locks = core.tasks.iter();
            for (slot, task) in locks.filter(|(_, task)| task.lock.is_some()) {
                if task.ask == task.lock {
                    continue;
                }
                let others = self.medium.iter().filter(|(core, id, unit, _)| {
                    *unit == task.unit && (*core, id.parts().0) != (holder, slot as u32)
                });
                let blocks = others.filter_map(|(core, _, _, op)| Some((core, blocks(op)?)));
                for (other, at) in blocks {
                    let meets = at.overlaps(task.extent);
                    assert!(!meets, "core {other} is at {at:?}, core {holder}'s");
                }
            }
        }
    }

    /// Everything goes its way until nothing is on its way any more.
    pub(super) fn come_to_rest(&mut self) {
        for _ in 0..100_000 {
            let mail = self.to_owners.iter().any(|mail| !mail.is_empty())
                || self.to_cores.iter().any(|mail| !mail.is_empty());
            if self.medium.is_empty() && self.data.is_empty() && self.untaken.is_empty() && !mail {
                return;
            }
            self.answer(0, None);
            self.send_data(0);
            for core in 0..CORES {
                (0..NEXUSES).for_each(|nexus| self.take_data((core, nexus)));
                self.tell_owner(core);
                self.tell_core(core);
            }
        }
        panic!("it goes on for ever");
    }

    /// Nothing is left of anything.
    pub(super) fn check_nothing_is_left(&self) {
        assert_eq!(self.open.keys().next(), None, "a command that never ended");
        assert_eq!(
            self.functions.keys().next(),
            None,
            "a function that never ended"
        );
        for core in &self.cores {
            assert!(core.tasks.is_empty(), "{:?}", core.tasks);
            assert!(core.asks.is_empty());
            let mut nexuses = core.nexuses.iter().flatten();
            assert!(nexuses.all(|nexus| nexus.flow.is_idle()));
            for unit in &core.units {
                assert!(unit.pending.is_empty(), "never acknowledged");
                assert_eq!((unit.blocked, unit.recalls), (0, 0));
            }
        }
        for owner in &self.owners {
            assert!(owner.state().locks.is_empty(), "{:?}", owner.state().locks);
        }
        assert_eq!(leases(), 0, "leases that somebody keeps");
    }
}

/// The blocks that an operation reads or writes.
const fn blocks(op: &MediumOp<Counted>) -> Option<Extent> {
    match op {
        MediumOp::Read { extent, .. }
        | MediumOp::PrepareWrite { extent }
        | MediumOp::Write { extent, .. }
        | MediumOp::WriteSame { extent, .. }
        | MediumOp::Unmap { extent, .. }
        | MediumOp::Sanitize { extent, .. } => Some(*extent),
        _ => None,
    }
}

fn outcome(op: &MediumOp<Counted>) -> MediumResult<Counted> {
    let lease = |bytes: u64| {
        Ok(MediumOutcome::Lease(Counted::from_bytes(vec![
            0;
            bytes
                as usize
        ])))
    };
    match op {
        MediumOp::Read { extent, .. } | MediumOp::PrepareWrite { extent } => {
            lease(extent.blocks * BLOCK as u64)
        }
        MediumOp::Buffer { bytes } => lease(u64::from(*bytes)),
        MediumOp::Status { extent } => Ok(MediumOutcome::Provisioning {
            blocks: extent.blocks.div_ceil(2),
            state: match extent.blocks % 2 {
                0 => Provisioning::Mapped,
                _ => Provisioning::Deallocated,
            },
        }),
        _ => Ok(MediumOutcome::Done),
    }
}
