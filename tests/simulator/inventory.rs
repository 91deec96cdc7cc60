//! A server whose LUNs, volumes and rules change while hosts use it, over several cores with
//! messages that take their time: no write reaches a volume that is not served any more, no read
//! sees the wrong one, and every host is told what has changed.
//!
//! Every block tells which disk it was of at the beginning, or which write it is of; a write tells
//! on which disk it has landed. So a read tells which disk it came from, and whatever changes on a
//! disk that is not served any more is seen at once.

mod hosts;
mod orders;

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use engine::change::ChangeError;
use iscsi::target::{NodeAccess, TargetConfig, TargetLimits};
use scsi::unit::UnitId;
use sim::{Disk, DiskKind, POOL_BYTES, Rng, World, WorldConfig};

use self::hosts::Host;
use crate::lab;
use crate::oracle::Tick;
use crate::seeds::with_seeds;

const TARGET: &str = "iqn.2026-11.org.lunar:inventory";
const BLOCK: usize = 512;
/// Blocks that hosts use; disks may have more.
const BLOCKS: u64 = 8;

/// LUNs that there can be.
const LUNS: u16 = 4;

/// Disks, most of which are not served at a time.
const DISKS: usize = 6;

/// The story's place.
struct Site {
    rng: Rng,
    world: World,
    tick: Tick,
    disks: Vec<WatchedDisk>,
    writes: Vec<Write>,
    hosts: Vec<Host>,
    /// The units that there are, by number, and the disks behind them.
    units: BTreeMap<UnitId, usize>,
    free: Vec<UnitId>,
    slots: u32,
    /// What each LUN leads to now.
    luns: BTreeMap<u16, UnitId>,
    /// Which disks a LUN led to, and when.
    history: Vec<Mapping>,
    /// Hosts that may not log in.
    revoked: Vec<usize>,
    order: Option<Order>,
    dropping: Option<(Vec<usize>, Receiver<()>)>,
    /// How many orders were carried out, and how many were refused.
    made: [usize; 2],
    trace: bool,
}

struct WatchedDisk {
    disk: Disk,
    /// What it held when it was looked at last.
    shadow: Vec<Vec<u8>>,
    /// It is served, or about to be.
    is_in: bool,
}

/// A LUN that led to a disk, from when it may have done so, until when.
struct Mapping {
    lun: u16,
    disk: usize,
    from: Tick,
    until: Tick,
}

struct Write {
    host: usize,
    lun: u16,
    /// The disk that has a block of it.
    landed: Option<usize>,
    /// It was answered, or its session has ended.
    is_over: bool,
}

impl Write {
    const fn none() -> Self {
        Self {
            host: usize::MAX,
            lun: 0,
            landed: None,
            is_over: true,
        }
    }
}

/// What core 0 was told to change, and what is so when it has.
struct Order {
    result: Arc<Mutex<Option<Result<(), ChangeError>>>>,
    next: Next,
    begun: Tick,
}

/// What an order leads to.
#[derive(Clone, Default)]
struct Next {
    units: BTreeMap<UnitId, usize>,
    luns: BTreeMap<u16, UnitId>,
    revoked: Vec<usize>,
    gone: Vec<UnitId>,
    arrived: Vec<UnitId>,
    /// LUNs of which hosts have to hear.
    told: Vec<u16>,
}

/// What a block holds: a stamp, and what tells of a disk at its beginning.
fn content(stamp: u32, disk: u32) -> Vec<u8> {
    let sum = stamp.wrapping_mul(0x9e37_79b9) ^ disk;
    let words = [stamp, disk, sum, !sum];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.repeat(BLOCK / 16)
}

/// The stamp of a block, or the disk that it was of at the beginning; `None` of a mixture.
fn parse(block: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_be_bytes(*block.get(at..)?.first_chunk()?));
    let (stamp, disk) = (word(0)?, word(4)?);
    (content(stamp, disk) == block).then_some((stamp, disk))
}

