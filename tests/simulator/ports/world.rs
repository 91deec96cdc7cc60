//! Targets, hosts, and the Ethernet between them; one thing happens after the other.

use std::collections::BTreeSet;
use std::time::Duration;

use fc::port::PortConfig;
use fc::tests::{Bytes, Ethernet, Machine, Station};
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use scsi::medium::{Extent, Now};
use sim::{DiskKind, Rng};

use super::disk::{BLOCK, BLOCKS};
use super::host::{Host, Use};
use super::orders::PortWorld;
use super::server::Server;
use crate::oracle::{Oracle, Wrong};

/// What a world begins with.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) targets: usize,
    pub(crate) hosts: usize,
    pub(crate) kind: DiskKind,
    pub(crate) mtu: usize,
    pub(crate) e_d_tov: Duration,
    /// All begin with the same N_Port_ID, and have to settle that.
    pub(crate) conflicts: bool,
    /// Whether the hosts can have sent again what was lost.
    pub(crate) retries: bool,
}

impl Shape {
    /// One target, one host, and nothing out of the way.
    pub(crate) const fn new(kind: DiskKind) -> Self {
        Self {
            targets: 1,
            hosts: 1,
            kind,
            mtu: 2500,
            e_d_tov: Duration::from_secs(2),
            conflicts: false,
            retries: true,
        }
    }

    /// Any.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        Self {
            targets: 1 + rng.below(2),
            hosts: 1 + rng.below(3),
            kind: *rng.pick(&[DiskKind::Apart, DiskKind::Memory]),
            mtu: *rng.pick(&[1500, 2500]),
            e_d_tov: Duration::from_millis(*rng.pick(&[100, 2000])),
            conflicts: rng.one_in(4),
            retries: !rng.one_in(4),
        }
    }
}

/// A world.
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: Now,
    pub(crate) ethernet: Ethernet,
    pub(crate) servers: Vec<Server>,
    pub(crate) hosts: Vec<Host>,
    oracle: Oracle,
    /// Stations to which something has happened.
    touched: BTreeSet<usize>,
    /// What happened at this instant.
    steps: u32,
    trace: bool,
}

impl World {
    /// A world in which everybody has been started.
    pub(crate) fn new(seed: u64, shape: &Shape) -> Self {
        let mut rng = Rng::new(seed);
        let config = |group: u8, number: usize| {
            let low = if shape.conflicts { 1 } else { number as u8 + 1 };
            let mac = Mac([2, 0, group, number as u8, group * 16, low]);
            let mut config = PortConfig::new(mac, shape.mtu);
            config.e_d_tov = shape.e_d_tov;
            config
        };
        let server = |number| Server::new(number, config(1, number), shape.kind, &mut rng);
        let servers: Vec<_> = (0..shape.targets).map(server).collect();
        let wwpns: Vec<Wwn> = servers.iter().map(|server| server.config.wwpn).collect();
        let host = |number| {
            let mut config = config(if shape.conflicts { 1 } else { 2 }, 8 + number);
            config.offer.retry = shape.retries;
            config.offer.retry_identifier = shape.retries;
            Host::new(config, &wwpns, &mut rng)
        };
        let hosts = (0..shape.hosts).map(host).collect();
        let memory = shape.kind == DiskKind::Memory;
        let mut world = Self {
            now: Now::ZERO,
            ethernet: Ethernet::new(seed).slow(LEAST, MOST),
            oracle: Oracle::of((0..shape.targets).map(|_| (BLOCK, BLOCKS, memory))),
            servers,
            hosts,
            rng,
            touched: BTreeSet::new(),
            steps: 0,
            trace: std::env::var_os("LUNAR_TRACE").is_some(),
        };
        (0..shape.targets + shape.hosts).for_each(|at| world.start(at));
        world
    }

    /// A host asks for something.
    pub(crate) fn begin(&mut self, host: usize, path: usize, what: Use) {
        self.tell(|| format!("host {host} asks target {path} for {what:?}"));
        self.hosts[host].begin(self.now, path, what, &mut self.oracle);
        self.touched.insert(self.servers.len() + host);
    }

    /// Whether every host is logged in to every target.
    pub(crate) fn is_up(&self) -> bool {
        let paths = 0..self.servers.len();
        self.hosts
            .iter()
            .all(|host| paths.clone().all(|path| host.is_up(path)))
    }

