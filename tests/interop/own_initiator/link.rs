//! An initiator on a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{ClientCommand, Data, Done, Initiator, InitiatorEvent, TargetRecord, Tmf};
use iscsi::pdu_sink::PduSink;
use scsi::medium::{HeapLease, Lease};
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

#[derive(Default)]
struct Batch(Vec<u8>);

impl PduSink<HeapLease> for Batch {
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
        self.0.len() > 1 << 16
    }
}

pub(super) struct Link {
    initiator: Initiator<HeapLease>,
    stream: TcpStream,
    begun: Instant,
    /// What came and was not taken.
    held: Vec<u8>,
    next_id: u64,
}

impl Link {
    fn new(portal: SocketAddr, config: InitiatorConfig) -> Self {
        let begun = Instant::now();
        let random = std::array::from_fn(|at| at as u8 ^ 0x35);
        let initiator = Initiator::new(Arc::new(config), begun.elapsed(), random).unwrap();
        let stream = TcpStream::connect(portal).unwrap();
        let turn = Duration::from_millis(100);
        stream.set_read_timeout(Some(turn)).unwrap();
        Self {
            initiator,
            stream,
            begun,
            held: Vec::new(),
            next_id: 0,
        }
    }

    #[track_caller]
    pub(super) fn logged_in(portal: SocketAddr, config: InitiatorConfig) -> Self {
        let mut link = Self::new(portal, config);
        match link.event() {
            InitiatorEvent::LoggedIn => link,
            other => panic!("{other:?} where a session was expected"),
        }
    }

    /// Why there is no session.
    #[track_caller]
    pub(super) fn refused(portal: SocketAddr, config: InitiatorConfig) -> String {
        match Self::new(portal, config).event() {
            InitiatorEvent::Ended(SessionEnd::Login(cause)) => cause.to_string(),
            other => panic!("{other:?} where a refusal was expected"),
        }
    }

    #[track_caller]
    pub(super) fn targets(portal: SocketAddr, config: InitiatorConfig) -> Vec<TargetRecord> {
        let mut link = Self::logged_in(portal, config);
        let now = link.begun.elapsed();
        link.initiator.send_targets(now, "All").unwrap();
        let targets = match link.event() {
            InitiatorEvent::Targets(targets) => targets,
            other => panic!("{other:?} where targets were expected"),
        };
        assert_eq!(link.leave(), SessionEnd::LoggedOut);
        targets
    }

    /// Carries on until something happens.
    pub(super) fn event(&mut self) -> InitiatorEvent<HeapLease> {
        loop {
            // Of commands that fail, the end that follows says why.
            let mut events = std::iter::from_fn(|| self.initiator.poll());
            if let Some(event) = events.find(|event| !matches!(event, InitiatorEvent::Failed(_))) {
                return event;
            }
            self.turn();
        }
    }

    fn turn(&mut self) {
        let mut batch = Batch::default();
        while self.initiator.transmit(&mut batch) {
            // A target that is gone is noticed by reading.
            let _ = self.stream.write_all(&batch.0);
            batch.0.clear();
        }
        let now = self.begun.elapsed();
        self.initiator.expire(now);
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            let mut bytes = vec![0; 1 << 16];
            match self.stream.read(&mut bytes) {
                Ok(0) => self.initiator.lost(),
                Ok(len) => self.held.extend_from_slice(&bytes[..len]),
                Err(_) => {}
            }
            return;
        }
        let used = self.initiator.receive(now, &held);
        self.held.extend_from_slice(&held[used..]);
    }

    /// A command from its begin to its end. Unit attentions are told once, and passed over.
    #[track_caller]
    pub(super) fn execute(
        &mut self,
        lun: Lun,
        cdb: [u8; 16],
        data: &Data<HeapLease>,
    ) -> Done<HeapLease> {
        loop {
            self.next_id += 1;
            let command = ClientCommand {
                id: self.next_id,
                lun,
                cdb,
                attribute: Attribute::Simple,
                data: data.clone(),
                deadline: None,
            };
            let now = self.begun.elapsed();
            self.initiator.execute(now, command).unwrap();
            match self.event() {
                InitiatorEvent::Done(done)
                    if done.sense.as_slice().get(2) == Some(&UNIT_ATTENTION) => {}
                InitiatorEvent::Done(done) => {
                    assert_eq!(done.id, self.next_id);
                    return done;
                }
                other => panic!("{other:?} where a status was expected"),
            }
        }
    }

    pub(super) fn manage(&mut self, lun: Lun, function: Tmf) {
        let now = self.begun.elapsed();
        self.initiator.manage(now, 0, lun, function).unwrap();
    }

    pub(super) fn leave(&mut self) -> SessionEnd {
        self.initiator.logout(self.begun.elapsed()).unwrap();
        match self.event() {
            InitiatorEvent::Ended(end) => end,
            other => panic!("{other:?} where the end was expected"),
        }
    }
}

/// The sense key, in sense data of fixed format.
const UNIT_ATTENTION: u8 = 6;
