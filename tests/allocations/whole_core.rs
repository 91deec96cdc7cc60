//! A whole core: a real ring, sockets on loopback, the session, the device server, a RAM disk. It
//! and the initiator take turns on one thread, and what the core's turns allocate is counted.

use ::io::ring::RingKind;
use iscsi::wire::bhs::Itt;
use iscsi::wire::task_management::function::ABORT_TASK;
use iscsi::wire::task_management::response::COMPLETE;
use scsi::wire::lun::Lun;
use tests::cdb;
use tests::initiator::{Data, Initiator, Reply};
use tests::iser_end::IserSettings;
use tests::one_core::BLOCK;
use tests::one_core::rig::{Host, Rig};

const DISK: u64 = 64 << 20;
const DEPTH: u64 = 32;
const LUN: Lun = Lun([0; 8]);

/// A core and its only host.
struct Alone {
    rig: Rig,
    sent: u64,
}

impl Alone {
    /// Logged in, or `None` where the kernel does not have the ring.
    fn new(kind: RingKind) -> Option<Self> {
        Self::over(None, kind)
    }

    fn over(iser: Option<&IserSettings>, kind: RingKind) -> Option<Self> {
        let rig = Rig::over(iser, kind, 1, (DISK, super::LIMITS))?;
        let mut alone = Self { rig, sent: 0 };
        for _ in 0..4 {
            // There are unit attentions of a new nexus.
            alone.command(0, &[0; 6], Data::None);
            alone.reply();
        }
        Some(alone)
    }

    fn host(&mut self) -> &mut Host {
        &mut self.rig.hosts[0]
    }

    fn initiator(&mut self) -> &mut Initiator {
        &mut self.host().initiator
    }

    fn command(&mut self, user: u64, cdb: &[u8], data: Data) -> Itt {
        self.initiator().command(user, LUN, cdb, data)
    }

    /// The next reply, after as many turns of each side as that takes.
    fn reply(&mut self) -> Reply {
        let mut reply = None;
        self.rig.until(|host| {
            reply = host.initiator.poll();
            reply.is_some()
        });
        reply.unwrap()
    }

    fn turn(&mut self) {
        self.rig.wait();
        self.rig.turn();
    }

