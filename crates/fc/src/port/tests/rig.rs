//! A target port and an initiator port on one cable, with a simulated clock. The target has a small
//! device behind it.

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::medium::{HeapLease, Lease, Now};
use scsi::task::{Attribute, Completed, SenseBytes};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use super::trace;
use crate::initiator::{self, ClientCommand, Data, FcpInitiator};
use crate::port::config::PortConfig;
use crate::port::{Fc4Layer, Port, PortEvent};
use crate::remote::RemoteId;
use crate::target::{self, FcpTarget};
use crate::tests::HeapFrames;
use crate::wire::ethernet::Mac;

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A port on the ENode 02:00:00:00:`low`, so with the N_Port_ID `low`.
pub(super) fn config(low: u16) -> PortConfig {
    let [a, b] = low.to_be_bytes();
    PortConfig::new(Mac([2, 0, 0, 0, a, b]), 2500)
}

/// One end of the cable, with what came to it.
pub(super) struct End<F: Fc4Layer> {
    pub(super) port: Port<F>,
    pub(super) told: Vec<String>,
    /// What is on its way to it, by when it arrives.
    way: BTreeMap<(Now, usize), Vec<u8>>,
}

impl<F: Fc4Layer> End<F> {
    pub(super) fn new(config: &PortConfig, fc4: F) -> Self {
        let mut port = Port::new(config, fc4, ms(0), [7; 8]);
        port.link(ms(0), true);
        Self {
            port,
            told: Vec::new(),
            way: BTreeMap::new(),
        }
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut out = HeapFrames::default();
        self.port.transmit(&mut out);
        out.frames
    }

    fn arrival(&self) -> Option<Now> {
        Some(self.way.first_key_value()?.0.0)
    }

    /// Takes the next frame that has arrived; whether there was one.
    fn hear(&mut self, now: Now) -> bool {
        if self.arrival().is_none_or(|at| now < at) {
            return false;
        }
        if let Some((_, frame)) = self.way.pop_first() {
            self.port.receive(now, &frame, None);
        }
        true
    }

    fn told(&mut self, event: &PortEvent<F::Event>) {
        match event {
            PortEvent::Online(address) => self.told.push(format!("online {:?}", address.fc_id)),
            PortEvent::Offline => self.told.push("offline".to_owned()),
            PortEvent::Up(id) => self.told.push(format!("up {}", id.0)),
            PortEvent::Down(id, why) => self.told.push(format!("down {}: {why:?}", id.0)),
            PortEvent::Remark { violation, .. } => self.told.push(violation.to_string()),
            PortEvent::Fc4(_) => {}
        }
    }
}

/// The cable.
pub(super) struct Rig {
    pub(super) now: Now,
    pub(super) target: End<FcpTarget<HeapLease>>,
    pub(super) initiator: End<FcpInitiator<HeapLease>>,
    /// What the device holds.
    pub(super) disk: Vec<u8>,
    pub(super) done: Vec<initiator::FcpInitiatorEvent<HeapLease>>,
    pub(super) trace: Vec<String>,
    /// Frames that are lost, by what their line in the trace begins with; each once.
    pub(super) lose: Vec<&'static str>,
    pub(super) weather: Option<Weather>,
}

/// An Ethernet that loses frames, carries them twice, or lets others overtake them.
pub(super) struct Weather {
    pub(super) seed: u64,
    pub(super) until: Now,
}

impl Weather {
    /// A number below `end` (SplitMix64).
    fn draw(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// After how long each copy of a frame arrives. None is older than 3 s, which is below R_A_TOV.
    fn delays(&mut self) -> Vec<Duration> {
        let copies = [0, 1, 1, 1, 1, 2][self.draw(6) as usize];
        let mut delay = || match self.draw(4) {
            0 => ms(self.draw(3000)),
            _ => ms(0),
        };
        (0..copies).map(|_| delay()).collect()
    }
}

impl Rig {
    pub(super) fn new(target: &PortConfig, initiator: &PortConfig) -> Self {
        let fcp = FcpInitiator::new(initiator::FcpInitiatorConfig::default());
        Self {
            now: ms(0),
            target: End::new(target, FcpTarget::new(target::FcpLimits::default())),
            initiator: End::new(initiator, fcp),
            disk: vec![0; 64 << 10],
            done: Vec::new(),
            trace: Vec::new(),
            lose: Vec::new(),
            weather: None,
        }
    }

    /// All that happens until `until`.
    pub(super) fn run(&mut self, until: Now) {
        loop {
            while self.turn() {}
            let times = [
                self.target.port.next_deadline(),
                self.initiator.port.next_deadline(),
                self.target.arrival(),
                self.initiator.arrival(),
            ];
            let next = times.into_iter().flatten().min();
            match next.filter(|next| *next <= until) {
                Some(next) => self.now = self.now.max(next),
                None => break,
            }
            self.target.port.expire(self.now);
            self.initiator.port.expire(self.now);
        }
        self.now = until;
    }

