//! A simulated target, hosts that use it, and the oracle that watches.

mod check;
mod commands;
mod traffic;

use std::slice::SliceIndex;
use std::time::Duration;

use block::lease::BlockLease;
use iscsi::initiator::config::{InitiatorConfig, OperationalOffer};
use iscsi::target::{NodeAccess, TargetLimits};
use scsi::medium::{Extent, Lease as _, MediumOp, ReadMemory};
use sim::{CoreUsage, Disk, DiskKind, EventWeights, POOL_BYTES, Rng, SimWire, World, WorldConfig};
use tests::initiator::{Reply, Settings};
use tests::target_config;

pub(crate) use check::sense_key;
pub(crate) use traffic::Mix;

use crate::host::Host;
use crate::oracle::Oracle;
use crate::transport::{self, Transport};

/// The one target.
pub(crate) const TARGET: &str = "iqn.2026-11.org.lunar:simulated";

/// A story's place.
pub(crate) struct Lab {
    /// Chance, of the hosts.
    pub(crate) rng: Rng,
    /// What carries them.
    transport: Transport,
    /// The target.
    pub(crate) world: World,
    setup: WorldConfig,
    /// Its units.
    pub(crate) disks: Vec<Disk>,
    /// What their blocks were when they were looked at.
    shadows: Vec<Vec<Vec<u8>>>,
    /// Who watches.
    pub(crate) oracle: Oracle,
    /// Who uses it.
    pub(crate) hosts: Vec<Host>,
    /// Units that the oracle does not watch.
    pub(crate) unwatched: Vec<usize>,
    /// A host that nothing is late for: each thing that happens is carried on to it and from it
    /// before the next.
    pub(crate) prompt: Option<usize>,
    /// Tell what happens.
    trace: bool,
}

/// What a lab begins with.
pub(crate) struct Shape {
    /// How many cores.
    pub(crate) cores: u16,
    /// The units.
    pub(crate) disks: Vec<Disk>,
    /// Limits of the target.
    pub(crate) limits: TargetLimits,
    /// Bytes of buffers that each core may use.
    pub(crate) pool_bytes: usize,
    /// CRCs of iSER are left to the hosts.
    pub(crate) without_crc: bool,
}

impl Shape {
    /// So many cores and one small disk.
    #[must_use]
    pub(crate) fn new(cores: u16, kind: DiskKind) -> Self {
        Self {
            cores,
            disks: vec![Disk::new(kind, 512, 32)],
            limits: limits(),
            pool_bytes: POOL_BYTES,
            without_crc: true,
        }
    }

    /// Between one core and four, and a disk of either kind.
    #[must_use]
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let kind = *rng.pick(&[DiskKind::Apart, DiskKind::Apart, DiskKind::Memory]);
        Self::new(1 + rng.below(4) as u16, kind)
    }
}

/// Short segments and bursts, so that everything takes several PDUs.
fn limits() -> TargetLimits {
    TargetLimits {
        logins: 64,
        sessions: 1000,
        data_segment: 8192,
        first_burst: 65_536,
        max_burst: 262_144,
        outstanding_r2t: 4,
        window: 32,
        held_bytes: 1 << 20,
        ..TargetLimits::default()
    }
}

/// Short segments and bursts, so that everything takes several PDUs.
pub(crate) fn short_limits() -> TargetLimits {
    TargetLimits {
        data_segment: 1024,
        first_burst: 1024,
        max_burst: 2048,
        window: 16,
        held_bytes: 1 << 16,
        ..TargetLimits::default()
    }
}

/// Things happen more or less often.
pub(crate) fn any_pace(rng: &mut Rng) -> EventWeights {
    let mut weight = || *rng.pick(&[1, 1, 4, 16]);
    EventWeights {
        mail: weight(),
        wires: weight(),
        disks: weight(),
        ..EventWeights::default()
    }
}

/// A read by a user.
pub(crate) const fn read_op(extent: Extent) -> MediumOp<BlockLease> {
    MediumOp::Read {
        extent,
        memory: ReadMemory::Lent,
    }
}

impl Lab {
    /// A target of this shape.
    #[must_use]
    pub(crate) fn new(seed: u64, shape: Shape) -> Self {
        let oracle = Oracle::new(&shape.disks);
        let shadow = |disk: &Disk| {
            let size = disk.traits().block_size as usize;
            vec![vec![0; size]; disk.traits().blocks as usize]
        };
        let mut config = target_config(TARGET, NodeAccess::default(), shape.limits);
        config.iser = transport::portals(shape.without_crc);
        let setup = WorldConfig {
            seed,
            cores: shape.cores,
            config,
            units: shape.disks,
            pool_bytes: shape.pool_bytes,
        };
        Self {
            rng: Rng::new(seed ^ 0x0068_6f73_7473),
            transport: Transport::of(seed),
            world: World::new(&setup).expect("a world"),
            shadows: setup.units.iter().map(shadow).collect(),
            disks: setup.units.clone(),
            setup,
            oracle,
            hosts: Vec::new(),
            unwatched: Vec::new(),
            prompt: None,
            trace: std::env::var_os("LUNAR_TRACE").is_some(),
        }
    }

    /// A target of any shape.
    #[must_use]
    pub(crate) fn any(seed: u64) -> Self {
        Self::new(seed, Shape::any(&mut Rng::new(seed)))
    }

    /// The target is killed and started again.
    pub(crate) fn restart(&mut self) {
        self.world.restart(&self.setup).expect("a world");
    }

    /// Things happen more or less often from now on.
    pub(crate) fn any_pace(&mut self) {
        self.world.pace = any_pace(&mut self.rng);
    }

