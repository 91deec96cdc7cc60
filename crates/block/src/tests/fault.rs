//! Volumes that fail as they are told to.

use std::sync::Arc;

use ::io::memory::MemoryLimit;
use scsi::medium::{Extent, MediumError, MediumOp};

use super::fake::FakeRing;
use super::rig::{Rig, is_done, reading, same, writing};
use crate::fault::{FailureRule, FaultVolume, Faults};
use crate::ram::Ram;
use crate::volume::Volume;

fn volume(faults: Faults) -> FaultVolume {
    let memory = MemoryLimit::new(64 << 20);
    FaultVolume::new(Arc::new(Ram::new(1 << 20, 512, &memory).unwrap()), faults)
}

fn rig(faults: Faults) -> Rig<FakeRing> {
    Rig::fake(&volume(faults))
}

const ALWAYS: Option<FailureRule> = Some(FailureRule::Seldom(1.0));

/// Which of so many writes of one block fail.
fn failures(faults: Faults) -> Vec<u64> {
    let mut rig = rig(faults);
    (0..1000)
        .filter(|lba| rig.write(*lba, 1, 1).is_err())
        .collect()
}

#[test]
fn failures_are_as_many_as_was_said_and_the_same_by_the_seed() {
    let write = Some(FailureRule::Seldom(0.1));
    let with = |seed| {
        failures(Faults {
            write,
            seed,
            ..Faults::default()
        })
    };
    let failed = with(1).len();
    assert!((70..130).contains(&failed), "{failed} of 1000");
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

/// A retry that fails too is what such a volume is for.
#[test]
fn failures_follow_each_other_as_often_as_by_chance() {
    for seed in 1..5 {
        let failed = failures(Faults {
            write: Some(FailureRule::Seldom(0.1)),
            seed,
            ..Faults::default()
        });
        let pairs = failed.windows(2).filter(|two| two[0] + 1 == two[1]).count();
        assert!((2..25).contains(&pairs), "{pairs} of about 10, seed {seed}");
    }
}

#[test]
fn never_and_always_are_meant() {
    let by = |p| Faults {
        write: Some(FailureRule::Seldom(p)),
        ..Faults::default()
    };
    assert_eq!(failures(by(0.0)).len(), 0);
    assert_eq!(failures(by(1.0)).len(), 1000);
}

#[test]
fn each_kind_fails_with_its_own_error_and_alone() {
    let mut reads = rig(Faults {
        read: ALWAYS,
        ..Faults::default()
    });
    let extent = Extent::new(0, 1);
    let read = reads.run(reading(extent));
    assert!(matches!(read, Err(MediumError::Read)));
    assert!(is_done(&reads.write(0, 1, 1)) && is_done(&reads.flush()));
    let mut flushes = rig(Faults {
        flush: ALWAYS,
        ..Faults::default()
    });
    assert!(matches!(flushes.flush(), Err(MediumError::Write)));
    assert!(is_done(&flushes.write(0, 1, 1)));
}

#[test]
fn a_failed_write_leaves_what_was_there_though_memory_was_lent() {
    let mut rig = rig(Faults {
        write: Some(FailureRule::After(4096, MediumError::Write)),
        ..Faults::default()
    });
    assert!(is_done(&rig.write(0, 8, 1)));
    let extent = Extent::new(0, 8);
    let lent = rig.lease(MediumOp::PrepareWrite { extent });
    lent.buffer().copy_in(0, &[2; 4096]);
    let write = writing(extent, lent);
    rig.fails(write, MediumError::Write);
    assert_eq!(rig.read(0, 8), [1; 4096]);
}

#[test]
fn space_ends_after_so_many_bytes() {
    let mut rig = rig(Faults {
        write: Some(FailureRule::After(8 * 512, MediumError::NoSpace)),
        flush: Some(FailureRule::After(8 * 512, MediumError::Gone)),
        ..Faults::default()
    });
    assert!(is_done(&rig.write(0, 7, 1)));
    assert!(is_done(&rig.flush()));
    assert!(is_done(&rig.write(7, 1, 1)));
    assert!(matches!(rig.write(8, 1, 1), Err(MediumError::NoSpace)));
    assert!(matches!(rig.flush(), Err(MediumError::Gone)));
    assert!(is_done(&rig.unmap(0, 8)), "it needs no space");
    let extent = Extent::new(0, 1);
    rig.fails(same(extent, None), MediumError::NoSpace);
    assert_eq!(rig.read(8, 1), [0; 512]);
}

#[test]
fn a_torn_write_leaves_its_first_blocks() {
    let mut rig = rig(Faults {
        write: ALWAYS,
        torn: true,
        seed: 3,
        ..Faults::default()
    });
    let mut lengths = Vec::new();
    for lba in (0..1024).step_by(16) {
        assert!(matches!(rig.write(lba, 16, 7), Err(MediumError::Write)));
        let bytes = rig.read(lba, 16);
        let torn = bytes.iter().position(|byte| *byte == 0).unwrap();
        assert!(torn.is_multiple_of(512));
        assert!(bytes[torn..].iter().all(|byte| *byte == 0));
        lengths.push(torn / 512);
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 8, "{lengths:?}");
    assert!(matches!(rig.write(0, 1, 9), Err(MediumError::Write)));
}

#[test]
fn what_may_be_torn_is_not_atomic() {
    let torn = volume(Faults {
        write: ALWAYS,
        torn: true,
        ..Faults::default()
    });
    let whole = volume(Faults {
        write: ALWAYS,
        ..Faults::default()
    });
    assert_eq!(torn.traits().atomic, None);
    assert!(whole.traits().atomic.is_some());
}
