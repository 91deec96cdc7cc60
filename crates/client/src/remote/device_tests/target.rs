//! A target on a thread of its own, with one RAM disk: our own machines over a device's queue
//! pairs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::io::memory::{MemoryLimit, Pool};
use ::io::rdma::{RdmaListener, RdmaMemory, RdmaPairOptions, RdmaRequest};
use ::io::ring::{AnyRing, RingKind};
use block::lease::BlockLease;
use block::ram::Ram;
use block::volume::{Context, CoreContext, Handle, Volume};
use iscsi::datamover::iser::IserMover;
use iscsi::login::{Login, LoginEvent};
use iscsi::parameters::Transport;
use iscsi::session::{Session, SessionEvent};
use iscsi::target::{
    AccessGroup, Endpoints, Initiators, IserPortals, TargetConfig, TargetLimits, TargetNode,
};
use iscsi::wire::iser::{invalidates, longest_message, private_data};
use rdma::verbs::{Completion, QueuePair as _};
use runtime::device_pair::DevicePair;
use scsi::device::{DeviceOutput, DeviceServer};
use scsi::nexus::{Nexus, NexusId, NexusIdentity, TargetDevice, TargetPort};
use scsi::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;

use super::world::World;

/// The address of the first device.
pub(super) const PORTAL: &str = "127.0.0.1:3260";

pub(super) const TARGET: &str = "iqn.2026-11.org.lunar:device";

/// Bytes of the disk.
pub(super) const SIZE: u64 = 16 << 20;

/// TargetRecvDataSegmentLength.
const DATA_SEGMENT: u32 = 8192;

/// What a test has the target do.
#[derive(Default)]
pub(super) struct Orders {
    /// Requests for connections are not answered.
    pub(super) is_silent: AtomicBool,
    /// They are refused.
    pub(super) refuses: AtomicBool,
    /// Its connections end.
    pub(super) drops: AtomicBool,
    is_over: AtomicBool,
    /// Logins that there were, and initiators that bear invalidation among them.
    pub(super) logins: AtomicUsize,
    pub(super) can_invalidate: AtomicUsize,
}

/// The target's thread; it ends with this.
pub(super) struct Target {
    pub(super) orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    pub(super) fn start(world: &World) -> Self {
        let orders = Arc::<Orders>::default();
        let (library, shared) = (Arc::clone(&world.library), Arc::clone(&orders));
        // It listens before anything is asked for.
        let listener = RdmaListener::listen(&library, PORTAL.parse().unwrap()).unwrap();
        let thread = thread::spawn(move || Server::new(listener, shared).run());
        Self {
            orders,
            thread: Some(thread),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.orders.is_over.store(true, SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.into_iter().for_each(|ended| ended.unwrap());
        }
    }
}

type TargetSession = Session<BlockLease, IserMover<BlockLease>>;

/// One connection.
struct End {
    pair: DevicePair,
    login: Option<Login<BlockLease>>,
    session: Option<TargetSession>,
    nexus: NexusId,
    is_over: bool,
}

struct Server {
    listener: RdmaListener,
    orders: Arc<Orders>,
    memory: RdmaMemory,
    config: Arc<TargetConfig>,
    ends: Vec<End>,
    /// Requests that are left without an answer.
    asked: Vec<RdmaRequest>,
    device: DeviceServer<BlockLease>,
    disk: Box<dyn Handle>,
    ring: AnyRing,
    start: Instant,
}

impl Server {
    fn new(listener: RdmaListener, orders: Arc<Orders>) -> Self {
        let ram = Ram::new(SIZE, 512, &MemoryLimit::new(SIZE)).unwrap();
        let core = CoreContext::new(Pool::new(16 << 20).unwrap());
        let unit = UnitState::new(identity(), ram.traits());
        Self {
            listener,
            orders,
            memory: RdmaMemory::new(),
            config: Arc::new(config()),
            ends: Vec::new(),
            asked: Vec::new(),
            device: DeviceServer::new(CoreId(0), vec![Arc::new(unit)]),
            disk: ram.attach(&core).unwrap(),
            ring: AnyRing::open(RingKind::Epoll).unwrap().0,
            start: Instant::now(),
        }
    }

