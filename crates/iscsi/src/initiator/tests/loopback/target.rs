//! Our own target's machines, with a disk that answers at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use scsi::medium::{HeapLease, Lease};
use scsi::task::{Command, Completed, FunctionResult, SenseBytes};
use scsi::wire::sense::Status;

use super::super::rig::{INITIATOR, Sink, TARGET, bytes_of};
use crate::auth::Hash;
use crate::datamover::Datamover;
use crate::login::{Login, LoginEvent};
use crate::session::{Session, SessionEvent};
use crate::target::{
    AccessGroup, ChapUser, Endpoints, Initiators, IserPortals, NodeAccess, TargetChap,
    TargetConfig, TargetLimits, TargetNode,
};

/// Who may come in.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    Open,
    Listed,
    Chap,
}

enum Stage {
    Login(Box<Login<HeapLease>>),
    Session(Box<Session<HeapLease>>),
    Closed,
}

pub(super) struct Target {
    stage: Stage,
    pub(super) disk: Disk,
}

/// A disk that answers at once, and what was written to it last.
#[derive(Default)]
pub(super) struct Disk(pub(super) Vec<u8>);

const NOW: Duration = Duration::ZERO;

fn access(guard: Guard) -> NodeAccess {
    let initiators = match guard {
        Guard::Listed => Initiators::Named(BTreeSet::from([INITIATOR.to_owned()])),
        _ => Initiators::Everybody,
    };
    let group = AccessGroup {
        initiators,
        chap: matches!(guard, Guard::Chap).then(|| TargetChap {
            users: vec![ChapUser {
                name: "user".into(),
                initiator: None,
                secret: b"a secret of twenty o".to_vec(),
            }],
            mutual: Some(("them".into(), b"another secret, yes.".to_vec())),
            minimum: Hash::Md5,
        }),
    };
    group.into()
}

/// A login at our target.
pub(super) fn login(guard: Guard) -> Login<HeapLease> {
    let node = TargetNode::new(TARGET.into(), access(guard));
    let config = TargetConfig {
        nodes: vec![Arc::new(node)],
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits: TargetLimits {
            data_segment: 700,
            ..TargetLimits::default()
        },
    };
    let endpoints = Endpoints {
        local: "192.0.2.1:3260".parse().unwrap(),
        peer: "192.0.2.2:40000".parse().unwrap(),
    };
    let random = std::array::from_fn(|at| at as u8 ^ 0x5a);
    Login::new(NOW, Arc::new(config), endpoints, random)
}

impl Target {
    pub(super) fn new(guard: Guard) -> Self {
        Self {
            stage: Stage::Login(Box::new(login(guard))),
            disk: Disk::default(),
        }
    }

    /// Takes bytes, and puts all answers to them into `wire`.
    pub(super) fn receive(&mut self, bytes: &[u8], wire: &mut Sink) {
        let mut rest = bytes;
        loop {
            let used = match &mut self.stage {
                Stage::Login(login) => login.receive(NOW, rest),
                Stage::Session(session) => session.receive(NOW, rest),
                Stage::Closed => rest.len(),
            };
            rest = &rest[used..];
            let moved = self.events(wire);
            if used == 0 && !moved {
                break;
            }
        }
        assert!(rest.is_empty(), "bytes are left");
    }

    /// Whether anything happened.
    fn events(&mut self, wire: &mut Sink) -> bool {
        match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Login(login) => self.login(login, wire),
            Stage::Session(session) => self.session(session, wire),
            Stage::Closed => false,
        }
    }

    fn login(&mut self, mut login: Box<Login<HeapLease>>, wire: &mut Sink) -> bool {
        let event = login.poll();
        match &event {
            Some(LoginEvent::Session { .. }) => login.admit(1),
            Some(LoginEvent::Close(_)) => {
                login.transmit(wire);
                return false;
            }
            _ => {}
        }
        login.transmit(wire);
        self.stage = match event {
            Some(LoginEvent::Done) => {
                let session = login.into_session(NOW).unwrap();
                Stage::Session(Box::new(session))
            }
            _ => Stage::Login(login),
        };
        event.is_some()
    }

    fn session(&mut self, mut session: Box<Session<HeapLease>>, wire: &mut Sink) -> bool {
        let event = session.poll();
        let any = event.is_some();
        let over = event.is_some_and(|event| self.disk.obey(&mut session, event));
        while session.transmit(wire) {}
        if !over {
            self.stage = Stage::Session(session);
        }
        any
    }
}

impl Disk {
    /// Does what a session wants; returns whether the session is over.
    pub(super) fn obey<D: Datamover<HeapLease>>(
        &mut self,
        session: &mut Session<HeapLease, D>,
        event: SessionEvent<HeapLease>,
    ) -> bool {
        match event {
            SessionEvent::Execute(command) => self.execute(session, &command),
            SessionEvent::DataOut { tag, data, .. } => {
                self.0 = bytes_of(&data);
                session.complete(tag, &good(0, self.0.len() as u64));
            }
            SessionEvent::Manage { id, .. } => session.managed(id, FunctionResult::Complete),
            SessionEvent::LoggedOut => return true,
            other => panic!("{other:?} from our own target"),
        }
        false
    }

    fn execute<D: Datamover<HeapLease>>(
        &self,
        session: &mut Session<HeapLease, D>,
        command: &Command,
    ) {
        if command.expected_out > 0 {
            let memory = HeapLease::from_bytes(vec![0; command.expected_out as usize]);
            session.receive_data_out(command.tag, 0, memory);
            return;
        }
        let data = HeapLease::from_bytes(self.0.clone());
        let len = data.len() as u64;
        session.send_data_in(command.tag, 0, data);
        session.complete(command.tag, &good(len, 0));
    }
}

fn good(length_in: u64, length_out: u64) -> Completed {
    Completed {
        status: Status::Good,
        sense: SenseBytes::EMPTY,
        qualifier: 0,
        length_in,
        length_out,
    }
}
