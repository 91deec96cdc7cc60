//! Services with ports that ask them.

use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;

use crate::fabric::PortNumber;
use crate::fabric::servers::{PortLogin, ServerFrame, Servers, ServersConfig, ServersEvent};
use crate::fabric::zones::Zones;
use crate::wire::ct::CtHeader;
use crate::wire::els::{
    ClassParameters, Code, Els, Features, LsRejectReason, Reply, ServiceParameters,
};
use crate::wire::ethernet::Mac;
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

pub(super) struct Rig {
    pub(super) servers: Servers,
    pub(super) now: Now,
    /// Of the next exchange of any port.
    pub(super) ox_id: u16,
}

/// A sequence that services sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// Of its first frame.
    pub(super) header: FrameHeader,
    pub(super) payload: Vec<u8>,
    pub(super) frames: usize,
}

pub(super) const SWITCH: Wwn = Wwn(0x1000_0200_0000_0001);

pub(super) const ELS: (RCtl, FrameType) = (RCtl::ELS_REQUEST, FrameType::ELS);
pub(super) const CT: (RCtl, FrameType) = (RCtl::UNSOLICITED_CONTROL, FrameType::CT);

/// The N_Port_ID of the port of a number.
pub(super) const fn id(number: u32) -> FcId {
    FcId(0x01_0100 + number)
}

pub(super) const fn wwpn(number: u32) -> Wwn {
    Wwn(0x2000 << 48 | number as u64)
}

/// Ten ports are on a node.
pub(super) const fn wwnn(number: u32) -> Wwn {
    Wwn((0x1000 << 48) | (number as u64 / 10))
}

pub(super) fn login(number: u32) -> PortLogin {
    PortLogin {
        fc_id: id(number),
        wwpn: wwpn(number),
        wwnn: wwnn(number),
        f_port_name: Wwn(0x2001 << 48 | 1),
        port: PortNumber((number % 32) as u16),
        place: Arc::from("eth0"),
        enode: Mac([2, 0, 0, 0, (number >> 8) as u8, number as u8]),
        max_payload: 2112,
    }
}

/// What a port says in PLOGI.
pub(super) fn parameters(number: u32, receive_size: u16) -> ServiceParameters {
    ServiceParameters {
        versions: [0x20; 2],
        bb_credit: 10,
        features: Features::CONTINUOUS_OFFSET,
        receive_size,
        total_sequences: 255,
        relative_offset: 0x1f,
        e_d_tov: 2000,
        wwpn: wwpn(number),
        wwnn: wwnn(number),
        class_3: ClassParameters {
            options: ClassParameters::VALID,
            receive_size,
            concurrent_sequences: 255,
            open_sequences: 1,
            ..ClassParameters::default()
        },
    }
}

impl Rig {
    /// Of a fabric in which all ports see each other; those of these numbers are logged in.
    pub(super) fn new(ports: impl IntoIterator<Item = u32>) -> Self {
        Self::zoned(Zones::open(), ports)
    }

    pub(super) fn zoned(zones: Zones, ports: impl IntoIterator<Item = u32>) -> Self {
        let config = ServersConfig {
            switch_name: SWITCH,
            fabric_name: Wwn(0x2001_0200_0000_0001),
            e_d_tov: Duration::from_secs(2),
            r_a_tov: Duration::from_secs(10),
        };
        let mut rig = Self {
            servers: Servers::new(config),
            now: Duration::from_secs(1),
            ox_id: 0,
        };
        rig.servers.set_zones(rig.now, Arc::new(zones));
        for number in ports {
            rig.servers.logged_in(rig.now, login(number));
        }
        rig
    }

