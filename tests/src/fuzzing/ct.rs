//! The common transport: requests and accepts are read and written alike; and the services of a
//! fabric among four ports, who ask what is mostly right, or anything.

use std::sync::Arc;
use std::time::Duration;

use fc::fabric::PortNumber;
use fc::fabric::servers::{PortLogin, ServerFrame, Servers, ServersConfig};
use fc::fabric::zones::Zones;
use fc::wire::ct::fdmi::{FdmiAccept, FdmiRequest};
use fc::wire::ct::name_server::{NameServerAccept, NameServerRequest};
use fc::wire::ct::{CtCode, CtHeader, CtService, HEADER_LEN};
use fc::wire::els::{ClassParameters, Code, Els, Features, Logo, Reply, Rscn, ServiceParameters};
use fc::wire::ethernet::Mac;
use fc::wire::fcoe::{Eof, ReceivedFrame, Sof};
use fc::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};

use super::flood::{ends_in_flood, flood};
use super::script::Script;

/// See docs/fuzzing.md.
pub fn ct(data: &[u8]) {
    if let Ok((header, payload)) = CtHeader::parse(data) {
        name_server(&header, payload);
        fdmi(&header, payload);
    }
    let mut script = Script::new(data);
    let mut world = World::new(&mut script);
    while !script.is_over() {
        world.step(&mut script);
        world.take();
    }
    if ends_in_flood(data) {
        world.flood();
    }
    world.end();
}

fn name_server(header: &CtHeader, payload: &[u8]) {
    let code = header.code;
    if let Ok(request) = NameServerRequest::parse(code, payload) {
        let bytes = request.encode();
        let (again, payload) = CtHeader::parse(&bytes).expect("a header");
        assert_eq!(NameServerRequest::parse(again.code, payload), Ok(request));
    }
    if let Ok(accept) = NameServerAccept::parse(code, payload) {
        let asked = CtHeader::request(CtService::NAME_SERVER, code);
        let bytes = accept.encode(&asked).expect("room for any");
        let again = NameServerAccept::parse(code, &bytes[HEADER_LEN..]);
        assert_eq!(again, Ok(accept.clone()));
        let cut = accept.encode(header).map(|bytes| bytes.len() - HEADER_LEN);
        let room = usize::from(header.size) * 4;
        assert!(room == 0 || cut.is_none_or(|len| len <= room));
    }
}

fn fdmi(header: &CtHeader, payload: &[u8]) {
    let code = header.code;
    if let Ok(request) = FdmiRequest::parse(code, payload) {
        let bytes = request.encode();
        let (again, payload) = CtHeader::parse(&bytes).expect("a header");
        assert_eq!(FdmiRequest::parse(again.code, payload), Ok(request));
    }
    if let Ok(accept) = FdmiAccept::parse(code, payload) {
        let asked = CtHeader::request(CtService::FDMI, code);
        let bytes = accept.encode(&asked).expect("room for any");
        assert_eq!(FdmiAccept::parse(code, &bytes[HEADER_LEN..]), Ok(accept));
    }
}

struct World {
    servers: Servers,
    now: Duration,
    logged_in: [bool; PORTS],
    /// The last request of the services: to whom, and in which exchange.
    asked: Option<(FcId, FcId, OxId)>,
    ox_id: u16,
    /// The sequence of which frames come.
    open: Option<FrameHeader>,
}

const PORTS: usize = 4;

const fn id(number: usize) -> FcId {
    FcId(0x01_0100 + number as u32)
}

fn wwpn(number: usize) -> Wwn {
    Wwn((0x2000 << 48) | number as u64)
}

/// Two ports are on a node.
fn login(number: usize) -> PortLogin {
    PortLogin {
        fc_id: id(number),
        wwpn: wwpn(number),
        wwnn: Wwn((0x1000 << 48) | (number as u64 / 2)),
        f_port_name: Wwn(1),
        port: PortNumber(0),
        place: Arc::from("eth0"),
        enode: Mac([2, 0, 0, 0, 0, number as u8]),
        max_payload: if number == 0 { 256 } else { 2112 },
    }
}

