//! The simulator: the very cores that serve, on a simulated clock, wires, mailboxes and disks.
//!
//! One seed decides everything: which of the things that could happen next happens, how many
//! bytes a read gives, which disk operation ends first and whether it fails. A failure is told
//! with its seed, and the seed repeats it.
#![forbid(unsafe_code)]

mod disk;
mod mailboxes;
mod ring;
mod rng;
mod target;
mod user;
mod wire;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ::io::memory::Pool;
use ::io::ring::Ring;
use block::volume::CoreContext;
use iscsi::target::TargetConfig;
use scsi::medium::Now;
use scsi::unit::CoreId;

use block::volumes::Volumes;
pub use disk::{Disk, DiskKind, POOL_BYTES};
use engine::change::Change;
use engine::core::{Census, Core, CoreParts};
use engine::flushes::FinalFlushes;
use engine::mailbox::{CoreMessage, SessionInfo};
use mailboxes::{SimMailbox, SimMailboxes};
use ring::{Kernel, PendingEvent};
pub use rng::Rng;
use runtime::journal::Journal;
pub use target::new_unit;
use user::SimUser;
pub use wire::SimWire;

/// A simulated process.
pub struct World {
    /// Chance.
    pub rng: Rng,
    /// What happens how often.
    pub pace: EventWeights,
    now: Now,
    cores: Vec<Core<Kernel, SimMailbox>>,
    kernels: Vec<Kernel>,
    pools: Vec<Pool>,
    mailboxes: SimMailboxes,
    flushes: Arc<FinalFlushes>,
    /// Processes that use the target, whose kernels follow those of the cores.
    users: Vec<SimUser>,
}

/// What a world begins with.
#[derive(Clone)]
pub struct WorldConfig {
    /// The seed.
    pub seed: u64,
    /// How many cores.
    pub cores: u16,
    /// The target nodes.
    pub config: TargetConfig,
    /// The units of every node: LUN 0 and up.
    pub units: Vec<Disk>,
    /// Bytes of buffers that each core may use.
    pub pool_bytes: usize,
}

/// How often each kind of thing happens, in relation to the others: of whatever could happen, first
/// the kind is chosen and then the thing.
#[derive(Clone, Copy, Debug)]
pub struct EventWeights {
    /// Messages between cores arrive.
    pub mail: usize,
    /// Bytes arrive or leave.
    pub wires: usize,
    /// Operations of disks end.
    pub disks: usize,
    /// One in this many of those fails; 0: none.
    pub disk_errors: usize,
    /// Bytes come and go in pieces of any size.
    pub pieces: bool,
}

impl Default for EventWeights {
    fn default() -> Self {
        Self {
            mail: 1,
            wires: 1,
            disks: 1,
            disk_errors: 0,
            pieces: true,
        }
    }
}

/// Where initiators connect from, if nothing else is said.
const PEER: ([u8; 4], u16) = ([127, 0, 0, 1], 40_000);

/// What a core puts off waits no longer than this.
const MOMENT: Duration = Duration::from_nanos(1);

/// One thing that could happen next.
#[derive(Clone, Copy, Debug)]
enum EventChoice {
    Kernel(usize, PendingEvent),
    Mail((CoreId, CoreId)),
    /// A core has something to do that it has put off to its next turn.
    Due(usize),
}

