//! Writers and unmappers at the same granules, in every order.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering::Relaxed};
use loom::thread;

use super::{Clear, GRANULE, GROUP, Granules, MemoryLimit, NoSpace, Pages};

/// A region whose granules have one byte each.
struct Memory {
    granules: Granules,
    bytes: Vec<AtomicU8>,
    limit: MemoryLimit,
}

impl Memory {
    fn new(count: u64, pages: Pages, limit: u64) -> Arc<Self> {
        let limit = MemoryLimit::new(limit);
        Arc::new(Self {
            granules: Granules::new(count, pages, &limit).unwrap(),
            bytes: (0..count).map(|_| AtomicU8::new(0)).collect(),
            limit,
        })
    }

    /// Whether it ends well or is given up, a write is over by `confirm`.
    fn write(&self, granule: u64) -> Result<(), NoSpace> {
        self.granules.allocate(granule..granule + 1, || {})?;
        self.bytes[granule as usize].store(7, Relaxed);
        self.granules.confirm(granule..granule + 1, || {});
        Ok(())
    }

    fn unmap(&self, granules: std::ops::Range<u64>) {
        self.granules.deallocate(granules, |what| self.clear(what));
    }

    fn clear(&self, what: Clear) {
        let (Clear::Discard(part) | Clear::Zero(part) | Clear::CutUp(part)) = what;
        for granule in part {
            self.bytes[granule as usize].store(0, Relaxed);
        }
    }

    fn replace(&self, works: bool) {
        if self.granules.replace(0) == Ok(true) {
            self.granules
                .have_replaced(0, works, |what| self.clear(what));
        }
    }

    fn is_allocated(&self, granule: u64) -> bool {
        self.granules.any(granule..granule + 1)
    }

    fn read(&self, granule: u64) -> u8 {
        self.bytes[granule as usize].load(Relaxed)
    }

    /// When no thread is at work: what is free is zero, and what is not is paid for.
    fn check(&self) {
        let count = self.bytes.len() as u64;
        for granule in 0..count {
            assert!(self.is_allocated(granule) || self.read(granule) == 0);
        }
        let allocated = (0..count).filter(|granule| self.is_allocated(*granule));
        let charge = if self.granules.is_huge(&(0..1)) {
            GROUP
        } else {
            allocated.count() as u64 * GRANULE
        };
        assert_eq!(self.granules.charged(), charge);
        assert_eq!(self.limit.used(), charge);
    }
}

fn both(memory: &Arc<Memory>, one: fn(&Memory), other: fn(&Memory)) {
    let beside = Arc::clone(memory);
    let thread = thread::spawn(move || other(&beside));
    one(memory);
    thread.join().unwrap();
    memory.check();
}

fn with_all_pages(count: u64, story: fn(&Arc<Memory>)) {
    for pages in [Pages::Small, Pages::Huge] {
        loom::model(move || story(&Memory::new(count, pages, 8 * GROUP)));
    }
}

#[test]
fn a_write_beside_an_unmap_is_there_or_gone() {
    with_all_pages(1, |memory| {
        both(memory, |m| m.write(0).unwrap(), |m| m.unmap(0..1));
    });
}

#[test]
fn a_rewrite_beside_an_unmap_is_there_or_gone() {
    with_all_pages(1, |memory| {
        memory.write(0).unwrap();
        both(memory, |m| m.write(0).unwrap(), |m| m.unmap(0..1));
    });
}

#[test]
fn a_write_beside_the_unmap_of_its_neighbour_is_there() {
    with_all_pages(2, |memory| {
        memory.write(1).unwrap();
        both(memory, |m| m.write(0).unwrap(), |m| m.unmap(1..2));
        assert_eq!((memory.is_allocated(0), memory.read(0)), (true, 7));
        assert!(!memory.is_allocated(1));
    });
}

#[test]
fn two_unmaps_give_back_once() {
    with_all_pages(2, |memory| {
        memory.write(0).unwrap();
        memory.write(1).unwrap();
        both(memory, |m| m.unmap(0..2), |m| m.unmap(1..2));
        assert_eq!(memory.limit.used(), 0);
    });
}

#[test]
fn two_writers_pay_once() {
    with_all_pages(1, |memory| {
        both(memory, |m| m.write(0).unwrap(), |m| m.write(0).unwrap());
        assert_eq!(memory.read(0), 7);
    });
}

/// Both were lent the granule before an UNMAP took it away.
#[test]
fn two_late_writers_pay_once() {
    with_all_pages(1, |memory| {
        memory.write(0).unwrap();
        memory.unmap(0..1);
        let late = |memory: &Memory| memory.granules.confirm(0..1, || {});
        both(memory, late, late);
        assert!(memory.is_allocated(0));
    });
}

/// One of two that want the last granule gets it.
#[test]
fn the_limit_holds_between_writers() {
    loom::model(|| {
        let memory = Memory::new(2, Pages::Small, GRANULE);
        let beside = Arc::clone(&memory);
        let thread = thread::spawn(move || beside.write(1).is_ok());
        let ours = memory.write(0).is_ok();
        assert_ne!(ours, thread.join().unwrap());
        memory.check();
    });
}

/// What is given back can be had at once, by the next request.
#[test]
fn what_an_unmap_gives_back_can_be_taken() {
    loom::model(|| {
        let memory = Memory::new(2, Pages::Small, GRANULE);
        memory.write(0).unwrap();
        let beside = Arc::clone(&memory);
        let thread = thread::spawn(move || beside.unmap(0..1));
        let early = memory.write(1);
        thread.join().unwrap();
        if early.is_err() {
            memory.write(1).unwrap();
        }
        memory.check();
    });
}

/// A group of four granules, three of which are written.
fn ripe() -> Arc<Memory> {
    let memory = Memory::new(4, Pages::Huge, GROUP);
    for granule in 0..3 {
        memory.write(granule).unwrap();
    }
    memory
}

#[test]
fn a_write_beside_a_replacement_is_there() {
    for replace in [|m: &Memory| m.replace(true), |m: &Memory| m.replace(false)] {
        loom::model(move || {
            let memory = ripe();
            both(&memory, |m| m.write(3).unwrap(), replace);
            assert_eq!(memory.read(3), 7);
        });
    }
}

#[test]
fn an_unmap_beside_a_replacement_gives_back() {
    for replace in [|m: &Memory| m.replace(true), |m: &Memory| m.replace(false)] {
        loom::model(move || {
            let memory = ripe();
            both(&memory, |m| m.unmap(0..2), replace);
            assert_eq!(memory.limit.used(), GRANULE);
        });
    }
}
