//! The simulator: the very cores that serve, on a simulated clock, wires, mailboxes and disks.
//!
//! One seed decides everything: which of the things that could happen next happens, how many
//! octets a read gives, which disk operation ends first and whether it fails. A failure is told
//! with its seed, and the seed repeats it.

mod disk;
mod post;
mod ring;
mod rng;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::io::ring::Ring;
use block::volume::Handle;
use iscsi::target::Config;
use scsi::medium::{Now, Traits};
use scsi::owner::Owner;
use scsi::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

use crate::core::{Core, Devices, Front, FrontParts, Parts, Store};
use crate::flushes::Flushes;
use crate::journal::Journal;
use crate::mail::Message;
pub use disk::{BLOCK, Disk};
use post::{Counter, Office};
pub use ring::Wire;
use ring::{Kernel, Pending};
pub use rng::Rng;

/// A simulated process.
pub struct World {
    /// Chance.
    pub rng: Rng,
    now: Now,
    cores: Vec<Core<Kernel, Counter>>,
    kernels: Vec<Kernel>,
    office: Office,
    /// One in so many disk operations fails; 0: none.
    pub disk_errors: usize,
}

/// What a world begins with.
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// How many cores.
    pub cores: u16,
    /// The target nodes.
    pub config: Config,
    /// The units of the first node: LUN 0 and up.
    pub units: Vec<(Traits, Disk)>,
}

/// One thing that could happen next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Kernel(usize, Pending),
    Mail((CoreId, CoreId)),
}

impl World {
    /// A process that listens.
    ///
    /// # Errors
    /// When `/dev/null` cannot be opened.
    pub fn new(setup: &Setup) -> io::Result<Self> {
        let office = Office::new(setup.cores);
        let kernels: Vec<Kernel> = (0..setup.cores).map(|_| Kernel::default()).collect();
        let states = states(setup);
        let mut front = Some(Box::new(front(setup, &states)));
        let units: Vec<_> = states.into_iter().map(Arc::new).collect();
        let journal = Arc::new(Journal::default());
        let core = |(id, kernel): (u16, &Kernel)| {
            let volumes = setup
                .units
                .iter()
                .map(|(_, disk)| Box::new(disk.handle()) as _);
            Core::new(Parts {
                id: CoreId(id),
                ring: kernel.clone(),
                post: office.counter(CoreId(id)),
                units: units.clone(),
                volumes: volumes.collect::<Vec<Box<dyn Handle>>>(),
                journal: Arc::clone(&journal),
                front: front.take(),
            })
        };
        let cores = (0..).zip(&kernels).map(core).collect();
        kernels[0].clone().listen(
            File::open("/dev/null")?.into(),
            crate::core::accept_token(0),
        )?;
        let rng = Rng::new(setup.seed);
        Ok(Self {
            rng,
            now: Now::ZERO,
            cores,
            kernels,
            office,
            disk_errors: 0,
        })
    }

    /// An initiator connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn connect(&mut self) -> io::Result<Wire> {
        let wire = Wire::default();
        self.kernels[0].connect(&wire, ([127, 0, 0, 1], 40_000).into())?;
        self.turn(0);
        Ok(wire)
    }

    /// Lets one thing happen; `false` when nothing can.
    pub fn step(&mut self) -> bool {
        let choices = self.choices();
        if choices.is_empty() {
            return false;
        }
        let core = match *self.rng.pick(&choices) {
            Choice::Mail(pair) => {
                self.office.arrive(pair);
                let core = usize::from(pair.1.0);
                self.kernels[core].wake();
                core
            }
            Choice::Kernel(core, pending) => {
                self.happen(core, pending);
                core
            }
        };
        self.turn(core);
        true
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices: Vec<Choice> = self
            .office
            .pending()
            .into_iter()
            .map(Choice::Mail)
            .collect();
        for (core, kernel) in self.kernels.iter().enumerate() {
            let pending = kernel.pending().into_iter();
            choices.extend(pending.map(|pending| Choice::Kernel(core, pending)));
        }
        choices
    }

    fn happen(&mut self, core: usize, pending: Pending) {
        let kernel = self.kernels[core].clone();
        match pending {
            Pending::Arrive(socket, most) => kernel.arrive(socket, self.some_of(most)),
            Pending::Leave(socket, 0) => kernel.leave(socket, None),
            Pending::Leave(socket, most) => kernel.leave(socket, Some(self.some_of(most))),
            Pending::File(number) => {
                let fails = self.disk_errors > 0 && self.rng.one_in(self.disk_errors);
                kernel.end_file(number, fails.then(|| io::Error::other("simulated")));
            }
        }
    }

    /// All of them, or a part: often one octet, as boundaries are where mistakes are.
    fn some_of(&mut self, most: usize) -> usize {
        match (most, self.rng.below(4)) {
            (0 | 1, _) | (_, 0 | 1) => most,
            (_, 2) => 1 + self.rng.below(most.min(64)),
            _ => 1 + self.rng.below(most),
        }
    }

    fn turn(&mut self, core: usize) {
        self.cores[core].turn(self.now);
    }

    /// Lets time pass; deadlines that come are kept.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        for core in 0..self.cores.len() {
            self.turn(core);
        }
    }

    /// Tells every core to stop.
    pub fn stop(&mut self) {
        for core in 0..self.cores.len() {
            self.office.order(CoreId(core as u16), Message::Stop);
            self.kernels[core].wake();
            self.turn(core);
        }
    }

    /// Whether every core has left its loop.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.cores.iter().all(Core::has_left)
    }
}

fn states(setup: &Setup) -> Vec<UnitState> {
    let state = |(number, (traits, _)): (usize, &(Traits, Disk))| {
        let identity = UnitIdentity {
            vendor: "LUNAR".into(),
            product: "SIMULATED".into(),
            revision: "0".into(),
            serial: format!("SIM{number}"),
            naa: vec![0x30, 0, 0, 0, 0, 0, 0, number as u8],
            removable: false,
        };
        UnitState::new(identity, traits.clone())
    };
    setup.units.iter().enumerate().map(state).collect()
}

fn front(setup: &Setup, states: &[UnitState]) -> Front {
    let luns: Vec<_> = (0..states.len())
        .map(|n| (Lun::from_index(n as u16), UnitId(n as u32)))
        .collect();
    let mut devices = Devices::new();
    for (node, level) in setup
        .config
        .nodes
        .iter()
        .flat_map(|node| [(node, 0), (node, 1), (node, 2)])
    {
        let device = iscsi::names::target_device(&node.name, luns.clone(), level);
        devices.insert((node.name.clone(), level), Arc::new(device));
    }
    let mut rng = Rng::new(setup.seed ^ 0x5eed);
    Front::new(FrontParts {
        config: Arc::new(setup.config.clone()),
        devices,
        owners: states
            .iter()
            .map(|state| Owner::new(state.clone(), setup.cores))
            .collect(),
        store: Arc::new(Shelf::default()),
        flushes: Arc::new(Flushes::new(vec![String::new(); states.len()])),
        volumes: Vec::new(),
        cores: setup.cores,
        random: Box::new(move || rng.octets()),
        local_address: |_| Ok(([127, 0, 0, 1], 3260).into()),
    })
}

/// A store that forgets with the world.
#[derive(Default)]
struct Shelf {
    kept: std::sync::Mutex<BTreeMap<u32, Vec<u8>>>,
}

impl Store for Shelf {
    fn save(&self, unit: UnitId, octets: &[u8]) -> io::Result<()> {
        let mut kept = self
            .kept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.insert(unit.0, octets.to_vec());
        Ok(())
    }
}
