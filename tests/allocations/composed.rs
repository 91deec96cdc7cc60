//! Volumes out of volumes: what stands around another one, or is made of several, keeps its books
//! in memory that it has.

use std::sync::Arc;

use address::Address;
use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle};
use client::open::{self, OpenOptions};
use io::counting::allocations;
use io::memory::{MemoryLimit, Pool};
use io::ring::{AnyRing, RingKind};
use scsi::medium::{Extent, MediumOp, MediumOutcome, MediumResult, Now, ReadMemory};

struct Rig {
    ring: AnyRing,
    handle: Box<dyn Handle>,
    done: Vec<(u64, MediumResult<BlockLease>)>,
}

impl Rig {
    fn new(address: &str) -> Self {
        let address: Address = address.parse().unwrap();
        let options = OpenOptions {
            memory: Arc::new(MemoryLimit::new(64 << 20)),
            ..OpenOptions::new(String::new()).unwrap()
        };
        let volume = open::volume(&address, &options).unwrap();
        let core = CoreContext::new(Pool::new(16 << 20).unwrap());
        Self {
            ring: AnyRing::open(RingKind::Epoll).unwrap().0,
            handle: volume.attach(&core).unwrap(),
            done: Vec::new(),
        }
    }

    /// Does what needs no ring.
    fn run(&mut self, op: MediumOp<BlockLease>) -> MediumOutcome<BlockLease> {
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut self.done,
            now: Now::ZERO,
            call: &mut None,
        };
        self.handle.submit(&mut cx, 1, op);
        self.done.pop().unwrap().1.unwrap()
    }

    /// Writes and reads back, over several chunks and within one.
    fn round(&mut self, n: u64) {
        for extent in [Extent::new(n * 61 % 2000, 40), Extent::new(n * 8 % 2048, 8)] {
            let MediumOutcome::Lease(data) = self.run(MediumOp::PrepareWrite { extent }) else {
                panic!("no memory");
            };
            self.run(MediumOp::Write {
                extent,
                data,
                fua: false,
                atomic: false,
            });
            let memory = ReadMemory::Lent;
            self.run(MediumOp::Read { extent, memory });
            self.run(MediumOp::Status { extent });
        }
        let extent = Extent::new(0, 0);
        self.run(MediumOp::Flush { extent });
    }
}

#[test]
fn nothing_is_allocated_for_an_operation() {
    for address in [
        "stripe:4k(ram:1M,ram:1M)",
        "concat(ram:1M,stripe:8k(ram:512k,ram:512k))",
        "limit:iops=1G,rate=1T(delay:0us(ram:2M))",
        "fault:read=0,write=0,torn(ram:2M)",
        "stats(verify(stripe:16k(fault:write=0(ram:1M),limit:iops=1G(ram:1M))))",
    ] {
        let mut rig = Rig::new(address);
        (0..2000).for_each(|n| rig.round(n));
        let before = allocations();
        (0..2000).for_each(|n| rig.round(n));
        assert_eq!(allocations() - before, 0, "{address}");
    }
}
