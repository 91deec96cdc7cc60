//! Switches, stations, and the Ethernets between them; one thing happens after the other.

use std::collections::BTreeSet;
use std::time::Duration;

use fc::fabric::SwitchEvent;
use fc::tests::{Bytes, Ethernet, Machine, Station};
use fc::wire::ethernet::{EthernetHeader, Mac};
use fc::wire::fip::{Descriptor, FipOperation, Flags};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;
use sim::{DiskKind, Rng};

use super::chassis::Chassis;
use super::frames::{fip, line, tagged};
use super::linux::{FLOGI_MAC, Linux};
use super::shape::{self, FabricShape, Vlan};
use super::watch::{Mutant, Watch};
use super::zoning::Zoning;
use crate::oracle::{Oracle, Wrong};
use crate::ports::{BLOCK, BLOCKS, Host, PortWorld, Server, Use};

/// A world.
pub(crate) struct FabricWorld {
    pub(crate) rng: Rng,
    pub(crate) now: Now,
    pub(crate) ethernet: Ethernet,
    pub(crate) servers: Vec<Server>,
    pub(crate) hosts: Vec<Host>,
    pub(super) linux: Vec<Station<Linux>>,
    /// Those of our fabric, then that of another.
    pub(super) chassis: Vec<Chassis>,
    /// How many there are of our fabric.
    pub(super) ours: usize,
    pub(super) watch: Watch,
    /// At which Ethernet each station is.
    pub(super) places: Vec<usize>,
    ethernets: usize,
    pub(super) mtu: usize,
    pub(super) vlan: Vlan,
    /// Further VN_Ports of each kernel.
    pub(super) vports: usize,
    /// N_Port_IDs, as our switches write them down.
    pub(super) ids: Vec<(Wwn, FcId)>,
    oracle: Oracle,
    pub(super) mutant: Option<Mutant>,
    /// Stations, then switches, to which something has happened.
    pub(super) touched: BTreeSet<usize>,
    /// What happened at this instant.
    steps: u32,
    trace: bool,
}

impl FabricWorld {
    /// A world in which everybody has been started, but for the other fabric.
    pub(crate) fn new(seed: u64, shape: &FabricShape) -> Self {
        let mut rng = Rng::new(seed);
        let (servers, hosts) = shape::ports(shape, &mut rng);
        let linux = (0..shape.linux).map(|at| shape::linux(at, shape)).collect();
        let count = shape.targets + shape.hosts + shape.linux;
        let places = shape.places(&mut rng);
        let watch = Watch::new(shape::names(shape, &places), Zoning::open());
        let memory = shape.kind == DiskKind::Memory;
        let mut world = Self {
            now: Now::ZERO,
            ethernet: Ethernet::new(seed).slow(LEAST, MOST),
            oracle: Oracle::of((0..shape.targets).map(|_| (BLOCK, BLOCKS, memory))),
            servers,
            hosts,
            linux,
            ours: 1 + usize::from(shape.standby),
            chassis: shape::switches(shape),
            watch,
            places,
            ethernets: shape.ethernets,
            mtu: shape.mtu,
            vlan: shape.vlan,
            vports: shape.vports,
            ids: Vec::new(),
            mutant: shape.mutant,
            rng,
            touched: BTreeSet::new(),
            steps: 0,
            trace: std::env::var_os("LUNAR_TRACE").is_some(),
        };
        (0..world.ours).for_each(|number| world.start_switch(number));
        (0..count).for_each(|at| world.start(at));
        world
    }

    /// How many Ethernets there are.
    pub(crate) const fn ethernets(&self) -> usize {
        self.ethernets
    }

    /// Whether our fabric has one switch.
    pub(crate) const fn is_alone(&self) -> bool {
        self.ours == 1
    }

    /// The address of a switch at an Ethernet, and its name.
    pub(crate) fn fcf(&self, number: usize, ethernet: usize) -> (Mac, Wwn) {
        let chassis = &self.chassis[number];
        let name = chassis.config.switch_name.unwrap_or_default();
        (chassis.mac(ethernet), name)
    }

    /// How many switches there are.
    pub(crate) const fn switches(&self) -> usize {
        self.chassis.len()
    }

