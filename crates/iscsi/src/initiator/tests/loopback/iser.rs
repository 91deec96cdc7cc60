//! The same over software iWARP: two ends of a connection, back to back.

use std::sync::Arc;
use std::time::Duration;

use rdma::iwarp::startup::MpaRole;
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::{agreed, sent};
use rdma::verbs::{Completion, QueuePair as _};
use scsi::medium::HeapLease;

use super::target::{Disk, Guard, login};
use super::{INITIATOR, ISID, LEN, Story, chap, check, combinations, show, step};
use crate::datamover::iser::IserMover;
use crate::initiator::config::InitiatorConfig;
use crate::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use crate::initiator::tests::rig::random;
use crate::initiator::{Initiator, InitiatorEvent};
use crate::login::{Login, LoginEvent};
use crate::parameters::Transport;
use crate::session::Session;

const NOW: Duration = Duration::ZERO;

fn stream(role: MpaRole, max_receive: u32) -> Stream<HeapLease> {
    let config = StreamConfig {
        segment_size: 301,
        max_receive,
        can_invalidate: true,
        random: [role as u8; 32],
    };
    Stream::new(agreed(role), &config)
}

/// The target's end.
struct Target {
    stream: Stream<HeapLease>,
    login: Option<Login<HeapLease>>,
    session: Option<Session<HeapLease, IserMover<HeapLease>>>,
    disk: Disk,
}

impl Target {
    fn new(guard: Guard, data_segment: u32) -> Self {
        let mut login = login(guard);
        login.set_transport(Transport::Iser { data_segment });
        Self {
            stream: stream(MpaRole::Responder, 1 << 17),
            login: Some(login),
            session: None,
            disk: Disk::default(),
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.stream.receive(rest)..];
            self.act();
        }
    }

    fn act(&mut self) {
        self.log_in();
        while let Some(session) = &mut self.session {
            session.receive(NOW, &mut self.stream);
            let Some(event) = session.poll() else {
                session.transmit(&mut self.stream);
                return;
            };
            let over = self.disk.obey(session, event);
            session.transmit(&mut self.stream);
            if over {
                self.session = None;
            }
        }
    }

    fn log_in(&mut self) {
        while let Some(login) = &mut self.login {
            let event = login.poll();
            match event {
                Some(LoginEvent::Session { .. }) => login.admit(1),
                Some(LoginEvent::Done) => {
                    login.post(&mut self.stream);
                    let login = self.login.take();
                    self.session = login.and_then(|login| login.into_session_over(NOW));
                }
                Some(other) => panic!("{other:?}"),
                None => {
                    login.post(&mut self.stream);
                    match self.stream.poll() {
                        Some(Completion::Received { bytes, .. }) => {
                            assert!(login.receive_message(NOW, &bytes));
                        }
                        Some(_) => {}
                        None => return,
                    }
                }
            }
        }
    }
}

/// The initiator's end.
struct Host {
    initiator: Initiator<HeapLease, InitiatorIserMover>,
    stream: Stream<HeapLease>,
    told: Vec<String>,
    number: usize,
}

impl Host {
    fn receive(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.stream.receive(rest)..];
            while !self.initiator.receive(NOW, &mut self.stream) {
                self.events();
                self.initiator.transmit(&mut self.stream);
            }
            self.events();
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.initiator.poll() {
            self.told.push(show(&event));
            if !matches!(event, InitiatorEvent::Ended(_)) {
                step(&mut self.initiator, self.number);
                self.number += 1;
            }
        }
    }
}

/// The connection is cut behind so many bytes of each way; 0: behind each.
fn run(config: InitiatorConfig, guard: Guard, cut: usize) -> Story {
    let initiator = Initiator::over_rdma(Arc::new(config), NOW, random()).unwrap();
    let mut host = Host {
        initiator,
        stream: stream(MpaRole::Initiator, MAX_MESSAGE),
        told: Vec::new(),
        number: 0,
    };
    let mut target = Target::new(guard, 8192);
    let (mut out, mut back) = (super::Stream::new(cut), super::Stream::new(cut));
    loop {
        host.initiator.transmit(&mut host.stream);
        out.wire.bytes = sent(&mut host.stream);
        back.wire.bytes = sent(&mut target.stream);
        if out.wire.bytes.is_empty() && back.wire.bytes.is_empty() {
            break;
        }
        for piece in out.pieces() {
            target.receive(&piece);
        }
        for piece in back.pieces() {
            host.receive(&piece);
        }
    }
    // The target has logged it out, and closes the connection.
    if target.login.is_none() && target.session.is_none() {
        host.initiator.lost();
        host.events();
    }
    Story {
        told: host.told,
        disk: target.disk.0,
        keys: host.initiator.outcome().map(|outcome| outcome.keys),
        moved: [out.moved, back.moved],
    }
}

#[test]
fn every_combination_of_keys() {
    for config in combinations() {
        let offer = config.offer;
        let story = run(config, Guard::Open, usize::MAX);
        check(&story);
        let keys = story.keys.unwrap();
        assert!(keys.transport.is_rdma() && keys.iser.rdma_extensions && keys.initial_r2t);
        assert_eq!(keys.immediate_data, offer.keys.immediate_data);
        // Where all data is asked for it is not negotiated.
        if keys.immediate_data {
            assert_eq!(keys.first_burst, offer.keys.first_burst);
        }
        assert_eq!(
            (keys.own_data_segment, keys.peer_data_segment),
            (8192, 8192)
        );
    }
}

#[test]
fn cut_into_single_bytes() {
    for config in combinations().into_iter().step_by(5) {
        check(&run(config, Guard::Open, 0));
    }
}

/// A write that goes with its command, and one that is read.
#[test]
fn cut_at_every_byte() {
    for first_burst in [65_536, 512] {
        let mut config = super::config();
        config.offer.keys.first_burst = first_burst;
        config.offer.keys.max_burst = 65_536;
        let whole = run(config.clone(), Guard::Open, usize::MAX);
        check(&whole);
        assert!(whole.moved[0] > LEN);
        for at in 1..whole.moved.into_iter().max().unwrap() {
            assert_eq!(run(config.clone(), Guard::Open, at), whole, "cut at {at}");
        }
    }
}

#[test]
fn mutual_chap() {
    let whole = run(chap(true), Guard::Chap, usize::MAX);
    check(&whole);
    for at in 1..2000 {
        assert_eq!(run(chap(true), Guard::Chap, at), whole, "cut at {at}");
    }
}

#[test]
fn discovery() {
    let config = InitiatorConfig::discovery(INITIATOR, ISID);
    let whole = run(config.clone(), Guard::Open, usize::MAX);
    assert_eq!(whole.told.len(), 6, "{:?}", whole.told);
    assert!(whole.told[1].contains(super::TARGET));
    assert_eq!(whole.told[5], "Ended(LoggedOut)");
    for at in 1..whole.moved.into_iter().max().unwrap() {
        assert_eq!(run(config.clone(), Guard::Open, at), whole, "cut at {at}");
    }
}
