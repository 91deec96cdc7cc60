//! Targets, hosts, and the Ethernet between them; one thing happens after the other.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use fc::port::PortConfig;
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use scsi::medium::{Extent, Now};
use sim::{DiskKind, Rng};

use super::disk::{BLOCK, BLOCKS};
use super::host::{Host, Use};
use super::net::Net;
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
    pub(crate) net: Net,
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
        let wwpns: Vec<Wwn> = servers
            .iter()
            .map(|server| server.station.config.wwpn)
            .collect();
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
            net: Net::new(seed),
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

    /// How many stations there are: targets, then hosts.
    pub(crate) fn stations(&self) -> usize {
        self.servers.len() + self.hosts.len()
    }

    /// A station's process is started, anew if there was one.
    pub(crate) fn start(&mut self, at: usize) {
        self.tell(|| format!("{at} starts"));
        match at.checked_sub(self.servers.len()) {
            None => self.servers[at].start(self.now, &mut self.rng),
            Some(host) => self.hosts[host].start(self.now, &mut self.rng),
        }
        self.touched.insert(at);
    }

    /// A station's process is killed.
    pub(crate) fn kill(&mut self, at: usize) {
        self.tell(|| format!("{at} is killed"));
        match at.checked_sub(self.servers.len()) {
            None => self.servers[at].station.is_alive = false,
            Some(host) => self.hosts[host].station.is_alive = false,
        }
    }

    /// A station's cable is taken out or put in.
    pub(crate) fn link(&mut self, at: usize, up: bool) {
        self.tell(|| format!("{at} has its link {}", if up { "up" } else { "down" }));
        match at.checked_sub(self.servers.len()) {
            None => self.servers[at].station.link(self.now, up),
            Some(host) => self.hosts[host].station.link(self.now, up),
        }
        self.touched.insert(at);
    }

    /// A station's clock jumps ahead.
    pub(crate) fn jump(&mut self, at: usize, by: Duration) {
        self.tell(|| format!("{at} jumps by {by:?}"));
        match at.checked_sub(self.servers.len()) {
            None => self.servers[at].station.jump(by),
            Some(host) => self.hosts[host].station.jump(by),
        }
    }

    /// A host asks for something.
    pub(crate) fn begin(&mut self, host: usize, path: usize, what: Use) {
        self.tell(|| format!("host {host} asks target {path} for {what:?}"));
        self.hosts[host].begin(self.now, path, what, &mut self.oracle);
        self.touched.insert(self.servers.len() + host);
    }

    /// Lets things happen for a while, or until something is so; whether it is.
    pub(crate) fn run(&mut self, most: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + most;
        loop {
            let settled = self.settle();
            settled.unwrap_or_else(|Wrong(what)| panic!("{what}"));
            if is_so(self) {
                return true;
            }
            if !self.step(until) {
                return false;
            }
        }
    }

    /// The same, where it has to become so.
    #[track_caller]
    pub(crate) fn within(&mut self, most: Duration, what: &str, is_so: impl Fn(&Self) -> bool) {
        assert!(self.run(most, is_so), "no {what} within {most:?}");
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

    /// The next thing happens, unless that is after `until`.
    fn step(&mut self, until: Now) -> bool {
        let servers = self.servers.iter().filter(|server| server.station.is_alive);
        let disks = servers.clone().filter_map(|server| server.disk.next());
        let targets = servers.filter_map(|server| server.station.deadline());
        let hosts = self.hosts.iter().filter_map(|host| host.station.deadline());
        let next = disks
            .chain(targets)
            .chain(hosts)
            .chain(self.net.next())
            .min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < 10_000, "time stands still");
        self.now = self.now.max(next);
        match self.net.arrived(self.now) {
            Some((at, frame)) => self.hear(at, &frame),
            None => self.wake(),
        }
        true
    }

    fn hear(&mut self, at: usize, frame: &[u8]) {
        let heard = match at.checked_sub(self.servers.len()) {
            None => self.servers[at].station.hear(self.now, frame),
            Some(host) => self.hosts[host].station.hear(self.now, frame),
        };
        if heard {
            self.tell(|| format!("{at} hears {}", line(frame)));
            self.touched.insert(at);
        }
    }

    fn wake(&mut self) {
        let (now, first) = (self.now, self.servers.len());
        for (at, server) in self.servers.iter_mut().enumerate() {
            let is_done = server.disk.next().is_some_and(|done| done <= now);
            if server.station.wake(now) || is_done {
                self.touched.insert(at);
            }
        }
        for (at, host) in self.hosts.iter_mut().enumerate() {
            if host.station.wake(now) {
                self.touched.insert(first + at);
            }
        }
    }

    /// Lets the stations do what they can at once.
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

    fn turn(&mut self, at: usize) -> Result<bool, Wrong> {
        let (now, room) = (self.now, 1 + self.rng.below(8));
        let mut out = Vec::new();
        let any = match at.checked_sub(self.servers.len()) {
            None => {
                let server = &mut self.servers[at];
                let any = server.serve(now, &mut self.rng);
                server.look(&mut self.oracle)?;
                let sent = server.station.send(room, &mut out);
                if sent {
                    server.sent();
                }
                any | sent
            }
            Some(host) => {
                let host = &mut self.hosts[host];
                host.serve(&mut self.oracle)? | host.station.send(room, &mut out)
            }
        };
        for frame in out {
            self.send(at, &frame);
        }
        Ok(any)
    }

    fn send(&mut self, from: usize, frame: &Rc<[u8]>) {
        for to in (0..self.stations()).filter(|to| *to != from) {
            self.net.send(self.now, (from, to), frame);
        }
    }

    fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{:>12.6} {}", self.now.as_secs_f64(), what());
        }
    }
}

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
