//! One ENode, and what FCFs say to it.

use std::fmt::Write;
use std::time::Duration;

use crate::fip::enode::{Enode, EnodeConfig, FabricConfig};
use crate::fip::tests::rig::{event_line, frames};
use crate::fip::{FipEvent, max_fcoe};
use crate::wire::els::{Code, Features, LsRejectReason, Reply, ServiceParameters};
use crate::wire::ethernet::{EthernetHeader, FIP, Mac};
use crate::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags,
};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};
use scsi::medium::Now;
use scsi::violation::Violation;

pub(super) const fn ms(ms: u64) -> Now {
    Duration::from_millis(ms)
}

pub(super) const ENODE: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub(super) const WWPN: Wwn = Wwn(0x2000_0200_0000_0001);

/// What an ENode begins with: its first login has OX_ID 0.
const RANDOM: [u8; 8] = [7, 7, 7, 7, 7, 7, 0, 0];

pub(super) const fn config(fabric: FabricConfig) -> EnodeConfig {
    EnodeConfig {
        mac: ENODE,
        wwpn: WWPN,
        wwnn: Wwn(0x1000_0200_0000_0001),
        max_fcoe: max_fcoe(2500),
        fabric,
    }
}

/// What an FCF says of itself.
#[derive(Clone, Copy)]
pub(super) struct Says {
    pub(super) mac: Mac,
    pub(super) priority: u8,
    pub(super) switch_name: Wwn,
    pub(super) fabric_name: Wwn,
    pub(super) vf_id: u16,
    pub(super) fc_map: [u8; 3],
    pub(super) period_ms: u32,
    pub(super) disabled: bool,
    pub(super) flags: Flags,
    /// To which request its replies are.
    pub(super) answers: DescriptorType,
}

/// The FCF 02:ff:00:00:00:`number` of the fabric 20:98:…:01.
pub(super) const fn fcf(number: u8) -> Says {
    Says {
        mac: Mac([2, 0xff, 0, 0, 0, number]),
        priority: 128,
        switch_name: Wwn(0x1000_02ff_0000_0000 | number as u64),
        fabric_name: Wwn(0x2098_02ff_0000_0001),
        vf_id: 0,
        fc_map: Mac::FC_MAP,
        period_ms: 8000,
        disabled: false,
        flags: Flags(0x8000 | 4 | 1),
        answers: DescriptorType::FLOGI,
    }
}

impl Says {
    /// Its replies are to an FDISC.
    pub(super) fn to_fdisc(self) -> Self {
        let answers = DescriptorType::FDISC;
        Self { answers, ..self }
    }

    pub(super) fn solicited(self) -> Self {
        let flags = self.flags.with(Flags::SOLICITED);
        Self { flags, ..self }
    }

    pub(super) fn descriptors(&self) -> [Descriptor<'static>; 5] {
        [
            Descriptor::Priority(self.priority),
            Descriptor::Mac(self.mac),
            Descriptor::Name(self.switch_name),
            Descriptor::Fabric {
                vf_id: self.vf_id,
                fc_map: self.fc_map,
                name: self.fabric_name,
            },
            Descriptor::FkaAdvPeriod {
                disabled: self.disabled,
                period_ms: self.period_ms,
            },
        ]
    }

    /// Its Advertisement: to all, or to us who solicited it.
    pub(super) fn advertisement(&self) -> Vec<u8> {
        let dst = if self.flags.has(Flags::SOLICITED) {
            ENODE
        } else {
            Mac::ALL_ENODE
        };
        let says = self.descriptors();
        self.message(dst, FipOperation::Advertisement, self.flags, &says)
    }