impl World {
    /// A process that listens.
    ///
    /// # Errors
    /// When descriptors cannot be had, or address space for buffers.
    pub fn new(setup: &WorldConfig) -> io::Result<Self> {
        let mailboxes = SimMailboxes::new(setup.cores);
        let kernels: Vec<Kernel> = (0..setup.cores).map(|_| Kernel::default()).collect();
        let pools = (0..setup.cores).map(|_| Pool::new(setup.pool_bytes));
        let pools: Vec<Pool> = pools.collect::<io::Result<_>>()?;
        let states = target::states(setup);
        let flushes = Arc::new(FinalFlushes::default());
        let views = Arc::new(target::views(setup));
        let mut control = Some(Box::new(target::control(setup, &views, &flushes)));
        let units: Vec<_> = states.into_iter().map(Arc::new).collect();
        let journal = Arc::new(Journal::default());
        let core = |((id, kernel), pool): ((u16, &Kernel), &Pool)| {
            let context = CoreContext::new(pool.clone());
            let mut volumes = Volumes::default();
            for disk in &setup.units {
                volumes.add(Box::new(disk.handle(&context)), &context);
            }
            Core::new(CoreParts {
                id: CoreId(id),
                ring: kernel.clone(),
                post: mailboxes.for_core(CoreId(id)),
                units: units.clone(),
                volumes,
                context,
                views: Arc::clone(&views),
                journal: Arc::clone(&journal),
                control: control.take(),
            })
        };
        let cores = (0..).zip(&kernels).zip(&pools).map(core).collect();
        let listener = File::open("/dev/null")?.into();
        kernels[0]
            .clone()
            .listen(listener, engine::core::accept_token(0))?;
        Ok(Self {
            rng: Rng::new(setup.seed),
            pace: EventWeights::default(),
            now: Now::ZERO,
            cores,
            kernels,
            pools,
            mailboxes,
            flushes,
            users: Vec::new(),
        })
    }

    /// The process is killed, and another one begins in its place. Disks and users stay.
    ///
    /// # Errors
    /// As with [`Self::new`].
    pub fn restart(&mut self, setup: &WorldConfig) -> io::Result<()> {
        self.users.iter().for_each(SimUser::cut_off);
        let users = self.kernels.split_off(self.cores.len());
        let new = Self::new(setup)?;
        (self.cores, self.kernels, self.pools) = (new.cores, new.kernels, new.pools);
        (self.mailboxes, self.flushes) = (new.mailboxes, new.flushes);
        self.kernels.extend(users);
        wire::close_dropped();
        Ok(())
    }

    /// An initiator connects.
    ///
    /// # Errors
    /// When no core listens.
    pub fn connect(&mut self) -> io::Result<SimWire> {
        self.connect_from(PEER.0)
    }

    /// An initiator connects from this address.
    ///
    /// # Errors
    /// When no server listens.
    pub fn connect_from(&mut self, peer: [u8; 4]) -> io::Result<SimWire> {
        let wire = SimWire::default();
        self.kernels[0].connect(&wire, (peer, PEER.1).into())?;
        self.turn(0);
        Ok(wire)
    }

    /// An initiator connects to this address, at the portal of this number.
    ///
    /// # Errors
    /// When nothing listens there.
    pub fn connect_to(&mut self, portal: u32, address: SocketAddr) -> io::Result<SimWire> {
        let wire = SimWire::to(address);
        let token = engine::core::accept_token(portal);
        self.kernels[0].connect_at(token, &wire, PEER.into())?;
        self.turn(0);
        Ok(wire)
    }

    /// Lets one thing happen; `false` when nothing can.
    pub fn step(&mut self) -> bool {
        let Some(choice) = self.choose() else {
            return false;
        };
        self.take_place(choice);
        true
    }

    fn choose(&mut self) -> Option<EventChoice> {
        let mut kinds: [Vec<EventChoice>; 3] = Default::default();
        for choice in self.choices() {
            let kind = match choice {
                EventChoice::Mail(_) | EventChoice::Due(_) => 0,
                EventChoice::Kernel(_, PendingEvent::File(_)) => 2,
                EventChoice::Kernel(..) => 1,
            };
            kinds[kind].push(choice);
        }
        let weights = [self.pace.mail, self.pace.wires, self.pace.disks];
        let possible = kinds
            .iter()
            .zip(weights)
            .filter(|(kind, _)| !kind.is_empty());
        let possible: Vec<_> = possible.collect();
        let sum = possible.iter().map(|(_, weight)| weight).sum::<usize>();
        let mut chance = self.rng.below(sum.max(1));
        let (kind, _) = possible.iter().find(|(_, weight)| {
            let found = chance < *weight;
            chance = chance.saturating_sub(*weight);
            found
        })?;
        Some(*self.rng.pick(kind))
    }

