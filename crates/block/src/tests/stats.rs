//! What went through, and how long it took.

use std::sync::Arc;

use ::io::memory::MemoryLimit;
use scsi::medium::{Extent, MediumOp, Now};

use super::rig::{Rig, is_done, reading};
use crate::concat;
use crate::fault::{FailureRule, FaultVolume, Faults};
use crate::limit::Delay;
use crate::parts::NamedPart;
use crate::ram::Ram;
use crate::stats::{OperationCount, OperationKind, Stats};
use crate::volume::Volume;

#[test]
fn operations_of_all_cores_are_counted_by_kind() {
    let memory = MemoryLimit::new(64 << 20);
    let ram = Arc::new(Ram::new(1 << 20, 512, &memory).unwrap());
    let faults = Faults {
        read: Some(FailureRule::After(8192, scsi::medium::MediumError::Read)),
        ..Faults::default()
    };
    let slow = Delay::new(
        Arc::new(FaultVolume::new(ram, faults)),
        Now::from_micros(100),
    );
    let stats = Stats::new(Arc::new(slow), "slow".to_owned());
    let mut rig = Rig::fake(&stats);
    let extent = Extent::new(0, 8);
    let _lent = rig.lease(MediumOp::PrepareWrite { extent });
    for core in 0..2 {
        for _ in 0..2 {
            let op = rig.write_op(0, 4, 1, false);
            assert!(is_done(&rig.run_on(core, op)));
        }
        let _ = rig.run_on(core, reading(extent));
    }
    let failed = rig.run(reading(extent));
    assert!(failed.is_err());
    assert!(is_done(&rig.flush()));

    let count = |kind| {
        let count = stats.snapshot(kind);
        (count.operations, count.errors, count.bytes)
    };
    assert_eq!(count(OperationKind::Read), (3, 1, 8192));
    assert_eq!(count(OperationKind::Write), (4, 0, 8192));
    assert_eq!(count(OperationKind::Flush), (1, 0, 0));
    assert_eq!(
        stats.snapshot(OperationKind::Unmap),
        OperationCount::default()
    );
    assert_eq!(
        count(OperationKind::Other),
        (0, 0, 0),
        "memory is not counted"
    );
    let lines = stats.gathered();
    let heads: Vec<_> = lines
        .iter()
        .filter_map(|line| line.split(';').next())
        .collect();
    assert_eq!(
        heads,
        [
            "stats(slow): reads: 3, 1 of them failed, 8192 bytes",
            "stats(slow): writes: 4, 0 of them failed, 8192 bytes",
            "stats(slow): flushes: 1, 0 of them failed, 0 bytes",
        ]
    );
    let whole = concat::open(vec![NamedPart {
        name: "part".to_owned(),
        volume: Arc::new(Delay::new(Arc::new(stats), Now::ZERO)),
    }]);
    assert_eq!(whole.unwrap().gathered(), lines, "however deep inside");
}

#[test]
fn latencies_are_those_from_the_beginning_to_the_end() {
    let memory = MemoryLimit::new(64 << 20);
    let ram = Arc::new(Ram::new(1 << 20, 512, &memory).unwrap());
    let slow = Delay::new(ram, Now::from_micros(100));
    let stats = Stats::new(Arc::new(slow), "slow".to_owned());
    let mut rig = Rig::fake(&stats);
    for _ in 0..4 {
        assert!(is_done(&rig.write(0, 4, 1)));
    }
    let latency = stats.snapshot(OperationKind::Write).latency;
    let (least, most) = (Now::from_micros(100), Now::from_micros(107));
    assert_eq!(latency.count(), 4);
    assert!(
        (least..most).contains(&latency.percentile(0.5).unwrap()),
        "{latency:?}"
    );
}
