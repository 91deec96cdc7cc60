//! Our target, fed with what a captured initiator sent over software iWARP, from the login to the
//! logout. Only STags are translated, as each end makes its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iscsi::datamover::iser::IserMover;
use iscsi::login::{Login, LoginEvent};
use iscsi::parameters::Transport;
use iscsi::session::{Session, SessionEvent};
use iscsi::target::{Endpoints, IserPortals, NodeAccess, TargetConfig, TargetLimits, TargetNode};
use iscsi::test_support::{bytes_of, pattern};
use iscsi::wire::bhs::{Bhs, Opcode};
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader, invalidates};
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use rdma::iwarp::startup::MpaRole;
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::{agreed, sent};
use rdma::verbs::{Access, Completion, QueuePair as _, SendHeader, Stag, Work};
use scsi::medium::{HeapLease, Lease as _};
use scsi::task::{Command, Completed, SenseBytes};
use scsi::wire::sense::Status;

use crate::frames;

const CAPTURED: &str = include_str!("iser-session.hex");

/// ImmediateData as the captured target let it have: TargetRecvDataSegmentLength.
const IMMEDIATE: usize = 8192;

/// StatSN of the captured target's first response.
const STAT_SN: u32 = 0x8c23_42cc;

const NOW: Duration = Duration::ZERO;

fn stream(role: MpaRole) -> Stream<HeapLease> {
    let config = StreamConfig {
        segment_size: 4144,
        max_receive: 16 << 10,
        can_invalidate: invalidates(&[0x80, 0, 0, 0]),
        random: [role as u8; 32],
    };
    Stream::new(agreed(role), &config)
}

fn login() -> Login<HeapLease> {
    let name = "iqn.2026-01.test:lio".to_owned();
    let config = TargetConfig {
        nodes: vec![Arc::new(TargetNode::new(name, NodeAccess::default()))],
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits: TargetLimits::default(),
    };
    let endpoints = Endpoints {
        local: ([10, 9, 0, 1], 3260).into(),
        peer: ([10, 9, 0, 2], 46_530).into(),
    };
    let mut random = [0; 64];
    random[60..].copy_from_slice(&STAT_SN.to_be_bytes());
    let transport = Transport::Iser {
        data_segment: IMMEDIATE as u32,
    };
    let mut login = Login::new(NOW, Arc::new(config), endpoints, random);
    login.set_transport(transport);
    login
}

/// The target's end: a login, then a session, and a device server whose blocks are a pattern.
struct Target {
    stream: Stream<HeapLease>,
    login: Option<Login<HeapLease>>,
    session: Option<Session<HeapLease, IserMover<HeapLease>>>,
    /// Commands that wait for their data.
    writes: Vec<Command>,
    has_logged_out: bool,
}

impl Target {
    fn act(&mut self) {
        if self.login.is_some() {
            self.log_in();
        }
        while let Some(session) = &mut self.session {
            session.receive(NOW, &mut self.stream);
            let Some(event) = session.poll() else {
                session.transmit(&mut self.stream);
                return;
            };
            self.obey(event);
        }
    }

