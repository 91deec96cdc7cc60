//! FIP: messages are read and written alike; and a VN2VN port among three others, who say to it
//! what is mostly right, or anything.

use std::time::Duration;

use fc::fip::responder::VlanResponder;
use fc::fip::{self, Fip, FipConfig, Mode};
use fc::tests::{FipView, HeapFrames, login, sent};
use fc::wire::els::{ClassParameters, Els, Logo, LsRejectReason, Reply, ServiceParameters};
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fip::{
    Descriptor, DescriptorType, Encapsulated, Fc4Features, FipMessage, FipOperation, Flags, encode,
};
use fc::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use fc::wire::names::{FcId, Wwn};

use super::script::Script;

/// See docs/fuzzing.md.
pub fn fip(data: &[u8]) {
    ask_for_vlans(data);
    let Ok(message) = FipMessage::parse(data) else {
        return;
    };
    let Ok(descriptors) = message.descriptors().collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let bytes = encode(message.operation, message.flags, &descriptors);
    assert!(bytes.len() <= data.len());
    let again = FipMessage::parse(&bytes).expect("FIP");
    assert_eq!(
        (again.operation, again.flags),
        (message.operation, message.flags)
    );
    assert!(again.descriptors().eq(descriptors.into_iter().map(Ok)));
}

/// What answers VLAN Requests says one thing to one that is well formed, and nothing otherwise.
fn ask_for_vlans(data: &[u8]) {
    let ours = Mac([2, 0, 0, 0, 0, 1]);
    let mut responder = VlanResponder::new(ours, 152, [7; 8]);
    let header = EthernetHeader::new(Mac([2, 0, 0, 0, 0, 2]), Mac::ALL_FCF, ethernet::FIP);
    let taken = responder.receive(Duration::ZERO, &header, data);
    let mut answers = HeapFrames::default();
    responder.transmit(&mut answers);
    assert!(answers.frames.len() <= usize::from(taken.is_ok()));
}

/// See docs/fuzzing.md.
pub fn vn2vn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut world = World::new(&mut script);
    while !script.is_over() {
        world.step(&mut script);
    }
    world.flood();
    world.end();
}

/// Number 0 is the port under test.
const fn port(number: u8, mode: Mode) -> FipConfig {
    FipConfig {
        mac: Mac([2, 0, 0, 0, 1, 10 * number]),
        wwpn: Wwn(0x2000 << 48 | WEIGHTS[number as usize]),
        wwnn: Wwn(0x1000 << 48 | number as u64),
        max_fcoe: fip::max_fcoe(2500),
        mode,
        target: true,
        initiator: false,
    }
}

/// One of the others has a lower WWPN, one a higher, and one the same.
const WEIGHTS: [u64; 4] = [5, 1, 9, 5];

struct World {
    config: FipConfig,
    fip: Fip,
    now: Duration,
    up: bool,
    view: FipView,
    /// The N_Port_ID that it said last.
    said: FcId,
    /// The number of its last request.
    asked: OxId,
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let config = port(0, script.pick(&[Mode::Multipoint, Mode::PointToPoint]));
        Self {
            fip: Fip::new(config, Duration::ZERO, script.array()),
            config,
            now: Duration::ZERO,
            up: false,
            view: FipView::default(),
            said: FcId(1),
            asked: OxId(0),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let most = match script.below(16) {
            0 => {
                self.up = script.byte() != 0;
                self.fip.link(self.now, self.up);
                0
            }
            1 => {
                let leap = u64::from(script.half()) * script.pick(&[0, 0, 1, 20]) / 16;
                let leap = Duration::from_millis(leap);
                self.pass(self.now + leap);
                usize::MAX
            }
            2..7 => {
                self.pass(self.fip.next_deadline().unwrap_or(self.now));
                usize::MAX
            }
            7 => {
                self.fip.log_out(self.now, self.port_id(script));
                1
            }
            8 => {
                let header = self.header(script, &port(1, self.config.mode), FcId(1));
                let len = script.below(80);
                let bytes = script.take(len).to_vec();
                self.hear(&header, &bytes)
            }
            9..11 => self.els(script),
            _ => self.announcement(script),
        };
        self.look(most);
    }

    /// An answer to a claim, and a login: no message makes a port say more.
    fn hear(&mut self, header: &EthernetHeader, bytes: &[u8]) -> usize {
        // What broke a rule is told, and changes nothing that is looked at here.
        let _ = self.fip.receive(self.now, header, bytes);
        2
    }

