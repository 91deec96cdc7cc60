//! A device server with everything around it: initiators that answer at once, a medium that
//! answers at once or when told to, and a log of what the initiators saw.

mod commands;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(super) use self::commands::{cdb10, cdb16, pattern, swap_cdb};
use crate::device::{DeviceOutput, DeviceServer, OpId};
use crate::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Traits,
};
use crate::nexus::{Nexus, NexusId, NexusIdentity, TargetDevice, TargetPort};
use crate::owner::{Input, OwnerOutput, OwnerRequest, UnitChange, UnitOwner};
use crate::task::{Attribute, Completed, FunctionResult, Tag};
use crate::testing::unit;
use crate::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use crate::wire::lun::Lun;

pub(super) const BLOCK: usize = 512;

/// How a story's command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Completed(Completed),
    Aborted,
}

pub(super) struct Rig {
    pub(super) server: DeviceServer<HeapLease>,
    pub(super) disks: Vec<Vec<u8>>,
    pub(super) owners: Vec<UnitOwner>,
    /// Operations that the medium has not answered.
    pub(super) held: VecDeque<(OpId, UnitId, MediumOp<HeapLease>)>,
    pub(super) cancelled: Vec<(UnitId, std::ops::Range<u64>)>,
    /// Whether the medium waits to be told to answer.
    pub(super) hold: bool,
    /// Whether what goes to the owners waits.
    pub(super) hold_owner: bool,
    pub(super) mail: VecDeque<(UnitId, Input)>,
    /// Whether what is lent for reading stays away when it is called back.
    pub(super) hold_recalls: bool,
    pub(super) recalls: Vec<UnitId>,
    /// Whether the initiators wait to be told to send data.
    pub(super) hold_data: bool,
    pub(super) asked_for: VecDeque<(NexusId, Tag, u32, HeapLease)>,
    pub(super) data_out: BTreeMap<(NexusId, Tag), Vec<u8>>,
    pub(super) data_in: BTreeMap<(NexusId, Tag), Vec<u8>>,
    /// A nexus that takes nothing of what it is sent, and how much of that waits.
    pub(super) deaf: Option<NexusId>,
    pub(super) untaken: usize,
    pub(super) ended: BTreeMap<(NexusId, Tag), End>,
    pub(super) managed: Vec<(NexusId, u32, FunctionResult)>,
    pub(super) gone: Vec<NexusId>,
    pub(super) attentions: Vec<(NexusId, u16)>,
    pub(super) fenced: Vec<u64>,
    /// What happened to commands, in order.
    pub(super) order: Vec<Tag>,
    pub(super) fail: Option<MediumError>,
    tag: u32,
}

/// Those of [`unit`], with 4 MiB.
pub(super) fn traits() -> Traits {
    Traits {
        blocks: 8192,
        ..unit().traits
    }
}

/// A unit whose medium cannot be removed.
pub(super) fn identity(number: u32) -> UnitIdentity {
    UnitIdentity {
        serial: format!("{number}"),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, number as u8],
        removable: false,
        ..UnitIdentity::clone(&unit().identity)
    }
}

/// A target device with so many units, by their numbers.
pub(super) fn target(units: u32) -> TargetDevice {
    let luns = 0..units;
    TargetDevice {
        designators: Vec::new(),
        ports: vec![TargetPort {
            relative_id: 1,
            designators: Vec::new(),
        }],
        luns: luns
            .map(|unit| (Lun::from_index(unit as u16), UnitId::first(unit)))
            .collect(),
        read_only: BTreeSet::new(),
        protocol: 5,
        versions: vec![0x0960],
    }
}

pub(super) fn nexus(id: NexusId, units: u32) -> Nexus {
    let initiator = vec![0x45, 0, 0, 4, b'i', b'0' + id.0 as u8, 0, 0].into_boxed_slice();
    Nexus {
        identity: Arc::new(NexusIdentity { initiator, port: 1 }),
        target: Arc::new(target(units)),
    }
}

impl Rig {
    /// One nexus, one unit, no unit attention pending.
    pub(super) fn new() -> Self {
        Self::hosts(1)
    }

    pub(super) fn with(nexuses: u32, units: u32, traits: &Traits) -> Self {
        let states = (0..units).map(|unit| UnitState::new(identity(unit), traits.clone()));
        Self::of(nexuses, states.collect())
    }

    /// As [`Self::new`], with a unit that differs from [`traits`].
    pub(super) fn able(change: impl FnOnce(&mut Traits)) -> Self {
        let mut traits = traits();
        change(&mut traits);
        Self::with(1, 1, &traits)
    }

    /// So many nexuses, one unit.
    pub(super) fn hosts(nexuses: u32) -> Self {
        Self::with(nexuses, 1, &traits())
    }

