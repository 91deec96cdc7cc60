//! A target that answers wrongly, late, twice, not at all, or resets its connection, at any step of
//! login and I/O: every operation ends in time, by what it was asked for or by an error.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use block::lease::BlockLease;
use iscsi::initiator::config::Digest;
use scsi::medium::{Extent, Lease as _, MediumOp, MediumOutcome, MediumResult};
use sim::{Disk, DiskKind, Rng};

use super::remote_units::PATIENCE;
use crate::lab::{Lab, Shape, read_op};
use crate::liar::{Ask, Liar};
use crate::seeds::with_transports;
use crate::transport::Transport;

const BLOCK: usize = 512;
const BLOCKS: u64 = 16;

/// An initiator, and who is between it and its target.
struct Between {
    lab: Lab,
    user: usize,
    liar: Rc<RefCell<Liar>>,
    /// Connections that go through the liar.
    wires: usize,
    /// When a stalled connection goes on.
    until: Option<Duration>,
    next: u64,
}

impl Between {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut shape = Shape::new(1, DiskKind::Apart);
        shape.disks = vec![Disk::new(DiskKind::Apart, BLOCK as u32, BLOCKS)];
        let mut lab = Lab::new(seed, shape);
        let user = lab.add_user((1, PATIENCE), |offer| {
            (offer.header_digest, offer.data_digest) = (Digest::Never, Digest::Never);
            // R2T, and several PDUs a command.
            offer.keys.initial_r2t = rng.one_in(2);
            offer.keys.immediate_data = rng.one_in(2);
            (
                offer.keys.own_data_segment,
                offer.keys.first_burst,
                offer.keys.max_burst,
            ) = (512, 512, 1024);
        });
        Self {
            lab,
            user,
            liar: Rc::new(RefCell::new(Liar::new(seed))),
            wires: 0,
            until: None,
            next: 0,
        }
    }

    /// Lets one thing happen, or time pass.
    fn step(&mut self) {
        let world = &mut self.lab.world;
        if !world.step() {
            let now = world.now();
            let stalled = self.until.map(|at| at.saturating_sub(now));
            let next = world.patience().into_iter().chain(stalled).min();
            world.pass(next.unwrap_or_default().max(Duration::from_millis(1)));
        }
        let now = self.lab.world.now();
        let wires = self.lab.world.wires_of(self.user);
        for wire in &wires[self.wires..] {
            let liar = Rc::clone(&self.liar);
            liar.borrow_mut().begins();
            wire.through(move |bytes| liar.borrow_mut().pass(bytes));
        }
        self.wires = wires.len();
        let Some(wire) = wires.last() else { return };
        if self.until.take_if(|at| *at <= now).is_some() {
            self.lab.stall(self.user, .., false);
        }
        while let Some(ask) = self.liar.borrow_mut().asks.pop_front() {
            match ask {
                Ask::Cut => wire.cut(),
                Ask::Stall(time) => {
                    wire.stall(true);
                    self.until = Some(now + time);
                }
            }
        }
    }

    fn ask(&mut self, op: MediumOp<BlockLease>) {
        self.next += 1;
        self.lab.world.submit(self.user, self.next, op);
    }

    /// How the next operation ends, which it does within the time that all its tries may take.
    fn end(&mut self) -> (u64, MediumResult<BlockLease>) {
        let limit = self.lab.world.now() + LIMIT;
        loop {
            if let Some(done) = self.lab.world.next_done(self.user) {
                return done;
            }
            self.step();
            assert!(self.lab.world.now() < limit, "it hangs");
        }
    }

    fn ends(&mut self, op: MediumOp<BlockLease>) -> MediumResult<BlockLease> {
        self.ask(op);
        let (id, result) = self.end();
        assert_eq!(id, self.next, "nothing ends twice");
        result
    }

    fn leave(&mut self) {
        self.lab.world.leave(self.user);
        let limit = self.lab.world.now() + LIMIT;
        while !self.lab.world.user_has_left(self.user) {
            self.step();
            assert!(self.lab.world.now() < limit, "it never leaves");
        }
    }

    fn any_extent(&mut self) -> Extent {
        let blocks = 1 + self.lab.rng.below(6) as u64;
        let lba = self.lab.rng.below((BLOCKS - blocks) as usize) as u64;
        Extent::new(lba, blocks)
    }

    fn write(&mut self, extent: Extent, written: &[u8]) -> MediumOp<BlockLease> {
        let fua = self.lab.rng.one_in(2);
        self.lab.write_op(self.user, extent, written, fua)
    }

    /// What was written is there, and what is read is what is there.
    fn write_and_read(&mut self) {
        let extent = self.any_extent();
        let written = vec![self.next as u8 + 1; BLOCK * extent.blocks as usize];
        let write = self.write(extent, &written);
        if self.ends(write).is_ok() {
            assert_eq!(self.medium(extent), written, "a write is lost");
        }
        if let Ok(MediumOutcome::Lease(data)) = self.ends(read_op(extent)) {
            let mut read = vec![0; data.len()];
            data.copy_out(0, &mut read);
            assert_eq!(read, self.medium(extent), "a read is wrong");
        }
    }

    fn medium(&self, extent: Extent) -> Vec<u8> {
        let lbas = extent.lba..extent.end();
        lbas.flat_map(|lba| self.lab.disks[0].block(lba)).collect()
    }
}

/// An operation is given up after sixteen sessions that it did not survive, each of which may log
/// in late, and answer neither the command nor its abort nor a reset.
const LIMIT: Duration = Duration::from_secs(16 * (15 + 30 + 10 + 15 + 90));

#[test]
fn no_lie_at_any_step_is_believed_or_makes_an_operation_hang() {
    with_transports("targets that answer wrongly", 600, |seed| {
        let mut story = Between::new(seed);
        for _ in 0..6 {
            story.write_and_read();
        }
        story.leave();
    });
}

#[test]
fn no_lie_about_one_of_several_commands_makes_any_hang() {
    with_transports("targets that mix up commands", 600, |seed| {
        let mut story = Between::new(seed);
        story.liar.borrow_mut().bold = true;
        for _ in 0..6 {
            let extent = story.any_extent();
            let write = story.write(extent, &vec![1; BLOCK * extent.blocks as usize]);
            story.ask(write);
            let read = read_op(story.any_extent());
            story.ask(read);
        }
        let mut ended: Vec<u64> = (0..story.next).map(|_| story.end().0).collect();
        ended.sort_unstable();
        assert!(ended.into_iter().eq(1..=story.next), "each ends once");
        story.leave();
    });
}

/// What the target may still do for it ends with the session.
#[test]
fn a_write_that_failed_in_the_target_is_sent_again_on_another_session() {
    with_transports("targets that fail", 20, |seed| {
        let mut story = Between::new(seed);
        *story.liar.borrow_mut() = Liar::honest(seed);
        story.write_and_read();
        let before = story.wires;
        story.liar.borrow_mut().fails = true;
        let extent = story.any_extent();
        let written = vec![0xa5; BLOCK * extent.blocks as usize];
        let write = story.write(extent, &written);
        assert_eq!(story.ends(write).map(|_| ()), Ok(()));
        assert_eq!(story.medium(extent), written);
        assert_eq!(story.wires, before + 1);
        let expected = match Transport::of(seed) {
            Transport::Mixed => story.liar.borrow().hears_iser(),
            over => over == Transport::Iser,
        };
        assert_eq!(story.liar.borrow().hears_iser(), expected);
        story.leave();
    });
}
