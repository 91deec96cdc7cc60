//! A server with pretend RDMA devices in the process of the test, and hosts that come over iSER.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::rdma::{
    RdmaConnectOptions, RdmaConnected, RdmaConnector, RdmaCopies, RdmaError, RdmaLibrary,
    RdmaPairOptions,
};
use block::file::UndoLog;
use block::lease::BlockLease;
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::initiator::{ClientCommand, Data, Done, Initiator, InitiatorEvent};
use iscsi::target::{Initiators, IserPortals};
use pretend_verbs::{Count, OpenedWorld, Order};
use runtime::device_pair::DevicePair;
use scsi::medium::Lease as _;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::super::super::{RdmaSource, Server, ServerConfig, ServerHandle};
use crate::inventory::{Inventory, LunRow, TargetRow, UnitRow};
use crate::serve::options::ServeError;

pub(super) const TARGET: &str = "iqn.2026-11.org.lunar:test";

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A server on two cores, whose LUN 0 is a RAM disk of 4 MiB at a portal of the first device.
pub(super) struct Lab {
    pub(super) server: ServerHandle,
    pub(super) world: OpenedWorld,
    library: Arc<RdmaLibrary>,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::start(inventory(true)).unwrap()
    }

    /// A server of this inventory.
    pub(super) fn start(inventory: Inventory) -> Result<Self, ServeError> {
        let world = OpenedWorld::new();
        let library = open(&world);
        let config = config(RdmaSource::of(Arc::clone(&library)));
        Ok(Self {
            server: Server::start(config, inventory, &UndoLog::default())?,
            world,
            library,
        })
    }

    /// What was copied to and from the memory of the device that came last.
    pub(super) fn copies(&self) -> RdmaCopies {
        self.library.domains().last().unwrap().copies()
    }

    /// Waits until the device knows so much memory for good.
    pub(super) fn until_registered(&self, bytes: u64) {
        within(|| {
            let domains = self.library.domains();
            (domains.last()?.locked_bytes() == bytes).then_some(())
        });
    }

    pub(super) fn portal(&self) -> SocketAddr {
        let luns = self.server.luns("disk");
        let iser = luns.iter().find(|lun| lun.address.starts_with("iser://"));
        iser.unwrap().portals[0].parse().unwrap()
    }

    /// A connection, with the private data of an initiator that does not bear invalidation.
    pub(super) fn connect(&self) -> Result<RdmaConnected, RdmaError> {
        let options = RdmaConnectOptions {
            pair: RdmaPairOptions {
                max_receive: MAX_MESSAGE,
                max_send: MAX_MESSAGE + 256,
                receives: 64,
                receives_max: 160,
            },
            private_data: vec![0xc0, 0, 0, 0],
            device: None,
            limit: Duration::from_secs(2),
            memory: 32 << 20,
        };
        let mut connector = RdmaConnector::start(&self.library, self.portal(), options)?;
        within(|| connector.poll())
    }

    /// A host that has logged in.
    pub(super) fn host(&self, number: u8) -> Host {
        self.host_by(config_of(number))
    }

    /// The same, which logs in so.
    pub(super) fn host_by(&self, config: InitiatorConfig) -> Host {
        let mut host = self.begun(config);
        let logged_in = |event| matches!(event, InitiatorEvent::LoggedIn).then_some(());
        host.until(logged_in);
        host.ready();
        host
    }

    pub(super) fn library(&self) -> &RdmaLibrary {
        &self.library
    }

    /// A host whose login has begun.
    pub(super) fn begun(&self, config: InitiatorConfig) -> Host {
        let pair = DevicePair::new(self.connect().unwrap().pair, false);
        Host::new(pair, config)
    }

    pub(super) fn order(&self, order: Order, number: i64) {
        self.world.order(order, number);
    }

    /// Waits until there are so many sessions.
    pub(super) fn until_sessions(&self, count: usize) {
        within(|| (self.server.sessions().len() == count).then_some(()));
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.server.stop();
        let ended = self.server.wait();
        if !std::thread::panicking() {
            ended.unwrap();
            assert_eq!(
                self.world.count(Count::Complaints),
                0,
                "complaints, see above"
            );
        }
    }
}

pub(super) fn open(world: &OpenedWorld) -> Arc<RdmaLibrary> {
    let file = world.file().as_os_str();
    RdmaLibrary::open_at(file, file).unwrap()
}

pub(super) fn config(rdma: RdmaSource) -> ServerConfig {
    let mut config = ServerConfig::new("iqn.2026-11.org.lunar:us".into()).unwrap();
    config.threads = NonZeroUsize::new(2);
    config.rdma = rdma;
    config
}

/// A RAM disk at a portal that devices listen on, or not.
pub(super) fn inventory(by_devices: bool) -> Inventory {
    inventory_of("ram:4M", by_devices)
}

/// The same of another volume.
pub(super) fn inventory_of(address: &str, by_devices: bool) -> Inventory {
    let portal = SocketAddr::from(([127, 0, 0, 1], 0));
    inventory_with(address, portal, by_devices)
}

/// The same at another portal.
pub(super) fn inventory_at(portal: SocketAddr) -> Inventory {
    inventory_with("ram:4M", portal, true)
}