    /// Hosts hear at once, and what cores tell each other takes longer.
    pub(crate) fn slow_mail(&mut self, most: usize) {
        self.world.pace = EventWeights {
            wires: 16,
            mail: 1 + self.rng.below(most),
            ..EventWeights::default()
        };
    }

    /// What the cores hold of something, together.
    pub(crate) fn sum(&self, of: impl Fn(&CoreUsage) -> usize) -> usize {
        self.world.census().iter().map(of).sum()
    }

    /// Another host, which is not connected; returns its number.
    pub(crate) fn add_host(&mut self) -> usize {
        let number = self.hosts.len();
        let settings = self.settings(number as u32);
        self.tell(|| format!("host {number} comes by {:?}", settings.iser));
        self.hosts.push(Host::new(settings));
        number
    }

    /// How a host of this number comes.
    pub(crate) fn settings(&mut self, number: u32) -> Settings {
        Settings {
            iser: self.transport.pick(&mut self.rng),
            ..Settings::new(number, TARGET)
        }
    }

    /// Another host, with any keys.
    pub(crate) fn add_any_host(&mut self) -> usize {
        let number = self.add_host();
        self.hosts[number].settings.keys = self.any_keys();
        number
    }

    fn any_keys(&mut self) -> Vec<(&'static str, String)> {
        let rng = &mut self.rng;
        let mut pick = |of: &[&str]| (*rng.pick(of)).to_owned();
        vec![
            ("HeaderDigest", pick(&["None", "CRC32C"])),
            ("DataDigest", pick(&["None", "CRC32C"])),
            ("InitialR2T", pick(&["Yes", "No"])),
            ("ImmediateData", pick(&["Yes", "No"])),
            ("MaxRecvDataSegmentLength", pick(&["512", "1024", "8192"])),
            ("MaxBurstLength", pick(&["1024", "2048", "262144"])),
            ("FirstBurstLength", pick(&["512", "1024"])),
            ("MaxOutstandingR2T", pick(&["1", "2", "8"])),
        ]
    }

    /// Our own initiator, a user of the first disk by so many sessions, each of which may be away
    /// for so long; returns its number.
    pub(crate) fn add_user(
        &mut self,
        sessions: (u16, Duration),
        set: impl FnOnce(&mut OperationalOffer),
    ) -> usize {
        let name = "iqn.2026-11.org.lunar:user";
        let mut config = InitiatorConfig::normal(name, [0x80, 0, 0, 1, 0, 0], TARGET);
        set(&mut config.offer);
        let over_iser = self.transport.is_iser(&mut self.rng);
        let disk = &self.disks[0];
        let user = self.world.add_user(config, disk, sessions, over_iser);
        user.expect("memory")
    }

    /// Nothing moves on some of the connections of a user, or it does again.
    pub(crate) fn stall(
        &self,
        user: usize,
        which: impl SliceIndex<[SimWire], Output = [SimWire]>,
        stalled: bool,
    ) {
        let wires = &self.world.wires_of(user)[which];
        wires.iter().for_each(|wire| wire.stall(stalled));
    }

    /// A write by a user.
    pub(crate) fn write_op(
        &self,
        user: usize,
        extent: Extent,
        bytes: &[u8],
        fua: bool,
    ) -> MediumOp<BlockLease> {
        let mut data = self.world.buffer(user, bytes.len()).expect("memory");
        data.copy_in(0, bytes);
        MediumOp::Write {
            extent,
            data,
            fua,
            atomic: false,
        }
    }

    /// Connects a host and lets it begin to log in.
    pub(crate) fn dial(&mut self, host: usize) {
        self.tell(|| format!("host {host} dials"));
        let wire = self.world.connect().expect("somebody listens");
        self.hosts[host].dial(wire);
    }

    /// Connects a host and waits until it is logged in.
    pub(crate) fn log_in(&mut self, host: usize) {
        self.dial(host);
        self.until("a login", |lab| lab.hosts[host].logged_in);
    }

    /// So many hosts of any kind, logged in.
    pub(crate) fn log_in_hosts(&mut self, count: usize) {
        for _ in 0..count {
            let host = self.add_any_host();
            self.log_in(host);
        }
    }

    /// Lets things happen until something is so.
    ///
    /// # Panics
    /// When nothing happens any more and it is not.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            assert!(self.step(), "no {what}, and nothing more happens");
        }
    }

    /// Waits for the answer to a command: its status and data. What else the host was told up to
    /// now is forgotten.
    pub(crate) fn answer(&mut self, host: usize, user: u64) -> (u16, Vec<u8>) {
        loop {
            let told = std::mem::take(&mut self.hosts[host].told).into_iter();
            let mut ended = told.filter_map(|reply| match reply {
                Reply::Done {
                    user: one,
                    status,
                    data,
                    ..
                } if one == user => Some((status, data)),
                _ => None,
            });
            if let Some(answer) = ended.next() {
                return answer;
            }
            assert!(self.step(), "no answer, and nothing more happens");
        }
    }

    /// Sends a command until it is answered with GOOD, whatever unit attentions there are.
    pub(crate) fn insist(&mut self, host: usize, send: impl Fn(&mut Self) -> u64) {
        for _ in 0..20 {
            let user = send(self);
            if self.answer(host, user).0 == 0 {
                return;
            }
        }
        panic!("host {host} is not answered with GOOD");
    }

    /// Lets everything happen that can.
    pub(crate) fn quiesce(&mut self) {
        while self.step() {}
    }

    /// Tells what happens, if that is asked for.
    pub(crate) fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{}", what());
        }
    }
}