    /// Whether nobody waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.hosts.iter().all(|host| host.busy() == 0)
    }

    /// Every host reads every disk as a whole; each step of that takes so long at the most.
    pub(crate) fn read_all(&mut self, most: Duration) {
        for host in 0..self.hosts.len() {
            for path in 0..self.servers.len() {
                let good = self.hosts[host].good;
                // Unit attentions come first, and logins may end that the other end knows nothing
                // of any more.
                for _ in 0..8 {
                    if self.hosts[host].good == good {
                        self.within(most, "login of all", Self::is_up);
                        self.begin(host, path, Use::Read(Extent::new(0, BLOCKS)));
                        self.within(most, "end of a read", Self::is_idle);
                    }
                }
                assert!(self.hosts[host].good > good, "host {host} cannot read");
            }
        }
    }

    fn hear(&mut self, at: usize, frame: &[u8]) {
        let now = self.now;
        if self.station(at).hear(now, frame) {
            self.tell(|| format!("{at} hears {}", line(frame)));
            self.touched.insert(at);
        }
    }

    fn wake(&mut self) {
        let now = self.now;
        for at in 0..self.stations() {
            let disk = self.servers.get(at).and_then(|server| server.disk.next());
            if self.station(at).wake(now) || disk.is_some_and(|done| done <= now) {
                self.touched.insert(at);
            }
        }
    }

    fn turn(&mut self, at: usize) -> Result<bool, Wrong> {
        let (now, room) = (self.now, 1 + self.rng.below(8));
        let any = match at.checked_sub(self.servers.len()) {
            None => {
                let server = &mut self.servers[at];
                let any = server.serve(now, &mut self.rng);
                server.look(&mut self.oracle)?;
                any
            }
            Some(host) => self.hosts[host].serve(&mut self.oracle)?,
        };
        let (frames, has_sent) = self.station(at).send(room);
        if let Some(server) = self.servers.get_mut(at).filter(|_| has_sent) {
            server.sent();
        }
        for frame in frames {
            self.send(at, &frame);
        }
        Ok(any | has_sent)
    }

    fn send(&mut self, from: usize, frame: &Bytes) {
        for to in (0..self.stations()).filter(|to| *to != from) {
            self.ethernet.send(self.now, (from, to), frame);
        }
    }
}

/// Targets come first, then hosts.
impl PortWorld for World {
    fn now(&self) -> Now {
        self.now
    }

    fn stations(&self) -> usize {
        self.servers.len() + self.hosts.len()
    }

    fn station(&mut self, at: usize) -> &mut Station<dyn Machine> {
        match at.checked_sub(self.servers.len()) {
            None => &mut self.servers[at].station,
            Some(host) => &mut self.hosts[host].station,
        }
    }

    fn start(&mut self, at: usize) {
        self.tell(|| format!("{at} starts"));
        match at.checked_sub(self.servers.len()) {
            None => self.servers[at].start(self.now, &mut self.rng),
            Some(host) => self.hosts[host].start(self.now, &mut self.rng),
        }
        self.touched.insert(at);
    }

    fn relinked(&mut self, at: usize) {
        self.touched.insert(at);
    }

    fn settle(&mut self) -> Result<(), Wrong> {
        while let Some(at) = self.touched.pop_first() {
            for turn in 0.. {
                assert!(turn < 10_000, "{at} never comes to rest");
                if !self.turn(at)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, until: Now) -> bool {
        let servers = self.servers.iter().filter(|server| server.station.is_alive);
        let disks = servers.filter_map(|server| server.disk.next()).min();
        let stations = 0..self.stations();
        let stations = stations.filter_map(|at| self.station(at).deadline()).min();
        let next = [disks, stations, self.ethernet.next()];
        let next = next.into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < 10_000, "time stands still");
        self.now = self.now.max(next);
        match self.ethernet.arrived(self.now) {
            Some((at, frame)) => self.hear(at, &frame),
            None => self.wake(),
        }
        true
    }

    fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{:>12.6} {}", self.now.as_secs_f64(), what());
        }
    }
}

/// How long a frame is on its way.
const LEAST: Duration = Duration::from_micros(5);
const MOST: Duration = Duration::from_micros(25);

/// A frame in a line.
fn line(frame: &[u8]) -> String {
    use fc::wire::{ethernet, fcoe};
    match ethernet::EthernetHeader::parse(frame) {
        Ok((header, inside)) if header.ethertype == ethernet::FCOE => match fcoe::decode(inside) {
            Ok(frame) => format!("{:?}, {} bytes", frame.header, frame.payload.len()),
            Err(error) => error.to_string(),
        },
        _ => format!("FIP {:02x?}", &frame[16..20]),
    }
}