fn parameters(login: &PortLogin, receive_size: u16) -> ServiceParameters {
    ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 0,
        features: Features::default(),
        receive_size,
        total_sequences: 1,
        relative_offset: 0,
        e_d_tov: 2000,
        wwpn: login.wwpn,
        wwnn: login.wwnn,
        class_3: ClassParameters {
            options: ClassParameters::VALID,
            receive_size: 2112,
            ..ClassParameters::default()
        },
    }
}

/// Either all see each other, or the first two, or none.
fn zones(choice: usize) -> Zones {
    match choice {
        0 => Zones::open(),
        1 => Zones::closed(),
        _ => {
            let text = format!("zone z = {} {}\nzoneset s = z\nactive s", wwpn(0), wwpn(1));
            Zones::parse(&text).expect("zones")
        }
    }
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let config = ServersConfig {
            switch_name: Wwn(0x1000_0200_0000_0001),
            fabric_name: Wwn(2),
            e_d_tov: Duration::from_secs(2),
            r_a_tov: Duration::from_secs(10),
        };
        let mut world = Self {
            servers: Servers::new(config),
            now: Duration::ZERO,
            logged_in: [false; PORTS],
            asked: None,
            ox_id: 0,
            open: None,
        };
        let zones = Arc::new(zones(script.below(3)));
        world.servers.set_zones(world.now, zones);
        (0..PORTS).for_each(|number| world.log_in(number));
        world
    }

    fn log_in(&mut self, number: usize) {
        self.servers.logged_in(self.now, login(number));
        self.logged_in[number] = true;
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let number = script.below(PORTS);
        match script.below(12) {
            0 => self.log_in(number),
            1 => {
                self.servers.logged_out(self.now, id(number));
                self.logged_in[number] = false;
            }
            2 => {
                let zones = Arc::new(zones(script.below(3)));
                self.servers.set_zones(self.now, zones);
            }
            3 => self.pass(Duration::from_millis(script.half().into())),
            4 => self.accept(script),
            5 | 6 => self.els(number, script),
            7 => self.anything(number, script),
            _ => self.ask(number, script),
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut turns = 0;
        while let Some(at) = self.servers.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.servers.expire(self.now);
            self.take();
            turns += 1;
            assert!(turns < 10_000, "a deadline that passed is told again");
        }
        self.now = end;
    }

    /// Answers what the services asked.
    fn accept(&mut self, script: &mut Script<'_>) {
        if let Some((from, to, ox_id)) = self.asked {
            let kind = (RCtl::ELS_REPLY, FrameType::ELS);
            let reply = script.pick(&[Code::LS_ACC.0, Code::LS_RJT.0]);
            self.sends(kind, (from, to), ox_id, &[reply, 0, 0, 0, 0, 0, 0, 0], 2112);
        }
    }

    fn els(&mut self, number: usize, script: &mut Script<'_>) {
        let to = script.pick(&SERVICES);
        let login = login(number);
        let parameters = parameters(&login, 256 + script.half() % 2048);
        let (fc_id, wwpn) = (login.fc_id, login.wwpn);
        let els = match script.below(10) {
            0..4 => Els::Plogi(parameters),
            4 => Els::Logo(Logo { fc_id, wwpn }),
            5 | 6 => Els::Scr(script.pick(&[3, 1, 2, 255, 0])),
            7 => Els::Rscn(Rscn(vec![(0, id(script.below(PORTS)))])),
            8 => Els::Pdisc(parameters),
            _ => Els::Echo(script.take(64).to_vec()),
        };
        let kind = (RCtl::ELS_REQUEST, FrameType::ELS);
        self.request(kind, (id(number), to), &els.encode(), 2112);
    }

    /// A request by CT with a code that there is, and a payload that is mostly as it should be.
    fn ask(&mut self, number: usize, script: &mut Script<'_>) {
        let (to, service, codes) = if script.flag() {
            (FcId::DIRECTORY, CtService::NAME_SERVER, NAME_SERVER_CODES)
        } else {
            (FcId::MANAGEMENT, CtService::FDMI, FDMI_CODES)
        };
        let mut header = CtHeader::request(service, CtCode(script.pick(codes)));
        if script.below(8) == 0 {
            header.size = script.below(64) as u16;
        }
        let mut bytes = header.encode().to_vec();
        let subject = script.below(PORTS);
        match script.below(4) {
            0 => {}
            1 => bytes.extend([&[0], &id(subject).bytes()[..]].concat()),
            _ => bytes.extend(wwpn(subject).0.to_be_bytes()),
        }
        let len = script.below(64);
        bytes.extend(script.take(len));
        if script.below(8) == 0 {
            bytes.resize(usize::from(script.half() % 10_000), 0);
        }
        let kind = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
        let frame_max = script.pick(&[2112, 64, 256]);
        self.request(kind, (id(number), to), &bytes, frame_max);
    }

    fn anything(&mut self, number: usize, script: &mut Script<'_>) {
        let ids = (id(number), FcId(0xff_ff00 | u32::from(script.byte())));
        let exchange = (OxId(script.half()), RxId::UNASSIGNED);
        let kind = (RCtl(script.byte()), FrameType(script.byte()));
        let header = FrameHeader {
            f_ctl: FCtl(script.word()),
            seq_cnt: script.half(),
            ..FrameHeader::new(kind, ids, exchange)
        };
        let frame = ReceivedFrame {
            sof: script.pick(&[Sof::I3, Sof::N3]),
            eof: script.pick(&[Eof::T, Eof::N]),
            header,
            payload: script.take(80),
        };
        self.receive(&frame);
    }

    fn request(
        &mut self,
        kind: (RCtl, FrameType),
        ids: (FcId, FcId),
        payload: &[u8],
        frame_max: usize,
    ) {
        self.ox_id = self.ox_id.wrapping_add(1);
        self.sends(kind, ids, OxId(self.ox_id), payload, frame_max);
    }

    fn sends(
        &mut self,
        kind: (RCtl, FrameType),
        ids: (FcId, FcId),
        ox_id: OxId,
        payload: &[u8],
        frame_max: usize,
    ) {
        let count = payload.len().div_ceil(frame_max).max(1);
        for at in 0..count {
            let is_last = at + 1 == count;
            let header = FrameHeader {
                f_ctl: if is_last {
                    FCtl::REQUEST
                } else {
                    FCtl::FIRST_SEQUENCE
                },
                seq_cnt: at as u16,
                ..FrameHeader::new(kind, ids, (ox_id, RxId::UNASSIGNED))
            };
            let end = payload.len().min((at + 1) * frame_max);
            self.receive(&ReceivedFrame {
                sof: if at == 0 { Sof::I3 } else { Sof::N3 },
                eof: if is_last { Eof::T } else { Eof::N },
                header,
                payload: &payload[at * frame_max..end],
            });
        }
    }

    fn receive(&mut self, frame: &ReceivedFrame<'_>) {
        self.servers.receive(self.now, frame);
        while self.servers.poll().is_some() {}
    }

    /// What is sent can be read, is of a service to a port, and is in whole sequences.
    fn take(&mut self) {
        let mut count = 0;
        while let Some(frame) = self.servers.transmit() {
            self.check(&frame);
            count += 1;
        }
        assert!(count <= FRAMES_MAX, "{count} frames");
        assert!(self.open.is_none(), "a sequence without its end");
    }

    fn check(&mut self, frame: &ServerFrame) {
        let header = frame.header;
        assert!(header.s_id.is_well_known() && !header.d_id.is_well_known());
        let number = (header.d_id.0 - id(0).0) as usize;
        let room = if number == 0 { 256 } else { 2112 };
        assert!(number < PORTS && frame.payload.len() <= room);
        let is_first = frame.sof == Sof::I3;
        match self.open.take() {
            None => assert!(is_first && header.seq_cnt == 0),
            Some(open) => assert!(!is_first && header.seq_cnt == open.seq_cnt + 1),
        }
        assert_eq!(frame.eof == Eof::T, header.f_ctl.end_sequence());
        if frame.eof == Eof::N {
            self.open = Some(header);
        }
        match header.r_ctl {
            RCtl::ELS_REQUEST => {
                let els = Els::parse(&frame.payload).expect("a request");
                assert!(matches!(els, Els::Logo(_) | Els::Rscn(_)), "{els:?}");
                self.asked = Some((header.d_id, header.s_id, header.ox_id));
            }
            RCtl::ELS_REPLY if is_first => {
                Reply::parse(Code::LOGO, &frame.payload).expect("a reply");
            }
            RCtl::SOLICITED_CONTROL if is_first => {
                let (header, _) = CtHeader::parse(&frame.payload).expect("a CT_IU");
                assert!([CtCode::ACCEPT, CtCode::REJECT].contains(&header.code));
            }
            RCtl::ELS_REPLY | RCtl::SOLICITED_CONTROL | RCtl::BA_ACC => {}
            other => panic!("a frame of {other:?}"),
        }
    }

    /// A port registers other HBAs and begins requests without end, and another one comes and goes.
    fn flood(&mut self) {
        (0..PORTS).for_each(|number| self.log_in(number));
        flood(64, |number| {
            self.flood_with(number);
            self.take();
            self.pass(Duration::from_millis(50));
            self.servers.records()
        });
    }

    fn flood_with(&mut self, number: u16) {
        self.log_in(2);
        let els = (RCtl::ELS_REQUEST, FrameType::ELS);
        let ct = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);
        let plogi = Els::Plogi(parameters(&login(1), 2112)).encode();
        let hba = Wwn(0x3000 << 48 | u64::from(number));
        let rhba = FdmiRequest::Rhba(hba, vec![wwpn(1)], Vec::new()).encode();
        self.request(els, (id(1), FcId::MANAGEMENT), &plogi, 2112);
        self.request(ct, (id(1), FcId::MANAGEMENT), &rhba, 2112);
        self.request(els, (id(1), FcId::DIRECTORY), &plogi, 2112);
        let changed = Els::Rscn(Rscn(vec![(0, id(1))])).encode();
        self.request(els, (id(1), FcId::FABRIC_CONTROLLER), &changed, 2112);
        let exchange = (OxId(number), RxId::UNASSIGNED);
        self.receive(&ReceivedFrame {
            sof: Sof::I3,
            eof: Eof::N,
            header: FrameHeader {
                f_ctl: FCtl::FIRST_SEQUENCE,
                ..FrameHeader::new(ct, (id(1), FcId::DIRECTORY), exchange)
            },
            payload: &[0; 64],
        });
    }

    /// With the ports all that was kept of them is gone.
    fn end(mut self) {
        for number in 0..PORTS {
            self.servers.logged_out(self.now, id(number));
        }
        self.take();
        self.pass(Duration::from_secs(60));
        assert_eq!(self.servers.next_deadline(), None);
        assert_eq!(self.servers.ports().count(), 0);
    }
}

const SERVICES: [FcId; 4] = [
    FcId::DIRECTORY,
    FcId::MANAGEMENT,
    FcId::FABRIC_CONTROLLER,
    FcId::FABRIC_F,
];

const NAME_SERVER_CODES: &[u16] = &[
    0x0100, 0x0101, 0x0112, 0x0113, 0x0114, 0x0117, 0x0118, 0x011a, 0x011c, 0x011f, 0x0121, 0x0131,
    0x0139, 0x0171, 0x0172, 0x0173, 0x01a1, 0x01f1, 0x0212, 0x0213, 0x0214, 0x0217, 0x0218, 0x021a,
    0x021f, 0x0239, 0x0300, 0x0400,
];

const FDMI_CODES: &[u16] = &[
    0x0100, 0x0101, 0x0102, 0x0110, 0x0200, 0x0201, 0x0210, 0x0211, 0x0300, 0x0301, 0x0310, 0x0311,
    0x0400,
];

/// The longest answer of a step, and what each port may be told besides.
const FRAMES_MAX: usize = 600;
