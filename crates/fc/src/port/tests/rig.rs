//! A target port with a disk and an initiator port on one Ethernet, with a simulated clock.

use scsi::medium::{HeapLease, Now};

use super::trace;
use crate::frames::SINGLE;
use crate::initiator::{Data, FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent};
use crate::port::config::PortConfig;
use crate::port::{Fc4Layer, Port, PortEvent};
use crate::remote::RemoteId;
use crate::target::{FcpLimits, FcpTarget};
pub(super) use crate::tests::config;
use crate::tests::disk::Disk;
use crate::tests::pair::{decode, lease};
use crate::tests::{Bytes, Ethernet, command, frame, sent};
use crate::wire::els::{Els, Reply};
use crate::wire::ethernet::{EthernetHeader, FCOE};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

pub(super) const fn ms(ms: u64) -> Now {
    Now::from_millis(ms)
}

/// One end of the Ethernet, with what was told there.
pub(super) struct End<F: Fc4Layer> {
    pub(super) port: Port<F>,
    pub(super) told: Vec<String>,
}

impl<F: Fc4Layer> End<F> {
    fn new(config: &PortConfig, fc4: F) -> Self {
        let mut port = Port::new(config, fc4, ms(0), [7; 8]);
        port.link(ms(0), true);
        let told = Vec::new();
        Self { port, told }
    }

    fn told(&mut self, event: &PortEvent<F::Event>) {
        match event {
            PortEvent::Online(address) => self.told.push(format!("online {:?}", address.fc_id)),
            PortEvent::Offline => self.told.push("offline".to_owned()),
            PortEvent::Up(id) => self.told.push(format!("up {}", id.0)),
            PortEvent::Down(id, why) => self.told.push(format!("down {}: {why:?}", id.0)),
            PortEvent::Remark { violation, .. } => self.told.push(violation.to_string()),
            PortEvent::Fabric(notice) => self.told.push(notice.to_string()),
            PortEvent::Fc4(_) => {}
        }
    }
}

/// Both ends and the Ethernet.
pub(super) struct Rig {
    pub(super) now: Now,
    pub(super) target: End<FcpTarget<HeapLease>>,
    pub(super) initiator: End<FcpInitiator<HeapLease>>,
    pub(super) ethernet: Ethernet,
    pub(super) disk: Disk,
    pub(super) done: Vec<FcpInitiatorEvent<HeapLease>>,
    trace: Vec<String>,
    /// Frames that are lost, by what their line in the trace begins with; each once.
    pub(super) lose: Vec<&'static str>,
}

/// Where the ends are on the Ethernet.
const TARGET: usize = 0;
const INITIATOR: usize = 1;

impl Rig {
    pub(super) fn new(target: &PortConfig, initiator: &PortConfig) -> Self {
        let fcp = FcpInitiator::new(FcpInitiatorConfig::default());
        Self {
            now: ms(0),
            target: End::new(target, FcpTarget::new(FcpLimits::default())),
            initiator: End::new(initiator, fcp),
            ethernet: Ethernet::new(0),
            disk: Disk::new(vec![0; 64 << 10]),
            done: Vec::new(),
            trace: Vec::new(),
            lose: Vec::new(),
        }
    }

    /// Two ports that are logged in, at 1900 ms; the target has the N_Port_ID 2.
    pub(super) fn up() -> Self {
        let mut rig = Self::new(&config(2), &config(1));
        rig.run(ms(1900));
        rig.traced();
        rig
    }

    /// All that happens until `until`.
    pub(super) fn run(&mut self, until: Now) {
        loop {
            while self.turn() {}
            let times = [
                self.target.port.next_deadline(),
                self.initiator.port.next_deadline(),
                self.ethernet.next(),
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

    /// All that happens in the next `ms` milliseconds.
    pub(super) fn pass(&mut self, time: u64) {
        self.run(self.now + ms(time));
    }

    /// What both tell and send, then a frame to each end; whether there was any.
    fn turn(&mut self) -> bool {
        while let Some(event) = self.target.port.poll() {
            self.target.told(&event);
            match event {
                PortEvent::Down(id, _) => self.target.port.ended(self.now, id),
                PortEvent::Fc4(event) => self.disk.serve(self.target.port.fc4_mut(), event),
                _ => {}
            }
        }
        while let Some(event) = self.initiator.port.poll() {
            self.initiator.told(&event);
            if let PortEvent::Fc4(event) = event {
                self.done.push(event);
            }
        }
        let (from_target, from_initiator) =
            (sent(&mut self.target.port), sent(&mut self.initiator.port));
        self.send('t', (TARGET, INITIATOR), from_target);
        self.send('i', (INITIATOR, TARGET), from_initiator);
        let mut any = false;
        while let Some((to, frame)) = self.ethernet.arrived(self.now) {
            any = true;
            match to {
                TARGET => self.target.port.receive(self.now, &frame, None),
                _ => self.initiator.port.receive(self.now, &frame, None),
            }
        }
        any
    }

    fn send(&mut self, from: char, link: (usize, usize), frames: Vec<Vec<u8>>) {
        for frame in frames {
            let text = format!("{from}: {}", trace::line(&frame));
            let lost = self.lose.iter().position(|begin| text.starts_with(begin));
            let mark = if lost.is_some() { "  (lost)" } else { "" };
            let now = self.now.as_millis();
            self.trace.push(format!("{now:6} {text}{mark}"));
            match lost {
                Some(at) => drop(self.lose.remove(at)),
                None => self.ethernet.send(self.now, link, &Bytes::from(frame)),
            }
        }
    }

    /// Sends a command, and lets a millisecond pass.
    pub(super) fn execute(&mut self, cdb: &[u8], data: Data<HeapLease>) {
        let initiator = self.initiator.port.fc4_mut();
        let command = command(1, cdb, data);
        initiator.execute(self.now, RemoteId(0), command).unwrap();
        self.pass(1);
    }

    /// Sends an INQUIRY.
    pub(super) fn inquire(&mut self) {
        self.execute(&[0x12, 0, 0, 0, 36, 0], Data::In(lease(vec![0; 36])));
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

    /// What was on the Ethernet since this was asked last.
    pub(super) fn traced(&mut self) -> String {
        std::mem::take(&mut self.trace).join("\n")
    }

    /// A frame of the initiator's to the target, as a peer would write it.
    pub(super) fn frame(&self, r_ctl: RCtl, kind: FrameType, payload: &[u8]) -> Vec<u8> {
        let from = self.initiator.port.address().unwrap();
        let to = self.target.port.address().unwrap();
        let ethernet = EthernetHeader::new(from.mac, to.mac, FCOE);
        let exchange = (OxId(0x1234), RxId::UNASSIGNED);
        let header = FrameHeader {
            f_ctl: FCtl::REQUEST,
            ..FrameHeader::new((r_ctl, kind), (from.fc_id, to.fc_id), exchange)
        };
        frame(&ethernet, SINGLE, &header, payload)
    }

    /// A link service of the initiator's.
    pub(super) fn els(&self, els: &Els) -> Vec<u8> {
        self.frame(RCtl::ELS_REQUEST, FrameType::ELS, &els.encode())
    }

    /// What the target answers to a frame.
    pub(super) fn answers(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.target.port.receive(self.now, frame, None);
        sent(&mut self.target.port)
    }

    /// What it answers to a link service.
    pub(super) fn reply(&mut self, els: &Els) -> Reply {
        let answers = self.answers(&self.els(els));
        Reply::parse(els.code(), decode(&answers[0]).payload).unwrap()
    }
}