    /// Time passes; all that is due is done at its time.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(at) = self.servers.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.servers.expire(self.now);
        }
        self.now = end;
    }

    /// A sequence of a port comes, in frames of up to `frame_max` bytes.
    pub(super) fn sends(
        &mut self,
        (from, to): (FcId, FcId),
        kind: (RCtl, FrameType),
        payload: &[u8],
        frame_max: usize,
    ) {
        let frames: Vec<_> = self.frames((from, to), kind, payload, frame_max);
        for frame in &frames {
            self.comes(frame);
        }
    }

    /// The frames of a sequence of a new exchange.
    pub(super) fn frames(
        &mut self,
        ids: (FcId, FcId),
        kind: (RCtl, FrameType),
        payload: &[u8],
        frame_max: usize,
    ) -> Vec<ServerFrame> {
        self.ox_id = self.ox_id.wrapping_add(1);
        let header = FrameHeader::new(kind, ids, (OxId(self.ox_id), RxId::UNASSIGNED));
        let count = payload.len().div_ceil(frame_max).max(1);
        let chunk = |at: usize| {
            let end = payload.len().min((at + 1) * frame_max);
            payload[at * frame_max..end].to_vec()
        };
        let frame = |at: usize| ServerFrame {
            sof: if at == 0 { Sof::I3 } else { Sof::N3 },
            eof: if at + 1 == count { Eof::T } else { Eof::N },
            header: FrameHeader {
                f_ctl: if at + 1 == count {
                    FCtl::REQUEST
                } else {
                    FCtl::FIRST_SEQUENCE
                },
                seq_cnt: at as u16,
                ..header
            },
            payload: chunk(at),
        };
        (0..count).map(frame).collect()
    }

    pub(super) fn comes(&mut self, frame: &ServerFrame) {
        let received = ReceivedFrame {
            sof: frame.sof,
            eof: frame.eof,
            header: frame.header,
            payload: &frame.payload,
        };
        self.servers.receive(self.now, &received);
    }

    /// All sequences that are to be sent.
    pub(super) fn sent(&mut self) -> Vec<Sent> {
        let mut sequences: Vec<Sent> = Vec::new();
        let mut is_open = false;
        while let Some(frame) = self.servers.transmit() {
            assert_eq!(frame.sof == Sof::N3, is_open, "{frame:?}");
            assert_eq!(frame.eof == Eof::T, frame.header.f_ctl.end_sequence());
            if is_open {
                let open = sequences.last_mut().unwrap();
                assert_eq!(usize::from(frame.header.seq_cnt), open.frames);
                open.payload.extend(&frame.payload);
                open.frames += 1;
            } else {
                assert_eq!(frame.header.seq_cnt, 0);
                let (header, payload) = (frame.header, frame.payload);
                sequences.push(Sent {
                    header,
                    payload,
                    frames: 1,
                });
            }
            is_open = frame.eof == Eof::N;
        }
        assert!(!is_open, "the last sequence has an end");
        sequences
    }

    /// The one sequence that is to be sent.
    #[track_caller]
    pub(super) fn sent_one(&mut self) -> Sent {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// The answer to an ELS.
    #[track_caller]
    pub(super) fn els(&mut self, number: u32, to: FcId, els: &Els) -> Reply {
        self.sends((id(number), to), ELS, &els.encode(), 2112);
        let sent = self.sent_one();
        let header = sent.header;
        assert_eq!(
            (header.r_ctl, header.kind),
            (RCtl::ELS_REPLY, FrameType::ELS)
        );
        assert_eq!((header.s_id, header.d_id), (to, id(number)));
        assert_eq!(
            (header.ox_id, header.f_ctl),
            (OxId(self.ox_id), FCtl::REPLY)
        );
        Reply::parse(els.code(), &sent.payload).unwrap()
    }

    /// A port logs in to a service.
    #[track_caller]
    pub(super) fn log_in(&mut self, number: u32, to: FcId) {
        let reply = self.els(number, to, &Els::Plogi(parameters(number, 2112)));
        assert!(matches!(reply, Reply::Login(_)), "{reply:?}");
    }

    /// What the port is answered, if it is.
    pub(super) fn els_or_silence(&mut self, number: u32, to: FcId, els: &Els) -> Option<Reply> {
        self.sends((id(number), to), ELS, &els.encode(), 2112);
        let sent = self.sent().pop()?;
        Some(Reply::parse(els.code(), &sent.payload).unwrap())
    }

    /// What a CT request is answered with.
    #[track_caller]
    pub(super) fn ct(&mut self, number: u32, to: FcId, request: &[u8]) -> Sent {
        self.sends((id(number), to), CT, request, 2112);
        let sent = self.sent_one();
        let header = sent.header;
        assert_eq!(
            (header.r_ctl, header.kind),
            (RCtl::SOLICITED_CONTROL, FrameType::CT)
        );
        assert_eq!((header.s_id, header.d_id), (to, id(number)));
        let (asked, _) = CtHeader::parse(request).unwrap();
        let (answered, _) = CtHeader::parse(&sent.payload).unwrap();
        assert_eq!((answered.revision, answered.service), (1, asked.service));
        sent
    }

    pub(super) fn events(&mut self) -> Vec<ServersEvent> {
        std::iter::from_fn(|| self.servers.poll()).collect()
    }
}

/// What an answer says: `LS_RJT 0b/2c`.
pub(super) fn told(reply: &Reply) -> String {
    match reply {
        Reply::Reject(LsRejectReason {
            reason,
            explanation,
            ..
        }) => {
            format!("LS_RJT {reason:02x}/{explanation:02x}")
        }
        _ => Code::LS_ACC.to_string(),
    }
}
