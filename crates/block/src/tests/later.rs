//! Operations that wait, on simulated time alone.

use std::sync::Arc;
use std::time::Duration;

use scsi::medium::{Extent, Lease as _, MediumOp, Now};

use super::fake::FakeRing;
use super::rig::{FLUSH, Rig, is_done, read, same};
use super::sketch::{limit, ram};
use crate::limit::{Delay, Limit, LimitRates};

const MS: Now = Now::from_millis(1);

/// How many of these operations have ended at an instant.
fn ended(rig: &mut Rig<FakeRing>, ids: &[u64], at: Now) -> usize {
    rig.pass_to(at);
    let done = |id: &&u64| rig.done.iter().any(|(done, _)| done == *id);
    ids.iter().filter(done).count()
}

#[test]
fn a_delayed_operation_begins_later_and_in_order() {
    let mut rig = Rig::fake(&Delay::new(ram(2048), 5 * MS));
    let write = rig.write_op(7, 1, 9, false);
    let mut ids = vec![rig.submit(0, write)];
    rig.pass_to(2 * MS);
    ids.push(rig.submit(0, read(7, 1)));
    ids.push(rig.submit(0, FLUSH));
    assert_eq!(rig.call, Some(5 * MS));
    assert_eq!(ended(&mut rig, &ids, Now::from_micros(4_999)), 0);
    assert_eq!(ended(&mut rig, &ids, 5 * MS), 1);
    assert_eq!(rig.call, Some(7 * MS));
    assert_eq!(ended(&mut rig, &ids, 9 * MS), 3);
    assert_eq!(rig.call, None);
    assert_eq!(rig.read(7, 1), [9; 512]);
}

#[test]
fn memory_is_lent_without_a_delay() {
    let mut rig = Rig::fake(&Delay::new(ram(2048), 5 * MS));
    let extent = Extent::new(0, 8);
    assert_eq!(rig.lease(MediumOp::PrepareWrite { extent }).len(), 4096);
    assert_eq!(rig.lease(MediumOp::Buffer { bytes: 512 }).len(), 512);
    assert_eq!(rig.now, Now::ZERO);
}

#[test]
fn no_delay_is_none() {
    let mut rig = Rig::fake(&Delay::new(ram(2048), Now::ZERO));
    let id = rig.submit(0, FLUSH);
    assert!(rig.result(id).is_some());
}

#[test]
fn delays_add_up() {
    let inner = Arc::new(Delay::new(ram(2048), 2 * MS));
    let mut rig = Rig::fake(&Delay::new(inner, 3 * MS));
    assert!(is_done(&rig.flush()));
    assert_eq!(rig.now, 5 * MS);
}

#[test]
fn operations_a_second_are_limited_after_a_burst() {
    let limit = limit(Some(1000), None);
    let mut rig = Rig::fake(&limit);
    let ids: Vec<_> = (0..100).map(|lba| rig.submit(0, read(lba, 1))).collect();
    // 10 ms ahead, and the one that is paid for then.
    assert_eq!(ended(&mut rig, &ids, Now::ZERO), 11);
    assert_eq!(ended(&mut rig, &ids, MS), 12);
    assert_eq!(ended(&mut rig, &ids, 50 * MS), 61);
    assert_eq!(ended(&mut rig, &ids, 88 * MS), 99);
    assert_eq!(ended(&mut rig, &ids, 89 * MS), 100);
    assert_eq!(rig.call, None);
}

#[test]
fn after_a_pause_there_is_no_more_than_a_burst() {
    let limit = limit(Some(1000), None);
    let mut rig = Rig::fake(&limit);
    rig.pass_to(Now::from_secs(3600));
    let ids: Vec<_> = (0..100).map(|lba| rig.submit(0, read(lba, 1))).collect();
    let now = rig.now;
    assert_eq!(ended(&mut rig, &ids, now), 11);
}

#[test]
fn a_longer_burst_lets_more_through_at_once_and_no_more_a_second() {
    let rates = LimitRates {
        iops: Some(1000),
        burst: Duration::from_millis(50),
        ..LimitRates::default()
    };
    let mut rig = Rig::fake(&Limit::new(ram(2048), rates));
    let ids: Vec<_> = (0..100).map(|lba| rig.submit(0, read(lba, 1))).collect();
    assert_eq!(ended(&mut rig, &ids, Now::ZERO), 51);
    assert_eq!(ended(&mut rig, &ids, MS), 52);
    assert_eq!(ended(&mut rig, &ids, 49 * MS), 100);
}

#[test]
fn bytes_a_second_are_limited() {
    let limit = limit(None, Some(512_000));
    let mut rig = Rig::fake(&limit);
    let ids: Vec<_> = (0..10).map(|lba| rig.submit(0, read(lba * 8, 8))).collect();
    // Each takes 8 ms.
    assert_eq!(ended(&mut rig, &ids, Now::ZERO), 2);
    assert_eq!(ended(&mut rig, &ids, 6 * MS), 3);
    assert_eq!(ended(&mut rig, &ids, 61 * MS), 9);
    assert_eq!(ended(&mut rig, &ids, 62 * MS), 10);
}

#[test]
fn both_limits_hold_together() {
    let limit = limit(Some(1000), Some(5_120_000));
    let mut rig = Rig::fake(&limit);
    // Many short ones, then long ones that take 8 ms: no bytes are saved up while operations wait.
    let mut ids: Vec<_> = (0..110).map(|lba| rig.submit(0, read(lba, 1))).collect();
    ids.extend((0..10).map(|lba| rig.submit(0, read(lba * 80, 80))));
    assert_eq!(ended(&mut rig, &ids, 100 * MS), 111);
    assert_eq!(ended(&mut rig, &ids, 101 * MS), 112);
    assert_eq!(ended(&mut rig, &ids, 161 * MS), 119);
    assert_eq!(ended(&mut rig, &ids, 162 * MS), 120);
}

#[test]
fn the_limit_holds_over_all_cores() {
    let limit = limit(Some(1000), None);
    let mut rig = Rig::fake(&limit);
    let ids: Vec<_> = (0..100)
        .map(|n| rig.submit(n % 2, read(n as u64, 1)))
        .collect();
    assert_eq!(ended(&mut rig, &ids, 50 * MS), 61);
}

#[test]
fn what_does_not_count_does_not_wait() {
    let limit = limit(Some(1), None);
    let mut rig = Rig::fake(&limit);
    let extent = Extent::new(0, 8);
    assert!(is_done(&rig.write(0, 1, 1)));
    let waiting = rig.submit(0, read(0, 1));
    assert!(rig.result(waiting).is_none());
    for op in [
        FLUSH,
        MediumOp::PrepareWrite { extent },
        MediumOp::Buffer { bytes: 512 },
        MediumOp::Status { extent },
        MediumOp::Prefetch { extent },
    ] {
        let id = rig.submit(0, op);
        assert!(rig.result(id).is_some());
    }
    let anchor = false;
    for op in [same(extent, None), MediumOp::Unmap { extent, anchor }] {
        let id = rig.submit(0, op);
        assert!(rig.result(id).is_none());
    }
}

#[test]
fn a_huge_write_same_does_not_overflow() {
    let limit = limit(None, Some(1));
    let mut rig = Rig::fake(&limit);
    let extent = Extent::new(0, 2048);
    for _ in 0..3 {
        rig.submit(0, same(extent, None));
    }
    assert_eq!(rig.call, Some(Now::from_secs(1 << 20) - 10 * MS));
}
