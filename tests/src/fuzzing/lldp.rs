//! LLDP: LLDPDUs are read and written alike; and an agent among neighbours that come, go, and say
//! what is mostly right, or anything.

use std::time::Duration;

use fc::lldp::{DcbSettings, Dcbx, Lldp, LldpConfig, LldpMode};
use fc::tests::HeapFrames;
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::lldp::cee::{
    Applications, CeeApp, CeeDcb, CeePfc, Control, FeatureFlags, PriorityGroups,
};
use fc::wire::lldp::ieee::{App, Ets, EtsTable, IeeeDcb, Pfc};
use fc::wire::lldp::tlv::TlvWriter;
use fc::wire::lldp::{self, Identifier, Lldpdu};

use super::flood::flood;
use super::script::Script;

/// See docs/fuzzing.md.
pub fn lldp(data: &[u8]) {
    formats(data);
    let mut script = Script::new(data);
    let mut world = World::new(&mut script);
    while !script.is_over() {
        world.step(&mut script);
    }
    world.flood();
    world.end();
}

/// What is read is written so that it is read the same.
fn formats(data: &[u8]) {
    let Ok(message) = Lldpdu::parse(data) else {
        return;
    };
    let (ieee, cee) = dcb(&message);
    let mut to = lldp::begin(message.chassis, message.port, message.ttl_s);
    ieee.put(&mut to);
    if let Some(cee) = &cee {
        cee.put(&mut to);
    }
    let bytes = to.end();
    let again = Lldpdu::parse(&bytes).expect("an LLDPDU");
    let first = |message: &Lldpdu<'_>| {
        let [chassis, port] = [message.chassis, message.port];
        (
            chassis.subtype,
            chassis.id.to_vec(),
            port.subtype,
            port.id.to_vec(),
            message.ttl_s,
        )
    };
    assert_eq!(first(&again), first(&message));
    let fits = |cee: &CeeDcb| {
        let apps = cee.apps.as_ref();
        apps.is_none_or(|apps| apps.entries.len() <= lldp::cee::APPS_MAX)
    };
    if cee.as_ref().is_none_or(fits) {
        assert_eq!(dcb(&again), (ieee, cee));
    }
}

/// What an LLDPDU says of DCBX.
fn dcb(message: &Lldpdu<'_>) -> (IeeeDcb, Option<CeeDcb>) {
    let (mut ieee, mut cee) = (IeeeDcb::default(), None);
    for tlv in message.tlvs().filter_map(|tlv| tlv.organizational()) {
        if !ieee.take(&tlv) {
            cee = cee.or_else(|| CeeDcb::parse(&tlv));
        }
    }
    (ieee, cee)
}

struct World {
    agent: Lldp,
    now: Duration,
    up: bool,
    /// LLDPDUs sent.
    sent: u64,
}

const OURS: Mac = Mac([2, 0, 0, 0, 0, 8]);