    /// A unit with a medium that can be removed, and two nexuses.
    pub(super) fn removable() -> Self {
        let identity = UnitIdentity {
            removable: true,
            ..identity(0)
        };
        Self::of(2, vec![UnitState::new(identity, traits())])
    }

    fn of(nexuses: u32, states: Vec<UnitState>) -> Self {
        let units = states.len() as u32;
        let bytes = |state: &UnitState| state.traits.blocks as usize * BLOCK;
        let shared = states.iter().cloned().map(Arc::new).collect();
        let mut rig = Self {
            server: DeviceServer::new(CoreId(0), shared),
            disks: states.iter().map(|state| vec![0; bytes(state)]).collect(),
            owners: states
                .into_iter()
                .map(|state| UnitOwner::new(state, 1))
                .collect(),
            held: VecDeque::new(),
            cancelled: Vec::new(),
            hold: false,
            hold_owner: false,
            mail: VecDeque::new(),
            hold_recalls: false,
            recalls: Vec::new(),
            hold_data: false,
            asked_for: VecDeque::new(),
            data_out: BTreeMap::new(),
            data_in: BTreeMap::new(),
            deaf: None,
            untaken: 0,
            ended: BTreeMap::new(),
            managed: Vec::new(),
            gone: Vec::new(),
            attentions: Vec::new(),
            fenced: Vec::new(),
            order: Vec::new(),
            fail: None,
            tag: 0,
        };
        for nexus in 0..nexuses {
            rig.log_in(NexusId(nexus), units);
        }
        rig
    }

    /// The medium waits to be told to answer.
    pub(super) fn holding(mut self) -> Self {
        self.hold = true;
        self
    }

    pub(super) fn lose(&mut self, nexus: NexusId) {
        self.server.nexus_lost(nexus);
        self.run();
    }

    pub(super) fn log_in(&mut self, id: NexusId, units: u32) {
        self.server.nexus_up(id, nexus(id, units));
        for unit in 0..units {
            let tag = self.send_to(id, unit as u16, &[0; 6], Attribute::Simple, ());
            assert_eq!(self.sense(id, tag), (0x6, 0x2900), "POWER ON comes first");
        }
    }

