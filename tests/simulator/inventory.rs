//! A server whose LUNs, volumes and rules change while hosts use it, over several cores with
//! messages that take their time: no write reaches a volume that is not served any more, no read
//! sees the wrong one, and every host is told what has changed.

mod hosts;
mod orders;

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use engine::change::ChangeError;
use iscsi::target::{NodeAccess, TargetConfig};
use scsi::unit::UnitId;
use sim::{POOL_BYTES, Rng, World, WorldConfig};

use self::hosts::Host;
use crate::lab;
use crate::oracle::Tick;
use crate::seeds::with_seeds;
use crate::transport::{self, Transport};
use crate::watch::Watch;

const TARGET: &str = "iqn.2026-11.org.lunar:inventory";

/// LUNs that there can be.
const LUNS: u16 = 4;

/// Disks, most of which are not served at a time.
const DISKS: usize = 6;

/// The story's place.
struct Site {
    rng: Rng,
    world: World,
    tick: Tick,
    watch: Watch,
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
    dropping: Option<(Vec<u32>, Receiver<()>)>,
    /// How many orders were carried out, and how many were refused.
    made: [usize; 2],
    trace: bool,
}

/// A LUN that led to a disk, from when it may have done so, until when.
struct Mapping {
    lun: u16,
    disk: usize,
    from: Tick,
    until: Tick,
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

impl Site {
    /// A server with two LUNs, and so many hosts.
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x696e_7665);
        let watch = Watch::new(&mut rng, DISKS, 2);
        let units = watch.disks[..2].iter();
        let setup = WorldConfig {
            seed,
            cores: 1 + rng.below(4) as u16,
            config: config(NodeAccess::default()),
            units: units.map(|one| one.disk.clone()).collect(),
            pool_bytes: POOL_BYTES,
        };
        let mut site = Self {
            world: World::new(&setup).expect("a world"),
            tick: 0,
            watch,
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
            let iser = Transport::Mixed.pick(&mut site.rng);
            site.hosts.push(Host::new(number as u32, iser));
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
        self.watch.look();
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
    TargetConfig {
        iser: transport::portals(false),
        ..tests::target_config(TARGET, access, lab::short_limits())
    }
}

#[test]
fn what_is_served_changes_under_those_who_use_it() {
    let made = std::cell::Cell::new([0, 0]);
    with_seeds("inventory", 500, |seed| {
        let mut site = Site::new(seed);
        site.run(2000);
        let [well, refused] = made.get();
        made.set([well + site.made[0], refused + site.made[1]]);
    });
    let [well, refused] = made.get();
    eprintln!("{well} changes were made, {refused} refused");
    assert!(well > refused);
}