    /// One frame to either end; whether there was any.
    fn turn(&mut self) -> bool {
        self.serve();
        while let Some(event) = self.initiator.port.poll() {
            self.initiator.told(&event);
            if let PortEvent::Fc4(event) = event {
                self.done.push(event);
            }
        }
        let (from_target, from_initiator) = (self.target.sent(), self.initiator.sent());
        for frame in from_target {
            for at in self.pass('t', &frame) {
                self.initiator
                    .way
                    .insert((at, self.trace.len()), frame.clone());
            }
        }
        for frame in from_initiator {
            for at in self.pass('i', &frame) {
                self.target
                    .way
                    .insert((at, self.trace.len()), frame.clone());
            }
        }
        let (at_target, at_initiator) = (self.target.hear(self.now), self.initiator.hear(self.now));
        at_target || at_initiator
    }

    /// Puts a frame on the cable; when each copy of it arrives.
    fn pass(&mut self, from: char, frame: &[u8]) -> Vec<Now> {
        let text = format!("{from}: {}", trace::line(frame));
        let lost = self.lose.iter().position(|begin| text.starts_with(begin));
        let mark = if lost.is_some() { "  (lost)" } else { "" };
        let now = self.now;
        self.trace
            .push(format!("{:6} {text}{mark}", now.as_millis()));
        if let Some(at) = lost {
            self.lose.remove(at);
            return Vec::new();
        }
        match &mut self.weather {
            Some(weather) if now < weather.until => {
                weather.delays().iter().map(|delay| now + *delay).collect()
            }
            _ => vec![now],
        }
    }

    /// The device: INQUIRY, READ(10) and WRITE(10) of blocks of 512 bytes.
    fn serve(&mut self) {
        while let Some(event) = self.target.port.poll() {
            self.target.told(&event);
            let fcp = self.target.port.fc4_mut();
            match event {
                PortEvent::Down(id, _) => self.target.port.ended(self.now, id),
                PortEvent::Fc4(target::FcpTargetEvent::Execute { remote, command }) => {
                    let at = usize::from(command.cdb[5]) * 512;
                    let len = command.expected_in as usize;
                    match command.cdb[0] {
                        0x12 => {
                            let data = HeapLease::from_bytes(b"LUNAR".repeat(8)[..len].to_vec());
                            fcp.send_data_in(remote, command.tag, 0, data);
                            fcp.complete(remote, command.tag, &good(len, 0));
                        }
                        0x28 => {
                            let data = HeapLease::from_bytes(self.disk[at..at + len].to_vec());
                            fcp.send_data_in(remote, command.tag, 0, data);
                            fcp.complete(remote, command.tag, &good(len, 0));
                        }
                        _ => {
                            let into = vec![0; command.expected_out as usize];
                            let into = HeapLease::from_bytes(into);
                            fcp.receive_data_out(remote, command.tag, 0, into);
                        }
                    }
                }
                PortEvent::Fc4(target::FcpTargetEvent::DataOut {
                    remote, tag, data, ..
                }) => {
                    let len = data.len();
                    data.copy_out(0, &mut self.disk[..len]);
                    fcp.complete(remote, tag, &good(0, len));
                }
                _ => {}
            }
        }
    }

    /// Sends a command, and runs until it has ended.
    pub(super) fn execute(&mut self, cdb: &[u8], data: Data<HeapLease>) {
        let mut padded = [0; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        let command = ClientCommand {
            id: 1,
            lun: Lun([0; 8]),
            cdb: padded,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        let initiator = self.initiator.port.fc4_mut();
        initiator.execute(self.now, RemoteId(0), command).unwrap();
        let until = self.now + ms(1);
        self.run(until);
    }

    /// The same after the initiator has been at rest.
    pub(super) fn rested(self) -> Self {
        let at_rest = self.initiator.port.with_fc4(FcpInitiator::rest);
        let initiator = End {
            port: at_rest.with_fc4(FcpInitiator::resume),
            ..self.initiator
        };
        Self { initiator, ..self }
    }

    /// What was on the cable since this was asked last.
    pub(super) fn traced(&mut self) -> String {
        std::mem::take(&mut self.trace).join("\n")
    }
}

fn good(length_in: usize, length_out: usize) -> Completed {
    Completed {
        status: Status::Good,
        sense: SenseBytes::EMPTY,
        qualifier: 0,
        length_in: length_in as u64,
        length_out: length_out as u64,
    }
}
