//! What is copied and what is not, and that registered memory has its bounds.

use pretend_verbs::{Count, Order};

use super::rig::{
    DEVICE, Ends, World, asked, bytes_of, connect, pair_options, pattern, told, write,
};
use crate::memory::{Buffer, Pool};
use crate::rdma::{RdmaError, RdmaMemory, RemoteAccess};

const PART: u64 = 2 << 20;

/// What the target writes arrives, whatever has to be done for it.
pub(super) fn move_some(ends: &mut Ends, data: &Buffer) {
    let sink = Buffer::from_vec(vec![0; data.len()]);
    let place = ends
        .initiator
        .advertise(&sink, RemoteAccess::Write)
        .unwrap();
    ends.target.post(write(place, data.clone()));
    ends.target.flush();
    while told(&mut ends.target).is_empty() {}
    ends.initiator.withdraw(place.key);
    assert!(bytes_of(&sink) == bytes_of(data));
}

/// By how much more is pinned for this.
pub(super) fn pinned_for(ends: &mut Ends, data: &Buffer) -> u64 {
    // The initiator's part is made first.
    move_some(ends, &Buffer::zeros(0));
    let sink = Buffer::from_vec(vec![0; data.len()]);
    let place = ends
        .initiator
        .advertise(&sink, RemoteAccess::Write)
        .unwrap();
    ends.initiator.withdraw(place.key);
    let before = ends.world.count(Count::Pinned);
    move_some(ends, data);
    ends.world.count(Count::Pinned) - before
}

#[test]
fn buffers_of_a_pool_are_registered_by_parts() {
    let mut ends = Ends::new();
    let first = ends.filled(&pattern(4096));
    let second = ends.filled(&pattern(4096));
    assert_eq!(pinned_for(&mut ends, &first), PART);
    assert_eq!(pinned_for(&mut ends, &second), 0, "in the same part");
    let longer = ends.filled(&pattern(200_000));
    assert_eq!(pinned_for(&mut ends, &longer), PART, "of another size");
}

#[test]
fn other_memory_is_copied() {
    let mut ends = Ends::new();
    let heap = || Buffer::from_vec(pattern(100_000));
    assert_eq!(pinned_for(&mut ends, &heap()), PART);
    assert_eq!(pinned_for(&mut ends, &heap()), 0);
}

#[test]
fn registered_pool_memory_is_not_given_back_to_the_kernel() {
    let mut ends = Ends::new();
    let data = ends.filled(&pattern(4096));
    move_some(&mut ends, &data);
    drop(data);
    // Two, as the first only finds out what is idle.
    ends.pool.trim();
    ends.pool.trim();
    assert_eq!(ends.pool.resident(), 0);
    let again = ends.pool.buffer(4096).unwrap();
    assert_eq!(bytes_of(&again), pattern(4096), "its pages are the same");
}

#[test]
fn the_limit_of_a_core_holds_and_work_goes_on_without() {
    for parts in [0, 1, 2] {
        let memory = RdmaMemory::with_limit(parts << 21);
        let mut ends = Ends::in_world(World::new(), memory);
        let of_pool = ends.filled(&pattern(150_000));
        for data in [of_pool, Buffer::from_vec(pattern(150_000))] {
            assert!(pinned_for(&mut ends, &data) as usize <= parts << 21);
        }
        assert_eq!(ends.memory.left(), 0, "{parts}");
        assert!(told(&mut ends.initiator).is_empty());
    }
}