fn inventory_with(address: &str, portal: SocketAddr, by_devices: bool) -> Inventory {
    let row = UnitRow {
        serial: Some("1".to_owned()),
        ..UnitRow::new(address.parse().unwrap(), address.to_owned())
    };
    let target = TargetRow {
        luns: vec![LunRow::new(0, "disk")],
        access: iscsi::target::AccessGroup {
            initiators: Initiators::Everybody,
            chap: None,
        }
        .into(),
        ..TargetRow::default()
    };
    let devices = if by_devices { vec![portal] } else { Vec::new() };
    Inventory {
        units: [("disk".to_owned(), row.into())].into(),
        targets: [(TARGET.to_owned(), target)].into(),
        portals: vec![portal],
        iser: IserPortals {
            devices,
            ..IserPortals::default()
        },
        ..Inventory::default()
    }
}

pub(super) fn config_of(number: u8) -> InitiatorConfig {
    let name = format!("iqn.2026-11.org.example:host{number}");
    InitiatorConfig::normal(&name, [0x80, 0, 0, 0, 0, number], TARGET)
}

/// Asks again and again, for a while.
pub(super) fn within<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "nothing comes");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// An initiator and its end of the connection.
pub(super) struct Host {
    initiator: Initiator<BlockLease, InitiatorIserMover>,
    pub(super) pair: DevicePair,
    start: Instant,
    events: Vec<InitiatorEvent<BlockLease>>,
    commands: u64,
}

impl Host {
    fn new(pair: DevicePair, config: InitiatorConfig) -> Self {
        let initiator = Initiator::over_rdma(Arc::new(config), Duration::ZERO, [7; 37]);
        Self {
            initiator: initiator.unwrap(),
            pair,
            start: Instant::now(),
            events: Vec::new(),
            commands: 0,
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Hears what has come, and says what there is to say.
    fn turn(&mut self) {
        self.pair.pair().wake();
        let now = self.now();
        loop {
            let is_all = self.initiator.receive(now, &mut self.pair);
            let before = self.events.len();
            self.events
                .extend(std::iter::from_fn(|| self.initiator.poll()));
            self.initiator.transmit(&mut self.pair);
            self.pair.pair().flush();
            if is_all && self.events.len() == before {
                return;
            }
        }
    }

    /// The first event that is what was waited for; those before it are dropped.
    pub(super) fn until<T>(
        &mut self,
        mut is_it: impl FnMut(InitiatorEvent<BlockLease>) -> Option<T>,
    ) -> T {
        within(|| {
            self.turn();
            while !self.events.is_empty() {
                let event = self.events.remove(0);
                let ended = match &event {
                    InitiatorEvent::Ended(why) => Some(why.to_string()),
                    _ => None,
                };
                if let Some(found) = is_it(event) {
                    return Some(found);
                }
                assert_eq!(ended, None, "the session has ended");
            }
            None
        })
    }

    /// How the session ends.
    pub(super) fn end(&mut self) -> SessionEnd {
        self.until(|event| match event {
            InitiatorEvent::Ended(why) => Some(why),
            _ => None,
        })
    }

    /// Whether anything has come by now.
    pub(super) fn is_told(&mut self) -> bool {
        self.turn();
        !self.events.is_empty()
    }

    /// Gives a command of 16 bytes to LUN 0; returns its number.
    pub(super) fn give(&mut self, opcode: u8, lba: u64, data: Data<BlockLease>) -> u64 {
        self.commands += 1;
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        cdb[2..10].copy_from_slice(&lba.to_be_bytes());
        let blocks = u32::try_from(data.bytes() / 512).unwrap();
        cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
        let command = ClientCommand {
            id: self.commands,
            lun: Lun::from_index(0),
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        let now = self.now();
        self.initiator.execute(now, command).unwrap();
        self.turn();
        self.commands
    }

    /// Asks until the unit is ready: it may have to tell of power on, or of another volume.
    pub(super) fn ready(&mut self) {
        loop {
            self.give(TEST_UNIT_READY, 0, Data::None);
            if self.done().status == 0 {
                return;
            }
        }
    }

    /// The end of the next command.
    pub(super) fn done(&mut self) -> Done<BlockLease> {
        self.until(|event| match event {
            InitiatorEvent::Done(done) => Some(done),
            _ => None,
        })
    }

    pub(super) fn write(&mut self, lba: u64, bytes: Vec<u8>) {
        self.give(WRITE_16, lba, Data::Out(BlockLease::from_bytes(bytes)));
        let done = self.done();
        assert_eq!(done.status, 0, "{done:?}");
    }

    pub(super) fn read(&mut self, lba: u64, len: usize) -> Vec<u8> {
        let data = Data::In(BlockLease::from_bytes(vec![0xee; len]));
        self.give(READ_16, lba, data);
        let done = self.done();
        assert_eq!(done.status, 0, "{done:?}");
        bytes_of(&done.data)
    }

    pub(super) fn initiator(
        &mut self,
    ) -> (Duration, &mut Initiator<BlockLease, InitiatorIserMover>) {
        (self.now(), &mut self.initiator)
    }
}

fn bytes_of(data: &Data<BlockLease>) -> Vec<u8> {
    let Data::In(lease) = data else {
        panic!("{data:?} has nothing that was read");
    };
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

const TEST_UNIT_READY: u8 = 0;
const READ_16: u8 = 0x88;
pub(super) const WRITE_16: u8 = 0x8a;

/// Bytes that differ from their neighbours, and with `seed`.
pub(super) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251) as u8 ^ seed)
        .collect()
}
