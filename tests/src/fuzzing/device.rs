//! Two device servers of one process with everything around them: initiators, media, owners of
//! units and the mail between cores. The script decides in what order things end, and whether
//! well; what the device servers may and may not do meanwhile is asserted.

mod commands;
mod medium;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use scsi::device::{DeviceOutput, DeviceServer, OpId};
use scsi::medium::{HeapLease, Lease, MediumOp, Now};
use scsi::nexus::{Nexus, NexusId, NexusIdentity, TargetDevice, TargetPort};
use scsi::owner::{Input, OwnerOutput, Publication, UnitOwner};
use scsi::task::{Command, CommandFailure, Function};
use scsi::unit::{CoreId, UnitId, UnitState};
use scsi::wire::lun::Lun;
use scsi::wire::transport_id;

use self::commands::Commands;
use super::script::Script;

/// Which core each nexus lives on, and which units it sees as LUN 0 and up. Nobody sees unit 3.
const NEXUSES: [(usize, &[u32]); 3] = [(0, &[0, 1]), (0, &[0, 1, 2]), (1, &[2, 0])];

/// The unit that nobody sees.
pub(super) const UNSEEN: UnitId = UnitId::first(3);

/// How many nexuses there are.
pub(super) const HOSTS: usize = NEXUSES.len();

/// A process that serves.
pub(super) struct World {
    now: Now,
    servers: Vec<DeviceServer<HeapLease>>,
    pub(super) owners: Vec<UnitOwner>,
    /// How many blocks each unit is to have; it takes a while until the cores know.
    capacities: Vec<u64>,
    pub(super) commands: Commands,
    /// Operations that the media have not answered.
    media: Vec<(usize, OpId, UnitId, MediumOp<HeapLease>)>,
    memory: medium::Memory,
    /// From the owners to each core, in order.
    mail: Vec<VecDeque<(UnitId, Mail)>>,
    /// Units whose reservations are being stored.
    storing: BTreeSet<UnitId>,
    /// Nexuses that were sent data, which they have not taken.
    untaken: BTreeSet<NexusId>,
    /// Functions that were not answered, by nexus and number.
    functions: BTreeSet<(NexusId, u32)>,
    next_function: u32,
    /// Nexuses that are being lost.
    losing: BTreeSet<NexusId>,
    /// Fences that do not stand yet.
    fences: u64,
}

#[derive(Debug)]
enum Mail {
    Publish(Publication),
    Reply(u64, Result<(), CommandFailure>),
}

impl World {
    /// A process that was just started, its units as the flags say.
    pub(super) fn new(flags: u8) -> Self {
        let states: Vec<_> = (0..4).map(|unit| medium::unit(unit, flags)).collect();
        let shared = |state: &UnitState| Arc::new(state.clone());
        let units: Vec<_> = states.iter().map(shared).collect();
        let server = |core| DeviceServer::new(CoreId(core), units.clone());
        let mut world = Self {
            now: Now::ZERO,
            servers: (0..2).map(server).collect(),
            capacities: states.iter().map(|state| state.traits.blocks).collect(),
            owners: states
                .into_iter()
                .map(|state| UnitOwner::new(state, 2))
                .collect(),
            commands: Commands::default(),
            media: Vec::new(),
            memory: medium::Memory::default(),
            mail: (0..2).map(|_| VecDeque::new()).collect(),
            storing: BTreeSet::new(),
            untaken: BTreeSet::new(),
            functions: BTreeSet::new(),
            next_function: 0,
            losing: BTreeSet::new(),
            fences: 0,
        };
        for host in 0..HOSTS {
            world.log_in(NexusId(host as u32));
        }
        world
    }

    fn log_in(&mut self, id: NexusId) {
        self.servers[core_of(id)].nexus_up(id, nexus(id));
    }

    /// A nexus, unless it is being lost.
    pub(super) fn host(&mut self, script: &mut Script<'_>) -> Option<NexusId> {
        let id = NexusId(script.below(HOSTS) as u32);
        (!self.losing.contains(&id)).then_some(id)
    }

    /// A command comes in; `data` is what its initiator sends if it is asked for.
    pub(super) fn execute(&mut self, mut command: Command, data: &[u8]) {
        self.commands.begin(&mut command, data);
        self.now += Now::from_millis(1);
        let core = core_of(command.nexus);
        self.servers[core].set_time(self.now);
        self.servers[core].execute(command);
        self.run(core);
    }

