//! Memory that is registered for good: nothing of it is copied, and it is forgotten in time.

use std::sync::Arc;

use pretend_verbs::{Count, Order};

use super::memory::{move_some, pinned_for};
use super::rig::{Ends, bytes_of, connect, end_of, pattern, read, told};
use crate::memory::{Buffer, LocalRegion, LockError, MemoryLimit, Pages, Region};
use crate::rdma::{RdmaCopies, RdmaMemory, RemoteAccess};

const MIB: u64 = 1 << 20;
const NOTHING: RdmaCopies = RdmaCopies {
    sent: 0,
    received: 0,
};

/// A region of 4 MiB in blocks. Devices do not ask whether it is locked, which may not be allowed
/// where tests run.
fn region(block: u32) -> (Arc<Region>, LocalRegion) {
    let limit = MemoryLimit::new(8 * MIB);
    let region = Region::reserve(4 * MIB, Pages::Small, &limit).unwrap();
    let core = region.attach_in_blocks(block);
    (region, core)
}

/// Fills memory by a read of the target.
fn fill(ends: &mut Ends, bytes: &[u8], into: Buffer) {
    let source = Buffer::from_vec(bytes.to_vec());
    let access = RemoteAccess::Read;
    let place = ends.initiator.advertise(&source, access).unwrap();
    ends.target.post(read(1, place, into));
    ends.target.flush();
    assert_eq!(
        told(&mut ends.target),
        [format!("got 1, {} bytes", bytes.len())]
    );
    ends.initiator.withdraw(place.key);
}

fn copies(ends: &Ends) -> RdmaCopies {
    ends.target.domain().copies()
}

#[test]
fn a_registered_region_is_sent_and_filled_without_a_copy() {
    let mut ends = Ends::new();
    let (region, core) = region(512);
    ends.target.domain().add_locked(&region).unwrap();
    for len in [512, 4096, 100 << 10, MIB] {
        let range = 4096..4096 + len;
        let lent = core.lend(range.clone()).unwrap();
        fill(&mut ends, &pattern(len as usize), lent);
        let before = ends.memory.left();
        let data = core.buffer(range);
        assert!(bytes_of(&data) == pattern(len as usize), "{len} bytes");
        assert_eq!(pinned_for(&mut ends, &data), 0);
        assert_eq!(ends.memory.left(), before);
    }
    assert_eq!(copies(&ends), NOTHING);
}

/// Whoever has aborted the write that the read belongs to is told that it is over.
#[test]
fn a_read_into_a_medium_that_is_cancelled_ends_the_connection() {
    let mut ends = Ends::new();
    let (region, core) = region(512);
    ends.target.domain().add_locked(&region).unwrap();
    let source = Buffer::from_vec(pattern(8192));
    let place = ends.initiator.advertise(&source, RemoteAccess::Read);
    ends.world.order(Order::Hold, 2);
    let lent = core.lend(0..8192).unwrap();
    ends.target.post(read(1, place.unwrap(), lent));
    ends.target.flush();
    assert!(ends.target.cancel(1).is_none());
    ends.world.order(Order::Hold, 0);
    let end = end_of(&mut ends.target).to_string();
    assert!(end.starts_with("a command was aborted"), "{end}");
    assert_eq!(bytes_of(&core.buffer(0..8192)), [0; 8192]);
}

#[test]
fn what_is_copied_is_counted() {
    let mut ends = Ends::new();
    let (_region, core) = region(512);
    fill(
        &mut ends,
        &pattern(100_000),
        Buffer::from_vec(vec![0; 100_000]),
    );
    let in_pool = ends.filled(&pattern(50_000));
    move_some(&mut ends, &in_pool);
    let received = 100_000;
    assert_eq!(copies(&ends), RdmaCopies { sent: 0, received });
    fill(&mut ends, &pattern(4096), core.lend(0..4096).unwrap());
    move_some(&mut ends, &core.buffer(0..4096));
    move_some(&mut ends, &Buffer::from_vec(pattern(1000)));
    let (sent, received) = (5096, 104_096);
    assert_eq!(copies(&ends), RdmaCopies { sent, received });
}

