//! A simulated process that uses a unit of the target: the very session that a remote volume has.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::io::memory::Pool;
use ::io::ring::Ring;
use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle, Volume};
use iscsi::initiator::config::InitiatorConfig;
use scsi::client::{Facts, ReportedIdentity, UnitWishes};
use scsi::medium::{MediumOp, MediumResult, Now, Traits};
use scsi::wire::lun::Lun;

use super::ring::Kernel;
use super::wire::{self, SimWire};
use super::{Disk, World};
use block::volumes::{SharedResources, Volumes, hand_on};
use client::remote::{
    IserOptions, RemoteSettings, RemoteVolume, SessionEnvironment, TargetPortal, TransportAddress,
};

/// A user of LUN 0.
pub(super) struct SimUser {
    kernel: Kernel,
    volume: Arc<dyn Volume>,
    volumes: Volumes,
    pool: Pool,
    /// Results that were not taken yet.
    pub(super) done: Vec<(u64, MediumResult<BlockLease>)>,
    /// Every connection that it has made, the newest last.
    pub(super) wires: Vec<SimWire>,
}

/// Bytes of buffers.
const POOL_BYTES: usize = 16 << 20;

impl World {
    /// A process that uses LUN 0, which this disk is, through our own initiator, by this many
    /// sessions, of which each has so long to come back; over iSER by software, if so told. Returns
    /// its number.
    ///
    /// # Errors
    /// When there is no address space for buffers.
    pub fn add_user(
        &mut self,
        config: InitiatorConfig,
        disk: &Disk,
        (sessions, replacement): (u16, Now),
        over_iser: bool,
    ) -> io::Result<usize> {
        let kernel = Kernel::default();
        let mut settings = settings(config, sessions, replacement);
        if let TransportAddress::Iscsi(portal) = &mut settings.way {
            portal.iser = over_iser.then(IserOptions::software);
        }
        self.users
            .push(SimUser::new(kernel.clone(), settings, disk.traits())?);
        self.kernels.push(kernel);
        Ok(self.users.len() - 1)
    }

    /// Another core of a user's process, by sessions of its own; returns its number.
    ///
    /// # Errors
    ///
    /// No memory.
    pub fn add_core(&mut self, user: usize) -> io::Result<usize> {
        let kernel = Kernel::default();
        let volume = Arc::clone(&self.users[user].volume);
        self.users.push(SimUser::of(kernel.clone(), volume)?);
        self.kernels.push(kernel);
        Ok(self.users.len() - 1)
    }

    /// A user asks for something.
    pub fn submit(&mut self, user: usize, id: u64, op: MediumOp<BlockLease>) {
        self.users[user].submit(self.now, id, op);
    }

    /// A user does not want these operations any more.
    pub fn cancel(&mut self, user: usize, ids: &Range<u64>) {
        let now = self.now;
        self.users[user].act(now, |handle, cx| handle.cancel(cx, ids));
    }

    /// Memory for a user's data.
    #[must_use]
    pub fn buffer(&self, user: usize, len: usize) -> Option<BlockLease> {
        self.users[user].buffer(len)
    }

    /// What a user was told next.
    pub fn next_done(&mut self, user: usize) -> Option<(u64, MediumResult<BlockLease>)> {
        self.users[user].done.pop()
    }

    /// Every connection that a user has made, the newest last.
    #[must_use]
    pub fn wires_of(&self, user: usize) -> &[SimWire] {
        &self.users[user].wires
    }

    /// A user wants nothing more.
    pub fn leave(&mut self, user: usize) {
        self.users[user].leave(self.now);
    }

    /// Whether nothing is left of a user's sessions on its side.
    #[must_use]
    pub fn user_has_left(&self, user: usize) -> bool {
        self.users[user].has_left()
    }

    /// The calls that a user has just made come to the target.
    pub(super) fn connect_dialed(&mut self, kernel: usize) {
        for wire in wire::take_dialed() {
            self.users[kernel - self.cores.len()]
                .wires
                .push(wire.clone());
            let peer = ([127, 0, 0, 1], 40_000).into();
            match self.kernels[0].connect(&wire, peer) {
                Ok(()) => self.turn(0),
                Err(_) => wire.cut(),
            }
        }
    }
}

impl SimUser {
    fn new(kernel: Kernel, settings: RemoteSettings, traits: Traits) -> io::Result<Self> {
        Self::of(
            kernel,
            Arc::new(RemoteVolume::known(settings, facts(traits))),
        )
    }

    fn of(kernel: Kernel, volume: Arc<dyn Volume>) -> io::Result<Self> {
        let pool = Pool::new(POOL_BYTES)?;
        let core = CoreContext::new(pool.clone());
        let volumes = Volumes::attach(&[Arc::clone(&volume)], &core)?;
        Ok(Self {
            kernel,
            volume,
            volumes,
            pool,
            done: Vec::new(),
            wires: Vec::new(),
        })
    }

    pub(super) fn buffer(&self, len: usize) -> Option<BlockLease> {
        self.pool.buffer(len).map(BlockLease::from)
    }

    pub(super) fn submit(&mut self, now: Now, id: u64, op: MediumOp<BlockLease>) {
        self.act(now, |handle, cx| handle.submit(cx, id, op));
        self.turn(now);
    }

    pub(super) fn leave(&mut self, now: Now) {
        self.act(now, |handle, cx| handle.leave(cx));
        self.turn(now);
    }

    /// The other end of its connections is no more.
    pub(super) fn cut_off(&self) {
        self.wires.iter().for_each(SimWire::cut);
    }

    pub(super) fn has_left(&self) -> bool {
        self.volumes.have_left()
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.volumes.next_deadline()
    }

    /// Takes what has happened in its kernel, and what is due.
    pub(super) fn turn(&mut self, now: Now) {
        while let Some(event) = self.kernel.next_event() {
            hand_on(event, |node, slot, event| {
                self.act(now, |handle, cx| handle.event(cx, node, slot, event));
            });
        }
        if self.volumes.expired(0, now) {
            self.act(now, |handle, cx| handle.resume(cx));
        }
        while self.volumes.next_soon().is_some() {
            self.act(now, |handle, cx| handle.resume(cx));
        }
    }

    fn act(&mut self, now: Now, act: impl FnOnce(&mut dyn Handle, &mut Context<'_>)) {
        let mut around = SharedResources {
            ring: &mut self.kernel,
            done: &mut self.done,
            now,
        };
        self.volumes.act(0, &mut around, act);
    }
}

fn settings(config: InitiatorConfig, sessions: u16, replacement: Now) -> RemoteSettings {
    RemoteSettings {
        way: TransportAddress::Iscsi(Box::new(TargetPortal {
            host: "simulated".into(),
            port: 3260,
            iser: None,
            config,
        })),
        lun: Lun::from_index(0),
        replacement,
        sessions,
        wishes: UnitWishes::default(),
        outside: SessionEnvironment {
            connect: |_, _, _| wire::dial(),
            resolve: |_, _| Ok(Vec::new()),
            rdma: |_| Err("a simulated machine has no RDMA device".to_owned()),
            random: |bytes| {
                bytes.fill(7);
                Ok(())
            },
        },
    }
}

/// What the unit says when it is asked is taken in the place of most of this.
fn facts(traits: Traits) -> Facts {
    Facts {
        identity: ReportedIdentity {
            serial: "SIM0".into(),
            designator: [&[1, 3], &super::target::naa(0)[..]].concat(),
            ..ReportedIdentity::default()
        },
        traits,
        max_transfer: 0,
        write_same: 1,
        ndob: false,
        provisioned: false,
        dpofua: true,
    }
}