    fn take_place(&mut self, choice: EventChoice) {
        let core = match choice {
            EventChoice::Mail(pair) => {
                self.mailboxes.arrive(pair);
                let core = usize::from(pair.1.0);
                self.kernels[core].wake();
                core
            }
            EventChoice::Due(core) => {
                self.now += MOMENT;
                core
            }
            EventChoice::Kernel(core, pending) => {
                self.happen(core, pending);
                self.connect_dialed(core);
                core
            }
        };
        self.turn(core);
    }

    fn choices(&self) -> Vec<EventChoice> {
        let mut choices: Vec<EventChoice> = self
            .mailboxes
            .pending()
            .into_iter()
            .map(EventChoice::Mail)
            .collect();
        for (core, kernel) in self.kernels.iter().enumerate() {
            let pending = kernel.pending().into_iter();
            choices.extend(pending.map(|pending| EventChoice::Kernel(core, pending)));
        }
        for (number, core) in self.cores.iter().enumerate() {
            if core.patience(self.now).is_some_and(|at| at <= MOMENT) {
                choices.push(EventChoice::Due(number));
            }
        }
        choices
    }

    fn happen(&mut self, core: usize, pending: PendingEvent) {
        let kernel = self.kernels[core].clone();
        match pending {
            PendingEvent::Arrive(socket, most) => kernel.arrive(socket, self.some_of(most)),
            PendingEvent::Leave(socket, 0) => kernel.leave(socket, None),
            PendingEvent::Leave(socket, most) => kernel.leave(socket, Some(self.some_of(most))),
            PendingEvent::LetGo(number) => kernel.let_go(number),
            PendingEvent::File(number) => {
                let errors = self.pace.disk_errors;
                let fails = errors > 0 && self.rng.one_in(errors);
                kernel.end_file(number, fails.then(|| io::Error::other("simulated")));
            }
        }
    }

    /// All of them, or a part: often one byte, as boundaries are where mistakes are.
    fn some_of(&mut self, most: usize) -> usize {
        match (most, self.rng.below(4)) {
            (0 | 1, _) | (_, 0 | 1) => most,
            _ if !self.pace.pieces => most,
            (_, 2) => 1 + self.rng.below(most.min(64)),
            _ => 1 + self.rng.below(most),
        }
    }

    fn turn(&mut self, kernel: usize) {
        match self.cores.get_mut(kernel) {
            Some(core) => {
                // Every other core spins.
                if kernel % 2 == 1 {
                    core.may_wait(Some(Duration::ZERO));
                }
                core.turn(self.now);
            }
            None => self.users[kernel - self.cores.len()].turn(self.now),
        }
        wire::close_dropped();
    }

    /// Lets everything pass by one wire that can, both ways, before anything else happens.
    pub fn hurry(&mut self, wire: &SimWire) {
        while let Some((core, pending)) = self.pending_of(wire) {
            let kernel = self.kernels[core].clone();
            match pending {
                PendingEvent::Arrive(socket, most) => kernel.arrive(socket, most),
                PendingEvent::Leave(socket, most) => {
                    kernel.leave(socket, Some(most).filter(|n| *n > 0));
                }
                PendingEvent::File(_) | PendingEvent::LetGo(_) => return,
            }
            self.turn(core);
        }
    }

    fn pending_of(&self, wire: &SimWire) -> Option<(usize, PendingEvent)> {
        let (core, socket) = self.place(wire)?;
        let mut pending = self.kernels[core].pending().into_iter();
        let found = pending.find(|pending| match pending {
            PendingEvent::Arrive(id, _) | PendingEvent::Leave(id, _) => *id == socket,
            PendingEvent::File(_) | PendingEvent::LetGo(_) => false,
        });
        found.map(|pending| (core, pending))
    }

