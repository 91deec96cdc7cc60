//! Our own initiator on our own target: connections are cut, stall and are damaged at any point of
//! login and I/O. Every operation ends, and no byte is lost, old, or comes back.

use std::time::Duration;

use block::lease::BlockLease;
use iscsi::initiator::config::Digest;
use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, MediumOutcome};
use sim::{Disk, DiskKind, Rng, SimWire};

use crate::lab::{Lab, Shape, read_op};
use crate::seeds::with_transports;

const BLOCK: usize = 512;
const BLOCKS: u64 = 32;

/// How long a session may be away: longer than any story.
pub(super) const PATIENCE: Duration = Duration::from_secs(100_000);

/// Operations at once.
const DEPTH: usize = 6;

/// What a user knows of a disk that nobody else writes.
pub(super) struct Use {
    pub(super) lab: Lab,
    user: usize,
    sessions: u16,
    /// The last write to each block that was acknowledged, and the last that was begun.
    acknowledged: Vec<u32>,
    begun: Vec<u32>,
    /// What the medium held when it was looked at.
    seen: Vec<u32>,
    in_flight: Vec<UnderWay>,
    next: u64,
    ended: u64,
    /// Operations may fail: logins are damaged, which have no digests, and sessions without end.
    pub(super) may_fail: bool,
}

struct UnderWay {
    id: u64,
    extent: Extent,
    what: What,
}

enum What {
    Write,
    /// What was acknowledged before it was asked for.
    Read(Vec<u32>),
    Flush,
}

impl Use {
    fn new(seed: u64) -> Self {
        Self::of(seed, 1, PATIENCE)
    }

    /// By so many sessions, each of which may be away for so long.
    pub(super) fn of(seed: u64, sessions: u16, replacement: Duration) -> Self {
        Self::waiting(seed, sessions, replacement, 0)
    }

    /// With so many seconds as DefaultTime2Wait.
    fn waiting(seed: u64, sessions: u16, replacement: Duration, time2wait: u16) -> Self {
        let mut rng = Rng::new(seed);
        let kind = *rng.pick(&[DiskKind::Apart, DiskKind::Apart, DiskKind::Memory]);
        let mut shape = Shape::new(1 + rng.below(3) as u16, kind);
        shape.disks = vec![Disk::new(kind, BLOCK as u32, BLOCKS)];
        let mut lab = Lab::new(seed, shape);
        lab.any_pace();
        let user = lab.add_user((sessions, replacement), |offer| {
            // Damage must be seen, and several PDUs make a command.
            (offer.header_digest, offer.data_digest) = (Digest::Require, Digest::Require);
            offer.keys.initial_r2t = rng.one_in(2);
            offer.keys.immediate_data = rng.one_in(2);
            offer.keys.time2wait = time2wait;
            offer.keys.own_data_segment = *rng.pick(&[512, 1024, 8192]);
            offer.keys.first_burst = 1024;
            offer.keys.max_burst = *rng.pick(&[1024, 4096]);
        });
        let none = || vec![0; BLOCKS as usize];
        Self {
            lab,
            user,
            sessions,
            acknowledged: none(),
            begun: none(),
            seen: none(),
            in_flight: Vec::new(),
            next: 1,
            ended: 0,
            may_fail: false,
        }
    }

    /// Asks for something, unless what is under way is in its way.
    fn ask(&mut self) {
        let rng = &mut self.lab.rng;
        let len = 1 + rng.below(4) as u64;
        let extent = Extent::new(rng.below((BLOCKS - len) as usize) as u64, len);
        let (what, op) = match rng.below(10) {
            0..5 if self.is_free(extent) => self.write(extent),
            9 => {
                let extent = Extent::new(0, 0);
                (What::Flush, MediumOp::Flush { extent })
            }
            _ => {
                let known = self.acknowledged.clone();
                (What::Read(known), read_op(extent))
            }
        };
        self.submit(extent, what, op);
    }

    /// Writes somewhere.
    pub(super) fn ask_write(&mut self, extent: Extent) {
        let (what, op) = self.write(extent);
        self.submit(extent, what, op);
    }

    fn submit(&mut self, extent: Extent, what: What, op: MediumOp<BlockLease>) {
        let id = self.next;
        self.next += 1;
        self.in_flight.push(UnderWay { id, extent, what });
        self.lab.world.submit(self.user, id, op);
    }

    /// Nothing is being written there, so that it is known which write is the last.
    fn is_free(&self, extent: Extent) -> bool {
        let is_write = |one: &&UnderWay| matches!(one.what, What::Write);
        let mut writes = self.in_flight.iter().filter(is_write);
        !writes.any(|one| one.extent.overlaps(extent))
    }

    fn write(&mut self, extent: Extent) -> (What, MediumOp<BlockLease>) {
        let fua = self.lab.rng.one_in(3);
        (What::Write, self.write_op(extent, fua))
    }