    pub(super) fn manage(&mut self, nexus: NexusId, lun: Lun, function: Function) {
        let core = core_of(nexus);
        self.next_function += 1;
        self.functions.insert((nexus, self.next_function));
        self.servers[core].manage(nexus, self.next_function, lun, function);
        self.run(core);
    }

    pub(super) fn lose(&mut self, nexus: NexusId) {
        if self.losing.insert(nexus) {
            self.functions.retain(|(owner, _)| *owner != nexus);
            self.commands.stop_sending(nexus);
            let core = core_of(nexus);
            self.servers[core].nexus_lost(nexus);
            self.run(core);
        }
    }

    /// A nexus sees other units: of each LUN two bits tell which, 3 that there is none.
    pub(super) fn remap(&mut self, id: NexusId, map: u8) {
        let units = (0..3).map(|lun| (lun, u32::from(map >> (2 * lun)) & 3));
        let luns = units.filter(|(_, unit)| *unit < UNSEEN.slot);
        let luns = luns.map(|(lun, unit)| (Lun::from_index(lun), UnitId::first(unit)));
        let target = TargetDevice {
            luns: luns.collect(),
            ..TargetDevice::clone(&nexus(id).target)
        };
        let core = core_of(id);
        self.servers[core].remap(id, Arc::new(target));
        self.fences += 1;
        self.servers[core].fence(1);
        self.run(core);
    }

    /// The capacity of a unit grows.
    pub(super) fn grow(&mut self, unit: UnitId, blocks: u64) {
        let capacity = &mut self.capacities[unit.index()];
        *capacity += blocks;
        let traits = scsi::medium::Traits {
            blocks: *capacity,
            ..self.owners[unit.index()].state().traits.clone()
        };
        let request = scsi::owner::OwnerRequest {
            core: CoreId(0),
            id: u64::MAX,
            nexus: None,
            change: scsi::owner::UnitChange::Medium(traits),
        };
        self.owner(unit, Input::Request(request));
    }

    /// Lets one thing happen that was waited for; `false` when nothing is.
    pub(super) fn happen(&mut self, choice: u8, fails: u8) -> bool {
        let at = usize::from(choice);
        let lent = self.commands.lent();
        let waiting = [
            self.media.len(),
            lent,
            self.mail[0].len(),
            self.mail[1].len(),
        ];
        let storing = self.storing.len();
        let Some(first) = (0..5).map(|n| (n + at) % 5).find(|kind| match kind {
            4 => storing > 0,
            kind => waiting[*kind] > 0,
        }) else {
            return false;
        };
        match first {
            0 => self.answer(at / 5 % self.media.len(), fails),
            1 => self.send(at / 5 % lent),
            4 => self.stored(fails != 1),
            core => self.deliver(core - 2),
        }
        true
    }

    /// The initiators take what they were sent, which lets the device server send more. Returns
    /// whether there was anything.
    fn take_data(&mut self) -> bool {
        let taken = std::mem::take(&mut self.untaken);
        for nexus in &taken {
            let core = core_of(*nexus);
            self.servers[core].data_in_queued(*nexus, 0);
            self.run(core);
        }
        !taken.is_empty()
    }

    fn answer(&mut self, at: usize, fails: u8) {
        let (core, id, unit, op) = self.media.swap_remove(at);
        let traits = &self.owners[unit.index()].state().traits;
        let result = medium::answer(&op, traits, fails, &self.memory);
        self.servers[core].medium_done(id, result);
        self.run(core);
    }

    /// An initiator sends data that it was asked for.
    fn send(&mut self, at: usize) {
        let (nexus, tag, offset, data) = self.commands.fill(at);
        let core = core_of(nexus);
        self.servers[core].data_out(nexus, tag, offset, data);
        self.run(core);
    }

    fn deliver(&mut self, core: usize) {
        match self.mail[core].pop_front() {
            Some((unit, Mail::Publish(publication))) => {
                self.servers[core].publish(unit, publication);
            }
            Some((unit, Mail::Reply(id, result))) => self.servers[core].replied(unit, id, result),
            None => {}
        }
        self.run(core);
    }

    fn stored(&mut self, well: bool) {
        if let Some(unit) = self.storing.pop_first() {
            self.owner(unit, Input::Persisted(well));
        }
    }