    fn log_in(&mut self) {
        while let Some(completion) = self.stream.poll() {
            if let (Completion::Received { bytes, .. }, Some(login)) = (completion, &mut self.login)
            {
                assert!(login.receive_message(NOW, &bytes));
            }
        }
        while let Some(event) = self.login.as_mut().and_then(Login::poll) {
            let Some(login) = &mut self.login else { return };
            match event {
                LoginEvent::Session { .. } => login.admit(1),
                LoginEvent::Done => {
                    assert!(login.post(&mut self.stream));
                    let login = self.login.take();
                    self.session = login.and_then(|login| login.into_session_over(NOW));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn obey(&mut self, event: SessionEvent<HeapLease>) {
        let Some(session) = &mut self.session else {
            return;
        };
        let (command, length_out) = match event {
            SessionEvent::Execute(command) if command.expected_out > 0 => {
                let memory = HeapLease::from_bytes(vec![0; command.expected_out as usize]);
                session.receive_data_out(command.tag, 0, memory);
                return self.writes.push(command);
            }
            SessionEvent::Execute(command) => (command, 0),
            SessionEvent::DataOut { tag, offset, data } => {
                assert_eq!((offset, bytes_of(&data)), (0, pattern(data.len())));
                let at = self.writes.iter().position(|write| write.tag == tag);
                (self.writes.remove(at.unwrap()), data.len())
            }
            SessionEvent::LoggedOut => return self.has_logged_out = true,
            other => panic!("{other:?}"),
        };
        let data = pattern(command.expected_in as usize);
        session.send_data_in(command.tag, 0, HeapLease::from_bytes(data));
        let completed = Completed {
            status: Status::Good,
            sense: SenseBytes::EMPTY,
            qualifier: 0,
            length_in: command.expected_in.into(),
            length_out: length_out as u64,
        };
        session.complete(command.tag, &completed);
    }
}

/// The captured initiator's end, and its memory.
struct Initiator {
    stream: Stream<HeapLease>,
    /// By Initiator Task Tag: the STag that a command has advertised, and what is read into.
    advertised: BTreeMap<u32, (Stag, Option<HeapLease>)>,
    /// The opcode and StatSN of each PDU that has come.
    heard: Vec<(Opcode, u32)>,
}

impl Initiator {
    fn send(&mut self, title: &str, message: &[u8]) {
        let (header, rest) = IserHeader::split(message).unwrap();
        let IserHeader::Control(captured) = header else {
            panic!("{title}: {header:?}")
        };
        let mut rest = rest.to_vec();
        let bhs = Bhs(*rest.first_chunk().unwrap());
        if title.ends_with("header") {
            rest.extend(pattern(IMMEDIATE));
        }
        let buffers = self.advertise(&bhs, captured);
        let header = IserHeader::Control(buffers).encode();
        self.stream.post(Work::Send {
            header: SendHeader::new(&[&header]).unwrap(),
            data: Some(HeapLease::from_bytes(rest)),
            invalidate: None,
        });
    }

    /// Memory in place of that which the capture's STags named: a Write Base Offset is that of the
    /// first byte which did not go with the command.
    fn advertise(&mut self, bhs: &Bhs, captured: AdvertisedBuffers) -> AdvertisedBuffers {
        let pdu = ScsiCommand::decode(bhs);
        let expected = pdu.expected as usize;
        let mut one = |data, may| {
            let memory = HeapLease::from_bytes(data);
            let tag = self.stream.advertise(&memory, may);
            let is_read = may == Access::Write;
            self.advertised
                .insert(pdu.itt.0, (tag.stag, is_read.then_some(memory)));
            tag
        };
        let rest = captured
            .write
            .map(|_| pattern(expected)[IMMEDIATE..].to_vec());
        AdvertisedBuffers {
            write: rest.map(|rest| one(rest, Access::Read)),
            read: captured.read.map(|_| one(vec![0; expected], Access::Write)),
        }
    }

    fn hear(&mut self) {
        while let Some(completion) = self.stream.poll() {
            match completion {
                Completion::Received { bytes, invalidated } => self.message(&bytes, invalidated),
                Completion::Ended(why) => panic!("{why:?}"),
                _ => {}
            }
        }
    }

    /// A response has come with all of its data, and invalidates the STag of its command.
    fn message(&mut self, message: &[u8], invalidated: Option<Stag>) {
        let (_, rest) = IserHeader::split(message).unwrap();
        let pdu = ControlMessage::split(rest).unwrap();
        let response = ScsiResponse::decode(&pdu.bhs);
        self.heard
            .push((pdu.bhs.opcode(), response.stamps.stat_sn.0));
        let advertised = self.advertised.remove(&response.itt.0);
        let stag = advertised.as_ref().map(|(stag, _)| *stag);
        assert_eq!(invalidated, stag, "#{}", response.itt.0);
        if pdu.bhs.opcode() == Opcode::ScsiResponse {
            assert_eq!((response.status, pdu.data.len()), (0, 0));
        }
        if let Some((_, Some(memory))) = advertised {
            assert_eq!(bytes_of(&memory), pattern(memory.len()));
        }
    }
}

/// Bytes cross until neither end has any.
fn exchange(initiator: &mut Initiator, target: &mut Target) {
    loop {
        let (there, back) = (sent(&mut initiator.stream), sent(&mut target.stream));
        let (mut rest, mut answers) = (&there[..], &back[..]);
        while !rest.is_empty() || !answers.is_empty() {
            rest = &rest[target.stream.receive(rest)..];
            target.act();
            answers = &answers[initiator.stream.receive(answers)..];
            initiator.hear();
        }
        if there.is_empty() && back.is_empty() {
            return;
        }
    }
}

#[test]
fn a_captured_initiator_is_served_to_its_logout() {
    let mut initiator = Initiator {
        stream: stream(MpaRole::Initiator),
        advertised: BTreeMap::new(),
        heard: Vec::new(),
    };
    let mut target = Target {
        stream: stream(MpaRole::Responder),
        login: Some(login()),
        session: None,
        writes: Vec::new(),
        has_logged_out: false,
    };
    let messages = frames(CAPTURED);
    assert_eq!(messages.len(), 55);
    for (at, (title, message)) in messages.iter().enumerate() {
        initiator.send(title, message);
        exchange(&mut initiator, &mut target);
        assert_eq!(initiator.heard.len(), at + 1, "{title} is answered");
    }
    assert!(target.has_logged_out && initiator.advertised.is_empty());
    let opcodes: Vec<_> = initiator.heard.iter().map(|heard| heard.0).collect();
    assert_eq!(opcodes[0], Opcode::LoginResponse);
    assert_eq!(opcodes[1..54], [Opcode::ScsiResponse; 53]);
    assert_eq!(opcodes[54], Opcode::LogoutResponse);
    let numbers = initiator.heard.iter().map(|heard| heard.1);
    assert!(
        numbers.eq(STAT_SN..STAT_SN + 55),
        "as the captured target counted"
    );
}
