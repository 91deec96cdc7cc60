//! A port in a fabric: an FCF, a name server and other ports, which say what is mostly right, or
//! anything.

use std::time::Duration;

use fc::fip::enode::FabricConfig;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::port::{Port, PortConfig, PortEvent, PortMode};
use fc::tests::{config, frame, sent};
use fc::wire::ct::name_server::{FeatureBits, NameServerAccept, code};
use fc::wire::ct::{CtCode, CtHeader, CtReject, CtService};
use fc::wire::els::{
    ClassParameters, Els, Features, Logo, LsRejectReason, Reply, Rscn, ServiceParameters,
};
use fc::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use fc::wire::fcoe::{self, Eof, Sof};
use fc::wire::fip::{
    Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags, encode,
};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::HeapLease;

use super::fip::{mostly, spoil};
use super::flood::{ends_in_flood, flood};
use super::script::Script;

/// See docs/fuzzing.md.
pub fn enode(data: &[u8]) {
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

/// One of two FCFs.
const fn fcf(number: u8) -> Mac {
    Mac([2, 0xff, 0, 0, 0, number])
}

const OURS: FcId = FcId(0x01_0100);

struct World {
    port: Port<fc::initiator::IdleInitiator>,
    mac: Mac,
    now: Duration,
    up: bool,
    online: bool,
    /// The tag that the port uses now.
    tag: Option<VlanTag>,
    /// The last FLOGI, and the last request to a service.
    flogi: OxId,
    asked: (FcId, OxId, CtCode),
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let fabric = FabricConfig {
            discovers_vlan: script.flag(),
            ..FabricConfig::default()
        };
        let config = PortConfig {
            mode: PortMode::Fabric(fabric),
            ..config(1)
        };
        let idle = FcpInitiator::<HeapLease>::new(FcpInitiatorConfig::default()).rest();
        Self {
            port: Port::new(&config, idle, Duration::ZERO, script.array()),
            mac: config.mac,
            now: Duration::ZERO,
            up: false,
            online: false,
            tag: None,
            flogi: OxId(0),
            asked: (FcId::DIRECTORY, OxId(0), code::GPN_FT),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => {
                self.up = script.byte() != 0;
                self.port.link(self.now, self.up);
            }
            1 => {
                let leap = u64::from(script.half()) * script.pick(&[0, 1, 8]);
                self.pass(self.now + Duration::from_millis(leap));
            }
            2..5 => self.pass(self.port.next_deadline().unwrap_or(self.now)),
            5 => self.advertise(script),
            6 => self.vlans(script),
            7 => self.flogi_reply(script),
            8 => self.clear(script),
            9 => {
                let from = script.pick(&[fcf(1), fcf(2), self.mac]);
                let len = script.below(80);
                let bytes = script.take(len).to_vec();
                self.fip(from, &bytes);
            }
            10..13 => self.answer(script),
            13 => self.changed(script),
            14 => self.stranger(script),
            _ if script.below(16) == 0 => self.port.log_out(self.now),
            _ => self.agree(script),
        }
        self.look();
    }

    fn pass(&mut self, now: Duration) {
        self.now = now;
        for _ in 0..4 {
            self.port.expire(now);
        }
        let soon = now + Duration::from_secs(226);
        let next = self.port.next_deadline();
        assert!(next.is_none_or(|next| next <= soon), "{next:?} at {now:?}");
    }

    /// What is right next, so that most scripts come as far as a login.
    fn agree(&mut self, script: &mut Script<'_>) {
        let says = fcf_says(fcf(1), 8000);
        let flags = Flags(0x8000 | 4 | 2 | 1);
        self.fip(fcf(1), &encode(FipOperation::Advertisement, flags, &says));
        self.look();
        self.pass(self.now + Duration::from_millis(500));
        self.look();
        let accept = Reply::Login(parameters(script.half(), 0x1000)).encode();
        let bytes = reply(
            self.flogi,
            OURS,
            &accept,
            Some(Mac::of_port(Mac::FC_MAP, OURS)),
        );
        self.fip(fcf(1), &bytes);
    }

    fn advertise(&mut self, script: &mut Script<'_>) {
        let from = fcf(1 + script.below(2) as u8);
        let period = mostly(script, 8000, &[0, 250, 90_000, u32::MAX]);
        let says = fcf_says(from, period);
        let flags = mostly(
            script,
            Flags(0x8000 | 4 | 2 | 1),
            &[Flags(0), Flags(0x8005)],
        );
        let number = mostly(script, says.len(), &[0, 3]);
        let mut bytes = encode(FipOperation::Advertisement, flags, &says[..number]);
        spoil(script, &mut bytes);
        self.fip(from, &bytes);
    }

    fn vlans(&mut self, script: &mut Script<'_>) {
        let mut says = vec![Descriptor::Mac(fcf(1))];
        for _ in 0..script.below(40) {
            says.push(Descriptor::Vlan(script.half()));
        }
        let mut bytes = encode(FipOperation::VlanNotification, Flags(0x8001), &says);
        spoil(script, &mut bytes);
        self.fip(fcf(1), &bytes);
    }

    fn flogi_reply(&mut self, script: &mut Script<'_>) {
        let fc_id = mostly(script, OURS, &[FcId(0), FcId(0xff_fffc), FcId(0x02_0200)]);
        let right = Mac::of_port(Mac::FC_MAP, fc_id);
        let mac = mostly(script, Some(right), &[None, Some(self.mac)]);
        let features = mostly(script, 0x1000, &[0, 0x1400]);
        let els = if script.below(4) == 3 {
            Reply::Reject(LsRejectReason::new(script.byte(), script.byte()))
        } else {
            Reply::Login(parameters(script.half(), features))
        };
        let ox_id = mostly(script, self.flogi, &[OxId(0), OxId(1)]);
        let mut bytes = reply(ox_id, fc_id, &els.encode(), mac);
        spoil(script, &mut bytes);
        self.fip(script.pick(&[fcf(1), fcf(1), fcf(2)]), &bytes);
    }

    fn clear(&mut self, script: &mut Script<'_>) {
        let from = fcf(1 + script.below(2) as u8);
        let port = Descriptor::VxPort {
            mac: Mac::of_port(Mac::FC_MAP, OURS),
            fc_id: OURS,
            wwpn: self.port.wwpn(),
        };
        let says = [Descriptor::Mac(from), Descriptor::Name(name(from)), port];
        let number = 2 + script.below(2);
        let mut bytes = encode(FipOperation::ClearVirtualLinks, Flags(1), &says[..number]);
        spoil(script, &mut bytes);
        self.fip(from, &bytes);
    }

    /// What a service was asked last, well or not.
    fn answer(&mut self, script: &mut Script<'_>) {
        let (service, ox_id, code) = self.asked;
        let ox_id = mostly(script, ox_id, &[OxId(0), OxId(0xf800)]);
        let ct = CtHeader::request(CtService::NAME_SERVER, code);
        let accept = match code {
            code::GPN_FT => {
                let ports = (0..script.below(40)).map(|_| {
                    let fc_id = mostly(script, FcId(0x01_0200), &[OURS, FcId(0), FcId(0xff_fffc)]);
                    (
                        FcId(fc_id.0 + u32::from(script.byte() % 8)),
                        Wwn(script.byte().into()),
                    )
                });
                NameServerAccept::Names(ports.collect())
            }
            code::GPN_ID => NameServerAccept::Name(Wwn(script.byte().into())),
            code::GFF_ID => {
                let mut bits = FeatureBits::default();
                bits.set(FrameType::FCP, script.byte());
                NameServerAccept::Features(Box::new(bits))
            }
            _ => NameServerAccept::Empty,
        };
        let mut payload = if script.below(8) == 7 {
            let why = CtReject::new(script.byte(), script.byte());
            ct.reject(why).encode().to_vec()
        } else {
            accept.encode(&ct).unwrap_or_default()
        };
        if code == CtCode(0) {
            payload = match script.below(8) {
                7 => Reply::Reject(LsRejectReason::new(script.byte(), 0)).encode(),
                _ => Reply::Login(parameters(2112, 0)).encode(),
            };
        }
        if !payload.is_empty() {
            spoil(script, &mut payload);
        }
        payload.resize(payload.len().next_multiple_of(4), 0);
        let kind = match code {
            CtCode(0) => (RCtl::ELS_REPLY, FrameType::ELS),
            _ => (RCtl::SOLICITED_CONTROL, FrameType::CT),
        };
        let f_ctl = mostly(script, FCtl::REPLY, &[FCtl::RESPONDER]);
        let sof = mostly(script, Sof::I3, &[Sof::N3]);
        self.fcoe(service, kind, (f_ctl, sof), ox_id, &payload);
    }

    fn changed(&mut self, script: &mut Script<'_>) {
        let pages = (0..1 + script.below(80)).map(|_| {
            let flags = mostly(script, 0, &[1, 2, 3]);
            (flags, FcId(0x01_0200 + u32::from(script.byte() % 8)))
        });
        let els = Els::Rscn(Rscn(pages.collect()));
        let from = mostly(
            script,
            FcId::FABRIC_CONTROLLER,
            &[FcId::DIRECTORY, FcId(0x01_0201)],
        );
        self.request(from, &els);
    }

    /// A link service of another port, or of a service.
    fn stranger(&mut self, script: &mut Script<'_>) {
        let any = FcId(0x01_0200 + u32::from(script.byte() % 8));
        let from = script.pick(&[any, any, FcId::DIRECTORY, FcId::FABRIC_F, OURS]);
        let says = ServiceParameters {
            wwpn: Wwn(script.byte().into()),
            ..parameters(2112, 0)
        };
        let els = match script.below(5) {
            0 => Els::Logo(Logo {
                fc_id: from,
                wwpn: says.wwpn,
            }),
            1 => Els::Echo(vec![1, 2, 3, 4]),
            2 => Els::Prli(Vec::new()),
            _ => Els::Plogi(says),
        };
        self.request(from, &els);
    }

    fn request(&mut self, from: FcId, els: &Els) {
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        let begins = (FCtl::REQUEST, Sof::I3);
        self.fcoe(from, kind, begins, OxId(7), &els.encode());
    }

    fn fip(&mut self, from: Mac, bytes: &[u8]) {
        let header = EthernetHeader {
            vlan: self.tag,
            ..EthernetHeader::new(from, self.mac, ethernet::FIP)
        };
        let mut whole = vec![0; header.len() + bytes.len()];
        header.put(&mut whole).copy_from_slice(bytes);
        self.port.receive(self.now, &whole, None);
    }

    fn fcoe(
        &mut self,
        from: FcId,
        kind: (RCtl, FrameType),
        (f_ctl, sof): (FCtl, Sof),
        ox_id: OxId,
        payload: &[u8],
    ) {
        let ours = self.port.address().map_or(OURS, |address| address.fc_id);
        let header = EthernetHeader {
            vlan: self.tag,
            ..EthernetHeader::new(fcf(1), Mac::of_port(Mac::FC_MAP, ours), ethernet::FCOE)
        };
        let frame_header = FrameHeader {
            f_ctl,
            ..FrameHeader::new(kind, (from, ours), (ox_id, RxId(1)))
        };
        let whole = frame(&header, (sof, Eof::T), &frame_header, payload);
        self.port.receive(self.now, &whole, None);
    }

    /// What it told and sent since.
    fn look(&mut self) {
        while let Some(event) = self.port.poll() {
            match event {
                PortEvent::Online(_) => assert!(!std::mem::replace(&mut self.online, true)),
                PortEvent::Offline => assert!(std::mem::replace(&mut self.online, false)),
                PortEvent::Fabric(notice) => assert!(!notice.to_string().is_empty()),
                _ => {}
            }
        }
        assert_eq!(self.port.address().is_some(), self.online);
        if !self.online {
            assert_eq!(
                self.port.remotes().count(),
                0,
                "ports that outlive the login"
            );
        }
        let frames = sent(&mut self.port);
        // What RSCNs, lists and questions lead to is one request at a time, and logins of those
        // that one answer has named.
        assert!(frames.len() <= 64, "{} sent", frames.len());
        for frame in &frames {
            self.sent(frame);
        }
    }

    fn sent(&mut self, bytes: &[u8]) {
        assert!((60..=18 + 2158).contains(&bytes.len()));
        let (header, payload) = EthernetHeader::parse(bytes).expect("Ethernet");
        self.tag = header.vlan;
        if header.ethertype == ethernet::FCOE {
            return self.sent_fcoe(&header, payload);
        }
        let own = self.port.address().map(|address| address.mac);
        assert!(header.src == self.mac || Some(header.src) == own);
        let message = FipMessage::parse(payload).expect("FIP");
        for descriptor in message.descriptors() {
            if let Descriptor::Els(els) = descriptor.expect("a descriptor")
                && els.kind == DescriptorType::FLOGI
            {
                self.flogi = els.header.ox_id;
            }
        }
    }

    fn sent_fcoe(&mut self, header: &EthernetHeader, payload: &[u8]) {
        let frame = fcoe::decode(payload).expect("FCoE");
        let own = self.port.address().expect("an address");
        assert_eq!((header.src, frame.header.s_id), (own.mac, own.fc_id));
        assert!([fcf(1), fcf(2)].contains(&header.dst));
        let code = match (frame.header.kind, frame.header.r_ctl) {
            (FrameType::CT, _) => CtHeader::parse(frame.payload).expect("CT").0.code,
            (FrameType::ELS, RCtl::ELS_REQUEST) => CtCode(0),
            _ => return,
        };
        if frame.header.d_id.is_well_known() {
            self.asked = (frame.header.d_id, frame.header.ox_id, code);
        }
    }

    /// FCFs without end advertise, VLANs are told, and a few ports change and log in under ever
    /// other names.
    fn flood(&mut self) {
        flood(96, |number| {
            let [_, low] = number.to_be_bytes();
            let from = Mac([2, 0xfe, 0, 0, 0, low]);
            let says = fcf_says(from, 8000);
            self.fip(
                from,
                &encode(FipOperation::Advertisement, Flags(0x8005), &says),
            );
            let vlans = [Descriptor::Mac(from), Descriptor::Vlan(number)];
            let vlans = encode(FipOperation::VlanNotification, Flags(0x8001), &vlans);
            self.fip(from, &vlans);
            let other = FcId(0x01_0200 + u32::from(low % 8));
            self.request(FcId::FABRIC_CONTROLLER, &Els::Rscn(Rscn(vec![(0, other)])));
            let says = ServiceParameters {
                wwpn: Wwn(number.into()),
                ..parameters(2112, 0)
            };
            self.request(other, &Els::Plogi(says));
            self.look();
            self.port.records()
        });
    }

    /// In silence it loses the fabric, and looks for another one as long as there is a link.
    fn end(&mut self) {
        self.port.link(self.now, false);
        self.look();
        assert!(!self.online);
        self.port.link(self.now, true);
        let until = self.now + Duration::from_secs(60);
        let mut looks = 0;
        while let Some(at) = self.port.next_deadline().filter(|at| *at < until) {
            self.pass(at.max(self.now));
            looks += 1;
            self.look();
        }
        assert!((5..200).contains(&looks), "{looks}");
    }
}

