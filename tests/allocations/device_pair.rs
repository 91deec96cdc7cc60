//! A queue pair of an RDMA device: its chains, its books and the memory of messages are used again.

use std::time::Duration;

use io::counting::allocations;
use io::memory::{Buffer, Pool};
use io::rdma::{
    RdmaCompletion, RdmaConnectOptions, RdmaConnector, RdmaHeader, RdmaLibrary, RdmaListener,
    RdmaMemory, RdmaPair, RdmaPairOptions, RdmaWork, RemoteAccess, RemoteAddress,
};
use tempfile::TempDir;

/// Two ends of a connection over pretend libraries, which have an allocator of their own.
struct Rig {
    target: RdmaPair,
    initiator: RdmaPair,
    pool: Pool,
    heap: Buffer,
    _memory: RdmaMemory,
    _place: TempDir,
}

/// Transfers of a turn: of memory that the device knows, and of other memory.
const TRANSFERS: u64 = 8;

impl Rig {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let tests = std::env::current_exe().unwrap();
        let copy = place.path().join("libpretend.so");
        std::fs::copy(tests.with_file_name("libpretend_verbs.so"), &copy).unwrap();
        let library = RdmaLibrary::open_at(copy.as_os_str(), copy.as_os_str()).unwrap();
        let pair = RdmaPairOptions {
            max_receive: 8524,
            max_send: 8352,
            receives: 18,
            receives_max: 146,
        };
        let options = RdmaConnectOptions {
            pair,
            private_data: Vec::new(),
            device: None,
            limit: Duration::from_secs(2),
            memory: 32 << 20,
        };
        let portal = "127.0.0.1:3260".parse().unwrap();
        let mut listener = RdmaListener::listen(&library, portal).unwrap();
        let mut connector = RdmaConnector::start(&library, portal, options).unwrap();
        assert!(connector.poll().is_none());
        let (request, memory) = (listener.poll().unwrap().unwrap(), RdmaMemory::new());
        let target = request.accept(&memory, &pair, &[]).unwrap();
        Self {
            target,
            initiator: connector.poll().unwrap().unwrap().pair,
            pool: Pool::new(16 << 20).unwrap(),
            heap: Buffer::from_vec(vec![1; 100_000]),
            _memory: memory,
            _place: place,
        }
    }

    /// Commands, data both ways, and responses; the operations of it.
    fn turn(&mut self) -> u64 {
        let sink = self.pool.buffer(100_000).unwrap();
        let write = self
            .initiator
            .advertise(&sink, RemoteAccess::Write)
            .unwrap();
        let read = self
            .initiator
            .advertise(&self.heap, RemoteAccess::Read)
            .unwrap();
        for id in 0..TRANSFERS {
            let ours = match id % 2 {
                0 => self.heap.clone(),
                _ => self.pool.buffer(100_000).unwrap(),
            };
            self.transfer(id as u32, (write, read), ours);
        }
        self.target.flush();
        self.hear();
        self.initiator.withdraw(write.key);
        self.initiator.withdraw(read.key);
        assert!(!self.target.arm() && !self.initiator.arm());
        TRANSFERS * 3
    }

    fn transfer(&mut self, id: u32, (write, read): (RemoteAddress, RemoteAddress), ours: Buffer) {
        let (from, into) = (ours.clone(), ours);
        self.target.post(RdmaWork::Read {
            id,
            from: read,
            into,
        });
        self.target.post(RdmaWork::Write { to: write, from });
        self.target.post(RdmaWork::Send {
            header: RdmaHeader::new(b"good").unwrap(),
            data: Some(self.heap.slice(0, 72)),
            invalidate: None,
        });
    }

    fn hear(&mut self) {
        let mut told = 0;
        while let Some(completion) = self.target.poll() {
            assert!(!matches!(completion, RdmaCompletion::Ended(_)));
            told += 1;
        }
        assert_eq!(told, TRANSFERS * 3);
        while let Some(completion) = self.initiator.poll() {
            let RdmaCompletion::Received { bytes, .. } = completion else {
                panic!("{completion:?}");
            };
            self.initiator.recycle(bytes);
        }
    }
}

#[test]
fn a_hundred_thousand_operations_of_a_device_use_no_heap() {
    let mut rig = Rig::new();
    for _ in 0..100 {
        rig.turn();
    }
    let (before, mut done) = (allocations(), 0);
    while done < 100_000 {
        done += rig.turn();
    }
    assert_eq!(allocations() - before, 0);
}
