//! Ports on a simulated Ethernet, with a trace of what they send and are told.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use scsi::medium::Now;

use crate::fip::{Fip, FipConfig, FipEvent, Mode, max_fcoe};
use crate::tests::HeapFrames;
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

pub(super) fn frames(fip: &mut Fip) -> Vec<Vec<u8>> {
    let mut out = HeapFrames::default();
    fip.transmit(&mut out);
    out.frames
}

pub(super) fn sent(fip: &mut Fip) -> Vec<String> {
    frames(fip).iter().map(|frame| line(frame)).collect()
}

pub(super) fn told(fip: &mut Fip) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = fip.poll() {
        lines.push(event_line(&event));
    }
    lines
}

pub(super) fn event_line(event: &FipEvent) -> String {
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

/// An Ethernet that every frame passes in no time.
#[derive(Default)]
pub(super) struct Lan {
    pub(super) ports: Vec<Fip>,
    pub(super) now: Now,
    trace: Vec<String>,
}

impl Lan {
    pub(super) fn add(&mut self, config: FipConfig, seed: u8) -> usize {
        let mut fip = Fip::new(config, self.now, [seed; 8]);
        fip.link(self.now, true);
        self.ports.push(fip);
        self.ports.len() - 1
    }

    /// Goes on until then, delivering what `pass` lets pass.
    pub(super) fn run_with(&mut self, until: Now, mut pass: impl FnMut(&str) -> bool) {
        loop {
            self.deliver(&mut pass);
            let next = self.ports.iter().filter_map(Fip::next_deadline).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            for port in &mut self.ports {
                port.expire(self.now);
            }
        }
        self.now = until;
    }

    pub(super) fn run(&mut self, until: Now) {
        self.run_with(until, |_| true);
    }

    fn deliver(&mut self, pass: &mut impl FnMut(&str) -> bool) {
        let mut wire = VecDeque::new();
        loop {
            for (number, port) in self.ports.iter_mut().enumerate() {
                for line in told(port) {
                    self.trace.push(format!("{number}: {line}"));
                }
                wire.extend(frames(port).into_iter().map(|frame| (number, frame)));
            }
            let Some((from, frame)) = wire.pop_front() else {
                return;
            };
            let line = line(&frame);
            let passes = pass(&line);
            self.trace.push(if passes {
                line
            } else {
                format!("{line}, lost")
            });
            for (number, port) in self.ports.iter_mut().enumerate() {
                if passes && number != from && addressed(port, &frame) {
                    receive(port, self.now, &frame).unwrap();
                }
            }
        }
    }

    /// What was sent and told since this was asked last, without Beacons.
    pub(super) fn trace(&mut self) -> Vec<String> {
        let beacon = |line: &String| !line.contains("Beacon");
        std::mem::take(&mut self.trace)
            .into_iter()
            .filter(beacon)
            .collect()
    }

    /// What was told since this was asked last.
    pub(super) fn told(&mut self) -> Vec<String> {
        let told = |line: &String| line.as_bytes()[1] == b':';
        std::mem::take(&mut self.trace)
            .into_iter()
            .filter(told)
            .collect()
    }
}

/// Whether a port's filter lets a frame in.
pub(super) fn addressed(port: &Fip, frame: &[u8]) -> bool {
    let (header, _) = ethernet::EthernetHeader::parse(frame).unwrap();
    let dst = header.dst;
    Fip::groups().contains(&dst) || dst == port.config.mac || Some(dst) == port.mac()
}
