//! Our initiator, fed with what a captured target answered over software iWARP, from the login to
//! the logout: for each request of the captured initiator ours asks for the same. Translated are
//! Initiator Task Tags, numbers and STags, as each initiator makes its own, and what the captured
//! initiator was granted and ours does not offer.

use std::sync::Arc;
use std::time::Duration;

use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::initiator::{ClientCommand, Data, Done, Initiator, InitiatorEvent};
use iscsi::test_support::{bytes_of, pattern};
use iscsi::wire::bhs::{BHS_LEN, Bhs, Opcode};
use iscsi::wire::control::NopIn;
use iscsi::wire::framer::padding;
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader, invalidates};
use iscsi::wire::login::LoginRequest;
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use rdma::iwarp::startup::MpaRole;
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::{agreed, sent};
use rdma::verbs::{Completion, QueuePair as _, ReadId, SendHeader, Stag, Work};
use scsi::medium::{HeapLease, Lease as _};
use scsi::residual::Residual;
use scsi::task::Attribute;

use crate::frames;

const SESSION: &str = include_str!("iser-session.hex");
const MESSAGES: &str = include_str!("iser-messages.hex");

const NOW: Duration = Duration::ZERO;

/// A message of the captured target, behind its header of iSER.
fn captured(title: &str) -> Vec<u8> {
    let title = format!("siw target, {title}");
    let mut messages = frames(MESSAGES).into_iter();
    let (_, message) = messages.find(|message| message.0 == title).unwrap();
    let (header, rest) = IserHeader::split(&message).unwrap();
    assert_eq!(header, IserHeader::Control(AdvertisedBuffers::default()));
    rest.to_vec()
}

fn stream(role: MpaRole, max_receive: u32) -> Stream<HeapLease> {
    let config = StreamConfig {
        segment_size: 4144,
        max_receive,
        can_invalidate: invalidates(&[0x80, 0, 0, 0]),
        random: [role as u8; 32],
    };
    Stream::new(agreed(role), &config)
}

/// The captured target's end: it answers with what was captured.
struct Target {
    stream: Stream<HeapLease>,
    /// StatSN of the next message.
    stat_sn: u32,
    /// What commands are answered with.
    response: &'static str,
    /// The write whose data is read.
    reading: Option<(Bhs, Stag)>,
    /// Bytes of each write that came with its command, and of each that was read.
    written: Vec<(usize, usize)>,
}

impl Target {
    fn act(&mut self) {
        while let Some(completion) = self.stream.poll() {
            match completion {
                Completion::Received { bytes, .. } => self.message(&bytes),
                Completion::Got { into, .. } => {
                    assert_eq!(bytes_of(&into), pattern(into.len()));
                    self.written.push((0, into.len()));
                    let (bhs, stag) = self.reading.take().unwrap();
                    self.answer(&captured(self.response), &bhs, Some(stag));
                }
                Completion::Ended(why) => panic!("{why:?}"),
                _ => {}
            }
        }
    }

    fn message(&mut self, message: &[u8]) {
        let (IserHeader::Control(buffers), rest) = IserHeader::split(message).unwrap() else {
            panic!("a Hello");
        };
        let pdu = ControlMessage::split(rest).unwrap();
        match pdu.bhs.opcode() {
            Opcode::LoginRequest => self.log_in(&pdu),
            Opcode::ScsiCommand => self.command(&pdu, buffers),
            Opcode::TextRequest => self.answer(&captured("Text Response"), &pdu.bhs, None),
            Opcode::LogoutRequest => self.answer(&captured("Logout Response"), &pdu.bhs, None),
            other => panic!("{other:?}"),
        }
    }

    /// The captured initiator had no security stage, and offered a longer data segment.
    fn log_in(&mut self, pdu: &ControlMessage<'_>) {
        let request = LoginRequest::decode(&pdu.bhs);
        let offer = String::from_utf8(pdu.data.to_vec()).unwrap();
        let discovery = if self.response.is_empty() {
            " for discovery"
        } else {
            ""
        };
        let mut response = captured(&format!("Login Response{discovery}"));
        let mut text = String::from_utf8(response[BHS_LEN..].to_vec()).unwrap();
        if request.current == 0 {
            text = "TargetPortalGroupTag=1\0AuthMethod=None\0".into();
            response[1] = 0x81;
        } else {
            let granted = "InitiatorRecvDataSegmentLength=262144";
            text = text.replace(granted, "InitiatorRecvDataSegmentLength=8192");
            text = text.replace("TargetPortalGroupTag=1\0", "");
            text = text.trim_end_matches('\0').to_owned() + "\0";
            for key in [
                "MaxOutstandingUnexpectedPDUs",
                "TaggedBufferForSolicitedDataOnly",
            ] {
                if offer.contains(key) {
                    text.push_str(&format!("{key}=NotUnderstood\0"));
                }
            }
        }
        response.truncate(BHS_LEN);
        let mut bhs = Bhs(*response.first_chunk().unwrap());
        bhs.0[8..14].copy_from_slice(&pdu.bhs.0[8..14]);
        bhs.set_data_len(text.len() as u32);
        let padding = usize::from(padding(text.len() as u32));
        let message = [&bhs.0[..], text.as_bytes(), &[0; 3][..padding]].concat();
        self.answer(&message, &pdu.bhs, None);
    }

