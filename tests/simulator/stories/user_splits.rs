//! However the bytes of a conversation of our own initiator are cut into two pieces, in either
//! direction, it ends in the same way, by one connection.

use std::time::Duration;

use block::lease::BlockLease;
use iscsi::initiator::config::Digest;
use scsi::medium::{Extent, Lease as _, MediumOp, MediumOutcome};
use sim::{Disk, DiskKind, EventWeights, SimWire};

use super::remote_units::PATIENCE;
use crate::lab::{Lab, Shape, read_op};
use crate::transport::Transport;

const BLOCK: usize = 512;
const BLOCKS: u64 = 32;

/// Longer than what goes with a command, so that the target asks for it; and a short one.
const WRITES: [Extent; 2] = [Extent::new(3, 3), Extent::new(25, 1)];

/// Which end receives in two pieces, and where the first one ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Split {
    Nowhere,
    AtTarget(usize),
    AtUser(usize),
}

/// A user that writes and reads, one operation after the other.
struct Conversation {
    lab: Lab,
    user: usize,
    split: Split,
    next: u64,
}

impl Conversation {
    fn new(over: Transport, split: Split) -> Self {
        let mut shape = Shape::new(1, DiskKind::Apart);
        shape.disks = vec![Disk::new(DiskKind::Apart, BLOCK as u32, BLOCKS)];
        let mut lab = Lab::new(over.seed(0), shape);
        lab.world.pace = EventWeights {
            pieces: false,
            ..EventWeights::default()
        };
        let user = lab.add_user((1, PATIENCE), |offer| {
            (offer.header_digest, offer.data_digest) = (Digest::Require, Digest::Require);
            (offer.keys.first_burst, offer.keys.max_burst) = (1024, 1024);
        });
        Self {
            lab,
            user,
            split,
            next: 1,
        }
    }

    fn wires(&self) -> &[SimWire] {
        self.lab.world.wires_of(self.user)
    }

    fn pass(&mut self) {
        let is_first = self.wires().is_empty();
        if !self.lab.world.step() {
            let patience = self.lab.world.patience().unwrap_or(Duration::ZERO);
            self.lab.world.pass(patience.max(Duration::from_millis(1)));
        }
        if let (true, Some(wire)) = (is_first, self.wires().first()) {
            match self.split {
                Split::Nowhere => {}
                Split::AtTarget(at) => wire.split_to_target(at),
                Split::AtUser(at) => wire.split(at),
            }
        }
    }

    fn does(&mut self, op: MediumOp<BlockLease>) -> MediumOutcome<BlockLease> {
        self.lab.world.submit(self.user, self.next, op);
        self.next += 1;
        for _ in 0..100_000 {
            if let Some((_, result)) = self.lab.world.next_done(self.user) {
                return result.expect("no error");
            }
            self.pass();
        }
        panic!("it hangs, {:?}", self.split);
    }

    /// All that is said. Returns how many bytes each end has received.
    fn hold(mut self) -> [usize; 2] {
        for (seed, extent) in WRITES.into_iter().enumerate() {
            let bytes: Vec<u8> = (0..BLOCK * extent.blocks as usize)
                .map(|at| (at * 7 + at / 251 + seed) as u8)
                .collect();
            let write = self.lab.write_op(self.user, extent, &bytes, seed == 1);
            self.does(write);
            let MediumOutcome::Lease(data) = self.does(read_op(extent)) else {
                panic!("no data");
            };
            let mut read = vec![0; data.len()];
            data.copy_out(0, &mut read);
            assert!(read == bytes, "{:?}", self.split);
        }
        self.lab.world.leave(self.user);
        while !self.lab.world.user_has_left(self.user) {
            self.pass();
        }
        assert_eq!(self.wires().len(), 1, "one connection, {:?}", self.split);
        let is_split = usize::from(self.split != Split::Nowhere);
        assert_eq!(self.wires()[0].splits(), is_split, "{:?}", self.split);
        self.wires()[0].received()
    }
}

fn a_cut_anywhere_changes_nothing(over: Transport) {
    let whole = Conversation::new(over, Split::Nowhere).hold();
    let [to_target, to_user] = whole;
    assert!(to_target > 2048 && to_user > 2048, "{whole:?}");
    let splits = (1..to_target).map(Split::AtTarget);
    for split in splits.chain((1..to_user).map(Split::AtUser)) {
        Conversation::new(over, split).hold();
    }
}

#[test]
fn a_cut_anywhere_changes_nothing_over_tcp() {
    a_cut_anywhere_changes_nothing(Transport::Tcp);
}

#[test]
fn a_cut_anywhere_changes_nothing_over_iser() {
    a_cut_anywhere_changes_nothing(Transport::Iser);
}