    /// Does what the device server wants done until it wants nothing more.
    pub(super) fn run(&mut self) {
        while let Some(output) = self.server.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: DeviceOutput<HeapLease>) {
        match output {
            DeviceOutput::Medium { id, unit, op } if self.hold => {
                self.held.push_back((id, unit, op));
            }
            DeviceOutput::Medium { id, unit, op } => {
                let result = self.medium(unit, op);
                self.server.medium_done(id, result);
            }
            DeviceOutput::SendDataIn {
                nexus,
                tag,
                offset,
                data,
            } => {
                self.sent(nexus, tag, offset, &data);
                if self.deaf == Some(nexus) {
                    self.untaken += data.len();
                } else {
                    self.server.data_in_queued(nexus, 0);
                }
            }
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } if self.hold_data => {
                self.asked_for.push_back((nexus, tag, offset, into));
            }
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => {
                self.fill(nexus, tag, offset, into);
            }
            DeviceOutput::Complete {
                nexus,
                tag,
                completed,
            } => {
                self.ended(nexus, tag, End::Completed(completed));
            }
            DeviceOutput::Cancel { unit, ids } => self.cancelled.push((unit, ids)),
            DeviceOutput::Aborted { nexus, tag } => self.ended(nexus, tag, End::Aborted),
            DeviceOutput::Managed { nexus, id, result } => self.managed.push((nexus, id, result)),
            DeviceOutput::NexusGone(nexus) => self.gone.push(nexus),
            DeviceOutput::Attention { nexus, code, .. } => self.attentions.push((nexus, code)),
            DeviceOutput::Fenced(number) => self.fenced.push(number),
            DeviceOutput::Ask { unit, request } => self.owner(unit, Input::Request(request)),
            DeviceOutput::Recall { unit } if self.hold_recalls => self.recalls.push(unit),
            DeviceOutput::Recall { unit } => self.server.recalled(unit),
            DeviceOutput::Acknowledge { unit, version } => {
                let core = CoreId(0);
                self.owner(unit, Input::Acknowledged { core, version });
            }
        }
    }

    /// What goes to the owners gets there, and from now on at once.
    pub(super) fn let_owner_go(&mut self) {
        self.hold_owner = false;
        while let Some((unit, input)) = self.mail.pop_front() {
            self.owner(unit, input);
        }
        self.run();
    }

    pub(super) fn owner(&mut self, unit: UnitId, input: Input) {
        if self.hold_owner {
            return self.mail.push_back((unit, input));
        }
        self.owners[unit.index()].handle(input);
        while let Some(output) = self.owners[unit.index()].poll() {
            match output {
                OwnerOutput::Publish { to, publication } => {
                    if to.contains(&CoreId(0)) {
                        self.server.publish(unit, publication);
                    }
                }
                OwnerOutput::Reply { id, result, .. } => self.server.replied(unit, id, result),
                OwnerOutput::Persist(_) => self.owner(unit, Input::Persisted(true)),
            }
        }
    }

    /// Core 0 asks the owner of a unit for a change, by this number.
    pub(super) fn change(&mut self, unit: UnitId, id: u64, change: UnitChange) {
        self.owner(unit, Input::Request(asks(id, change)));
        self.run();
    }

    fn sent(&mut self, nexus: NexusId, tag: Tag, offset: u32, data: &HeapLease) {
        assert!(
            !self.ended.contains_key(&(nexus, tag)),
            "data after the status"
        );
        let all = self.data_in.entry((nexus, tag)).or_default();
        assert_eq!(all.len(), offset as usize, "Data-In is consecutive");
        let mut bytes = vec![0; data.len()];
        data.copy_out(0, &mut bytes);
        all.extend(bytes);
    }

    fn fill(&mut self, nexus: NexusId, tag: Tag, offset: u32, mut into: HeapLease) {
        let all = &self.data_out[&(nexus, tag)];
        let from = offset as usize;
        into.copy_in(0, &all[from..from + into.len()]);
        self.server.data_out(nexus, tag, offset, into);
    }

    fn ended(&mut self, nexus: NexusId, tag: Tag, end: End) {
        self.order.push(tag);
        assert_eq!(self.ended.insert((nexus, tag), end), None, "{tag:?}");
    }

    /// The initiators send the data that was asked for first.
    pub(super) fn send_data(&mut self) {
        let (nexus, tag, offset, into) = self.asked_for.pop_front().expect("data is asked for");
        self.fill(nexus, tag, offset, into);
        self.run();
    }

    /// The nexus that takes nothing takes so many bytes after all.
    pub(super) fn take(&mut self, bytes: usize) {
        self.untaken -= bytes;
        let nexus = self.deaf.expect("somebody takes nothing");
        self.server.data_in_queued(nexus, self.untaken);
        self.run();
    }

    /// The medium answers the operation at this place of those held.
    pub(super) fn answer(&mut self, at: usize) {
        let (id, unit, op) = self.held.remove(at).expect("an operation is held");
        let result = self.medium(unit, op);
        self.server.medium_done(id, result);
        self.run();
    }

    /// The medium answers all that it is asked, in order.
    pub(super) fn answer_all(&mut self) {
        while !self.held.is_empty() {
            self.answer(0);
        }
    }

    /// What was lent for reading comes back.
    pub(super) fn recalled(&mut self) {
        for unit in std::mem::take(&mut self.recalls) {
            self.server.recalled(unit);
        }
        self.run();
    }

    fn medium(&mut self, unit: UnitId, op: MediumOp<HeapLease>) -> MediumResult<HeapLease> {
        if let Some(error) = self.fail.take() {
            return Err(error);
        }
        let disk = &mut self.disks[unit.index()];
        let range = |extent: Extent| {
            let start = extent.lba as usize * BLOCK;
            start..start + extent.blocks as usize * BLOCK
        };
        match op {
            MediumOp::Read { extent, .. } => Ok(MediumOutcome::Lease(HeapLease::from_bytes(
                disk[range(extent)].to_vec(),
            ))),
            MediumOp::PrepareWrite { extent } => Ok(zeros(range(extent).len())),
            MediumOp::Write { extent, data, .. } => {
                data.copy_out(0, &mut disk[range(extent)]);
                Ok(MediumOutcome::Done)
            }
            MediumOp::Buffer { bytes } => Ok(zeros(bytes as usize)),
            MediumOp::WriteSame { extent, pattern } => {
                let mut block = vec![0; BLOCK];
                if let Some(pattern) = pattern {
                    pattern.copy_out(0, &mut block);
                }
                disk[range(extent)]
                    .chunks_mut(BLOCK)
                    .for_each(|to| to.copy_from_slice(&block));
                Ok(MediumOutcome::Done)
            }
            MediumOp::Unmap { extent, .. } | MediumOp::Sanitize { extent, .. } => {
                disk[range(extent)].fill(0);
                Ok(MediumOutcome::Done)
            }
            MediumOp::Flush { .. } | MediumOp::Prefetch { .. } => Ok(MediumOutcome::Done),
            MediumOp::Status { extent } => Ok(MediumOutcome::Provisioning {
                blocks: extent.blocks.min(64),
                state: crate::medium::Provisioning::Mapped,
            }),
        }
    }
}

/// What core 0 asks of an owner by itself.
pub(super) const fn asks(id: u64, change: UnitChange) -> OwnerRequest {
    OwnerRequest {
        core: CoreId(0),
        id,
        nexus: None,
        change,
    }
}

fn zeros(len: usize) -> MediumOutcome<HeapLease> {
    MediumOutcome::Lease(HeapLease::from_bytes(vec![0; len]))
}