    /// A message of its own.
    pub(super) fn message(
        &self,
        dst: Mac,
        operation: FipOperation,
        flags: Flags,
        says: &[Descriptor<'_>],
    ) -> Vec<u8> {
        let bytes = fip::encode(operation, flags, says);
        let header = EthernetHeader::new(self.mac, dst, FIP);
        let mut frame = vec![0; header.len() + bytes.len()];
        header.put(&mut frame).copy_from_slice(&bytes);
        frame
    }

    /// Clear Virtual Links of these VN_Ports.
    pub(super) fn clears(&self, ports: &[(u32, Wwn)]) -> Vec<u8> {
        let mut says = vec![
            Descriptor::Mac(self.mac),
            Descriptor::Name(self.switch_name),
        ];
        says.extend(ports.iter().map(|(fc_id, wwpn)| Descriptor::VxPort {
            mac: Mac::of_port(self.fc_map, FcId(*fc_id)),
            fc_id: FcId(*fc_id),
            wwpn: *wwpn,
        }));
        let operation = FipOperation::ClearVirtualLinks;
        self.message(ENODE, operation, Flags::F_PORT, &says)
    }

    /// The LS_ACC that grants an N_Port_ID, with what else it says.
    pub(super) fn accepts(&self, fc_id: u32, ox_id: OxId) -> Vec<u8> {
        let mac = Mac::of_port(self.fc_map, FcId(fc_id));
        self.accepts_with(fc_id, ox_id, Some(mac), &self.parameters())
    }

    pub(super) fn parameters(&self) -> ServiceParameters {
        ServiceParameters {
            features: Features::F_PORT,
            receive_size: 2048,
            // R_A_TOV of 10 s, in two halves.
            total_sequences: 0,
            relative_offset: 10_000,
            e_d_tov: 2000,
            wwpn: Wwn(0x2001_02ff_0000_0001),
            wwnn: self.fabric_name,
            ..parameters()
        }
    }

    pub(super) fn accepts_with(
        &self,
        fc_id: u32,
        ox_id: OxId,
        mac: Option<Mac>,
        parameters: &ServiceParameters,
    ) -> Vec<u8> {
        let reply = Reply::Login(*parameters).encode();
        self.replies(FcId(fc_id), ox_id, mac, &reply)
    }

    pub(super) fn rejects(&self, ox_id: OxId, reject: LsRejectReason) -> Vec<u8> {
        let reply = Reply::Reject(reject).encode();
        self.replies(FcId(0), ox_id, None, &reply)
    }

    fn replies(&self, d_id: FcId, ox_id: OxId, mac: Option<Mac>, reply: &[u8]) -> Vec<u8> {
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        let exchange = (ox_id, RxId(0x77));
        let header = FrameHeader {
            f_ctl: FCtl::REPLY,
            ..FrameHeader::new(kind, (FcId::FABRIC_F, d_id), exchange)
        };
        let els = Descriptor::Els(Encapsulated {
            kind: self.answers,
            header,
            payload: reply,
        });
        let says: Vec<_> = [els].into_iter().chain(mac.map(Descriptor::Mac)).collect();
        let flags = Flags::FPMA.with(Flags::F_PORT);
        self.message(ENODE, FipOperation::ElsReply, flags, &says)
    }
}

fn parameters() -> ServiceParameters {
    let zeros = [[2, 0, 0, 0].as_slice(), &[0; 112]].concat();
    match Reply::parse(Code::FLOGI, &zeros) {
        Ok(Reply::Login(parameters)) => parameters,
        other => panic!("{other:?}"),
    }
}

/// The ENode, with the OX_ID of its last FLOGI.
pub(super) struct Rig {
    pub(super) enode: Enode,
    pub(super) now: Now,
    pub(super) ox_id: OxId,
}

impl Rig {
    /// Its link comes up at 0.
    pub(super) fn new(fabric: FabricConfig) -> Self {
        let mut enode = Enode::new(config(fabric), None, ms(0), RANDOM);
        enode.link(ms(0), true);
        Self {
            enode,
            now: ms(0),
            ox_id: OxId(0),
        }
    }

    /// A further N_Port of the ENode.
    pub(super) fn further(number: u16) -> Self {
        Self::further_in(number, FabricConfig::default())
    }