const fn name(mac: Mac) -> Wwn {
    let [a, b, c, d, e, f] = mac.0;
    Wwn(u64::from_be_bytes([0x10, 0, a, b, c, d, e, f]))
}

const fn fcf_says(mac: Mac, period_ms: u32) -> [Descriptor<'static>; 5] {
    [
        Descriptor::Priority(128),
        Descriptor::Mac(mac),
        Descriptor::Name(name(mac)),
        Descriptor::Fabric {
            vf_id: 0,
            fc_map: Mac::FC_MAP,
            name: Wwn(0x2001_0000_0000_0001),
        },
        Descriptor::FkaAdvPeriod {
            disabled: false,
            period_ms,
        },
    ]
}

const fn parameters(receive_size: u16, features: u16) -> ServiceParameters {
    ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 10,
        features: Features(features),
        receive_size,
        total_sequences: 0,
        relative_offset: 10_000,
        e_d_tov: 2000,
        wwpn: Wwn(0x2001_02ff_0000_0001),
        wwnn: Wwn(0x1001_02ff_0000_0001),
        class_3: ClassParameters {
            options: ClassParameters::VALID,
            initiator: 0,
            recipient: 0,
            receive_size,
            concurrent_sequences: 1,
            credit: 0,
            open_sequences: 1,
        },
    }
}

/// The answer to an FLOGI.
fn reply(ox_id: OxId, d_id: FcId, els: &[u8], mac: Option<Mac>) -> Vec<u8> {
    let kind = (RCtl::ELS_REPLY, FrameType::ELS);
    let els = Descriptor::Els(Encapsulated {
        kind: DescriptorType::FLOGI,
        header: FrameHeader {
            f_ctl: FCtl::REPLY,
            ..FrameHeader::new(kind, (FcId::FABRIC_F, d_id), (ox_id, RxId(1)))
        },
        payload: els,
    });
    let says: Vec<_> = [els].into_iter().chain(mac.map(Descriptor::Mac)).collect();
    encode(FipOperation::ElsReply, Flags(0x8001), &says)
}
