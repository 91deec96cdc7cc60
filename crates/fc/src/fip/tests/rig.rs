//! Ports on a simulated Ethernet, with a trace of what they send and are told.

use std::cell::RefCell;
use std::fmt::Write;
use std::time::Duration;

use scsi::medium::Now;

use crate::fip::{Fip, FipConfig, FipEvent, Mode, max_fcoe};
pub(in crate::fip) use crate::tests::sent as frames;
use crate::tests::{Ethernet, Station};
use crate::wire::ethernet::{self, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The port of the ENode 02:00:00:00:`low`.
pub(super) const fn config(low: u16) -> FipConfig {
    let [a, b] = low.to_be_bytes();
    FipConfig {
        mac: Mac([2, 0, 0, 0, a, b]),
        wwpn: Wwn(0x2000_0200_0000_0000 | low as u64),
        wwnn: Wwn(0x1000_0200_0000_0000 | low as u64),
        max_fcoe: max_fcoe(2500),
        mode: Mode::Multipoint,
        target: true,
        initiator: false,
    }
}

/// A port with what it has been told, its link up since 0.
pub(super) fn port(config: FipConfig) -> Fip {
    let mut fip = Fip::new(config, ms(0), [7; 8]);
    fip.link(ms(0), true);
    fip
}

/// What is sent until `until` by a port that hears nothing.
pub(super) fn alone(fip: &mut Fip, until: Now) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(at) = fip.next_deadline().filter(|at| *at <= until) {
        fip.expire(at);
        lines.extend(sent(fip));
    }
    lines
}

/// The port 000002 that is up and has heard nothing, at 1 s.
pub(super) fn up() -> Fip {
    let mut fip = port(config(2));
    alone(&mut fip, ms(1000));
    told(&mut fip);
    fip
}

/// A port hears at `at` what another one says of itself to all.
pub(super) fn hear(fip: &mut Fip, at: u64, number: u16, operation: FipOperation) {
    receive(fip, ms(at), &multicast(&config(number), operation, number)).unwrap();
}

pub(super) fn sent(fip: &mut Fip) -> Vec<String> {
    frames(fip).iter().map(|frame| line(frame)).collect()
}

pub(super) fn told(fip: &mut Fip) -> Vec<String> {
    let events = std::iter::from_fn(|| fip.poll());
    events.map(|event| event_line(&event)).collect()
}

pub(in crate::fip) fn event_line(event: &FipEvent) -> String {
    match event {
        FipEvent::Claimed(fc_id) => format!("claimed {fc_id:?}"),
        FipEvent::Released(fc_id) => format!("released {fc_id:?}"),
        FipEvent::Found(who) => format!("found {:?}", who.fc_id),
        FipEvent::Lost(fc_id, why) => format!("lost {fc_id:?}, {why:?}"),
    }
}

pub(super) fn receive(fip: &mut Fip, now: Now, frame: &[u8]) -> Result<(), Violation> {
    let (header, payload) = ethernet::EthernetHeader::parse(frame).unwrap();
    fip.receive(now, &header, payload)
}

/// A frame in one line: from, to, what, for which N_Port_ID, and how long if it is padded.
pub(super) fn line(frame: &[u8]) -> String {
    let (header, payload) = ethernet::EthernetHeader::parse(frame).unwrap();
    assert_eq!(header.ethertype, ethernet::FIP);
    let message = FipMessage::parse(payload).unwrap();
    let mut line = format!(
        "{} > {} {:?}",
        short(header.src),
        short(header.dst),
        message.operation
    );
    for descriptor in message.descriptors() {
        match descriptor.unwrap() {
            Descriptor::VxPort { fc_id, .. } => write!(line, " {fc_id:?}").unwrap(),
            Descriptor::Els(els) => {
                let command = match els.payload[0] {
                    1 => "LS_RJT",
                    2 => "LS_ACC",
                    4 => "FLOGI",
                    5 => "LOGO",
                    _ => "?",
                };
                let (from, to) = (els.header.s_id, els.header.d_id);
                write!(line, " {command} {from:?} > {to:?} {:?}", els.header.ox_id).unwrap();
            }
            _ => {}
        }
    }
    if message.flags.has(Flags::REC_P2P) {
        line.push_str(" P");
    }
    if frame.len() > 300 {
        write!(line, ", {} bytes", frame.len()).unwrap();
    }
    line
}

