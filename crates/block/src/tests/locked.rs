//! Locked RAM disks: what they take, what they say of it, and that volumes around them lend their
//! memory as it is.

use std::sync::Arc;

use ::io::memory::{LockError, MemoryLimit};
use scsi::medium::{Extent, MediumOp, Provisioning, Sanitize};
use scsi::statistics::SpaceUsage;

use super::rig::{Rig, bytes, is_done, reading, same};
use crate::error::VolumeError;
use crate::limit::{Limit, LimitRates};
use crate::parts::NamedPart;
use crate::ram::Ram;
use crate::readonly::Readonly;
use crate::stats::Stats;
use crate::volume::Volume;
use crate::{concat, stripe};

const KIB: u64 = 1 << 10;

/// A locked disk of 64 KiB; `None` where tests may not lock so much.
fn locked(memory: &MemoryLimit) -> Option<Ram> {
    match Ram::locked(64 * KIB, 512, memory) {
        Ok(ram) => Some(ram),
        Err(error @ VolumeError::Lock(LockError::Memlock { .. })) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn it_takes_all_its_memory_and_unmapped_blocks_are_anchored() {
    let memory = MemoryLimit::new(64 * KIB);
    let Some(ram) = locked(&memory) else { return };
    let usage = Some(SpaceUsage {
        used: 128,
        available: 0,
    });
    let traits = ram.traits();
    assert_eq!((ram.usage(), traits.anchor), (usage, true));
    assert_eq!(traits.unmap_granularity, Some(8));
    let mut rig = Rig::fake(&ram);
    assert_eq!(rig.status(0, 128), (Provisioning::Anchored, 128));
    assert!(is_done(&rig.write(0, 24, 9)));
    assert_eq!(rig.status(0, 128), (Provisioning::Mapped, 24));
    let lent = rig.lease(reading(Extent::new(0, 24)));
    for anchor in [false, true] {
        let extent = Extent::new(8 + 8 * u64::from(anchor), 8);
        rig.does(MediumOp::Unmap { extent, anchor });
    }
    assert_eq!(bytes(&lent), [vec![9; 4096], vec![0; 8192]].concat());
    assert_eq!(rig.status(8, 8), (Provisioning::Anchored, 8));
    assert_eq!(ram.usage(), usage);
    assert_eq!(memory.used(), 64 * KIB);
    drop((rig, lent, ram));
    assert_eq!(memory.used(), 0);
}

#[test]
fn zeros_and_sanitizing_keep_the_memory() {
    let memory = MemoryLimit::new(64 * KIB);
    let Some(ram) = locked(&memory) else { return };
    let mut rig = Rig::fake(&ram);
    let all = Extent::new(0, 128);
    let lent = rig.lease(reading(all));
    for op in [
        same(all, None),
        MediumOp::Sanitize {
            extent: all,
            method: Sanitize::BlockErase,
        },
    ] {
        assert!(is_done(&rig.write(0, 128, 7)));
        assert_eq!(bytes(&lent), [7; 64 << 10], "it is the memory itself");
        rig.does(op);
        assert_eq!(bytes(&lent), [0; 64 << 10]);
    }
}

#[test]
fn a_hole_is_lent_as_the_memory_that_it_is() {
    let memory = MemoryLimit::new(64 * KIB);
    let Some(ram) = locked(&memory) else { return };
    let mut rig = Rig::fake(&ram);
    let extent = Extent::new(16, 8);
    let read = rig.lease(reading(extent));
    let lent = rig.lease(MediumOp::PrepareWrite { extent });
    assert!(read.buffer().is_same_memory(lent.buffer()));
}

#[test]
fn volumes_around_it_lend_its_memory() {
    let memory = MemoryLimit::new(128 * KIB);
    let (Some(first), Some(second)) = (locked(&memory), locked(&memory)) else {
        return;
    };
    let disks: [Arc<dyn Volume>; 2] = [Arc::new(first), Arc::new(second)];
    let part = |volume: &Arc<dyn Volume>| NamedPart {
        name: "ram".to_owned(),
        volume: Arc::clone(volume),
    };
    let parts = || disks.iter().map(part).collect::<Vec<_>>();
    let rates = LimitRates {
        iops: Some(1_000_000),
        bytes: None,
        burst: LimitRates::BURST,
    };
    let around: [Arc<dyn Volume>; 5] = [
        Arc::new(stripe::open(16 * KIB, parts()).unwrap()),
        Arc::new(concat::open(parts()).unwrap()),
        Arc::new(Limit::new(Arc::clone(&disks[0]), rates)),
        Arc::new(Stats::new(Arc::clone(&disks[0]), "ram".to_owned())),
        Arc::new(Readonly::new(Arc::clone(&disks[0]))),
    ];
    let extent = Extent::new(0, 32);
    let own = Rig::fake(&*disks[0]).lease(reading(extent));
    for volume in around {
        let mut rig = Rig::fake(&*volume);
        let read = rig.lease(reading(extent));
        assert!(read.buffer().is_same_memory(own.buffer()));
        if !volume.traits().read_only {
            let lent = rig.lease(MediumOp::PrepareWrite { extent });
            assert!(lent.buffer().is_same_memory(own.buffer()));
        }
    }
}

#[test]
fn more_than_there_is_is_refused_in_a_line() {
    let memory = MemoryLimit::new(64 * KIB);
    let error = Ram::locked(65 * KIB, 512, &memory).unwrap_err().to_string();
    assert!(error.contains("69632 bytes at once"), "{error}");
    assert!(error.contains("--memory-limit") && !error.contains('\n'));
    assert_eq!(memory.used(), 0);
    assert!(matches!(
        Ram::locked(100, 512, &memory),
        Err(VolumeError::TooSmall { .. })
    ));
}