/// Neighbours that an agent keeps, and LLDPDUs that may leave at once.
const NEIGHBOURS: usize = 16;
const CREDIT: u64 = 5;

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let config = LldpConfig {
            mode: script.pick(&[LldpMode::Send, LldpMode::Send, LldpMode::Listen]),
            mac: OURS,
            port_id: "eth0".to_owned(),
            port_description: String::new(),
            system_name: "us".to_owned(),
            system_description: String::new(),
            dcb: settings(script),
        };
        Self {
            agent: Lldp::new(config, Duration::ZERO),
            now: Duration::ZERO,
            up: false,
            sent: 0,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => {
                self.up = script.below(8) != 0;
                self.agent.link(self.now, self.up);
            }
            1 => {
                let leap = u64::from(script.half()) * script.pick(&[0, 1, 100, 1000]);
                self.pass(self.now + Duration::from_millis(leap));
            }
            2..6 => self.pass(self.agent.next_deadline().unwrap_or(self.now)),
            6 => self.agent.set_dcb(self.now, settings(script)),
            7 => {
                let len = script.below(200);
                let bytes = script.take(len).to_vec();
                self.hear(script, &bytes);
            }
            _ => {
                let mut bytes = message(script);
                spoil(script, &mut bytes);
                self.hear(script, &bytes);
            }
        }
        self.look();
    }

    fn hear(&mut self, script: &mut Script<'_>, bytes: &[u8]) {
        let other = Mac([2, 0, 0, 0, 0, script.byte()]);
        let dst = match script.below(16) {
            15 => OURS,
            _ => Mac::NEAREST_BRIDGE,
        };
        let header = EthernetHeader::new(other, dst, ethernet::LLDP);
        let before = self.agent.neighbours().len();
        let taken = self.agent.receive(self.now, &header, bytes);
        // What broke a rule changes nothing.
        assert!(taken.is_ok() || self.agent.neighbours().len() == before);
    }

    fn pass(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.agent.expire(self.now);
        let next = self.agent.next_deadline();
        assert!(
            next.is_none_or(|next| next > self.now),
            "{next:?} at {now:?}"
        );
    }

    fn look(&mut self) {
        let events = std::iter::from_fn(|| self.agent.poll());
        assert!(events.take(3).count() <= 2, "news without an end");
        let neighbours = self.agent.neighbours();
        assert!(neighbours.len() <= NEIGHBOURS && (self.up || neighbours.is_empty()));
        let dcbx = self.agent.dcbx();
        assert_eq!(*dcbx == Dcbx::Crowded, neighbours.len() > 1);
        assert_eq!(*dcbx == Dcbx::NoNeighbour, neighbours.is_empty());
        let _ = dcbx.lossless().map_err(|problem| problem.to_string());
        for frame in self.frames() {
            self.sent += 1;
            let (header, payload) = EthernetHeader::parse(&frame).expect("Ethernet");
            assert_eq!((header.src, header.dst), (OURS, Mac::NEAREST_BRIDGE));
            assert!((60..=1514).contains(&frame.len()));
            let message = Lldpdu::parse(payload).expect("an LLDPDU");
            assert_eq!((message.chassis.id, message.ttl_s), (&OURS.0[..], 120));
        }
        assert!(
            self.sent <= CREDIT + self.now.as_secs(),
            "{} at {:?}",
            self.sent,
            self.now
        );
    }

    fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = HeapFrames::default();
        self.agent.transmit(&mut frames);
        frames.frames
    }

    /// Neighbours without end, each with as many applications as a TLV has room for.
    fn flood(&mut self) {
        self.up = true;
        self.agent.link(self.now, true);
        flood(2 * NEIGHBOURS as u16 + 16, |number| {
            let id = number.to_be_bytes();
            let [chassis, port] = [Identifier::CHASSIS_MAC, Identifier::PORT_INTERFACE]
                .map(|subtype| Identifier { subtype, id: &id });
            let mut to = lldp::begin(chassis, port, 120);
            let app = App {
                selector: App::ETHERTYPE,
                protocol: number,
                priority: 3,
            };
            let ieee = IeeeDcb {
                apps: Some(vec![app; 168]),
                ..IeeeDcb::default()
            };
            ieee.put(&mut to);
            let header = EthernetHeader::new(Mac([6; 6]), Mac::NEAREST_BRIDGE, ethernet::LLDP);
            let taken = self.agent.receive(self.now, &header, &to.end());
            assert_eq!(taken, Ok(()));
            self.look();
            self.agent.records()
        });
    }

    /// In silence all are forgotten; then it sends each 30 s, or never; and it takes its leave.
    fn end(&mut self) {
        self.up = true;
        self.agent.link(self.now, true);
        self.pass(self.now + Duration::from_secs(65_536));
        self.look();
        assert!(self.agent.neighbours().is_empty());
        let before = self.sent;
        let until = self.now + Duration::from_secs(300);
        while let Some(next) = self.agent.next_deadline().filter(|next| *next <= until) {
            self.pass(next);
            self.look();
        }
        let sends = self.agent.config().mode == LldpMode::Send;
        assert_eq!(self.sent >= before + 9, sends);
        self.agent.shut_down(self.now);
        let last = self.frames();
        assert_eq!(last.len(), usize::from(sends));
        assert_eq!(self.agent.next_deadline(), None);
    }
}

