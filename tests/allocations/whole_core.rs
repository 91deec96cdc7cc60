//! A whole core: a real ring, sockets on loopback, the session, the device server, a RAM disk. It
//! and the initiator take turns on one thread, and what the core's turns allocate is counted.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use ::io::counting::allocations;
use ::io::ring::{AnyRing, Kind, Ring};
use engine::core::{Core, accept_token};
use engine::mail::Counter;
use iscsi::wire::task_request::function::ABORT_TASK;
use iscsi::wire::task_response::response::COMPLETE;
use scsi::wire::lun::Lun;
use tests::cdb;
use tests::initiator::{Data, Initiator, Reply, Settings};
use tests::one_core::{BLOCK, TARGET, serving};

const DISK: u64 = 64 << 20;
const DEPTH: u64 = 32;

/// A core and its initiator.
struct Rig {
    core: Core<AnyRing, Counter>,
    initiator: Initiator,
    socket: TcpStream,
    /// Output of the initiator that the socket has not taken.
    unsent: Vec<u8>,
    input: Vec<u8>,
    /// What the core's turns have allocated.
    allocated: usize,
    sent: u64,
}

impl Rig {
    /// Logged in, or `None` where the kernel does not have the ring.
    fn new(kind: Kind) -> Option<Self> {
        let (mut ring, _) = AnyRing::open(kind)
            .inspect_err(|cause| eprintln!("SKIPPED: {kind:?}: {cause}"))
            .ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        ring.listen(listener.into(), accept_token(0)).unwrap();
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut core = serving(ring, DISK, super::LIMITS).unwrap();
        core.begin(Duration::ZERO);
        let mut rig = Self {
            core,
            initiator: Initiator::new(Settings::new(1, TARGET)),
            socket,
            unsent: Vec::new(),
            input: vec![0; 1 << 20],
            allocated: 0,
            sent: 0,
        };
        assert_eq!(rig.reply(), Reply::LoggedIn);
        for _ in 0..4 {
            // There are unit attentions of a new nexus.
            rig.initiator
                .command(0, Lun::from_index(0), &[0; 6], Data::None);
            rig.reply();
        }
        Some(rig)
    }

    /// The next reply, after as many turns of each side as that takes.
    fn reply(&mut self) -> Reply {
        for _ in 0..10_000 {
            if let Some(reply) = self.initiator.poll() {
                return reply;
            }
            self.put();
            self.turn();
            self.take();
        }
        panic!("no reply");
    }

    /// What the initiator has to say goes as far as the socket takes it.
    fn put(&mut self) {
        self.unsent.append(self.initiator.output());
        match self.socket.write(&self.unsent) {
            Ok(len) => drop(self.unsent.drain(..len)),
            Err(cause) => assert_eq!(cause.kind(), io::ErrorKind::WouldBlock, "{cause}"),
        }
    }

    /// The core waits, not for long, and does what there is to do.
    fn turn(&mut self) {
        let before = allocations();
        self.core
            .ring()
            .wait(Some(Duration::from_millis(1)))
            .unwrap();
        self.core.turn(Duration::ZERO);
        self.allocated += allocations() - before;
    }

    fn take(&mut self) {
        match self.socket.read(&mut self.input) {
            Ok(0) => panic!("the core has closed the connection"),
            Ok(len) => self.initiator.receive(&self.input[..len]).unwrap(),
            Err(cause) => assert_eq!(cause.kind(), io::ErrorKind::WouldBlock, "{cause}"),
        }
    }