    fn owner(&mut self, unit: UnitId, input: Input) {
        let owner = &mut self.owners[unit.index()];
        owner.handle(input);
        while let Some(output) = owner.poll() {
            match output {
                OwnerOutput::Publish { to, publication } => {
                    for core in to {
                        let mail = &mut self.mail[usize::from(core.0)];
                        mail.push_back((unit, Mail::Publish(publication.clone())));
                    }
                }
                OwnerOutput::Reply { id: u64::MAX, .. } => {}
                OwnerOutput::Reply { core, id, result } => {
                    let mail = &mut self.mail[usize::from(core.0)];
                    mail.push_back((unit, Mail::Reply(id, result)));
                }
                OwnerOutput::Persist(_) => {
                    assert!(self.storing.insert(unit), "stored twice at once");
                }
            }
        }
    }

    /// Does what a device server wants done until it wants nothing more.
    fn run(&mut self, core: usize) {
        while let Some(output) = self.servers[core].poll() {
            self.carry_out(core, output);
        }
    }

    fn carry_out(&mut self, core: usize, output: DeviceOutput<HeapLease>) {
        match output {
            DeviceOutput::Medium { id, unit, op } => {
                assert_ne!(unit, UNSEEN, "{op:?}");
                medium::check(&op, &self.owners[unit.index()].state().traits);
                assert!(self.media.len() < 1024, "operations without end");
                self.media.push((core, id, unit, op));
            }
            DeviceOutput::SendDataIn {
                nexus,
                tag,
                offset,
                data,
            } => {
                self.untaken.insert(nexus);
                self.commands.sent(nexus, tag, offset, data.len());
            }
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => self.commands.asked(nexus, tag, offset, into),
            DeviceOutput::Complete {
                nexus,
                tag,
                completed,
            } => self.commands.completed(nexus, tag, &completed),
            DeviceOutput::Aborted { nexus, tag } => self.commands.aborted(nexus, tag),
            DeviceOutput::Managed { nexus, id, .. } => {
                assert!(self.functions.remove(&(nexus, id)), "{id} answered twice");
            }
            DeviceOutput::NexusGone(nexus) => {
                assert!(self.losing.remove(&nexus), "{nexus:?} was not being lost");
                assert!(
                    !self.commands.has(nexus),
                    "commands of a nexus that is gone"
                );
                self.log_in(nexus);
            }
            DeviceOutput::Attention { .. } | DeviceOutput::Cancel { .. } => {}
            DeviceOutput::Fenced(number) => self.fences -= number,
            DeviceOutput::Ask { unit, request } => self.owner(unit, Input::Request(request)),
            DeviceOutput::Recall { unit } => self.servers[core].recalled(unit),
            DeviceOutput::Acknowledge { unit, version } => {
                let core = CoreId(core as u16);
                self.owner(unit, Input::Acknowledged { core, version });
            }
        }
    }

    /// Lets everything end, and looks whether it has.
    pub(super) fn end(&mut self) {
        for step in 0..8192 {
            if !self.happen(step as u8, 0) && !self.take_data() {
                break;
            }
            // Whatever takes so long is not waited for.
            if step == 4096 {
                (0..HOSTS).for_each(|host| self.lose(NexusId(host as u32)));
            }
        }
        assert!(self.commands.is_empty(), "{:?}", self.commands);
        assert!(self.functions.is_empty(), "{:?}", self.functions);
        if self.media.is_empty() {
            assert_eq!(self.fences, 0, "fences that never stand");
            assert!(self.losing.is_empty(), "{:?}", self.losing);
        }
    }
}

pub(super) fn core_of(nexus: NexusId) -> usize {
    NEXUSES[nexus.0 as usize].0
}

fn nexus(id: NexusId) -> Nexus {
    let units = NEXUSES[id.0 as usize].1;
    let lun = |(index, unit): (usize, &u32)| (Lun::from_index(index as u16), UnitId::first(*unit));
    let port = |relative_id| TargetPort {
        relative_id,
        designators: Vec::new(),
    };
    let target = TargetDevice {
        designators: Vec::new(),
        ports: vec![port(1), port(2)],
        luns: units.iter().enumerate().map(lun).collect(),
        read_only: BTreeSet::new(),
        protocol: transport_id::ISCSI,
        versions: vec![0x0960],
    };
    let name = format!("iqn.2026-11.org.test:host{}", id.0);
    let identity = NexusIdentity {
        initiator: transport_id::iscsi(&name, [0x80, 0, 0, 0, 0, 0]),
        port: 1,
    };
    Nexus {
        identity: Arc::new(identity),
        target: Arc::new(target),
    }
}
