//! Ports at a small fabric: an FCF with a name server and without zones.

mod name_server;

use std::collections::{BTreeMap, VecDeque};

use scsi::medium::{HeapLease, Now};

use crate::fip::enode::{FabricConfig, FabricNotice};
use crate::frames::SINGLE;
use crate::initiator::{FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent};
use crate::port::tests::rig::ms;
use crate::port::{Fc4Layer, Port, PortConfig, PortEvent, PortMode};
use crate::target::{FcpLimits, FcpTarget};
use crate::tests::disk::Disk;
use crate::tests::{config, frame, sent, trace};
use crate::wire::ct::name_server::code;
use crate::wire::ct::{CtCode, CtHeader, CtReject};
use crate::wire::els::{Els, Features, LsRejectReason, Reply, Rscn, ServiceParameters};
use crate::wire::ethernet::{EthernetHeader, FCOE, FIP, Mac, VlanTag};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::fip::{
    self, Descriptor, DescriptorType, Encapsulated, FipMessage, FipOperation, Flags,
};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

pub(super) const FCF: Mac = Mac([2, 0xff, 0, 0, 0, 1]);
pub(super) const SWITCH: Wwn = Wwn(0x1000_02ff_0000_0001);

/// The target and the initiator.
pub(super) const TARGET: FcId = FcId(0x01_0100);
pub(super) const INITIATOR: FcId = FcId(0x01_0101);

/// Port `low` in a fabric.
pub(super) fn in_fabric(low: u16) -> PortConfig {
    PortConfig {
        mode: PortMode::Fabric(FabricConfig::default()),
        ..config(low)
    }
}

/// A port with what it has told.
pub(super) struct End<F: Fc4Layer> {
    pub(super) port: Port<F>,
    pub(super) told: Vec<String>,
    pub(super) notices: Vec<FabricNotice>,
}

