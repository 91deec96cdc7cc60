//! Both machines on disks of this test, whose answers come in any order, by seed.

mod copies;
mod disk;
mod shortened;
mod spans;
mod verifies;

use std::time::Duration;

use scsi::medium::{HeapLease, MediumError, MediumOp};

use super::{PairFailure, PairMachine, PairOrder, PairSide, VolumeShape};
use disk::Disk;
use fastrand::Rng;

/// Two disks, and what is in flight at them.
struct World {
    disks: [Disk; 2],
    in_flight: Vec<(PairSide, u64, MediumOp<HeapLease>)>,
    /// What the machine said last to be durable.
    durable: u64,
    /// The most operations in flight at once.
    most: usize,
    /// B restarts before one in so many answers, and forgets what it had cached.
    restarts: Option<usize>,
    /// How often the machine went back.
    back: u64,
    rng: Rng,
}

/// How a run ends.
#[derive(Debug, PartialEq)]
enum End {
    Over(Result<(), PairFailure>),
    /// After the number of answers that it was given.
    Cut,
}

impl World {
    fn new(a: Disk, b: Disk, seed: u64) -> Self {
        Self {
            disks: [a, b],
            in_flight: Vec::new(),
            durable: 0,
            most: 0,
            restarts: None,
            back: 0,
            rng: Rng::with_seed(seed),
        }
    }

    fn shapes(&self) -> (VolumeShape, VolumeShape) {
        (self.disks[0].shape, self.disks[1].shape)
    }

    /// Runs a machine until it is over, or `answers` have been given. Each answer takes a second.
    fn run(&mut self, machine: &mut dyn PairMachine<HeapLease>, answers: u64) -> End {
        for second in 0..answers {
            while let Some(order) = machine.poll(Duration::from_secs(second)) {
                match order {
                    PairOrder::Submit(side, id, op) => self.submit(side, id, op),
                    PairOrder::Durable(bytes) => self.durable = bytes,
                    PairOrder::Back { at, .. } => {
                        assert_eq!(at, self.durable);
                        self.back += 1;
                    }
                    PairOrder::Cancel => self.cancel(machine),
                    PairOrder::End(result) => {
                        assert!(self.in_flight.is_empty(), "it ends with work under way");
                        return End::Over(result);
                    }
                }
            }
            assert!(!self.in_flight.is_empty(), "it waits for nothing");
            if self
                .restarts
                .is_some_and(|odds| self.rng.usize(..odds) == 0)
            {
                self.disks[1].restart(&mut self.rng);
            }
            let next = self.rng.usize(..self.in_flight.len());
            let (side, id, op) = self.in_flight.swap_remove(next);
            let result = self.disks[side as usize].carry_out(op);
            machine.done(id, result);
        }
        End::Cut
    }

    fn submit(&mut self, side: PairSide, id: u64, op: MediumOp<HeapLease>) {
        if matches!(op, MediumOp::Flush { .. }) {
            self.disks[side as usize].begin_flush();
        }
        self.in_flight.push((side, id, op));
        self.most = self.most.max(self.in_flight.len());
    }

    /// Nothing in flight reaches a disk.
    fn cancel(&mut self, machine: &mut dyn PairMachine<HeapLease>) {
        for (_, id, _) in self.in_flight.drain(..) {
            machine.done(id, Err(MediumError::Cancelled));
        }
    }

    /// What was not flushed at B may be lost, block by block.
    fn power_cut(&mut self) {
        self.in_flight.clear();
        self.disks[1].power_cut(&mut self.rng);
    }
}
