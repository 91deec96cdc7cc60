//! A device server with everything around it: initiators that answer at once, a medium that
//! answers at once or when told to, and a log of what the initiators saw.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::device::{DeviceOutput, DeviceServer, OpId};
use crate::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Now, Traits,
};
use crate::nexus::{Nexus, NexusId, NexusIdentity, TargetDevice, TargetPort};
use crate::owner::{Input, OwnerOutput, UnitOwner};
use crate::task::{Attribute, Command, Completed, Function, FunctionResult, Tag};
use crate::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use crate::wire::lun::Lun;
use crate::wire::sense::Status;

pub(super) const BLOCK: usize = 512;

/// How a story's command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Completed(Completed),
    Aborted,
}

/// Bytes that a command's initiator expects, and the data that it sends.
pub(super) struct Moves(usize, Vec<u8>);

impl From<()> for Moves {
    fn from((): ()) -> Self {
        Self(0, Vec::new())
    }
}

impl From<usize> for Moves {
    fn from(expected: usize) -> Self {
        Self(expected, Vec::new())
    }
}

impl From<Vec<u8>> for Moves {
    fn from(data: Vec<u8>) -> Self {
        Self(0, data)
    }
}

impl From<(usize, Vec<u8>)> for Moves {
    fn from((expected, data): (usize, Vec<u8>)) -> Self {
        Self(expected, data)
    }
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

pub(super) fn traits() -> Traits {
    Traits {
        block_size: BLOCK as u32,
        blocks: 8192,
        physical_exponent: 3,
        read_only: false,
        write_cache: true,
        unmap_granularity: Some(8),
        anchor: true,
        atomic: None,
        sanitize: &[],
        solid_state: true,
        write_same_to_end: false,
        shared: false,
    }
}

pub(super) fn identity(number: u32) -> UnitIdentity {
    UnitIdentity {
        vendor: "LUNAR".into(),
        product: "TEST".into(),
        revision: "1".into(),
        serial: format!("{number}"),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, number as u8],
        removable: false,
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
        Self::with(1, 1, &traits())
    }

    pub(super) fn with(nexuses: u32, units: u32, traits: &Traits) -> Self {
        let states = (0..units).map(|unit| UnitState::new(identity(unit), traits.clone()));
        Self::of(nexuses, states.collect())
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

    /// Sends a command and lets everything happen that can.
    pub(super) fn send_to(
        &mut self,
        nexus: NexusId,
        lun: u16,
        cdb: &[u8],
        attribute: Attribute,
        moves: impl Into<Moves>,
    ) -> Tag {
        let lun = Lun::from_index(lun);
        self.send_to_lun((nexus, lun), cdb, attribute, moves)
    }

    pub(super) fn send_to_lun(
        &mut self,
        (nexus, lun): (NexusId, Lun),
        cdb: &[u8],
        attribute: Attribute,
        moves: impl Into<Moves>,
    ) -> Tag {
        self.tag += 1;
        let tag = Tag(self.tag);
        let Moves(expected_in, data_out) = moves.into();
        let mut padded = [0; 32];
        padded[..cdb.len()].copy_from_slice(cdb);
        let expected_out = data_out.len() as u32;
        self.data_out.insert((nexus, tag), data_out);
        self.server.execute(
            Now::ZERO,
            Command {
                nexus,
                tag,
                lun,
                cdb: padded,
                cdb_len: 16,
                attribute,
                priority: 0,
                expected_in: expected_in as u32,
                expected_out,
            },
        );
        self.run();
        tag
    }

    /// A SIMPLE command of nexus 0 to LUN 0.
    pub(super) fn send(&mut self, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        self.send_by(NexusId(0), cdb, moves)
    }

    /// A SIMPLE command to LUN 0.
    pub(super) fn send_by(&mut self, nexus: NexusId, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        self.send_to(nexus, 0, cdb, Attribute::Simple, moves)
    }

    /// A command that ends with GOOD.
    #[track_caller]
    pub(super) fn good(&mut self, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        self.good_by(NexusId(0), cdb, moves)
    }

    #[track_caller]
    pub(super) fn good_by(&mut self, nexus: NexusId, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        let tag = self.send_by(nexus, cdb, moves);
        assert_eq!(self.completed(nexus, tag).status, Status::Good);
        tag
    }

    /// A command that ends with CHECK CONDITION: sense key and additional sense code.
    #[track_caller]
    pub(super) fn refuses(&mut self, cdb: &[u8], moves: impl Into<Moves>, sense: (u8, u16)) -> Tag {
        self.refuses_by(NexusId(0), cdb, moves, sense)
    }

    #[track_caller]
    pub(super) fn refuses_by(
        &mut self,
        nexus: NexusId,
        cdb: &[u8],
        moves: impl Into<Moves>,
        sense: (u8, u16),
    ) -> Tag {
        let tag = self.send_by(nexus, cdb, moves);
        assert_eq!(self.sense(nexus, tag), sense, "{cdb:02x?}");
        tag
    }

    /// A function that is carried out at once.
    #[track_caller]
    pub(super) fn manages(&mut self, nexus: NexusId, function: Function) {
        let id = self.manage(nexus, function);
        assert_eq!(self.answer_to(id), Some(FunctionResult::Complete));
    }

    pub(super) fn manage(&mut self, nexus: NexusId, function: Function) -> u32 {
        self.tag += 1;
        self.server
            .manage(nexus, self.tag, Lun::from_index(0), function);
        self.run();
        self.tag
    }

    pub(super) fn answer_to(&self, id: u32) -> Option<FunctionResult> {
        self.managed
            .iter()
            .find(|managed| managed.1 == id)
            .map(|managed| managed.2)
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
                OwnerOutput::Publish(publication) => self.server.publish(unit, publication),
                OwnerOutput::Reply { id, result, .. } => self.server.replied(unit, id, result),
                OwnerOutput::Persist(_) => self.owner(unit, Input::Persisted(true)),
            }
        }
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