    fn pass(&mut self, now: Duration) {
        self.now = now;
        for _ in 0..3 {
            self.fip.expire(now);
        }
        let next = self.fip.next_deadline();
        assert_eq!(
            next.is_some(),
            self.up,
            "a wait without an end, or an end of none"
        );
        let soon = now..now + Duration::from_secs(21);
        assert!(
            next.is_none_or(|next| soon.contains(&next)),
            "{next:?} at {now:?}"
        );
    }

    fn port_id(&self, script: &mut Script<'_>) -> FcId {
        let any = FcId(u32::from(script.half()));
        script.pick(&[self.said, FcId(0x10a), FcId(0x114), FcId(0x11e), any])
    }

    fn header(&self, script: &mut Script<'_>, from: &FipConfig, fc_id: FcId) -> EthernetHeader {
        let vn = Mac::of_port(Mac::VN2VN_FC_MAP, fc_id);
        let dst = script.pick(&[Mac::ALL_VN2VN_ENODE, Mac::ALL_PT2PT_ENODE, self.config.mac]);
        let src = script.pick(&[from.mac, from.mac, vn, Mac([1; 6])]);
        EthernetHeader::new(src, dst, ethernet::FIP)
    }

    fn announcement(&mut self, script: &mut Script<'_>) -> usize {
        let from = port(1 + script.below(3) as u8, self.config.mode);
        let [.., high, low] = from.mac.0;
        let own = FcId(u32::from(u16::from_be_bytes([high, low])));
        let fc_id = mostly(script, own, &[self.said, FcId(0)]);
        let operation = script.pick(&[
            FipOperation::ProbeRequest,
            FipOperation::ProbeReply,
            FipOperation::ClaimNotification,
            FipOperation::ClaimNotification,
            FipOperation::ClaimResponse,
            FipOperation::Beacon,
            FipOperation::Beacon,
        ]);
        let vx_port = Descriptor::VxPort {
            mac: Mac::of_port(Mac::VN2VN_FC_MAP, fc_id),
            fc_id,
            wwpn: from.wwpn,
        };
        let descriptors = [
            Descriptor::Mac(from.mac),
            Descriptor::Name(from.wwnn),
            vx_port,
            Descriptor::MaxFcoeSize(mostly(script, 2158, &[1498, 302, 9000, 0])),
            Descriptor::Fc4(Fc4Features::fcp(script.flag(), true)),
        ];
        let claim =
            [FipOperation::ClaimNotification, FipOperation::ClaimResponse].contains(&operation);
        let number = if claim { 4 + script.below(2) } else { 3 };
        let usual = match self.fip.mode() {
            Mode::Multipoint => Flags::default(),
            Mode::PointToPoint => Flags::REC_P2P,
        };
        let flags = mostly(script, usual, &[Flags::default(), Flags::REC_P2P]);
        let header = self.header(script, &from, fc_id);
        let mut bytes = encode(operation, flags, &descriptors[..number]);
        spoil(script, &mut bytes);
        self.hear(&header, &bytes)
    }

    fn els(&mut self, script: &mut Script<'_>) -> usize {
        let from = port(1 + script.below(3) as u8, self.config.mode);
        let [.., high, low] = from.mac.0;
        let own = FcId(u32::from(u16::from_be_bytes([high, low])));
        let reply = script.flag();
        let (kind, payload) = payload(script, &from, own, reply);
        let (operation, r_ctl) = if reply {
            (FipOperation::ElsReply, RCtl::ELS_REPLY)
        } else {
            (FipOperation::ElsRequest, RCtl::ELS_REQUEST)
        };
        let to = mostly(script, self.said, &[FcId::FABRIC_F, FcId(2)]);
        let ox_id = mostly(script, self.asked, &[OxId(0), OxId(1)]);
        let els = Descriptor::Els(Encapsulated {
            kind,
            header: FrameHeader::request((r_ctl, FrameType::ELS), (own, to), ox_id),
            payload: &payload,
        });
        let mut bytes = encode(
            operation,
            Flags::default(),
            &[els, Descriptor::Mac(from.mac)],
        );
        spoil(script, &mut bytes);
        let header = EthernetHeader::new(from.mac, self.config.mac, ethernet::FIP);
        self.hear(&header, &bytes)
    }

