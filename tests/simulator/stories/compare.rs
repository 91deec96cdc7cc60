//! COMPARE AND WRITE of all hosts, on all cores, on the same two blocks: a counter is increased
//! exactly as often as they were answered with GOOD, and nobody ever reads one half of a change.

use sim::{Disk, Rng};
use tests::cdb;
use tests::initiator::{Data, Reply};

use crate::host::{What, out};
use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_transports;

pub(super) const HOSTS: usize = 4;
/// The unit with the counter, of which the oracle knows nothing.
pub(super) const UNIT: usize = 1;
pub(super) const LBA: u64 = 5;
const BLOCKS: u8 = 2;
const BLOCK: usize = 512;

#[test]
fn a_counter_counts_every_good() {
    with_transports("a counter", 60, |seed| {
        let mut lab = lab(seed, Shape::any(&mut Rng::new(seed)));
        let mut counters: Vec<_> = (0..HOSTS).map(Counter::new).collect();
        for _ in 0..6000 {
            lab.run(1, &Mix::default());
            let mut idle: Vec<_> = counters.iter_mut().filter(|one| one.is_idle()).collect();
            if !idle.is_empty() && lab.rng.one_in(8) {
                let which = lab.rng.below(idle.len());
                idle[which].go_on(&mut lab);
            }
            counters.iter_mut().for_each(|one| one.hear(&mut lab));
        }
        lab.finish();
        counters.iter_mut().for_each(|one| one.hear(&mut lab));
        let counted: u64 = counters.iter().map(|one| one.good).sum();
        assert_eq!(counter(&lab.disks[UNIT].block(LBA)), counted);
        assert!(counted > 0, "never GOOD");
        lab.leave();
    });
}

/// The counter has a disk to itself, and there is I/O beside it.
pub(super) fn lab(seed: u64, mut shape: Shape) -> Lab {
    let kind = shape.disks[0].kind();
    shape.disks.push(Disk::new(kind, BLOCK as u32, 16));
    let mut lab = Lab::new(seed, shape);
    lab.any_pace();
    lab.unwatched.push(UNIT);
    lab.log_in_hosts(HOSTS);
    lab
}

/// One host that counts.
pub(super) struct Counter {
    host: usize,
    state: State,
    /// Changes that were answered with GOOD.
    pub(super) good: u64,
    /// Changes of which it has not heard what became of them.
    pub(super) unknown: u64,
}

enum State {
    /// It knows nothing.
    Idle,
    /// It reads.
    Reading(u64),
    /// It has read this.
    Knows(Vec<u8>),
    /// It tries to change it.
    Changing(u64),
}

impl Counter {
    pub(super) const fn new(host: usize) -> Self {
        Self {
            host,
            state: State::Idle,
            good: 0,
            unknown: 0,
        }
    }

    /// Its connection is gone.
    pub(super) fn cut_off(&mut self) {
        self.unknown += u64::from(matches!(self.state, State::Changing(_)));
        self.state = State::Idle;
    }

    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Knows(_))
    }

    pub(super) fn go_on(&mut self, lab: &mut Lab) {
        let host = &mut lab.hosts[self.host];
        if !host.is_ready() {
            return;
        }
        self.state = match &self.state {
            State::Knows(old) => {
                let new = blocks(counter(old) + 1, self.host as u64);
                let data = out([&old[..], &new].concat());
                let cdb = cdb::compare_and_write(LBA, BLOCKS);
                State::Changing(host.command(1, UNIT, &cdb, data, What::Other))
            }
            _ => {
                let cdb = cdb::read(LBA, BLOCKS.into());
                let data = Data::In(u32::from(BLOCKS) * BLOCK as u32);
                State::Reading(host.command(1, UNIT, &cdb, data, What::Other))
            }
        };
    }

    pub(super) fn hear(&mut self, lab: &mut Lab) {
        for reply in std::mem::take(&mut lab.hosts[self.host].told) {
            let Reply::Done {
                user, status, data, ..
            } = reply
            else {
                continue;
            };
            match self.state {
                State::Reading(asked) if asked == user => self.has_read(status, data),
                State::Changing(asked) if asked == user => {
                    self.good += u64::from(status == 0);
                    self.state = State::Idle;
                }
                _ => {}
            }
        }
    }

    fn has_read(&mut self, status: u16, data: Vec<u8>) {
        if status != 0 {
            self.state = State::Idle;
            return;
        }
        let whole =
            data.iter().all(|byte| *byte == 0) || data == blocks(counter(&data), be64(&data[8..]));
        assert!(whole, "host {} reads half a change", self.host);
        self.state = State::Knows(data);
    }
}

/// What the counter's blocks hold: everywhere the same, the number and who wrote it.
fn blocks(number: u64, host: u64) -> Vec<u8> {
    let entry = [number.to_be_bytes(), host.to_be_bytes()].concat();
    entry.repeat(usize::from(BLOCKS) * BLOCK / entry.len())
}

pub(super) fn counter(blocks: &[u8]) -> u64 {
    be64(blocks)
}

fn be64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"))
}