    pub(super) fn write_op(&mut self, extent: Extent, fua: bool) -> MediumOp<BlockLease> {
        let begun = &mut self.begun[extent.lba as usize..extent.end() as usize];
        begun.iter_mut().for_each(|version| *version += 1);
        let bytes: Vec<u8> = begun.iter().flat_map(|version| stamp(*version)).collect();
        self.lab.write_op(self.user, extent, &bytes, fua)
    }

    /// All else is asked for by another core of the same process.
    pub(super) fn go_to_another_core(&mut self) {
        self.user = self.lab.world.add_core(self.user).expect("memory");
    }

    /// The version of a block that was written last.
    pub(super) fn begun(&self, lba: u64) -> u32 {
        self.begun[lba as usize]
    }

    /// Whether everything that was asked for has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether the last write to each of these blocks was acknowledged.
    pub(super) fn is_acknowledged(&self, extent: Extent) -> bool {
        let mut places = (extent.lba..extent.end()).map(|lba| lba as usize);
        places.all(|lba| self.acknowledged[lba] == self.begun[lba])
    }

    /// Lets one thing happen, or time pass; the medium is looked at after each.
    pub(super) fn step(&mut self) {
        self.pass();
        self.look();
        while let Some((id, result)) = self.lab.world.next_done(self.user) {
            let at = self.in_flight.iter().position(|one| one.id == id);
            let one = self.in_flight.swap_remove(at.expect("nothing ends twice"));
            self.ended += 1;
            match (&one.what, result) {
                (_, Err(_)) if self.may_fail => {}
                (_, result) => self.check(&one, result.expect("no error")),
            }
        }
    }

    /// Its connections that are known to the simulator, the newest last.
    pub(super) fn wires(&self) -> Vec<SimWire> {
        self.lab.world.wires_of(self.user).to_vec()
    }

    /// Lets things happen until something is so.
    pub(super) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("{} operations hang", self.in_flight.len());
    }

    pub(super) fn now(&self) -> Duration {
        self.lab.world.now()
    }

    pub(super) fn pass(&mut self) {
        if !self.lab.world.step() {
            let patience = self.lab.world.patience().unwrap_or(Duration::ZERO);
            self.lab.world.pass(patience.max(Duration::from_millis(1)));
        }
    }

    /// What is on the medium is never older than what was there before, or was acknowledged.
    fn look(&mut self) {
        for lba in 0..BLOCKS as usize {
            let version = version(&self.lab.disks[0].block(lba as u64));
            let version = version.unwrap_or(self.seen[lba]);
            let told = format!("block {lba}: {version}");
            assert!(version >= self.seen[lba], "{told} came back");
            assert!(version <= self.begun[lba], "{told} was not written");
            self.seen[lba] = version;
            assert!(version >= self.acknowledged[lba], "{told} is old");
        }
    }

    fn check(&mut self, one: &UnderWay, outcome: MediumOutcome<BlockLease>) {
        let places = (one.extent.lba..one.extent.end()).map(|lba| lba as usize);
        match (&one.what, outcome) {
            (What::Write, MediumOutcome::Done) => {
                for lba in places {
                    self.acknowledged[lba] = self.begun[lba];
                    assert_eq!(self.seen[lba], self.begun[lba], "block {lba} is lost");
                }
            }
            (What::Read(known), MediumOutcome::Lease(data)) => {
                let mut bytes = vec![0; data.len()];
                data.copy_out(0, &mut bytes);
                for (lba, bytes) in places.zip(bytes.chunks(BLOCK)) {
                    // It may be read while it is written.
                    let Some(read) = version(bytes) else {
                        continue;
                    };
                    let may_be = known[lba]..=self.begun[lba];
                    assert!(
                        may_be.contains(&read),
                        "block {lba}: {read} is not in {may_be:?}"
                    );
                }
            }
            (What::Flush, MediumOutcome::Done) => {
                let mut others = self.in_flight.iter();
                let waits = self.sessions > 1;
                let earlier = |other: &UnderWay| other.id < one.id;
                let missed =
                    others.any(|other| earlier(other) && matches!(other.what, What::Write));
                assert!(!(waits && missed), "a flush overtook a write");
            }
            (_, outcome) => panic!("{outcome:?}"),
        }
    }

    /// Asks for one operation, lets that happen while it is under way, and lets it end.
    fn does(
        &mut self,
        op: MediumOp<BlockLease>,
        disturb: impl Fn(&mut Self),
    ) -> Result<(), MediumError> {
        let id = self.next;
        self.next += 1;
        self.lab.world.submit(self.user, id, op);
        disturb(self);
        loop {
            if let Some((_, result)) = self.lab.world.next_done(self.user) {
                return result.map(|_| ());
            }
            self.pass();
        }
    }

    /// So many steps, with operations and what `disturb` does every now and then.
    pub(super) fn run(&mut self, steps: usize, often: usize, disturb: impl Fn(&mut Lab, usize)) {
        for _ in 0..steps {
            if self.in_flight.len() < DEPTH && self.lab.rng.one_in(8) {
                self.ask();
            }
            if self.lab.rng.one_in(often) {
                disturb(&mut self.lab, self.user);
            }
            self.step();
        }
    }

    /// Nothing disturbs any more: all that was asked for ends, and the user logs out.
    pub(super) fn finish(&mut self) {
        self.lab.stall(self.user, .., false);
        self.until(Self::is_idle);
        for lba in 0..BLOCKS as usize {
            let landed = self.seen[lba] == self.begun[lba];
            assert!(landed || self.may_fail, "block {lba} in the end");
        }
        assert!(self.ended > 0, "nothing was tried");
        self.lab.world.leave(self.user);
        while !self.lab.world.user_has_left(self.user) {
            self.step();
        }
    }
}