    /// So many commands, as many as may be under way at once.
    fn run(&mut self, commands: u64, command: impl Fn(u64) -> ([u8; 16], Data)) {
        let end = self.sent + commands;
        let mut answered = self.sent;
        while answered < end {
            while self.sent < end && self.sent - answered < DEPTH && self.initiator().is_ready() {
                let (cdb, data) = command(self.sent);
                self.command(self.sent, &cdb, data);
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
        self.initiator().ping(&[]);
        self.host().say_at_most(7);
        (0..10).for_each(|_| self.turn());
        assert!(matches!(self.reply(), Reply::Nop(..)));
        self.withhold();
    }

    /// Has as many writes as will ever be under way wait for their data.
    fn withhold(&mut self) {
        self.initiator().withholds = true;
        let mut asked = Vec::new();
        for n in 0..DEPTH {
            assert!(self.initiator().is_ready(), "the window has not grown");
            let (cdb, data) = (cdb::write(lba(n, 512), 512, false), vec![7; 512 << 9]);
            asked.push(self.command(0, &cdb, Data::Out(data.into())));
        }
        while self.host().has_more() {
            self.host().say();
            self.turn();
            self.host().hear();
        }
        // ABORT TASK SET would wait for the data. Over iSER each function waits for the RDMA Reads
        // of its task, so those are answered then.
        let functions: Vec<_> = asked
            .iter()
            .map(|itt| self.initiator().manage(ABORT_TASK, LUN, *itt))
            .collect();
        while self.host().has_more() {
            self.host().say();
            self.turn();
        }
        self.initiator().withholds = false;
        for (itt, function) in asked.into_iter().zip(functions) {
            assert_eq!(self.reply(), Reply::Managed(function, COMPLETE));
            self.initiator().abandon(itt);
        }
    }

    /// What so many writes allocate once everything is warm, and as many reads.
    fn costs(&mut self, commands: u64, blocks: u32) -> [usize; 2] {
        let bytes = blocks * BLOCK;
        let data: std::rc::Rc<[u8]> = vec![7; bytes as usize].into();
        let write = |n| {
            let cdb = cdb::write(lba(n, blocks), blocks, false);
            (cdb, Data::Out(data.clone()))
        };
        let read = |n| (cdb::read(lba(n, blocks), blocks), Data::In(bytes));
        [self.cost(commands, write), self.cost(commands, read)]
    }

    /// What so many commands allocate once everything is warm.
    fn cost(&mut self, commands: u64, command: impl Fn(u64) -> ([u8; 16], Data)) -> usize {
        self.run(2000, &command);
        let before = self.rig.allocated;
        self.run(commands, &command);
        self.rig.allocated - before
    }
}

/// Somewhere else each time; all of it has been written after a while.
fn lba(number: u64, blocks: u32) -> u64 {
    let places = DISK / u64::from(BLOCK * blocks);
    number * 7 % places * u64::from(blocks)
}

#[test]
fn a_whole_core_does_not_use_the_heap() {
    for kind in [RingKind::Epoll, RingKind::Uring] {
        let Some(mut alone) = Alone::new(kind) else {
            continue;
        };
        alone.warm_up();
        // Of each ring 100,000.
        for (commands, blocks) in [(30_000, 8), (16_000, 1), (4000, 128)] {
            let [written, read] = alone.costs(commands, blocks);
            assert_eq!(written, 0, "{kind:?}: writes of {blocks} blocks");
            assert_eq!(read, 0, "{kind:?}: reads of {blocks} blocks");
        }
    }
}

/// Data of writes comes with the command as far as a first burst goes, and the rest by RDMA Reads.
#[test]
fn a_whole_core_does_not_use_the_heap_over_iser() {
    for (crc, long_fpdus) in [(true, true), (true, false), (false, true)] {
        let iser = IserSettings {
            crc,
            long_fpdus,
            data_segment: 2048,
            ..IserSettings::usual()
        };
        for kind in [RingKind::Epoll, RingKind::Uring] {
            let Some(mut alone) = Alone::over(Some(&iser), kind) else {
                continue;
            };
            alone.warm_up();
            // Of each 100,000 of 4 KiB.
            for (commands, blocks) in [(18_000, 8), (2000, 1), (1000, 128)] {
                let named = format!("{kind:?}, CRC: {crc}, long: {long_fpdus}, {blocks} blocks");
                let [written, read] = alone.costs(commands, blocks);
                assert_eq!([written, read], [0, 0], "{named}: writes and reads");
            }
        }
    }
}

/// What is sent at the end of a turn leaves with the next wait, for which the first answers do not
/// have to wait.
/// How many of so many commands are answered half way, by a core that spins or sleeps.
fn answered_half_way(alone: &mut Alone, commands: u64, spins: bool) -> usize {
    alone.rig.spin(spins);
    for n in 0..commands {
        assert!(alone.initiator().is_ready(), "the window has not grown");
        let cdb = cdb::read(lba(n, 1), 1);
        alone.command(n, &cdb, Data::In(BLOCK));
    }
    alone.host().say();
    assert!(!alone.host().has_more());
    alone.turn();
    alone.host().hear();
    let replies = std::iter::from_fn(|| alone.initiator().poll()).count();
    (replies..commands as usize).for_each(|_| drop(alone.reply()));
    replies
}

#[test]
fn half_way_through_what_came_the_answers_leave() {
    for kind in [RingKind::Epoll, RingKind::Uring] {
        let Some(mut alone) = Alone::new(kind) else {
            continue;
        };
        // The command window grows with use.
        alone.run(2000, |n| (cdb::read(lba(n, 1), 1), Data::In(BLOCK)));
        let mut half_way = |commands, spins| answered_half_way(&mut alone, commands, spins);
        let answered = [(64, false), (32, true), (24, true)].map(|(n, spins)| half_way(n, spins));
        assert_eq!(answered, [32, 16, 0], "{kind:?}");
    }
}