    /// A host asks for something.
    pub(crate) fn begin(&mut self, host: usize, path: usize, what: Use) {
        self.tell(|| format!("host {host} asks target {path} for {what:?}"));
        self.hosts[host].begin(self.now, path, what, &mut self.oracle);
        self.touched.insert(self.servers.len() + host);
    }

    /// A FIP frame that nobody has sent comes to all at an Ethernet.
    pub(crate) fn inject(
        &mut self,
        ethernet: usize,
        ends: (Mac, Mac),
        operation: FipOperation,
        flags: Flags,
        parts: &[Descriptor<'_>],
    ) {
        let vlan = self.chassis[0].config.vlan.map(shape::tag);
        let frame = tagged(vlan, ends, (operation, flags, parts));
        self.tell(|| format!("there is {}", line(&frame)));
        self.broadcast(ethernet, self.nobody(), &frame.into());
    }

    /// A number that no station and no port of a switch has.
    fn nobody(&self) -> usize {
        self.stations() + self.chassis.len() * self.ethernets
    }

    /// Lets so many things happen; whether there were as many.
    pub(crate) fn steps(&mut self, count: u32) -> bool {
        (0..count).all(|_| {
            self.settled();
            self.step(Now::MAX)
        })
    }

    fn hear(&mut self, at: usize, frame: &Bytes) {
        let (now, stations) = (self.now, self.stations());
        if let Some(port) = at.checked_sub(stations) {
            return self.switch_hears(port / self.ethernets, port % self.ethernets, frame);
        }
        let changed = self.mutated(frame);
        if self
            .station(at)
            .hear(now, changed.as_deref().unwrap_or(frame))
        {
            self.tell(|| format!("{at} hears {}", line(frame)));
            self.watch.heard(at, frame);
            self.touched.insert(at);
        }
    }

    /// What an ENode of a mutant hears instead.
    fn mutated(&self, frame: &[u8]) -> Option<Vec<u8>> {
        self.mutant
            .filter(|mutant| *mutant == Mutant::TakesUnsolicited)?;
        fip(frame)?;
        let mut frame = frame.to_vec();
        frame[FLAGS_LOW] |= Flags::SOLICITED.0 as u8;
        Some(frame)
    }

    fn switch_hears(&mut self, number: usize, port: usize, frame: &Bytes) {
        self.tell(|| format!("switch {number} at {port} hears {}", line(frame)));
        let forwarded = self.chassis[number].hear(self.now, port, frame);
        if let Some((egress, frame)) = forwarded {
            if number < self.ours {
                self.watch.forwards(&frame);
            }
            self.send_at(number, egress, &frame);
        }
        self.touched.insert(self.stations() + number);
    }

    fn wake(&mut self) {
        let (now, stations) = (self.now, self.stations());
        for at in 0..stations {
            let disk = self.servers.get(at).and_then(|server| server.disk.next());
            if self.station(at).wake(now) || disk.is_some_and(|done| done <= now) {
                self.touched.insert(at);
            }
        }
        for number in 0..self.chassis.len() {
            if self.chassis[number].wake(now) {
                self.touched.insert(stations + number);
            }
        }
        self.answer();
    }

    fn turn(&mut self, at: usize) -> Result<bool, Wrong> {
        let (now, room) = (self.now, 1 + self.rng.below(8));
        let mut any = false;
        if let Some(server) = self.servers.get_mut(at) {
            any = server.serve(now, &mut self.rng);
            server.look(&mut self.oracle)?;
        } else if let Some(host) = self.hosts.get_mut(at - self.servers.len()) {
            any = host.serve(&mut self.oracle)?;
        }
        let (frames, has_sent) = self.station(at).send(room);
        if let Some(server) = self.servers.get_mut(at).filter(|_| has_sent) {
            server.sent();
        }
        for frame in frames {
            self.watch.sent(at, &frame);
            self.broadcast(self.places[at], at, &frame);
        }
        Ok(any | has_sent)
    }

    fn switch_turn(&mut self, number: usize) -> bool {
        let mut any = false;
        while let Some(switch) = &mut self.chassis[number].switch
            && let Some(event) = switch.poll()
        {
            any = true;
            self.tell(|| format!("switch {number}: {event:?}"));
            if number < self.ours {
                self.told(number, &event);
            }
        }
        let room = 1 + self.rng.below(8);
        let frames = self.chassis[number].send(room);
        any |= !frames.is_empty();
        for (port, frame) in frames {
            self.send_at(number, port, &frame);
        }
        any
    }

    fn told(&mut self, number: usize, event: &SwitchEvent) {
        let Some(switch) = &mut self.chassis[number].switch else {
            return;
        };
        match event {
            SwitchEvent::LoggedIn(login) => self.watch.logged_in(login),
            SwitchEvent::IdsChanged => self.ids = switch.ids().collect(),
            SwitchEvent::Takeover { .. } => switch.restore_ids(&self.ids),
            SwitchEvent::LoggedOut(..)
            | SwitchEvent::Remark { .. }
            | SwitchEvent::LoginRejected(_)
            | SwitchEvent::StoodDown { .. } => {}
        }
    }

    fn send_at(&mut self, number: usize, port: usize, frame: &Bytes) {
        if self.chassis[number].is_linked(port) {
            let from = self.stations() + number * self.ethernets + port;
            self.broadcast(port, from, frame);
        }
    }

    /// To all at an Ethernet for whom it is, by their addresses.
    fn broadcast(&mut self, ethernet: usize, from: usize, frame: &Bytes) {
        let Ok((header, _)) = EthernetHeader::parse(frame) else {
            return;
        };
        let (dst, stations) = (header.dst, self.stations());
        for at in (0..stations).filter(|at| *at != from) {
            if self.places[at] == ethernet && self.station(at).listens(dst) {
                self.ethernet.send(self.now, (from, at), frame);
            }
        }
        for number in 0..self.chassis.len() {
            let to = stations + number * self.ethernets + ethernet;
            let is_for =
                dst.is_multicast() || dst == FLOGI_MAC || dst == self.chassis[number].mac(ethernet);
            if to != from && is_for {
                self.ethernet.send(self.now, (from, to), frame);
            }
        }
    }
}

/// Targets come first, then hosts and Linux kernels.
impl PortWorld for FabricWorld {
    fn now(&self) -> Now {
        self.now
    }