    /// The same in this fabric.
    pub(super) fn further_in(number: u16, fabric: FabricConfig) -> Self {
        let config = config(fabric);
        let mut enode = Enode::new(config, None, ms(0), RANDOM).further(Some(number));
        enode.link(ms(0), true);
        Self {
            enode,
            now: ms(0),
            ox_id: OxId(0),
        }
    }

    /// Logged in to the FCF 1 as 010100, at 500 ms.
    pub(super) fn up() -> Self {
        Self::up_with(fcf(1))
    }

    pub(super) fn up_with(says: Says) -> Self {
        let mut rig = Self::new(FabricConfig::default());
        rig.hear(&says.solicited().advertisement());
        rig.run(ms(500));
        rig.hear(&says.accepts(0x01_0100, rig.ox_id));
        assert_eq!(rig.enode.fc_id(), Some(FcId(0x01_0100)));
        rig.told();
        rig.notices();
        rig
    }

    /// Hears something, all of which is accepted.
    pub(super) fn hear(&mut self, frame: &[u8]) {
        self.try_hear(frame).unwrap();
    }

    pub(super) fn try_hear(&mut self, frame: &[u8]) -> Result<(), Violation> {
        let (header, payload) = EthernetHeader::parse(frame).unwrap();
        self.enode.receive(self.now, &header, payload)
    }

    /// What it sends until then, with the time.
    pub(super) fn run(&mut self, until: Now) -> Vec<String> {
        let mut lines = self.sent();
        while let Some(at) = self.enode.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.enode.expire(self.now);
            lines.extend(self.sent());
        }
        self.now = until;
        lines
    }

    /// What it sends now.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let now = self.now.as_millis();
        let frames = frames(&mut self.enode);
        let lines = frames.iter().map(|frame| {
            let (line, ox_id) = line(frame);
            self.ox_id = ox_id.unwrap_or(self.ox_id);
            format!("{now:5} {line}")
        });
        lines.collect()
    }

    /// What it has told the N_Port.
    pub(super) fn told(&mut self) -> Vec<String> {
        let events = std::iter::from_fn(|| self.enode.poll());
        events
            .map(|event| match event {
                FipEvent::Found(who) => format!("found {:?} at {}", who.fc_id, who.mac),
                event => event_line(&event),
            })
            .collect()
    }

    /// What is to be written to the log.
    pub(super) fn notices(&mut self) -> Vec<String> {
        let notices = std::iter::from_fn(|| self.enode.poll_notice());
        notices.map(|notice| notice.to_string()).collect()
    }
}

/// A frame in one line: from, to, what it is, and what it says. Also the OX_ID of a request.
fn line(frame: &[u8]) -> (String, Option<OxId>) {
    let (header, payload) = EthernetHeader::parse(frame).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    let (src, dst) = (short(header.src), short(header.dst));
    let mut line = format!("{src} > {dst} {:?}", message.operation);
    let mut ox_id = None;
    for descriptor in message.descriptors() {
        match descriptor.unwrap() {
            Descriptor::VxPort { fc_id, .. } => write!(line, " {fc_id:?}").unwrap(),
            Descriptor::Els(els) => {
                let code = Code(els.payload[0]);
                let (from, to) = (els.header.s_id, els.header.d_id);
                write!(line, " {code} {from:?} > {to:?}").unwrap();
                ox_id = Some(els.header.ox_id);
            }
            _ => {}
        }
    }
    if let Some(tag) = header.vlan {
        write!(line, ", VLAN {}", tag.vid).unwrap();
    }
    (line, ox_id)
}

fn short(mac: Mac) -> String {
    match mac {
        Mac::ALL_FCF => "FCFs".into(),
        ENODE => "enode".into(),
        Mac([2, 0xff, 0, 0, 0, number]) => format!("fcf{number}"),
        Mac([0x0e, 0xfc, 0, a, b, c]) => format!("vn:{a:02x}{b:02x}{c:02x}"),
        other => other.to_string(),
    }
}
