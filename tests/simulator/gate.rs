//! Trees that follow each other through the gate while hosts use what they show: candidate, check,
//! plan, lowering, and the five orders to simulated cores.
//!
//! | what is looked at | by |
//! |---|---|
//! | no write reaches what is not served, or by a LUN that leads elsewhere | each step |
//! | no read is of the wrong disk, no write of what may only be read is GOOD | each answer |
//! | sessions end and unit attentions are told as the plan has said, to no one else | [`told`] |
//! | logins to the fabrics of switches end, and ports part, as the plan has said | [`fabrics`] |
//! | LUNs, identities and SendTargets are what the tree says | [`sight`] |
//! | the tree that was applied is the one that is served: its plan is empty | each change |

mod fabrics;
mod hosts;
mod server;
mod sight;
mod told;
mod trees;
mod trial;

use std::sync::{Arc, Mutex};

use control::gate::Persist;
use control::plan::SessionFact;
use control::tree::Tree;
use engine::change::ChangeError;
use iscsi::target::NodeAccess;
use sim::{POOL_BYTES, Rng, World, WorldConfig};

use self::fabrics::Fabrics;
use self::hosts::Host;
use self::server::{Defect, Served, Workshop};
use self::trees::{INITIATORS, PORTALS, TARGETS};
use crate::lab;
use crate::oracle::Tick;
use crate::transport::Transport;
use crate::watch::Watch;

/// Disks, some of which are no volume at a time.
const DISKS: usize = 7;

/// A server and its hosts.
struct Site {
    rng: Rng,
    world: World,
    tick: Tick,
    watch: Watch,
    hosts: Vec<Host>,
    served: Served,
    fabrics: Fabrics,
    /// What is served.
    tree: Tree,
    /// What each LUN led to, and when.
    history: Vec<Mapping>,
    order: Option<Order>,
    /// Orders that were given and have ended.
    changes: usize,
    /// The sessions of which the plan in progress tells.
    witnesses: Vec<Witness>,
    /// Sessions that are not among them, as their hosts do not know of them yet.
    unseen: usize,
    /// What the server does wrong.
    defect: Option<Defect>,
    trace: bool,
}

/// A LUN of an initiator at a target that led to a volume, from when it may have done so, until
/// when.
struct Mapping {
    initiator: &'static str,
    target: &'static str,
    lun: u16,
    disk: Option<usize>,
    is_writable: bool,
    /// The change that has made it so, counted from 1.
    change: usize,
    from: Tick,
    until: Tick,
}

/// A session that was there when a change was kept.
#[derive(Clone, Copy)]
struct Witness {
    host: usize,
    /// Which of the host's sessions.
    session: usize,
    /// It had heard all that there was.
    is_clean: bool,
}

/// What core 0 was told to change, and what is so when it has.
struct Order {
    result: Arc<Mutex<Option<Result<(), ChangeError>>>>,
    tree: Tree,
}