/// The first part of a block comes with the command and is staged; a device that filled the rest by
/// itself would leave the block without it.
#[test]
fn the_rest_of_a_block_joins_what_is_staged_of_it() {
    let mut ends = Ends::new();
    let (region, core) = region(4096);
    ends.target.domain().add_locked(&region).unwrap();
    let whole = core.lend(0..8192).unwrap();
    let data = pattern(8192);
    for (at, end) in [(1000, 8192), (512, 4096)] {
        whole.copy_in(0, &data[..at]);
        fill(&mut ends, &data[at..end], whole.slice(at, end - at));
        let stored = bytes_of(&core.buffer(0..end as u64));
        assert!(stored == data[..end], "the rest from {at} on");
        core.lend(0..8192).unwrap().zero(0, 8192);
    }
    let copied = copies(&ends);
    fill(&mut ends, &data[4096..], whole.slice(4096, 4096));
    assert_eq!(copies(&ends), copied, "whole blocks need no staging");
}

#[test]
fn a_region_that_goes_is_forgotten_with_its_last_user() {
    let mut ends = Ends::new();
    let (region, core) = region(512);
    let domain = Arc::clone(ends.target.domain());
    domain.add_locked(&region).unwrap();
    move_some(&mut ends, &core.lend(0..4096).unwrap());
    let (weak, pinned) = (Arc::downgrade(&region), ends.world.count(Count::Pinned));
    drop(region);
    assert_eq!(ends.world.count(Count::Pinned), pinned, "a core has it");
    drop(core);
    assert!(weak.upgrade().is_none(), "the domain does not hold it");
    assert_eq!(pinned - ends.world.count(Count::Pinned), 4 * MIB);
    move_some(&mut ends, &Buffer::from_vec(pattern(512)));
    assert_eq!(copies(&ends).sent, 512);
}

#[test]
fn a_region_outlives_a_device() {
    let ends = Ends::new();
    let (region, core) = region(512);
    ends.target.domain().add_locked(&region).unwrap();
    drop(ends);
    core.lend(0..512).unwrap().copy_in(0, &[1; 512]);
    drop((region, core));
}

#[test]
fn what_is_locked_is_registered_once_or_refused_once() {
    let mut ends = Ends::new();
    let memory = MemoryLimit::new(MIB);
    let first = match Region::locked(32 << 10, &memory) {
        Err(error @ LockError::Memlock { .. }) => return eprintln!("skipped: {error}"),
        locked => locked.unwrap(),
    };
    let domain = Arc::clone(ends.target.domain());
    let told = domain.register_all(&memory);
    assert!(matches!(&told[..], [one] if one.bytes == 32 << 10 && one.result.is_ok()));
    assert!(domain.register_all(&memory).is_empty());
    let now = ends.world.count(Count::Pinned) as i64;
    ends.world.order(Order::PinnedLimit, now);
    let second = Region::locked(16 << 10, &memory).unwrap();
    let told = domain.register_all(&memory);
    let [refused] = &told[..] else {
        panic!("{told:?}");
    };
    let words = refused.result.as_ref().unwrap_err().to_string();
    assert!(words.contains("RLIMIT_MEMLOCK is "), "{words}");
    assert!(
        domain.register_all(&memory).is_empty(),
        "it is not tried again"
    );
    ends.world.order(Order::PinnedLimit, i64::MAX);
    // It goes by copies.
    move_some(&mut ends, &second.attach().buffer(0..16 << 10));
    assert_eq!(copies(&ends).sent, 16 << 10);
    drop(second);
    let third = Region::locked(16 << 10, &memory).unwrap();
    assert_eq!(
        domain.register_all(&memory).len(),
        1,
        "another one is tried"
    );
    drop((first, third));
}

#[test]
fn each_device_knows_it_and_connections_share_that() {
    let mut ends = Ends::new();
    let (region, core) = region(512);
    let domain = Arc::clone(ends.target.domain());
    domain.add_locked(&region).unwrap();
    let (_target, _initiator) = connect(&ends.world, &RdmaMemory::new());
    let domains = ends.world.library.domains();
    assert!(matches!(&domains[..], [one] if Arc::ptr_eq(one, &domain)));
    move_some(&mut ends, &core.lend(0..512).unwrap());
    assert_eq!(copies(&ends), NOTHING);
}