    fn run(mut self) {
        while !self.orders.is_over.load(SeqCst) {
            if let Some(Ok(request)) = self.listener.poll() {
                self.requested(request);
            }
            if self.orders.drops.swap(false, SeqCst) {
                self.ends.clear();
            }
            for at in 0..self.ends.len() {
                self.turn(at);
            }
            self.ends.retain(|end| !end.is_over);
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn requested(&mut self, request: RdmaRequest) {
        if self.orders.is_silent.load(SeqCst) {
            return self.asked.push(request);
        }
        if self.orders.refuses.load(SeqCst) {
            return;
        }
        let can_invalidate = invalidates(request.private_data());
        let options = RdmaPairOptions {
            max_receive: longest_message(DATA_SEGMENT),
            max_send: longest_message(DATA_SEGMENT),
            receives: 130,
            receives_max: 130,
        };
        let private = private_data(can_invalidate);
        let Ok(pair) = request.accept(&self.memory, &options, &private) else {
            return;
        };
        self.orders.logins.fetch_add(1, SeqCst);
        let bears = usize::from(can_invalidate);
        self.orders.can_invalidate.fetch_add(bears, SeqCst);
        let endpoints = Endpoints {
            local: PORTAL.parse().unwrap(),
            peer: pair.peer(),
        };
        let random = std::array::from_fn(|at| at as u8 ^ 0x5a);
        let mut login = Login::new(self.now(), Arc::clone(&self.config), endpoints, random);
        login.set_transport(Transport::Iser {
            data_segment: DATA_SEGMENT,
        });
        self.ends.push(End {
            pair: DevicePair::new(pair, can_invalidate),
            login: Some(login),
            session: None,
            nexus: NexusId(self.orders.logins.load(SeqCst) as u32),
            is_over: false,
        });
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// All that one connection can do now.
    fn turn(&mut self, at: usize) {
        let now = self.now();
        self.ends[at].pair.pair().wake();
        if self.ends[at].log_in(now) {
            let nexus = self.ends[at].nexus;
            self.device.nexus_up(nexus, self.nexus(nexus));
        }
        loop {
            let end = &mut self.ends[at];
            let Some(session) = &mut end.session else {
                break;
            };
            session.receive(now, &mut end.pair);
            let event = session.poll();
            session.transmit(&mut end.pair);
            let (nexus, queued) = (end.nexus, session.data_in_queued());
            self.device.data_in_queued(nexus, queued);
            let Some(event) = event else {
                if self.serve(at) {
                    continue;
                }
                break;
            };
            self.obey(at, event);
            self.serve(at);
        }
        let end = &mut self.ends[at];
        end.pair.pair().flush();
        end.is_over |= end.pair.end().is_some();
        if end.is_over {
            self.device.nexus_lost(end.nexus);
            self.serve(at);
        }
    }

    fn obey(&mut self, at: usize, event: SessionEvent<BlockLease>) {
        let end = &mut self.ends[at];
        match event {
            SessionEvent::Execute(mut command) => {
                command.nexus = end.nexus;
                self.device.execute(command);
            }
            SessionEvent::DataOut { tag, offset, data } => {
                self.device.data_out(end.nexus, tag, offset, data);
            }
            SessionEvent::Manage { id, lun, function } => {
                self.device.manage(end.nexus, id, lun, function);
            }
            SessionEvent::ColdReset
            | SessionEvent::Close(_)
            | SessionEvent::LoggedOut
            | SessionEvent::Remark(_) => end.is_over = true,
        }
    }

    /// Does what the device server wants; returns whether there was anything.
    fn serve(&mut self, at: usize) -> bool {
        let mut any = false;
        while let Some(output) = self.device.poll() {
            any = true;
            let session = self.ends[at].session.as_mut();
            match (output, session) {
                (DeviceOutput::Medium { id, op, .. }, _) => self.medium(id, op),
                (DeviceOutput::Recall { unit }, _) => self.device.recalled(unit),
                (DeviceOutput::Ask { unit, request }, _) => {
                    self.device.replied(unit, request.id, Ok(()));
                }
                (
                    DeviceOutput::SendDataIn {
                        tag, offset, data, ..
                    },
                    Some(session),
                ) => session.send_data_in(tag, offset, data),
                (
                    DeviceOutput::ReceiveDataOut {
                        tag, offset, into, ..
                    },
                    Some(session),
                ) => session.receive_data_out(tag, offset, into),
                (DeviceOutput::Complete { tag, completed, .. }, Some(session)) => {
                    session.complete(tag, &completed);
                }
                (DeviceOutput::Aborted { tag, .. }, Some(session)) => session.aborted(tag),
                (DeviceOutput::Managed { id, result, .. }, Some(session)) => {
                    session.managed(id, result);
                }
                _ => {}
            }
        }
        any
    }

    fn medium(&mut self, id: scsi::device::OpId, op: scsi::medium::MediumOp<BlockLease>) {
        let mut done = Vec::new();
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut done,
            now: self.start.elapsed(),
            call: &mut None,
        };
        self.disk.submit(&mut cx, id.0, op);
        for (id, result) in done {
            self.device.medium_done(scsi::device::OpId(id), result);
        }
    }

    fn nexus(&self, id: NexusId) -> Nexus {
        let initiator = vec![0x45, 0, 0, 4, b'i', id.0 as u8, 0, 0].into_boxed_slice();
        Nexus {
            identity: Arc::new(NexusIdentity { initiator, port: 1 }),
            target: Arc::new(target_device()),
        }
    }
}

impl End {
    /// Carries a login on; returns whether it has led to a session.
    fn log_in(&mut self, now: Duration) -> bool {
        while let Some(login) = &mut self.login {
            match login.poll() {
                Some(LoginEvent::Session { .. }) => login.admit(1),
                Some(LoginEvent::Done) => {
                    login.post(&mut self.pair);
                    let login = self.login.take();
                    self.session = login.and_then(|login| login.into_session_over(now));
                    return true;
                }
                Some(LoginEvent::Close(_) | LoginEvent::Remark(_)) => {
                    login.post(&mut self.pair);
                    self.is_over = true;
                    return false;
                }
                None => {
                    login.post(&mut self.pair);
                    match self.pair.poll() {
                        Some(Completion::Received { bytes, .. }) => {
                            assert!(login.receive_message(now, &bytes));
                            self.pair.recycle(bytes);
                        }
                        Some(_) => {}
                        None => return false,
                    }
                }
            }
        }
        false
    }
}

fn config() -> TargetConfig {
    let group = AccessGroup {
        initiators: Initiators::Everybody,
        chap: None,
    };
    TargetConfig {
        nodes: vec![Arc::new(TargetNode::new(TARGET.into(), group.into()))],
        portals: Vec::new(),
        iser: IserPortals::default(),
        advertise: Vec::new(),
        limits: TargetLimits::default(),
    }
}

fn identity() -> UnitIdentity {
    UnitIdentity {
        vendor: "LUNAR".into(),
        product: "DEVICE".into(),
        revision: "0".into(),
        serial: "D0".into(),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, 9],
        removable: false,
    }
}

fn target_device() -> TargetDevice {
    TargetDevice {
        designators: Vec::new(),
        ports: vec![TargetPort {
            relative_id: 1,
            designators: Vec::new(),
        }],
        luns: [(Lun::from_index(0), UnitId::first(0))].into(),
        read_only: std::collections::BTreeSet::new(),
        protocol: 5,
        versions: vec![0x0960],
    }
}