    fn command(&mut self, pdu: &ControlMessage<'_>, buffers: AdvertisedBuffers) {
        let command = ScsiCommand::decode(&pdu.bhs);
        let response = captured(self.response);
        if let Some(tag) = buffers.write {
            assert!(pdu.data.is_empty(), "all of it or nothing");
            self.reading = Some((pdu.bhs, tag.stag));
            return self.stream.post(Work::Read {
                id: ReadId(0),
                from: tag,
                into: HeapLease::from_bytes(vec![0; command.expected as usize]),
            });
        }
        if command.write {
            assert_eq!(pdu.data, pattern(command.expected as usize));
            self.written.push((pdu.data.len(), 0));
        }
        if let Some(tag) = buffers.read {
            let told = ScsiResponse::decode(&Bhs(*response.first_chunk().unwrap()));
            let moved = told.residual.moved(command.expected).unwrap() as usize;
            self.stream.post(Work::Write {
                to: tag,
                from: HeapLease::from_bytes(pattern(moved)),
            });
        }
        self.answer(&response, &pdu.bhs, buffers.read.map(|tag| tag.stag));
    }

    /// Sends a captured message as the answer to a request of ours: its tag, and its numbers with
    /// the window as wide as it was.
    fn answer(&mut self, message: &[u8], request: &Bhs, invalidate: Option<Stag>) {
        let mut bhs = Bhs(*message.first_chunk().unwrap());
        let next = request.cmd_sn().0 + u32::from(!request.is_immediate());
        let stamps = NopIn::decode(&bhs).stamps;
        let width = stamps.max_cmd_sn.0.wrapping_sub(stamps.exp_cmd_sn.0);
        let numbers = [self.stat_sn, next, next.wrapping_add(width)];
        self.stat_sn += 1;
        bhs.0[16..20].copy_from_slice(&request.0[16..20]);
        for (at, number) in (24..).step_by(4).zip(numbers) {
            bhs.0[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
        let message = [&header[..], &bhs.0, &message[BHS_LEN..]].concat();
        self.stream.post(Work::Send {
            header: SendHeader::new(&[]).unwrap(),
            data: Some(HeapLease::from_bytes(message)),
            invalidate,
        });
    }
}

struct Pair {
    initiator: Initiator<HeapLease, InitiatorIserMover>,
    stream: Stream<HeapLease>,
    target: Target,
}

impl Pair {
    fn new(config: InitiatorConfig, response: &'static str) -> Self {
        let random = [7; 37];
        Self {
            initiator: Initiator::over_rdma(Arc::new(config), NOW, random).unwrap(),
            stream: stream(MpaRole::Initiator, MAX_MESSAGE),
            target: Target {
                stream: stream(MpaRole::Responder, 76 + 8192),
                stat_sn: 0x8c23_42cc,
                response,
                reading: None,
                written: Vec::new(),
            },
        }
    }

    /// Bytes cross until neither end has any; what the initiator tells.
    fn exchange(&mut self) -> Vec<InitiatorEvent<HeapLease>> {
        let mut events = Vec::new();
        loop {
            self.initiator.transmit(&mut self.stream);
            let (there, back) = (sent(&mut self.stream), sent(&mut self.target.stream));
            let (mut rest, mut answers) = (&there[..], &back[..]);
            while !rest.is_empty() || !answers.is_empty() {
                rest = &rest[self.target.stream.receive(rest)..];
                self.target.act();
                answers = &answers[self.stream.receive(answers)..];
                self.initiator.receive(NOW, &mut self.stream);
                events.extend(std::iter::from_fn(|| self.initiator.poll()));
            }
            if there.is_empty() && back.is_empty() {
                return events;
            }
        }
    }

    /// Asks for what a captured command asked for.
    fn ask(&mut self, id: u64, command: &ScsiCommand) -> Done<HeapLease> {
        let len = command.expected as usize;
        let data = match (command.read, command.write) {
            (true, _) => Data::In(HeapLease::from_bytes(vec![0; len])),
            (_, true) => Data::Out(HeapLease::from_bytes(pattern(len))),
            _ => Data::None,
        };
        let command = ClientCommand {
            id,
            lun: command.lun,
            cdb: command.cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        self.initiator.execute(NOW, command).unwrap();
        match self.exchange().pop() {
            Some(InitiatorEvent::Done(done)) => done,
            other => panic!("{other:?} where a status was expected"),
        }
    }

    fn log_out(&mut self) {
        self.initiator.logout(NOW).unwrap();
        assert!(self.exchange().is_empty());
        // It is the target that closes the connection.
        self.initiator.lost();
        match self.initiator.poll() {
            Some(InitiatorEvent::Ended(end)) => assert_eq!(end, SessionEnd::LoggedOut),
            other => panic!("{other:?} where the end was expected"),
        }
    }
}

/// Each command of the captured session.
fn commands() -> Vec<ScsiCommand> {
    let messages = frames(SESSION).into_iter();
    let pdus = messages.map(|(_, message)| {
        let (_, rest) = IserHeader::split(&message).unwrap();
        Bhs(*rest.first_chunk().unwrap())
    });
    let commands = pdus.filter(|bhs| bhs.opcode() == Opcode::ScsiCommand);
    commands.map(|bhs| ScsiCommand::decode(&bhs)).collect()
}

#[test]
fn a_captured_target_serves_us_to_the_logout() {
    let config = InitiatorConfig::normal(
        "iqn.2026-01.test:initiator",
        [0, 2, 0x3d, 0, 0, 2],
        "iqn.2026-01.test:lio",
    );
    let mut pair = Pair::new(config, "response");
    assert!(matches!(pair.exchange()[..], [InitiatorEvent::LoggedIn]));
    let keys = pair.initiator.outcome().unwrap().keys;
    assert_eq!(
        (keys.own_data_segment, keys.peer_data_segment),
        (8192, 8192)
    );
    assert_eq!((keys.max_burst, keys.first_burst), (262_144, 65_536));
    let commands = commands();
    assert_eq!(commands.len(), 53);
    for (id, command) in commands.iter().enumerate() {
        let done = pair.ask(id as u64, command);
        assert_eq!((done.status, done.residual), (0, Residual::Exact));
        assert_eq!(done.moved, command.expected);
        if let Data::In(into) = &done.data {
            assert_eq!(bytes_of(into), pattern(into.len()));
        }
    }
    let writes: Vec<_> = commands.iter().filter(|command| command.write).collect();
    let expected = writes
        .iter()
        .map(|command| match command.expected as usize {
            len @ 0..=8192 => (len, 0),
            len => (0, len),
        });
    assert!(!writes.is_empty() && expected.eq(pair.target.written.iter().copied()));
    pair.log_out();
}

#[test]
fn a_captured_residual_and_captured_sense_data() {
    let config =
        InitiatorConfig::normal("iqn.2026-01.test:initiator", [0; 6], "iqn.2026-01.test:lio");
    let mut pair = Pair::new(config, "response with a residual");
    pair.exchange();
    let read = commands().into_iter().find(|command| command.read);
    let read = ScsiCommand {
        expected: 512,
        ..read.unwrap()
    };
    let done = pair.ask(1, &read);
    let Residual::Underflow(missing) = done.residual else {
        panic!("{done:?}");
    };
    assert_eq!((done.status, done.moved), (0, 512 - missing));
    pair.target.response = "CHECK CONDITION";
    let done = pair.ask(2, &read);
    assert_eq!(done.status, 2);
    assert!(!done.sense.as_slice().is_empty());
    pair.log_out();
}

#[test]
fn a_captured_target_tells_its_targets() {
    let config = InitiatorConfig::discovery("iqn.2026-01.test:initiator", [0; 6]);
    let mut pair = Pair::new(config, "");
    assert!(matches!(pair.exchange()[..], [InitiatorEvent::LoggedIn]));
    pair.initiator.send_targets(NOW, "All").unwrap();
    match pair.exchange().pop() {
        Some(InitiatorEvent::Targets(targets)) => {
            assert_eq!(targets.len(), 1);
            assert_eq!(targets[0].name, "iqn.2026-01.test:lio");
        }
        other => panic!("{other:?} where targets were expected"),
    }
    pair.log_out();
}
