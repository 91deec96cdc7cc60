//! Both ends of a session over iSER by software iWARP, back to back: our initiator, our target, and
//! a stream under each of them.

use std::sync::Arc;
use std::time::Duration;

use iscsi::datamover::iser::IserMover;
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::initiator::{ClientCommand, Data, Initiator, InitiatorEvent};
use iscsi::login::{Login, LoginEvent};
use iscsi::parameters::Transport;
use iscsi::session::Session;
use iscsi::target::{Endpoints, NodeAccess};
use rdma::iwarp::sink::FpduSink;
use rdma::iwarp::startup::{Agreed, MpaRole};
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::agreed;
use rdma::verbs::{Completion, QueuePair as _};
use scsi::medium::{HeapLease, Lease as _};
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::{LENGTH, LIMITS, cost, serve};

const NOW: Duration = Duration::ZERO;

const TARGET: &str = "iqn.2026-11.org.lunar:test";

/// Bytes that come at once: most FPDUs come in several parts, at ever other places.
const PIECE: usize = 1448;

/// Bytes on their way, in memory that is used again.
#[derive(Default)]
struct Wire(Vec<u8>);

impl FpduSink<HeapLease> for Wire {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        let start = self.0.len();
        self.0.resize(start + data.len(), 0);
        data.copy_out(0, &mut self.0[start..]);
        &self.0[start..]
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// Our target's end.
struct Target {
    stream: Stream<HeapLease>,
    login: Option<Login<HeapLease>>,
    session: Option<Session<HeapLease, IserMover<HeapLease>>>,
    /// Its disk.
    memory: HeapLease,
}

struct Pair {
    initiator: Initiator<HeapLease, InitiatorIserMover>,
    stream: Stream<HeapLease>,
    target: Target,
    wire: Wire,
    /// What commands move.
    memory: HeapLease,
    /// Commands that have ended.
    done: usize,
}

fn memory() -> HeapLease {
    HeapLease::from_bytes(vec![7; LENGTH as usize])
}

fn stream(role: MpaRole, crc: bool, long_fpdus: bool) -> Stream<HeapLease> {
    let agreed = Agreed {
        crc,
        long_fpdus,
        ..agreed(role)
    };
    let config = StreamConfig {
        segment_size: PIECE,
        max_receive: MAX_MESSAGE,
        can_invalidate: true,
        random: [role as u8; 32],
    };
    Stream::new(agreed, &config)
}

impl Target {
    fn new(stream: Stream<HeapLease>) -> Self {
        let config = tests::target_config(TARGET, NodeAccess::default(), LIMITS);
        let address = "192.0.2.1:3260".parse().unwrap();
        let endpoints = Endpoints {
            local: address,
            peer: address,
        };
        let mut login = Login::new(NOW, Arc::new(config), endpoints, [7; 64]);
        login.set_transport(Transport::Iser { data_segment: 8192 });
        Self {
            stream,
            login: Some(login),
            session: None,
            memory: memory(),
        }
    }

    fn act(&mut self) {
        self.log_in();
        if let Some(session) = &mut self.session {
            session.receive(NOW, &mut self.stream);
            while let Some(event) = session.poll() {
                serve(session, event, &self.memory);
                session.receive(NOW, &mut self.stream);
            }
            session.transmit(&mut self.stream);
        }
    }

    fn log_in(&mut self) {
        while let Some(login) = &mut self.login {
            match login.poll() {
                Some(LoginEvent::Session { .. }) => login.admit(1),
                Some(LoginEvent::Done) => {
                    login.post(&mut self.stream);
                    let login = self.login.take();
                    self.session = login.and_then(|login| login.into_session_over(NOW));
                }
                Some(other) => panic!("{other:?}"),
                None => {
                    login.post(&mut self.stream);
                    let Some(completion) = self.stream.poll() else {
                        return;
                    };
                    if let Completion::Received { bytes, .. } = completion {
                        assert!(login.receive_message(NOW, &bytes));
                    }
                }
            }
        }
    }
}

impl Pair {
    /// Logged in.
    fn new(immediate: bool, crc: bool, long_fpdus: bool) -> Self {
        let host = "iqn.2026-11.org.lunar:initiator";
        let mut config = InitiatorConfig::normal(host, [0; 6], TARGET);
        config.offer.keys.immediate_data = immediate;
        let initiator = Initiator::over_rdma(Arc::new(config), NOW, [7; 37]);
        let mut pair = Self {
            initiator: initiator.unwrap(),
            stream: stream(MpaRole::Initiator, crc, long_fpdus),
            target: Target::new(stream(MpaRole::Responder, crc, long_fpdus)),
            wire: Wire::default(),
            memory: memory(),
            done: 0,
        };
        while pair.initiator.outcome().is_none() {
            assert!(pair.exchange(), "the login comes to an end");
        }
        pair
    }

    /// What each end has to send goes to the other one; returns whether there was anything.
    fn exchange(&mut self) -> bool {
        let mut wire = std::mem::take(&mut self.wire);
        wire.0.clear();
        self.initiator.transmit(&mut self.stream);
        let there = self.stream.transmit(&mut wire);
        for mut piece in wire.0.chunks(PIECE) {
            while !piece.is_empty() {
                piece = &piece[self.target.stream.receive(piece)..];
                self.target.act();
            }
        }
        wire.0.clear();
        let back = self.target.stream.transmit(&mut wire);
        for mut piece in wire.0.chunks(PIECE) {
            while !piece.is_empty() {
                piece = &piece[self.stream.receive(piece)..];
                self.hear();
            }
        }
        self.wire = wire;
        there || back
    }

    fn hear(&mut self) {
        loop {
            let is_all = self.initiator.receive(NOW, &mut self.stream);
            if !self.events() && is_all {
                return;
            }
        }
    }

    /// Takes what the initiator tells; returns whether it told anything.
    fn events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.initiator.poll() {
            match event {
                InitiatorEvent::LoggedIn => {}
                InitiatorEvent::Done(done) if done.status == 0 && done.moved == LENGTH => {
                    self.done += 1;
                }
                other => panic!("{other:?}"),
            }
            any = true;
        }
        any
    }

    /// Eight commands from their begin to their end.
    fn turn(&mut self, write: bool) {
        let done = self.done;
        for id in 0..8 {
            let lease = self.memory.clone();
            let data = if write {
                Data::Out(lease)
            } else {
                Data::In(lease)
            };
            let command = ClientCommand {
                id,
                lun: Lun([0; 8]),
                cdb: [0; 16],
                attribute: Attribute::Simple,
                data,
                deadline: None,
            };
            self.initiator.execute(NOW, command).unwrap();
        }
        while !self.initiator.is_idle() {
            assert!(self.exchange(), "each command comes to an end");
        }
        assert_eq!(self.done, done + 8);
    }
}

#[test]
fn both_ends_of_iser_do_not_use_the_heap() {
    for (immediate, crc, long_fpdus) in [
        (true, false, true),
        (true, true, false),
        (false, false, true),
        (false, true, false),
    ] {
        let mut pair = Pair::new(immediate, crc, long_fpdus);
        let agreed = pair.initiator.outcome().unwrap().keys;
        assert!(agreed.transport.is_rdma() && agreed.immediate_data == immediate);
        let costs = [false, true].map(|write| cost(|| pair.turn(write)));
        let named = format!("immediate: {immediate}, CRC: {crc}, long: {long_fpdus}");
        assert_eq!(costs, [0, 0], "{named}: reads and writes");
    }
}