    /// The core and socket that a wire leads to.
    fn place(&self, wire: &SimWire) -> Option<(usize, ::io::ring::SocketId)> {
        let mut kernels = self.kernels.iter().enumerate().take(self.cores.len());
        kernels.find_map(|(core, kernel)| Some((core, kernel.socket(wire)?)))
    }

    /// The core that a wire leads to, if any has it.
    #[must_use]
    pub fn core_of(&self, wire: &SimWire) -> Option<usize> {
        self.place(wire).map(|(core, _)| core)
    }

    /// Bytes that an initiator has sent and no machine has taken.
    #[must_use]
    pub fn unread(&self, wire: &SimWire) -> usize {
        let early = self
            .place(wire)
            .map_or(0, |(core, socket)| self.cores[core].early_bytes(socket));
        wire.in_flight() + early
    }

    /// Lets time pass; deadlines that come are kept.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        for kernel in 0..self.kernels.len() {
            self.turn(kernel);
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// How long nothing happens if nothing comes in; `None`: for ever.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        let cores = self.cores.iter().filter_map(|core| core.patience(self.now));
        let users = self.users.iter().filter_map(SimUser::next_deadline);
        cores
            .chain(users.map(|at| at.saturating_sub(self.now)))
            .min()
    }

    /// Has what is served changed; see [`Change::done`].
    pub fn change(&mut self, change: Change) {
        self.order(CoreMessage::Change(Box::new(change)));
    }

    /// The sessions that there are.
    #[must_use]
    pub fn sessions(&mut self) -> Vec<SessionInfo> {
        let (reply, told) = channel();
        self.order(CoreMessage::Sessions(reply));
        told.try_recv().unwrap_or_default()
    }

    /// Messages that cores have sent each other so far.
    #[must_use]
    pub fn mailed(&self) -> u64 {
        self.mailboxes.sent()
    }

    /// Ends a session; it is told when that has ended.
    pub fn drop_session(&mut self, tsih: u16) -> Receiver<()> {
        let (reply, told) = channel();
        self.order(CoreMessage::Drop(tsih, reply));
        told
    }

    /// Tells core 0 something from outside.
    fn order(&mut self, message: CoreMessage) {
        self.mailboxes.order(CoreId(0), message);
        self.kernels[0].wake();
        self.turn(0);
    }

    /// Tells every core to stop.
    pub fn stop(&mut self) {
        for core in 0..self.cores.len() {
            self.mailboxes.order(CoreId(core as u16), CoreMessage::Stop);
            self.kernels[core].wake();
            self.turn(core);
        }
    }

    /// Whether every core has left its loop.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.cores.iter().all(Core::has_left)
    }

    /// The volumes that were not flushed at the end.
    #[must_use]
    pub fn not_flushed(&self) -> usize {
        self.flushes.missing().len()
    }

    /// Memory that the buffers of all cores take, in bytes.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.pools.iter().map(Pool::resident).sum()
    }

    /// What each core holds.
    #[must_use]
    pub fn census(&self) -> Vec<CoreUsage> {
        let cores = self.cores.iter().zip(&self.kernels).zip(&self.pools);
        let held = cores.map(|((core, kernel), pool)| {
            let (sockets, files) = kernel.held();
            CoreUsage {
                core: core.census(),
                sockets,
                files,
                buffers: pool.in_use(),
            }
        });
        held.collect()
    }
}

/// What a core holds, and its kernel for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreUsage {
    /// Itself.
    pub core: Census,
    /// Sockets.
    pub sockets: usize,
    /// Operations of disks in flight.
    pub files: usize,
    /// Bytes of buffers, in whole slots of the pool.
    pub buffers: usize,
}