    /// So many commands, as many as may be under way at once.
    fn run(&mut self, commands: u64, command: impl Fn(u64) -> ([u8; 16], Data)) {
        let end = self.sent + commands;
        let mut answered = self.sent;
        while answered < end {
            while self.sent < end && self.sent - answered < DEPTH && self.initiator.is_ready() {
                let (cdb, data) = command(self.sent);
                self.initiator
                    .command(self.sent, Lun::from_index(0), &cdb, data);
                self.sent += 1;
            }
            match self.reply() {
                Reply::Done { status: 0, .. } => answered += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    /// What else would happen by chance, and take memory that is kept, some time or other: a header
    /// that comes in two parts, and as many writes at once as will ever be under way.
    fn warm_up(&mut self) {
        self.run(2000, |n| (cdb::read(lba(n, 8), 8), Data::In(8 * BLOCK)));
        self.initiator.ping(&[]);
        self.unsent.append(self.initiator.output());
        self.socket.write_all(&self.unsent[..7]).unwrap();
        self.unsent.drain(..7);
        (0..10).for_each(|_| self.turn());
        assert!(matches!(self.reply(), Reply::Nop(..)));
        self.withhold();
    }

    /// Has as many writes as will ever be under way wait for their data.
    fn withhold(&mut self) {
        self.initiator.withholds = true;
        let lun = Lun::from_index(0);
        let mut asked = Vec::new();
        for n in 0..DEPTH {
            assert!(self.initiator.is_ready(), "the window has not grown");
            let (cdb, data) = (cdb::write(lba(n, 512), 512, false), vec![7; 512 << 9]);
            asked.push(self.initiator.command(0, lun, &cdb, Data::Out(data.into())));
        }
        while !self.unsent.is_empty() || !self.initiator.output().is_empty() {
            self.put();
            self.turn();
            self.take();
        }
        // ABORT TASK SET would wait for the data.
        for itt in asked {
            let function = self.initiator.manage(ABORT_TASK, lun, itt);
            assert_eq!(self.reply(), Reply::Managed(function, COMPLETE));
            self.initiator.abandon(itt);
        }
        self.initiator.withholds = false;
    }

    /// What so many commands allocate once everything is warm.
    fn cost(&mut self, commands: u64, command: impl Fn(u64) -> ([u8; 16], Data)) -> usize {
        self.run(2000, &command);
        let before = self.allocated;
        self.run(commands, &command);
        self.allocated - before
    }
}

/// Somewhere else each time; all of it has been written after a while.
fn lba(number: u64, blocks: u32) -> u64 {
    let places = DISK / u64::from(BLOCK * blocks);
    number * 7 % places * u64::from(blocks)
}

#[test]
fn a_whole_core_does_not_use_the_heap() {
    for kind in [Kind::Epoll, Kind::Uring] {
        let Some(mut rig) = Rig::new(kind) else {
            continue;
        };
        rig.warm_up();
        // Of each ring 100,000.
        for (commands, blocks) in [(30_000, 8), (16_000, 1), (4000, 128)] {
            let octets = blocks * BLOCK;
            let data: std::rc::Rc<[u8]> = vec![7; octets as usize].into();
            let write = |n| {
                (
                    cdb::write(lba(n, blocks), blocks, false),
                    Data::Out(data.clone()),
                )
            };
            let read = |n| (cdb::read(lba(n, blocks), blocks), Data::In(octets));
            let written = rig.cost(commands, write);
            assert_eq!(written, 0, "{kind:?}: writes of {octets} octets");
            let read = rig.cost(commands, read);
            assert_eq!(read, 0, "{kind:?}: reads of {octets} octets");
        }
    }
}

/// What is sent at the end of a turn leaves with the next wait, for which the first answers do not
/// have to wait.
#[test]
fn half_way_through_what_came_the_answers_leave() {
    for kind in [Kind::Epoll, Kind::Uring] {
        let Some(mut rig) = Rig::new(kind) else {
            continue;
        };
        // The command window grows with use.
        rig.run(2000, |n| (cdb::read(lba(n, 1), 1), Data::In(BLOCK)));
        for n in 0..64 {
            assert!(rig.initiator.is_ready(), "the window has not grown");
            let cdb = cdb::read(lba(n, 1), 1);
            rig.initiator
                .command(n, Lun::from_index(0), &cdb, Data::In(BLOCK));
        }
        rig.put();
        assert!(rig.unsent.is_empty());
        rig.turn();
        rig.take();
        let replies = std::iter::from_fn(|| rig.initiator.poll()).count();
        assert!((32..64).contains(&replies), "{kind:?}: {replies}");
        (replies..64).for_each(|_| drop(rig.reply()));
    }
}