impl<F: Fc4Layer> End<F> {
    pub(super) fn new(config: &PortConfig, fc4: F) -> Self {
        let mut port = Port::new(config, fc4, ms(0), [7; 8]);
        port.link(ms(0), true);
        Self {
            port,
            told: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// What is left of an event after it was written down.
    pub(super) fn told(&mut self, event: PortEvent<F::Event>) -> Option<F::Event> {
        match event {
            PortEvent::Online(address) => self.told.push(format!("online {:?}", address.fc_id)),
            PortEvent::Offline => self.told.push("offline".to_owned()),
            PortEvent::Up(id) => self.told.push(format!("up {}", id.0)),
            PortEvent::Down(id, why) => self.told.push(format!("down {}: {why:?}", id.0)),
            PortEvent::Remark { violation, .. } => self.told.push(violation.to_string()),
            PortEvent::Fabric(notice) => self.notices.push(notice),
            PortEvent::Fc4(event) => return Some(event),
        }
        None
    }
}

/// What the name server knows of a port.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) wwpn: Wwn,
    pub(super) features: Option<u8>,
}

/// Two ports and the fabric.
pub(super) struct Rig {
    pub(super) now: Now,
    pub(super) target: End<FcpTarget<HeapLease>>,
    pub(super) initiator: End<FcpInitiator<HeapLease>>,
    pub(super) disk: Disk,
    pub(super) done: Vec<FcpInitiatorEvent<HeapLease>>,
    pub(super) entries: BTreeMap<FcId, Entry>,
    /// Requests that the name server rejects, and with what.
    pub(super) rejects: Vec<(CtCode, CtReject)>,
    /// The fabric controller knows no SCR.
    pub(super) no_scr: bool,
    /// So many requests to the fabric controller are lost.
    pub(super) lost_scrs: usize,
    /// Services of the fabric do not answer.
    pub(super) is_mute: bool,
    /// Requests that the name server does not answer, if they are about this port.
    pub(super) unanswered: Vec<(CtCode, FcId)>,
    pub(super) trace: Vec<String>,
    queue: VecDeque<Vec<u8>>,
}

impl Rig {
    /// The links of both come up at 0.
    pub(super) fn new(target: &PortConfig, initiator: &PortConfig) -> Self {
        let fcp = FcpInitiator::new(FcpInitiatorConfig::default());
        Self {
            now: ms(0),
            target: End::new(target, FcpTarget::new(FcpLimits::default())),
            initiator: End::new(initiator, fcp),
            disk: Disk::new(vec![0; 64 << 10]),
            done: Vec::new(),
            entries: BTreeMap::new(),
            rejects: Vec::new(),
            no_scr: false,
            lost_scrs: 0,
            is_mute: false,
            unanswered: Vec::new(),
            trace: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// Both are logged in with each other, at 2 s.
    pub(super) fn up() -> Self {
        let mut rig = Self::new(&in_fabric(2), &in_fabric(1));
        rig.run(ms(2000));
        rig.trace.clear();
        rig
    }

    /// All that happens until then.
    pub(super) fn run(&mut self, until: Now) {
        loop {
            while self.turn() {}
            let times = [
                self.target.port.next_deadline(),
                self.initiator.port.next_deadline(),
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

    pub(super) fn pass(&mut self, time: u64) {
        self.run(self.now + ms(time));
    }

    /// What both tell and send; whether there was anything.
    fn turn(&mut self) -> bool {
        while let Some(event) = self.target.port.poll() {
            if let PortEvent::Down(id, _) = event {
                self.target.port.ended(self.now, id);
            }
            if let Some(event) = self.target.told(event) {
                self.disk.serve(self.target.port.fc4_mut(), event);
            }
        }
        while let Some(event) = self.initiator.port.poll() {
            self.done.extend(self.initiator.told(event));
        }
        let mut frames = sent(&mut self.target.port);
        frames.extend(sent(&mut self.initiator.port));
        for frame in &frames {
            self.forward(frame);
        }
        let mut any = !frames.is_empty();
        while let Some(frame) = self.queue.pop_front() {
            any = true;
            self.deliver(&frame);
        }
        any
    }

    /// To whichever port receives it.
    pub(super) fn deliver(&mut self, frame: &[u8]) {
        let (header, _) = EthernetHeader::parse(frame).unwrap();
        let all = header.dst == Mac::ALL_ENODE;
        let is_for =
            |enode: Mac, own: Option<Mac>| all || header.dst == enode || Some(header.dst) == own;
        let own = self.target.port.address().map(|address| address.mac);
        if is_for(config(2).mac, own) {
            self.target.port.receive(self.now, frame, None);
        }
        let own = self.initiator.port.address().map(|address| address.mac);
        if is_for(config(1).mac, own) {
            self.initiator.port.receive(self.now, frame, None);
        }
    }

    /// What the FCF does with a frame.
    fn forward(&mut self, bytes: &[u8]) {
        let (header, payload) = EthernetHeader::parse(bytes).unwrap();
        if header.ethertype == FIP {
            return self.fip(&header, payload);
        }
        let received = fcoe::decode(payload).unwrap();
        assert_eq!(header.dst, FCF);
        let FrameHeader { s_id, d_id, .. } = received.header;
        assert_eq!(header.src, Mac::of_port(Mac::FC_MAP, s_id));
        self.note(&received);
        if !self.entries.contains_key(&s_id) {
            return;
        }
        if d_id.is_well_known() {
            self.service(header.vlan, &received);
        } else if self.entries.contains_key(&d_id) {
            let mut frame = bytes.to_vec();
            frame[..6].copy_from_slice(&Mac::of_port(Mac::FC_MAP, d_id).0);
            frame[6..12].copy_from_slice(&FCF.0);
            self.queue.push_back(frame);
        }
    }

    fn note(&mut self, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let words = match header.kind {
            FrameType::CT => {
                let (ct, _) = CtHeader::parse(frame.payload).unwrap();
                format!("CT {:?}", ct.code)
            }
            _ => trace::words(frame),
        };
        let now = self.now.as_millis();
        let (from, to) = (header.s_id, header.d_id);
        self.trace
            .push(format!("{now:5} {from:?} > {to:?} {words}"));
    }

    fn fip(&mut self, header: &EthernetHeader, payload: &[u8]) {
        let message = FipMessage::parse(payload).unwrap();
        match message.operation {
            FipOperation::Solicitation => {
                self.advertise(header.src, Flags::SOLICITED, header.vlan);
            }
            FipOperation::ElsRequest => {
                let Some(Ok(Descriptor::Els(els))) = message.descriptors().next() else {
                    panic!("{message:?}");
                };
                match els.kind {
                    DescriptorType::FLOGI => self.flogi(header, &els),
                    _ => self.logo(els.header.s_id),
                }
            }
            _ => {}
        }
    }

    /// An Advertisement to one, or to all.
    pub(super) fn advertise(&mut self, dst: Mac, flags: Flags, tag: Option<VlanTag>) {
        let says = [
            Descriptor::Priority(128),
            Descriptor::Mac(FCF),
            Descriptor::Name(SWITCH),
            Descriptor::Fabric {
                vf_id: 0,
                fc_map: Mac::FC_MAP,
                name: Wwn(0x2098_02ff_0000_0001),
            },
            Descriptor::FkaAdvPeriod {
                disabled: false,
                period_ms: 90_000,
            },
        ];
        let flags = Flags(0x8000 | 4 | 1).with(flags);
        let bytes = fip::encode(FipOperation::Advertisement, flags, &says);
        self.send_fip(dst, &bytes, tag);
    }

    pub(super) fn send_fip(&mut self, dst: Mac, bytes: &[u8], vlan: Option<VlanTag>) {
        let header = EthernetHeader {
            vlan,
            ..EthernetHeader::new(FCF, dst, FIP)
        };
        let mut frame = vec![0; header.len() + bytes.len()];
        header.put(&mut frame).copy_from_slice(bytes);
        self.queue.push_back(frame);
    }

    /// Grants the same N_Port_ID to the same name again.
    fn flogi(&mut self, header: &EthernetHeader, els: &Encapsulated<'_>) {
        let Ok(Els::Flogi(says)) = Els::parse(els.payload) else {
            panic!("{els:?}");
        };
        let fc_id = if says.wwpn == config(2).wwpn {
            TARGET
        } else {
            INITIATOR
        };
        let entry = Entry {
            wwpn: says.wwpn,
            features: None,
        };
        self.entries.insert(fc_id, entry);
        let accept = Reply::Login(ServiceParameters {
            features: Features::F_PORT,
            receive_size: 2112,
            total_sequences: 0,
            relative_offset: 10_000,
            e_d_tov: 2000,
            ..says
        });
        let kind = (RCtl::ELS_REPLY, FrameType::ELS);
        let exchange = (els.header.ox_id, RxId(1));
        let reply = Descriptor::Els(Encapsulated {
            kind: DescriptorType::FLOGI,
            header: FrameHeader {
                f_ctl: FCtl::REPLY,
                ..FrameHeader::new(kind, (FcId::FABRIC_F, fc_id), exchange)
            },
            payload: &accept.encode(),
        });
        let mac = Descriptor::Mac(Mac::of_port(Mac::FC_MAP, fc_id));
        let flags = Flags::FPMA.with(Flags::F_PORT);
        let bytes = fip::encode(FipOperation::ElsReply, flags, &[reply, mac]);
        self.send_fip(header.src, &bytes, header.vlan);
    }

    fn logo(&mut self, fc_id: FcId) {
        self.trace
            .push(format!("{:5} {fc_id:?} FIP LOGO", self.now.as_millis()));
        self.entries.remove(&fc_id);
    }

    /// What a service of the fabric answers.
    fn service(&mut self, tag: Option<VlanTag>, asked: &ReceivedFrame<'_>) {
        let header = &asked.header;
        let is_request = matches!(header.r_ctl, RCtl::ELS_REQUEST | RCtl::UNSOLICITED_CONTROL);
        if self.is_mute || !is_request {
            return;
        }
        if header.kind == FrameType::CT && self.is_unanswered(asked.payload) {
            return;
        }
        if header.d_id == FcId::FABRIC_CONTROLLER && self.lost_scrs > 0 {
            self.lost_scrs -= 1;
            return;
        }
        let (r_ctl, payload) = if header.kind == FrameType::CT {
            (
                RCtl::SOLICITED_CONTROL,
                self.name_server(header.s_id, asked.payload),
            )
        } else {
            (RCtl::ELS_REPLY, self.els(asked.payload).encode())
        };
        let reply = FrameHeader {
            f_ctl: FCtl::REPLY,
            ..FrameHeader::new(
                (r_ctl, header.kind),
                (header.d_id, header.s_id),
                (header.ox_id, RxId(2)),
            )
        };
        self.send_sequence(tag, reply, &payload);
    }

    /// Of as many frames as it takes.
    fn send_sequence(&mut self, tag: Option<VlanTag>, header: FrameHeader, payload: &[u8]) {
        let ethernet = EthernetHeader {
            vlan: tag,
            ..EthernetHeader::new(FCF, Mac::of_port(Mac::FC_MAP, header.d_id), FCOE)
        };
        let pieces: Vec<_> = payload.chunks(2048).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let is_last = at + 1 == pieces.len();
            let f_ctl = if is_last {
                FCtl::REPLY
            } else {
                FCtl::RESPONDER.with(FCtl::LAST_SEQUENCE)
            };
            let sof = if at == 0 {
                fcoe::Sof::I3
            } else {
                fcoe::Sof::N3
            };
            let eof = if is_last { fcoe::Eof::T } else { fcoe::Eof::N };
            let header = FrameHeader {
                f_ctl,
                seq_cnt: at as u16,
                ..header
            };
            self.queue
                .push_back(frame(&ethernet, (sof, eof), &header, piece));
        }
    }

    fn els(&self, payload: &[u8]) -> Reply {
        match Els::parse(payload).unwrap() {
            Els::Plogi(says) => Reply::Login(says),
            Els::Scr(_) if self.no_scr => Reply::Reject(LsRejectReason::NOT_SUPPORTED),
            _ => Reply::Accept,
        }
    }

    /// An RSCN to a port.
    pub(super) fn rscn(&mut self, to: FcId, pages: &[(u8, FcId)]) {
        let els = Els::Rscn(Rscn(pages.to_vec()));
        self.request(FcId::FABRIC_CONTROLLER, to, &els);
    }

    /// A link service from anywhere in the fabric, at once.
    pub(super) fn request(&mut self, from: FcId, to: FcId, els: &Els) {
        self.send_frame(from, to, (RCtl::ELS_REQUEST, FrameType::ELS), &els.encode());
    }

    pub(super) fn send_frame(
        &mut self,
        from: FcId,
        to: FcId,
        kind: (RCtl, FrameType),
        payload: &[u8],
    ) {
        let ethernet = EthernetHeader::new(FCF, Mac::of_port(Mac::FC_MAP, to), FCOE);
        let header = FrameHeader::request(kind, (from, to), OxId(0x55));
        let frame = frame(&ethernet, SINGLE, &header, payload);
        self.deliver(&frame);
    }

    /// What was on the Ethernet since this was asked last.
    pub(super) fn traced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    /// How often a request was made since this was asked last.
    pub(super) fn count(&mut self, code: CtCode) -> usize {
        let words = format!("CT {code:?}");
        let lines = self.traced();
        lines.iter().filter(|line| line.ends_with(&words)).count()
    }

    /// A port that is only an entry of the name server.
    pub(super) fn add_entry(&mut self, fc_id: FcId, wwpn: u64, features: u8) {
        let entry = Entry {
            wwpn: Wwn(wwpn),
            features: Some(features),
        };
        self.entries.insert(fc_id, entry);
    }
}

/// The names of what is asked of a name server most.
pub(super) const LIST: CtCode = code::GPN_FT;
pub(super) const NAME: CtCode = code::GPN_ID;