    pub(super) fn completed(&self, nexus: NexusId, tag: Tag) -> &Completed {
        match self.ended.get(&(nexus, tag)) {
            Some(End::Completed(completed)) => completed,
            other => panic!("{tag:?} of {nexus:?}: {other:?}"),
        }
    }

    pub(super) fn status(&self, tag: Tag) -> Status {
        self.completed(NexusId(0), tag).status
    }

    pub(super) fn data(&self, tag: Tag) -> &[u8] {
        self.data_in
            .get(&(NexusId(0), tag))
            .map_or(&[], Vec::as_slice)
    }

    /// Sense key and additional sense code of a CHECK CONDITION with fixed format sense data.
    pub(super) fn sense(&self, nexus: NexusId, tag: Tag) -> (u8, u16) {
        let completed = self.completed(nexus, tag);
        assert_eq!(completed.status, Status::CheckCondition);
        let sense = completed.sense.as_slice();
        (sense[2] & 0x0f, u16::from_be_bytes([sense[12], sense[13]]))
    }

    /// INFORMATION of fixed format sense data.
    pub(super) fn information(&self, tag: Tag) -> Option<u32> {
        let sense = &self.completed(NexusId(0), tag).sense;
        let sense = sense.as_slice();
        (sense[0] & 0x80 != 0).then(|| u32::from_be_bytes([sense[3], sense[4], sense[5], sense[6]]))
    }
}

fn zeros(len: usize) -> MediumOutcome<HeapLease> {
    MediumOutcome::Lease(HeapLease::from_bytes(vec![0; len]))
}

/// Bytes that differ from block to block.
pub(super) fn pattern(blocks: usize, seed: u8) -> Vec<u8> {
    let byte = |at| (at / BLOCK) as u8 ^ at as u8 ^ seed;
    (0..blocks * BLOCK).map(byte).collect()
}

/// READ(10), WRITE(10) and their like.
pub(super) fn cdb10(opcode: u8, flags: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let [a, b, c, d] = lba.to_be_bytes();
    let [e, f] = blocks.to_be_bytes();
    [opcode, flags, a, b, c, d, 0, e, f, 0]
}

/// READ(16), WRITE(16) and their like.
pub(super) fn cdb16(opcode: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = lba.to_be_bytes();
    let [i, j, k, l] = blocks.to_be_bytes();
    [opcode, flags, a, b, c, d, e, f, g, h, i, j, k, l, 0, 0]
}
