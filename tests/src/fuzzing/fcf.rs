//! A switch with three hosts at two ports, who say to it what is mostly right, or anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{
    PortNumber, Switch, SwitchConfig, SwitchEvent, SwitchLogin, SwitchPortConfig, Verdict,
};
use fc::tests::{HeapFrames, fcf_mac, frame, login, switch_port};
use fc::wire::els::{ClassParameters, Els, Logo, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fcoe::{self, Eof, Sof};
use fc::wire::fip::{
    Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags, encode,
};
use fc::wire::frame::{FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};

use super::flood::{ends_in_flood, flood};
use super::script::Script;

/// See docs/fuzzing.md.
pub fn fcf(data: &[u8]) {
    let mut script = Script::new(data);
    let mut world = World::new(&mut script);
    while !script.is_over() {
        world.step(&mut script);
    }
    if ends_in_flood(data) {
        world.flood();
    }
    world.end();
}

/// A host: which port it is at, the address of its ENode, and its WWPN.
#[derive(Clone, Copy)]
struct Host {
    port: u8,
    mac: Mac,
    wwpn: Wwn,
}

/// Two of them have one WWPN.
const HOSTS: [Host; 3] = [host(0, 1, 5), host(1, 2, 6), host(1, 3, 5)];

const fn host(port: u8, number: u8, wwpn: u64) -> Host {
    Host {
        port,
        mac: Mac([2, 0, 0, 0, 0, number]),
        wwpn: Wwn(0x2000 << 48 | wwpn),
    }
}

const ZONES: &str = "zone one = 20:00:00:00:00:00:00:05 port:eth1\n\
                     zoneset all = one\n\
                     active all\n\
                     default permit";

struct World {
    switch: Switch,
    now: Duration,
    /// Which links are up.
    up: [bool; 2],
    /// Who is logged in, by what was told.
    logins: BTreeMap<FcId, SwitchLogin>,
    /// Which WWPN an N_Port_ID was given to.
    owners: BTreeMap<FcId, Wwn>,
    /// Messages of FIP that went out at once, at the most.
    most: usize,
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let config = SwitchConfig {
            zones: zones(script),
            standby: script.below(4) == 3,
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(&config, Duration::ZERO, script.array());
        for port in 0..2 {
            let number = switch.add_port(SwitchPortConfig {
                mtu: 2500 - 1000 * usize::from(port),
                ..switch_port(port)
            });
            switch.link(Duration::ZERO, number, true);
        }
        Self {
            switch,
            now: Duration::ZERO,
            up: [true; 2],
            logins: BTreeMap::new(),
            owners: BTreeMap::new(),
            most: 0,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        self.most = usize::MAX;
        match script.below(16) {
            0 => {
                let port = script.below(2);
                self.up[port] = script.byte() != 0;
                let number = PortNumber(port as u16);
                self.switch.link(self.now, number, self.up[port]);
            }
            1 => {
                let leap = u64::from(script.half()) * script.pick(&[0, 1, 1, 20]) / 8;
                self.pass(self.now + Duration::from_millis(leap));
            }
            2 => self.pass(self.switch.next_deadline().unwrap_or(self.now)),
            3 => {
                let zones = zones(script);
                self.switch.set_zones(self.now, zones);
            }
            4 => {
                let len = script.below(120);
                let bytes = script.take(len).to_vec();
                self.hear(script.below(2) as u8, &bytes);
                // It may be anything, an Advertisement too.
                self.most = usize::MAX;
            }
            5..8 => self.fcoe(script),
            8..11 => self.login(script),
            _ => self.message(script),
        }
        self.look();
    }

    fn pass(&mut self, now: Duration) {
        self.now = self.now.max(now);
        for _ in 0..3 {
            self.switch.expire(self.now);
        }
        let next = self.switch.next_deadline();
        let soon = self.now..self.now + Duration::from_secs(226);
        assert!(
            next.is_none_or(|next| soon.contains(&next)),
            "{next:?} at {:?}",
            self.now
        );
    }

    /// What came is dropped, is the switch's, or goes to a VN_Port that is logged in.
    fn hear(&mut self, port: u8, bytes: &[u8]) {
        // A reply, and the RSCNs that wait for it.
        self.most = 2;
        let number = PortNumber(port.into());
        let Verdict::Forward(forwarding) = self.switch.receive(self.now, number, bytes) else {
            return;
        };
        let mut out = vec![0; forwarding.len(bytes.len())];
        assert_eq!(forwarding.write(bytes, &mut out), out.len());
        let (header, content) = EthernetHeader::parse(&out).expect("Ethernet");
        let whole = fcoe::inspect(content).expect("a whole frame");
        let (from, to) = (whole.header.s_id, whole.header.d_id);
        let (from, to) = (&self.logins[&from], &self.logins[&to]);
        assert_eq!((from.port, to.port), (number, forwarding.egress));
        assert_eq!((header.src, header.dst), (fcf_mac(to.port.0 as u8), to.mac));
        assert!(content.len() <= 2500 - 1000 * usize::from(to.port.0));
    }

    /// The N_Port_ID of somebody, or any.
    fn fc_id(&self, script: &mut Script<'_>) -> FcId {
        let any = FcId(script.word() & 0xff_ffff);
        let known = self.owners.keys().nth(script.below(4));
        mostly(script, known.copied().unwrap_or(any), &[any])
    }

    fn fcoe(&mut self, script: &mut Script<'_>) {
        let from = self.fc_id(script);
        let services = [FcId::DIRECTORY, FcId::FABRIC_CONTROLLER, FcId::FABRIC_F];
        let to = self.fc_id(script);
        let to = mostly(script, to, &services);
        let login = self.logins.get(&from);
        let port = login.map_or(0, |login| login.port.0 as u8);
        let port = mostly(script, port, &[0, 1]);
        let mac = Mac::of_port(Mac::FC_MAP, from);
        let ethernet = EthernetHeader::new(mac, fcf_mac(port), ethernet::FCOE);
        let kind = script.pick(&[
            (RCtl::UNSOLICITED_COMMAND, FrameType::FCP),
            (RCtl::ELS_REQUEST, FrameType::ELS),
            (RCtl(2), FrameType::CT),
        ]);
        let ox_id = OxId(script.byte().into());
        let header = FrameHeader::request(kind, (from, to), ox_id);
        let len = script.below(200);
        let mut payload = script.take(len).to_vec();
        payload.resize(payload.len() + 16 * script.below(100), 0);
        let mut bytes = frame(&ethernet, (Sof::I3, Eof::T), &header, &payload);
        spoil(script, &mut bytes);
        self.hear(port, &bytes);
        // The services answer some requests in many frames.
        self.most = usize::MAX;
    }

    fn login(&mut self, script: &mut Script<'_>) {
        let host = script.pick(&HOSTS);
        let fc_id = self.fc_id(script);
        let wwpn = mostly(script, host.wwpn, &[Wwn(7), Wwn(8), Wwn(0)]);
        let parameters = parameters(script, wwpn);
        let (kind, s_id, els) = match script.below(4) {
            0 => (DescriptorType::LOGO, fc_id, Els::Logo(Logo { fc_id, wwpn })),
            1 => (DescriptorType::FDISC, FcId(0), Els::Fdisc(parameters)),
            _ => (DescriptorType::FLOGI, FcId(0), Els::Flogi(parameters)),
        };
        let payload = &els.encode();
        let ox_id = OxId(script.below(4) as u16);
        let d_id = mostly(script, FcId::FABRIC_F, &[FcId::DIRECTORY]);
        let kinds = (RCtl::ELS_REQUEST, FrameType::ELS);
        let header = FrameHeader::new(kinds, (s_id, d_id), (ox_id, RxId::UNASSIGNED));
        let els = Descriptor::Els(Encapsulated {
            kind,
            header,
            payload,
        });
        let flags = mostly(script, Flags::FPMA, &[Flags::SPMA, Flags::default()]);
        let parts = [els, Descriptor::Mac(Mac::default())];
        self.fip(
            script,
            (host, host.mac),
            (FipOperation::ElsRequest, flags, &parts),
        );
    }

    fn message(&mut self, script: &mut Script<'_>) {
        let host = script.pick(&HOSTS);
        let fc_id = self.fc_id(script);
        let vx_port = Descriptor::VxPort {
            mac: Mac::of_port(Mac::FC_MAP, fc_id),
            fc_id,
            wwpn: mostly(script, host.wwpn, &[Wwn(7)]),
        };
        let (mac, name) = (Descriptor::Mac(host.mac), Descriptor::Name(Wwn(9)));
        let size = Descriptor::MaxFcoeSize(mostly(script, 2158, &[1498, 302, 9000, 0]));
        let vn = Mac::of_port(Mac::FC_MAP, fc_id);
        let sender = (host, host.mac);
        match script.below(5) {
            0 => self.fip(
                script,
                sender,
                (FipOperation::VlanRequest, Flags::FPMA, &[mac]),
            ),
            1 => {
                let parts = [mac, name, size];
                self.fip(
                    script,
                    sender,
                    (FipOperation::Solicitation, Flags::FPMA, &parts),
                );
            }
            2 => self.fip(
                script,
                sender,
                (FipOperation::KeepAlive, Flags::FPMA, &[mac]),
            ),
            3 => {
                let parts = [mac, vx_port];
                self.fip(
                    script,
                    (host, vn),
                    (FipOperation::KeepAlive, Flags::FPMA, &parts),
                );
            }
            _ => self.other_fcf(script, host),
        }
    }

    /// An FCF of the same names or of others, which may have a lower address.
    fn other_fcf(&mut self, script: &mut Script<'_>, at: Host) {
        let mac = Mac([script.pick(&[0, 6]), 0, 0, 0xfc, 1, 0]);
        let name = mostly(script, self.switch.switch_name(), &[Wwn(1)]);
        let fabric = mostly(script, self.switch.fabric_name(), &[Wwn(2)]);
        let period_ms = mostly(script, 8_000, &[0, 250, u32::MAX]);
        // Its first port, whether it has logins, and for how long it is active.
        let mut partner = [0; 14];
        partner[..6].copy_from_slice(&mac.0);
        partner[6] = script.pick(&[0, 1]);
        partner[12] = script.byte();
        let parts = [
            Descriptor::Priority(1),
            Descriptor::Mac(mac),
            Descriptor::Name(name),
            Descriptor::Fabric {
                vf_id: 0,
                fc_map: Mac::FC_MAP,
                name: fabric,
            },
            Descriptor::FkaAdvPeriod {
                disabled: false,
                period_ms,
            },
            Descriptor::Unknown {
                kind: DescriptorType(241),
                body: &partner,
            },
        ];
        let available = script.pick(&[Flags::AVAILABLE, Flags::default()]);
        let fcf = mostly(script, Flags::FCF, &[Flags::default()]);
        let flags = Flags::F_PORT.with(available).with(fcf);
        self.fip(
            script,
            (at, mac),
            (FipOperation::Advertisement, flags, &parts),
        );
        // Its place may be the other's now, with all that this tells.
        self.most = usize::MAX;
    }

    fn fip(
        &mut self,
        script: &mut Script<'_>,
        (host, src): (Host, Mac),
        (operation, flags, parts): (FipOperation, Flags, &[Descriptor<'_>]),
    ) {
        let own = fcf_mac(host.port);
        let dst = mostly(script, own, &[Mac::ALL_FCF, Mac::ALL_ENODE, Mac([1; 6])]);
        let header = EthernetHeader::new(src, dst, ethernet::FIP);
        let mut bytes = encode(operation, flags, parts);
        spoil(script, &mut bytes);
        let mut whole = vec![0; header.len() + bytes.len()];
        header.put(&mut whole).copy_from_slice(&bytes);
        self.hear(host.port, &whole);
    }

    /// What it told and sent since.
    fn look(&mut self) {
        while let Some(event) = self.switch.poll() {
            self.told(event);
        }
        assert!(self.switch.logins().eq(self.logins.values()));
        let registered = self.switch.registered().map(|port| port.login.fc_id);
        assert!(registered.eq(self.logins.keys().copied()));
        for port in 0..2 {
            let mut out = HeapFrames::default();
            self.switch.transmit(PortNumber(port.into()), &mut out);
            let fip = out.frames.iter().filter(|frame| sent(port, frame));
            let count = fip.count();
            assert!(count <= self.most, "{count} sent");
            assert!(count == 0 || self.up[usize::from(port)]);
        }
    }

    /// Logins begin and end in turn, and nobody has the N_Port_ID or the WWPN of another.
    fn told(&mut self, event: SwitchEvent) {
        match event {
            SwitchEvent::LoggedIn(login) => {
                let owner = self.owners.entry(login.fc_id).or_insert(login.wwpn);
                assert_eq!(*owner, login.wwpn, "the N_Port_ID of another");
                let mut others = self.logins.values();
                assert!(others.all(|other| other.wwpn != login.wwpn));
                assert_eq!(login.mac, Mac::of_port(Mac::FC_MAP, login.fc_id));
                assert!(self.logins.insert(login.fc_id, login).is_none());
            }
            SwitchEvent::LoggedOut(login, _) => {
                assert_eq!(self.logins.remove(&login.fc_id), Some(login));
            }
            _ => {}
        }
    }

    /// A host logs in anew without end and sends to ports that are not there, and ENodes without
    /// end solicit and send keep alives.
    fn flood(&mut self) {
        self.most = usize::MAX;
        self.up[0] = true;
        self.switch.link(self.now, PortNumber(0), true);
        // By then it is active again, whatever another one of its names has said.
        self.pass(self.now + Duration::from_secs(300));
        self.look();
        flood(160, |number| {
            self.most = usize::MAX;
            self.pass(self.now + Duration::from_millis(250));
            self.look();
            self.flood_with(number);
            self.switch.records()
        });
    }

    fn flood_with(&mut self, number: u16) {
        let host = HOSTS[0];
        let [high, low] = number.to_be_bytes();
        let other = Host {
            mac: Mac([6, 0, 0, 0, high, low]),
            ..host
        };
        let (mac, size) = (Descriptor::Mac(other.mac), Descriptor::MaxFcoeSize(2158));
        let solicits = [mac, Descriptor::Name(Wwn(9)), size];
        self.says(other, FipOperation::Solicitation, &solicits);
        let silent = Descriptor::Mac(Mac([6, 1, 0, 0, high, low]));
        self.says(other, FipOperation::KeepAlive, &[silent]);
        let payload = &Els::Flogi(login(host.wwpn, Wwn(9))).encode();
        let kinds = (RCtl::ELS_REQUEST, FrameType::ELS);
        let exchange = (OxId(number), RxId::UNASSIGNED);
        let els = Descriptor::Els(Encapsulated {
            kind: DescriptorType::FLOGI,
            header: FrameHeader::new(kinds, (FcId(0), FcId::FABRIC_F), exchange),
            payload,
        });
        let asks = [els, Descriptor::Mac(Mac::default())];
        self.says(host, FipOperation::ElsRequest, &asks);
        self.sends_nowhere(host, number);
    }

    /// What is right, of an ENode.
    fn says(&mut self, host: Host, operation: FipOperation, parts: &[Descriptor<'_>]) {
        let script = &mut Script::new(&[]);
        self.fip(script, (host, host.mac), (operation, Flags::FPMA, parts));
        self.look();
    }

    /// A frame to a port that is not logged in.
    fn sends_nowhere(&mut self, host: Host, number: u16) {
        let of_host = |login: &&SwitchLogin| login.enode == host.mac;
        let Some(login) = self.logins.values().find(of_host) else {
            return;
        };
        let ethernet = EthernetHeader::new(login.mac, fcf_mac(host.port), ethernet::FCOE);
        let kinds = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
        let ids = (login.fc_id, FcId(0x02_0000 | u32::from(number)));
        let header = FrameHeader::request(kinds, ids, OxId(number));
        self.hear(
            host.port,
            &frame(&ethernet, (Sof::I3, Eof::T), &header, &[0; 32]),
        );
        self.look();
    }

    /// In silence all logins end, and with the switch all waits.
    fn end(&mut self) {
        self.most = usize::MAX;
        let until = self.now + Duration::from_secs(240);
        while let Some(at) = self.switch.next_deadline().filter(|at| *at < until) {
            self.pass(at);
            self.look();
        }
        assert!(self.logins.is_empty());
        let hears = self.up.contains(&true);
        assert!(self.switch.is_active() || !hears, "a standby of nobody");
        self.switch.shut_down(self.now);
        self.look();
        assert_eq!(self.switch.next_deadline(), None);
    }
}

fn zones(script: &mut Script<'_>) -> Arc<Zones> {
    Arc::new(match script.below(3) {
        0 => Zones::open(),
        1 => Zones::closed(),
        _ => Zones::parse(ZONES).expect("zones"),
    })
}

fn parameters(script: &mut Script<'_>, wwpn: Wwn) -> ServiceParameters {
    ServiceParameters {
        receive_size: mostly(script, 2112, &[0, 255, 256]),
        class_3: ClassParameters {
            options: mostly(script, ClassParameters::VALID, &[0]),
            ..ClassParameters::default()
        },
        ..login(wwpn, Wwn(9))
    }
}

/// What is sent is right, and from the FCF-MAC. Whether it is FIP.
fn sent(port: u8, frame: &[u8]) -> bool {
    assert!((60..=14 + 2158).contains(&frame.len()));
    let (header, payload) = EthernetHeader::parse(frame).expect("Ethernet");
    assert_eq!(header.src, fcf_mac(port));
    if header.ethertype == ethernet::FCOE {
        let whole = fcoe::decode(payload).expect("a whole frame");
        assert_eq!(header.dst, Mac::of_port(Mac::FC_MAP, whole.header.d_id));
        return false;
    }
    let message = FipMessage::parse(payload).expect("FIP");
    assert!(message.descriptors().all(|descriptor| descriptor.is_ok()));
    true
}

/// One choice in eight is another one.
fn mostly<T: Copy>(script: &mut Script<'_>, usual: T, others: &[T]) -> T {
    match script.below(8) {
        7 => script.pick(others),
        _ => usual,
    }
}

/// One message in eight has a byte changed.
fn spoil(script: &mut Script<'_>, bytes: &mut [u8]) {
    if script.below(8) == 7 {
        let at = usize::from(script.half()) % bytes.len();
        bytes[at] ^= script.byte();
    }
}