fn settings(script: &mut Script<'_>) -> Option<DcbSettings> {
    let dcb = DcbSettings::fcoe(script.below(8) as u8, script.flag());
    (script.below(4) > 0).then_some(dcb)
}

/// What a neighbour says. More of them are there than are kept.
fn message(script: &mut Script<'_>) -> Vec<u8> {
    let id = [2, 0, 0, 0, 1, script.byte() % 24];
    let chassis = Identifier {
        subtype: Identifier::CHASSIS_MAC,
        id: &id,
    };
    let port = Identifier {
        subtype: Identifier::PORT_INTERFACE,
        id: b"swp1",
    };
    let ttl_s = script.pick(&[120, 120, 120, 0, 1, u16::MAX]);
    let mut to = lldp::begin(chassis, port, ttl_s);
    if script.flag() {
        ieee(script).put(&mut to);
    }
    if script.flag() {
        cee(script).put(&mut to);
    }
    put_noise(script, &mut to);
    to.end()
}

/// A TLV of any type but those that stand first.
fn put_noise(script: &mut Script<'_>, to: &mut TlvWriter) {
    if script.below(8) == 7 {
        let (kind, len) = (4 + script.below(124) as u8, script.below(256));
        let value = script.take(len).to_vec();
        to.put(kind, &[&value]);
    }
}

fn ieee(script: &mut Script<'_>) -> IeeeDcb {
    let table = EtsTable {
        classes: script.array::<8>().map(|class| class & 7),
        bandwidth: script.array(),
        algorithms: script.array(),
    };
    let willing = script.flag();
    let ets = Ets {
        willing,
        shaper: script.flag(),
        classes_max: 8,
        table,
    };
    let pfc = Pfc {
        willing,
        mbc: false,
        classes_max: 8,
        enabled: script.pick(&[0x08, 0x08, 0, 0xff]),
    };
    let app = App {
        selector: App::ETHERTYPE,
        protocol: ethernet::FCOE,
        priority: script.pick(&[3, 3, 4]),
    };
    IeeeDcb {
        ets: script.flag().then_some(ets),
        recommendation: script.flag().then_some(table),
        pfc: script.flag().then_some(pfc),
        apps: script.flag().then(|| vec![app; script.below(170)]),
    }
}

fn cee(script: &mut Script<'_>) -> CeeDcb {
    let mut flags = || FeatureFlags {
        enabled: script.below(8) > 0,
        willing: script.flag(),
        error: script.flag(),
    };
    let (first, second, third) = (flags(), flags(), flags());
    let control = Control {
        seq_no: u32::from(script.byte()),
        ack_no: u32::from(script.byte() & 3),
    };
    CeeDcb {
        control,
        groups: script.flag().then(|| PriorityGroups {
            flags: first,
            groups: script.array::<8>().map(|group| group & 15),
            bandwidth: script.array(),
            classes_max: 8,
        }),
        pfc: script.flag().then(|| CeePfc {
            flags: second,
            enabled: script.pick(&[0x08, 0x08, 0, 0xff]),
            classes_max: 8,
        }),
        apps: script.flag().then(|| Applications {
            flags: third,
            entries: vec![CeeApp::ethertype(ethernet::FCOE, script.byte()); script.below(78)],
        }),
    }
}

/// One message in eight has a byte changed.
fn spoil(script: &mut Script<'_>, bytes: &mut [u8]) {
    if script.below(8) == 7 {
        let at = usize::from(script.half()) % bytes.len();
        bytes[at] ^= script.byte();
    }
}