    fn stations(&self) -> usize {
        self.servers.len() + self.hosts.len() + self.linux.len()
    }

    fn station(&mut self, at: usize) -> &mut Station<dyn Machine> {
        let (servers, hosts) = (self.servers.len(), self.hosts.len());
        if at < servers {
            &mut self.servers[at].station
        } else if at < servers + hosts {
            &mut self.hosts[at - servers].station
        } else {
            &mut self.linux[at - servers - hosts]
        }
    }

    fn start(&mut self, at: usize) {
        self.tell(|| format!("{at} starts"));
        let (now, servers) = (self.now, self.servers.len());
        let hosts = servers + self.hosts.len();
        if at < servers {
            self.servers[at].start(now, &mut self.rng);
        } else if at < hosts {
            self.hosts[at - servers].start(now, &mut self.rng);
        } else {
            let (kind, at) = ((self.mtu, self.vports), at - hosts);
            self.linux[at].start(now, shape::kernel(at, kind));
        }
        self.watch.forget(at);
        self.touched.insert(at);
    }

    fn relinked(&mut self, at: usize) {
        self.watch.forget(at);
        self.touched.insert(at);
    }

    fn settle(&mut self) -> Result<(), Wrong> {
        while let Some(at) = self.touched.pop_first() {
            for turn in 0.. {
                assert!(turn < 10_000, "{at} never comes to rest");
                let any = match at.checked_sub(self.stations()) {
                    Some(number) => self.switch_turn(number),
                    None => self.turn(at)?,
                };
                if !any {
                    break;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, until: Now) -> bool {
        let servers = self.servers.iter().filter(|server| server.station.is_alive);
        let disks = servers.filter_map(|server| server.disk.next()).min();
        let switches = self.chassis.iter().filter_map(Chassis::deadline).min();
        let stations = 0..self.stations();
        let stations = stations.filter_map(|at| self.station(at).deadline()).min();
        let next = [disks, stations, switches, self.ethernet.next()];
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

/// Where the low byte of the flags of a FIP frame is.
const FLAGS_LOW: usize = EthernetHeader::BARE_LEN + 9;

/// How long a frame is on its way.
const LEAST: Duration = Duration::from_micros(5);
const MOST: Duration = Duration::from_micros(25);