impl Site {
    /// A server with two LUNs, and so many hosts.
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x696e_7665);
        let kinds = [DiskKind::Apart, DiskKind::Apart, DiskKind::Memory];
        let disks = (0..DISKS).map(|number| {
            // A volume that takes another one's place may be longer or shorter.
            let blocks = BLOCKS + number as u64 % 2;
            let disk = Disk::new(*rng.pick(&kinds), BLOCK as u32, blocks);
            let first = content(0, number as u32);
            (0..BLOCKS).for_each(|lba| disk.fill(lba, &first));
            WatchedDisk {
                disk,
                shadow: vec![first; BLOCKS as usize],
                is_in: number < 2,
            }
        });
        let disks: Vec<_> = disks.collect();
        let setup = WorldConfig {
            seed,
            cores: 1 + rng.below(4) as u16,
            config: config(NodeAccess::default()),
            units: disks[..2].iter().map(|one| one.disk.clone()).collect(),
            pool_bytes: POOL_BYTES,
        };
        let mut site = Self {
            world: World::new(&setup).expect("a world"),
            tick: 0,
            disks,
            // Stamp 0 is of no write.
            writes: vec![Write::none()],
            hosts: Vec::new(),
            units: (0..2).map(|n| (UnitId::first(n), n as usize)).collect(),
            free: Vec::new(),
            slots: 2,
            luns: (0..2).map(|n| (n, UnitId::first(n.into()))).collect(),
            history: Vec::new(),
            revoked: Vec::new(),
            order: None,
            dropping: None,
            made: [0; 2],
            trace: std::env::var_os("LUNAR_TRACE").is_some(),
            rng,
        };
        site.map_from(0);
        site.world.pace = lab::any_pace(&mut site.rng);
        for number in 0..1 + site.rng.below(3) {
            site.hosts.push(Host::new(number as u32));
        }
        site
    }

    /// Every LUN leads to its disk from then on.
    fn map_from(&mut self, from: Tick) {
        for (lun, unit) in &self.luns {
            self.history.push(Mapping {
                lun: *lun,
                disk: self.units[unit],
                from,
                until: Tick::MAX,
            });
        }
    }

    /// So many random things happen, and then everything comes to its end.
    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.rng.below(12) {
                0 => self.act(),
                1 if self.rng.one_in(4) => self.give_order(),
                2 if self.rng.one_in(40) => self.give_drop(),
                _ => drop(self.step() || self.pass()),
            }
        }
        self.hosts.iter_mut().for_each(Host::wake);
        for _ in 0..100_000 {
            if !self.step() && self.is_quiet() {
                return self.check_end();
            }
            if !self.step() {
                self.pass();
            }
        }
        panic!("it comes to no end");
    }

    fn is_quiet(&self) -> bool {
        self.order.is_none() && self.dropping.is_none() && self.hosts.iter().all(Host::is_idle)
    }

    /// Lets one thing happen; `false` when nothing can.
    fn step(&mut self) -> bool {
        let first = self.rng.one_in(2);
        let happened = first && self.world.step() || self.host_step() || self.world.step();
        if happened {
            self.look();
        }
        happened
    }

    /// Something has happened.
    fn look(&mut self) {
        self.tick += 1;
        self.look_at_disks();
        self.look_at_orders();
    }

    /// Lets time pass until something is due.
    fn pass(&mut self) -> bool {
        let Some(patience) = self.world.patience() else {
            return false;
        };
        self.world.pass(patience);
        self.look();
        true
    }

    /// Whatever has changed on a disk was written by somebody who could.
    fn look_at_disks(&mut self) {
        for number in 0..self.disks.len() {
            let one = &mut self.disks[number];
            for lba in 0..BLOCKS {
                let (block, before) = (one.disk.block(lba), &mut one.shadow[lba as usize]);
                if block == *before {
                    continue;
                }
                assert!(
                    one.is_in,
                    "disk {number}, LBA {lba} changes while it is not served"
                );
                before.clone_from(&block);
                let Some((stamp, _)) = parse(&block) else {
                    continue;
                };
                let Some(write) = self.writes.get_mut(stamp as usize) else {
                    panic!("disk {number}, LBA {lba}: {stamp} was never written");
                };
                let (host, lun) = (write.host, write.lun);
                let named = format!("write {stamp} of host {host} to LUN {lun}");
                assert!(!write.is_over, "{named} lands after it was over");
                let landed = *write.landed.get_or_insert(number);
                assert_eq!(landed, number, "{named} lands on two disks");
            }
        }
    }

    fn check_end(&self) {
        for usage in self.world.census() {
            assert_eq!(usage.buffers, 0, "{usage:?}");
            assert!(!usage.core.is_changing, "{usage:?}");
            assert_eq!(usage.core.busy_owners, 0, "{usage:?}");
        }
    }

    fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{:>6} {}", self.tick, what());
        }
    }
}

fn config(access: NodeAccess) -> TargetConfig {
    let limits = TargetLimits {
        data_segment: 1024,
        first_burst: 1024,
        max_burst: 2048,
        window: 16,
        held_bytes: 1 << 16,
        ..TargetLimits::default()
    };
    tests::target_config(TARGET, access, limits)
}

#[test]
fn what_is_served_changes_under_those_who_use_it() {
    let made = std::cell::Cell::new([0, 0]);
    with_seeds("inventory", 20_000, |seed| {
        let mut site = Site::new(seed);
        site.run(2000);
        let [well, refused] = made.get();
        made.set([well + site.made[0], refused + site.made[1]]);
    });
    let [well, refused] = made.get();
    eprintln!("{well} changes were made, {refused} refused");
    assert!(well > refused);
}