impl Site {
    /// A server that serves nothing, and some hosts.
    fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut rng = Rng::new(seed ^ 0x6761_7465);
        let watch = Watch::new(&mut rng, DISKS, 0);
        let mut config = tests::target_config("", NodeAccess::default(), lab::short_limits());
        config.nodes.clear();
        let setup = WorldConfig {
            seed,
            cores: 1 + rng.below(4) as u16,
            config,
            units: Vec::new(),
            pool_bytes: POOL_BYTES,
        };
        let mut world = World::new(&setup).expect("a world");
        world.pace = lab::any_pace(&mut rng);
        Self {
            world,
            tick: 0,
            watch,
            hosts: any_hosts(&mut rng),
            served: Served::default(),
            fabrics: Fabrics::default(),
            tree: Tree::default(),
            history: Vec::new(),
            order: None,
            changes: 0,
            witnesses: Vec::new(),
            unseen: 0,
            defect,
            trace: std::env::var_os("LUNAR_TRACE").is_some(),
            rng,
        }
    }

    /// So many random things happen.
    fn wander(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.rng.below(12) {
                0 => self.act(),
                _ => drop(self.step() || self.pass()),
            }
        }
    }

    /// Lets everything come to its end, and every host hear what there is to hear.
    fn settle(&mut self) {
        for host in self.hosts.iter_mut().filter(|host| host.port.logged_in) {
            host.probe();
        }
        for _ in 0..100_000 {
            for host in &mut self.hosts {
                host.wake();
            }
            let is_settled = self.hosts.iter().all(Host::is_settled);
            if !self.step() && (is_settled || !self.pass()) {
                assert!(is_settled, "a host hears nothing more");
                return;
            }
        }
        panic!("it comes to no end");
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
        for (host, lun, disk) in self.watch.look() {
            let mut met = self.mappings(host, lun, self.tick);
            let leads_there = met.any(|one| one.disk == Some(disk));
            assert!(
                leads_there,
                "host {host} writes to disk {disk} by LUN {lun}"
            );
        }
        self.look_at_order();
    }

    /// Lets time pass until something is due. Nobody sleeps for so long that a session would end.
    fn pass(&mut self) -> bool {
        let Some(patience) = self.world.patience() else {
            return false;
        };
        let woken = self
            .hosts
            .iter_mut()
            .filter_map(|host| host.wake().then_some(()));
        if patience.as_secs() > 0 && woken.count() > 0 {
            return true;
        }
        self.world.pass(patience);
        self.look();
        true
    }

    /// Serves a tree, as [`control::gate::Engine::apply`] is asked to.
    fn serve(&mut self, tree: &Tree, persist: Persist<'_>) -> Result<(), Vec<String>> {
        let mut next = self.served.clone();
        let broken = self.rng.one_in(8).then(|| self.rng.below(DISKS));
        let workshop = Workshop {
            watch: &self.watch,
            broken,
            defect: self.defect,
        };
        let prepared = next.prepare(tree, &workshop);
        // Nobody waits for volumes that are being opened.
        self.some_wander(60);
        let mut change = prepared?;
        let facts = self.facts();
        persist(&facts).map_err(|cause| vec![cause])?;
        self.witness(&facts);
        let result = Arc::new(Mutex::new(None));
        let told = Arc::clone(&result);
        change.done = Box::new(move |result| *told.lock().expect("no panic") = Some(result));
        self.begin(tree, Arc::clone(&result));
        self.some_wander(10);
        let portals = std::mem::replace(&mut self.served.portals, next.portals.clone());
        self.world.change(change);
        self.look();
        for _ in 0..100_000 {
            if self.order.is_none() {
                break;
            }
            self.wander(1);
        }
        match result.lock().expect("no panic").take() {
            Some(Ok(())) => {
                self.served = next;
                self.fabrics.serve(tree, self.defect);
                Ok(())
            }
            Some(Err(ChangeError::Busy(volume))) => {
                self.served.portals = portals;
                Err(vec![volume])
            }
            Some(Err(error)) => panic!("{error}"),
            None => panic!("a change comes to no end"),
        }
    }

    fn some_wander(&mut self, most: usize) {
        let steps = self.rng.below(most);
        self.wander(steps);
    }

    /// The sessions that core 0 knows.
    fn facts(&mut self) -> Vec<SessionFact> {
        let sessions = self.world.sessions().into_iter();
        let facts = sessions.filter_map(|session| {
            Some(SessionFact {
                target: session.target?,
                initiator: session.initiator.name,
                portal: Some(session.endpoints.local),
            })
        });
        facts.collect()
    }

    /// What hosts hear from now on is what the plan tells.
    fn witness(&mut self, facts: &[SessionFact]) {
        self.witnesses.clear();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.heard.clear();
            let own = SessionFact {
                target: host.target.to_owned(),
                initiator: host.initiator.to_owned(),
                portal: Some(trees::address(host.portal)),
            };
            if host.port.logged_in && !host.has_left() && facts.contains(&own) {
                self.witnesses.push(Witness {
                    host: number,
                    session: host.sessions,
                    is_clean: host.is_clean,
                });
            }
        }
        self.unseen = facts.len() - self.witnesses.len();
    }

    /// From now on a LUN may lead to what the old tree says or the new.
    fn begin(&mut self, tree: &Tree, result: Arc<Mutex<Option<Result<(), ChangeError>>>>) {
        self.tell(|| "a change begins".to_owned());
        self.map(tree);
        self.serve_disks(&[&self.tree.clone(), tree]);
        let tree = tree.clone();
        self.order = Some(Order { result, tree });
    }

    /// The disks of these trees may be written.
    fn serve_disks(&mut self, trees: &[&Tree]) {
        for (number, one) in self.watch.disks.iter_mut().enumerate() {
            let mut rows = trees.iter().flat_map(|tree| tree.volume.values());
            one.is_in = rows.any(|row| trees::disk(row) == Some(number));
        }
    }

    /// Every LUN may lead to what this tree says from now on.
    fn map(&mut self, tree: &Tree) {
        for (initiator, target) in pairs() {
            let seen = trees::sees(tree, initiator, target).unwrap_or_default();
            let mapping = |(lun, seen): (u16, trees::SeenLun)| Mapping {
                initiator,
                target,
                lun,
                disk: seen.disk,
                is_writable: seen.is_writable,
                change: self.changes + 1,
                from: self.tick,
                until: Tick::MAX,
            };
            self.history.extend(seen.into_iter().map(mapping));
        }
    }

    /// What a host's LUN led to between then and now.
    fn mappings(&self, host: usize, lun: u16, begun: Tick) -> impl Iterator<Item = &Mapping> {
        let (host, now) = (&self.hosts[host], self.tick);
        let own = move |one: &&Mapping| {
            (one.initiator, one.target, one.lun) == (host.initiator, host.target, lun)
        };
        let all = self.history.iter().filter(own);
        all.filter(move |one| one.from <= now && begun <= one.until)
    }

    fn look_at_order(&mut self) {
        let Some(order) = &self.order else { return };
        let is_made = match &*order.result.lock().expect("no panic") {
            None => return,
            Some(result) => result.is_ok(),
        };
        let Some(order) = self.order.take() else {
            return;
        };
        self.tell(|| format!("the change is made: {is_made}"));
        self.changes += 1;
        self.close(is_made);
        if is_made {
            self.tree = order.tree;
        }
        self.serve_disks(&[&self.tree.clone()]);
        for number in 0..self.hosts.len() {
            if !self.may_be_in(&self.hosts[number]) {
                let stamps = self.hosts[number].stamps();
                stamps.into_iter().for_each(|stamp| self.watch.over(stamp));
            }
        }
    }

    /// What was replaced leads nowhere from now on, or what was to take its place.
    fn close(&mut self, is_made: bool) {
        let now = self.tick;
        for one in &mut self.history {
            if (one.change == self.changes) != is_made {
                one.until = one.until.min(now);
            }
        }
        let tasks = self.hosts.iter().flat_map(|host| host.port.tasks.values());
        let oldest = tasks.map(|task| task.what.begun).min().unwrap_or(now);
        self.history.retain(|one| one.until >= oldest);
    }

    /// Whether the tree lets a host in where it comes.
    fn may_be_in(&self, host: &Host) -> bool {
        let sees = trees::sees(&self.tree, host.initiator, host.target);
        let group = trees::portal_group(&self.tree, host.target, host.portal);
        sees.is_some() && group.is_some()
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

/// Each initiator with each target.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let with = |initiator| TARGETS.into_iter().map(move |target| (initiator, target));
    INITIATORS.into_iter().flat_map(with)
}

/// Some of all hosts that there could be.
fn any_hosts(rng: &mut Rng) -> Vec<Host> {
    let count = INITIATORS.len() * TARGETS.len() * PORTALS.len();
    let mut left: Vec<usize> = (0..count).collect();
    let mut transports = rng.clone();
    let hosts = (0..2 + rng.below(4)).map(|number| {
        let place = left.swap_remove(rng.below(left.len()));
        let (initiator, rest) = (place % INITIATORS.len(), place / INITIATORS.len());
        let (target, portal) = (rest % TARGETS.len(), rest / TARGETS.len());
        let iser = Transport::Mixed.pick(&mut transports);
        Host::new(number as u32, (initiator, target, portal), iser)
    });
    hosts.collect()
}