#[test]
fn the_limit_of_pinned_memory_is_named_with_a_way_out() {
    let world = World::new();
    world.order(Order::PinnedLimit, 50_000);
    let mut listener = world.listener();
    let mut connector = world.connector(DEVICE.parse().unwrap());
    let error = connector.poll().unwrap().unwrap_err();
    assert!(
        matches!(error, RdmaError::NoLockedMemory { .. }),
        "{error:?}"
    );
    let words = error.to_string();
    assert!(
        words.contains("RLIMIT_MEMLOCK is ") && !words.contains('\n'),
        "{words}"
    );
    // A target that cannot pin refuses.
    world.order(Order::PinnedLimit, 1 << 30);
    let mut connector = world.connector(DEVICE.parse().unwrap());
    assert!(connector.poll().is_none());
    world.order(Order::PinnedLimit, 0);
    let refused = asked(&mut listener).accept(&RdmaMemory::new(), &pair_options(), &[]);
    assert!(matches!(refused, Err(RdmaError::NoLockedMemory { .. })));
    let error = connector.poll().unwrap().unwrap_err().to_string();
    assert!(error.contains("the peer refuses it"), "{error}");
}

#[test]
fn what_cannot_be_pinned_later_is_copied() {
    let mut ends = Ends::new();
    let sink = Buffer::from_vec(vec![0; 100_000]);
    let place = ends
        .initiator
        .advertise(&sink, RemoteAccess::Write)
        .unwrap();
    let now = ends.world.count(Count::Pinned) as i64;
    ends.world.order(Order::PinnedLimit, now);
    let data = ends.filled(&pattern(100_000));
    ends.target.post(write(place, data));
    ends.target.flush();
    while told(&mut ends.target).is_empty() {}
    ends.initiator.withdraw(place.key);
    assert!(bytes_of(&sink) == pattern(100_000));
    assert_eq!(ends.world.count(Count::Pinned) as i64, now);
}

#[test]
fn staging_has_a_bound_and_is_used_again() {
    let mut ends = Ends::new();
    let data = Buffer::from_vec(vec![0; 1 << 20]);
    let mut out = Vec::new();
    while let Some(place) = ends.initiator.advertise(&data, RemoteAccess::Read) {
        out.push(place);
    }
    assert_eq!(out.len(), 32, "32 MiB");
    let access = RemoteAccess::Write;
    assert!(!ends.initiator.can_advertise(512, access));
    let keys: std::collections::HashSet<_> = out.iter().map(|place| place.key).collect();
    assert_eq!(keys.len(), 32, "each has its own key");
    ends.initiator.withdraw(out[3].key);
    ends.initiator.withdraw(out[3].key);
    let again = ends.initiator.advertise(&data, RemoteAccess::Read).unwrap();
    assert_eq!(again, out[3]);
    ends.initiator.withdraw(again.key);
    assert!(
        ends.initiator.can_advertise(512, access),
        "another size takes its place"
    );
    let short = Buffer::from_vec(vec![0; 512]);
    assert!(ends.initiator.advertise(&short, access).is_some());
    assert!(
        ends.initiator
            .advertise(&data, RemoteAccess::Read)
            .is_none()
    );
}

#[test]
fn a_target_gives_no_key_away() {
    let mut ends = Ends::new();
    let data = Buffer::from_vec(vec![0; 512]);
    for access in [RemoteAccess::Read, RemoteAccess::Write] {
        assert!(!ends.target.can_advertise(512, access));
        assert!(ends.target.advertise(&data, access).is_none());
    }
}

#[test]
fn one_piece_of_memory_a_request_is_enough() {
    let world = World::new();
    // Header and one piece.
    world.order(Order::Pieces, 2);
    let mut ends = Ends::in_world(world, RdmaMemory::new());
    move_some(&mut ends, &Buffer::from_vec(pattern(100_000)));
    assert!(ends.world.count(Count::Requests) >= 4);
}

#[test]
fn connections_share_the_memory_of_their_core() {
    let world = World::new();
    let memory = RdmaMemory::new();
    let before = memory.left();
    let pool = Pool::new(1 << 20).unwrap();
    for _ in 0..3 {
        let (mut target, mut initiator) = connect(&world, &memory);
        let sink = Buffer::from_vec(vec![0; 4096]);
        let place = initiator.advertise(&sink, RemoteAccess::Write).unwrap();
        target.post(write(place, pool.buffer(4096).unwrap()));
        target.flush();
        assert_eq!(told(&mut target), ["written"]);
    }
    assert_eq!(before - memory.left(), PART as usize);
}