fn short(mac: Mac) -> String {
    match mac {
        Mac::ALL_VN2VN_ENODE => "all".into(),
        Mac::ALL_PT2PT_ENODE => "both".into(),
        Mac([2, 0, 0, 0, a, b]) => format!("{:04x}", u16::from_be_bytes([a, b])),
        Mac([0x0e, 0xfd, 0, 0, a, b]) => format!("vn:{:04x}", u16::from_be_bytes([a, b])),
        other => other.to_string(),
    }
}

/// What the port of `config` sends when it has this N_Port_ID.
pub(super) fn message(
    config: &FipConfig,
    operation: FipOperation,
    fc_id: u16,
    dst: Mac,
) -> Vec<u8> {
    let mut other = Fip::new(*config, ms(0), [0; 8]);
    other.fc_id = FcId(u32::from(fc_id));
    other.send(operation, dst);
    frames(&mut other).remove(0)
}

/// To all VN2VN ports.
pub(super) fn multicast(config: &FipConfig, operation: FipOperation, fc_id: u16) -> Vec<u8> {
    message(config, operation, fc_id, Mac::ALL_VN2VN_ENODE)
}

/// Ports on an Ethernet.
pub(super) struct Lan {
    pub(super) ports: Vec<Station<Fip>>,
    pub(super) ethernet: Ethernet,
    pub(super) now: Now,
    trace: Vec<String>,
}

impl Lan {
    /// These ports, each with its number for a seed.
    pub(super) fn of(configs: &[FipConfig]) -> Self {
        let mut lan = Self {
            ports: Vec::new(),
            ethernet: Ethernet::new(0),
            now: ms(0),
            trace: Vec::new(),
        };
        for (seed, config) in (1..).zip(configs) {
            lan.add(*config, seed);
        }
        lan
    }

    pub(super) fn add(&mut self, config: FipConfig, seed: u8) {
        let port = || Fip::new(config, self.now, [seed; 8]);
        let mut station = Station::new(config.mac, port());
        station.start(self.now, port());
        self.ports.push(station);
    }

    /// Goes on until then with what the Ethernet makes of the frames that `pass` lets pass; every
    /// frame and event is seen.
    pub(super) fn drive(
        &mut self,
        until: Now,
        mut told: impl FnMut(usize, &FipEvent),
        mut pass: impl FnMut(&[u8]) -> bool,
    ) {
        loop {
            for at in 0..self.ports.len() {
                while let Some(event) = self.ports[at].poll() {
                    told(at, &event);
                }
                for frame in self.ports[at].send(usize::MAX).0 {
                    let passes = pass(&frame);
                    for to in (0..self.ports.len()).filter(|to| passes && *to != at) {
                        self.ethernet.send(self.now, (at, to), &frame);
                    }
                }
            }
            if let Some((to, frame)) = self.ethernet.arrived(self.now) {
                self.ports[to].hear(self.now, &frame);
                continue;
            }
            let deadlines = self.ports.iter().filter_map(Station::deadline);
            let next = deadlines.chain(self.ethernet.next()).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            for port in &mut self.ports {
                port.wake(self.now);
            }
        }
        self.now = until;
    }

    /// Goes on until then, delivering what `pass` lets pass, all of which is accepted.
    pub(super) fn run_with(&mut self, until: Now, mut pass: impl FnMut(&str) -> bool) {
        let refused = self.refused();
        let trace = RefCell::new(std::mem::take(&mut self.trace));
        let told = |at: usize, event: &_| {
            let line = format!("{at}: {}", event_line(event));
            trace.borrow_mut().push(line);
        };
        self.drive(until, told, |frame| {
            let line = line(frame);
            let passes = pass(&line);
            let mark = if passes { "" } else { ", lost" };
            trace.borrow_mut().push(line + mark);
            passes
        });
        self.trace = trace.into_inner();
        assert_eq!(self.refused(), refused);
    }

    pub(super) fn run(&mut self, until: Now) {
        self.run_with(until, |_| true);
    }

    /// What was sent and told since this was asked last, without Beacons.
    pub(super) fn trace(&mut self) -> Vec<String> {
        let mut trace = std::mem::take(&mut self.trace);
        trace.retain(|line| !line.contains("Beacon"));
        trace
    }

    /// What was told since this was asked last.
    pub(super) fn told(&mut self) -> Vec<String> {
        let mut trace = std::mem::take(&mut self.trace);
        trace.retain(|line| line.as_bytes()[1] == b':');
        trace
    }

    /// Whether each port knows so many others.
    pub(super) fn all_know(&self, others: usize) -> bool {
        let knows = |port: &Station<Fip>| port.neighbours().count() == others;
        self.ports.iter().all(knows)
    }

    fn refused(&self) -> u64 {
        let refused = self.ports.iter().map(|port| port.statistics().refused);
        refused.sum()
    }
}
