//! A world of devices, and two ends of a connection in it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pretend_verbs::{Count, OpenedWorld, Order};

use crate::memory::{Buffer, Pool};
use crate::rdma::{
    RdmaCompletion, RdmaConnectOptions, RdmaConnector, RdmaEnd, RdmaError, RdmaHeader, RdmaLibrary,
    RdmaListener, RdmaMemory, RdmaPair, RdmaPairOptions, RdmaRequest, RdmaWork, RemoteAddress,
};

/// Pretend libraries of one test: a copy of the file, as each file has a world of its own.
pub(super) struct World {
    pub(super) library: Arc<RdmaLibrary>,
    opened: OpenedWorld,
}

/// The address of the first device.
pub(super) const DEVICE: &str = "127.0.0.1:3260";

/// Where cargo has put the pretend libraries: beside the tests.
pub(super) fn pretend_file() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.with_file_name("libpretend_verbs.so")
}

impl World {
    pub(super) fn new() -> Self {
        let opened = OpenedWorld::new();
        let file = opened.file().as_os_str();
        let library = RdmaLibrary::open_at(file, file).unwrap();
        Self { library, opened }
    }

    pub(super) fn order(&self, order: Order, number: i64) {
        self.opened.order(order, number);
    }

    pub(super) fn count(&self, count: Count) -> u64 {
        self.opened.count(count)
    }

    pub(super) fn listener(&self) -> RdmaListener {
        RdmaListener::listen(&self.library, DEVICE.parse().unwrap()).unwrap()
    }

    pub(super) fn connector(&self, to: SocketAddr) -> RdmaConnector {
        RdmaConnector::start(&self.library, to, connect_options()).unwrap()
    }

    /// Why no connection to the first device is made.
    pub(super) fn refusal(&self) -> RdmaError {
        let mut connector = self.connector(DEVICE.parse().unwrap());
        connector.poll().unwrap().unwrap_err()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.count(Count::Complaints), 0, "complaints, see above");
            assert_eq!(self.count(Count::Objects), 0, "objects are left");
        }
    }
}

pub(super) fn pair_options() -> RdmaPairOptions {
    RdmaPairOptions {
        max_receive: 8192 + 332,
        max_send: 8192 + 160,
        receives: 18,
        receives_max: 146,
    }
}

pub(super) fn connect_options() -> RdmaConnectOptions {
    RdmaConnectOptions {
        pair: pair_options(),
        private_data: vec![0xc0, 0, 0, 0],
        device: None,
        limit: Duration::from_secs(2),
        memory: 32 << 20,
    }
}

/// A request that has come.
pub(super) fn asked(listener: &mut RdmaListener) -> RdmaRequest {
    listener.poll().unwrap().unwrap()
}

/// Two ends of one connection. The fields go in this order.
pub(super) struct Ends {
    pub(super) target: RdmaPair,
    pub(super) initiator: RdmaPair,
    pub(super) memory: RdmaMemory,
    pub(super) pool: Pool,
    pub(super) world: World,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self::in_world(World::new(), RdmaMemory::new())
    }

    pub(super) fn in_world(world: World, memory: RdmaMemory) -> Self {
        let (target, initiator) = connect(&world, &memory);
        Self {
            target,
            initiator,
            memory,
            pool: Pool::new(64 << 20).unwrap(),
            world,
        }
    }

    /// A buffer of the pool with these bytes.
    pub(super) fn filled(&self, bytes: &[u8]) -> Buffer {
        let buffer = self.pool.buffer(bytes.len()).unwrap();
        buffer.copy_in(0, bytes);
        buffer
    }
}

pub(super) fn connect(world: &World, memory: &RdmaMemory) -> (RdmaPair, RdmaPair) {
    let mut listener = world.listener();
    let mut connector = world.connector(listener.portal());
    assert!(connector.poll().is_none(), "it waits for the target");
    let request = asked(&mut listener);
    let target = request.accept(memory, &pair_options(), &[0x80, 0, 0, 0]);
    let connected = connector.poll().unwrap().unwrap();
    (target.unwrap(), connected.pair)
}

/// A message of a header alone.
pub(super) fn message(bytes: &[u8]) -> RdmaWork {
    RdmaWork::Send {
        header: RdmaHeader::new(bytes).unwrap(),
        data: None,
        invalidate: None,
    }
}

pub(super) fn write(to: RemoteAddress, from: Buffer) -> RdmaWork {
    RdmaWork::Write { to, from }
}

pub(super) fn read(id: u32, from: RemoteAddress, into: Buffer) -> RdmaWork {
    RdmaWork::Read { id, from, into }
}

/// What a pair tells until it has nothing more to tell, in words.
pub(super) fn told(pair: &mut RdmaPair) -> Vec<String> {
    let all = std::iter::from_fn(|| pair.poll());
    all.map(|completion| in_words(&completion)).collect()
}

fn in_words(completion: &RdmaCompletion) -> String {
    match completion {
        RdmaCompletion::Sent => "sent".to_owned(),
        RdmaCompletion::Written => "written".to_owned(),
        RdmaCompletion::Got { id, into } => format!("got {id}, {} bytes", into.len()),
        RdmaCompletion::Drained(id) => format!("drained {id}"),
        RdmaCompletion::Received { bytes, .. } => {
            format!("received {}", String::from_utf8_lossy(bytes))
        }
        RdmaCompletion::Ended(why) => format!("ended: {why}"),
    }
}

/// How a pair ends, whatever it tells before.
pub(super) fn end_of(pair: &mut RdmaPair) -> RdmaEnd {
    pair.wake();
    let mut ends = std::iter::from_fn(|| pair.poll()).filter_map(|completion| match completion {
        RdmaCompletion::Ended(why) => Some(why),
        _ => None,
    });
    let end = ends.next().expect("it ends");
    assert!(ends.next().is_none(), "nothing follows");
    end
}

/// Bytes that differ from their neighbours.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

pub(super) fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    buffer.append_to(&mut bytes);
    bytes
}