/// A block of a version: all of it is the same number.
pub(super) fn stamp(version: u32) -> Vec<u8> {
    version.to_be_bytes().repeat(BLOCK / 4)
}

/// The version of a block, of which each write tears none but for memory.
fn version(bytes: &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    let whole = rest == &bytes[..rest.len()];
    whole.then_some(u32::from_be_bytes(*first))
}

/// The network drops the newest connection, or one side believes so.
fn cut(lab: &mut Lab, user: usize) {
    let (way, arrives) = (lab.rng.below(4), lab.rng.one_in(2));
    let Some((wire, old)) = lab.world.wires_of(user).split_last() else {
        return;
    };
    match way {
        0 => wire.cut(),
        1 => wire.reset(),
        // What is on its way to the target arrives when the next connection has long been in use.
        _ => {
            wire.reset();
            wire.stall(true);
        }
    }
    for wire in old.iter().filter(|_| arrives) {
        wire.stall(false);
    }
}

#[test]
fn nobody_logs_in_again_before_time2wait_is_over() {
    with_transports("remote units that wait", 20, |seed| {
        let mut story = Use::waiting(seed, 1, PATIENCE, 2);
        let read = || read_op(Extent::new(0, 1));
        story.does(read(), |_| {}).unwrap();
        let lost = story.lab.world.now();
        story.lab.world.wires_of(story.user)[0].reset();
        story.does(read(), |_| {}).unwrap();
        let away = story.lab.world.now() - lost;
        assert!(away >= Duration::from_secs(2), "back after {away:?}");
    });
}

#[test]
fn nothing_is_lost_or_late_whenever_connections_are_cut() {
    with_transports("remote units that are cut off", 60, |seed| {
        let mut story = Use::new(seed);
        let often = *story.lab.rng.pick(&[40, 150, 600]);
        story.run(3000, often, cut);
        story.finish();
    });
}

#[test]
fn a_target_that_stalls_is_left_and_found_again() {
    with_transports("remote units that stall", 30, |seed| {
        let mut story = Use::new(seed);
        story.run(2000, 300, |lab, user| {
            let stalls = lab.rng.one_in(2);
            lab.stall(user, .., stalls);
        });
        story.finish();
    });
}

#[test]
fn what_is_damaged_on_its_way_is_never_believed() {
    with_transports("remote units that are damaged", 60, |seed| {
        let mut story = Use::new(seed);
        story.may_fail = true;
        story.run(3000, 120, |lab, user| {
            let (at, by) = (lab.rng.below(4096), 1 << lab.rng.below(8));
            if let Some(wire) = lab.world.wires_of(user).last() {
                wire.damage(at, by);
            }
        });
        story.finish();
    });
}

/// A flush after a write into the target's cache. Something happens between the two, and while the
/// flush is under way its connection is cut again and again.
fn flush_after(seed: u64, happens: impl Fn(&mut Use)) -> Result<(), MediumError> {
    let mut story = Use::new(seed);
    let write = story.write_op(Extent::new(0, 1), false);
    story.does(write, |_| {}).expect("the write goes well");
    happens(&mut story);
    let extent = Extent::new(0, 0);
    story.does(MediumOp::Flush { extent }, |story| {
        for _ in 0..story.lab.rng.below(4) {
            let steps = story.lab.rng.below(200);
            (0..steps).for_each(|_| story.pass());
            cut(&mut story.lab, story.user);
        }
    })
}

#[test]
fn a_connection_that_is_lost_takes_no_cache_along() {
    with_transports("flushes after cuts", 60, |seed| {
        let cut = |story: &mut Use| cut(&mut story.lab, story.user);
        assert_eq!(flush_after(seed, cut), Ok(()));
    });
}

/// Not even if what the new target tells of it is lost on its way.
#[test]
fn a_target_that_was_killed_has_lost_its_cache_and_the_flush_says_so() {
    with_transports("flushes after kills", 120, |seed| {
        let kill = |story: &mut Use| story.lab.restart();
        assert_eq!(flush_after(seed, kill), Err(MediumError::Write));
    });
}