    /// What it told and sent since.
    fn look(&mut self, most: usize) {
        while let Some(event) = self.fip.poll() {
            self.view.told(&event);
        }
        assert_eq!(self.fip.fc_id(), self.view.claimed);
        assert!(
            self.fip
                .neighbours()
                .map(|who| who.fc_id)
                .eq(self.view.linked.iter().copied())
        );
        let frames = sent(&mut self.fip);
        assert!(frames.len() <= most, "{} sent", frames.len());
        for frame in &frames {
            self.sent(frame);
        }
    }

    /// What it sends is right, and of an N_Port_ID that it may have.
    fn sent(&mut self, frame: &[u8]) {
        assert!((60..=14 + 2158).contains(&frame.len()));
        let (header, payload) = EthernetHeader::parse(frame).expect("Ethernet");
        let message = FipMessage::parse(payload).expect("FIP");
        for descriptor in message.descriptors() {
            match descriptor.expect("a descriptor") {
                Descriptor::VxPort { fc_id, .. } => self.said = fc_id,
                Descriptor::Els(els) if message.operation == FipOperation::ElsRequest => {
                    self.asked = els.header.ox_id;
                }
                _ => {}
            }
        }
        assert!((1..0xffff).contains(&self.said.0));
        let vn = Mac::of_port(Mac::VN2VN_FC_MAP, self.said);
        assert!(header.src == self.config.mac || header.src == vn);
    }

    /// Other ENodes without end say that one N_Port_ID is theirs: what is kept of them, by which a
    /// message costs, does not grow.
    fn flood(&mut self) {
        let mut records = None;
        for number in 0..64 {
            let mut from = port(1, self.config.mode);
            (from.mac.0[2], from.wwpn.0) = (number, from.wwpn.0 + u64::from(number));
            let fc_id = FcId(0x4711);
            let mac = Mac::of_port(Mac::VN2VN_FC_MAP, fc_id);
            let wwpn = from.wwpn;
            let descriptors = [
                Descriptor::Mac(from.mac),
                Descriptor::Name(from.wwnn),
                Descriptor::VxPort { mac, fc_id, wwpn },
            ];
            let header = EthernetHeader::new(mac, Mac::ALL_VN2VN_ENODE, ethernet::FIP);
            let bytes = encode(FipOperation::Beacon, Flags::default(), &descriptors);
            let most = self.hear(&header, &bytes);
            self.look(most);
            // The first may have changed the mode, and nothing else.
            let now = self.fip.records();
            if number > 0 {
                assert!(now <= *records.get_or_insert(now), "{now} records");
            }
        }
    }

    /// In silence it gets an N_Port_ID, and loses who does not beacon.
    fn end(&mut self) {
        self.up = true;
        self.fip.link(self.now, true);
        let until = self.now + Duration::from_secs(60);
        while let Some(at) = self.fip.next_deadline().filter(|at| *at < until) {
            self.pass(at.max(self.now));
            self.look(usize::MAX);
        }
        assert!(self.view.claimed.is_some());
        assert!(self.view.linked.is_empty());
    }
}

fn payload(
    script: &mut Script<'_>,
    from: &FipConfig,
    fc_id: FcId,
    reply: bool,
) -> (DescriptorType, Vec<u8>) {
    let login = ServiceParameters {
        class_3: ClassParameters::default(),
        ..login(from.wwpn, from.wwnn)
    };
    let logo = Logo {
        fc_id,
        wwpn: from.wwpn,
    };
    match (script.below(4), reply) {
        (0, false) => (DescriptorType::LOGO, Els::Logo(logo).encode()),
        (0, true) => (DescriptorType::LOGO, Reply::Accept.encode()),
        (1, true) => (
            DescriptorType::FLOGI,
            Reply::Reject(LsRejectReason::new(5, 0)).encode(),
        ),
        (1, false) => (DescriptorType::FDISC, Els::Fdisc(login).encode()),
        (_, true) => (DescriptorType::FLOGI, Reply::Login(login).encode()),
        (_, false) => (DescriptorType::FLOGI, Els::Flogi(login).encode()),
    }
}

/// One choice in eight is another one.
pub(super) fn mostly<T: Copy>(script: &mut Script<'_>, usual: T, others: &[T]) -> T {
    match script.below(8) {
        7 => script.pick(others),
        _ => usual,
    }
}

/// One message in eight has a byte changed.
pub(super) fn spoil(script: &mut Script<'_>, bytes: &mut [u8]) {
    if script.below(8) == 7 {
        let at = usize::from(script.half()) % bytes.len();
        bytes[at] ^= script.byte();
    }
}
