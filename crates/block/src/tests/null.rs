//! The volume that holds nothing, and what protects any other.

use std::sync::Arc;

use ::io::memory::MemoryLimit;
use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, Provisioning, Sanitize};

use super::rig::{Rig, is_done, same, unmapping};
use crate::null::Null;
use crate::ram::Ram;
use crate::readonly::Readonly;
use crate::volume::Volume;

#[test]
fn null_drops_what_is_written() {
    let null = Null::new(1 << 40, 512).unwrap();
    let mut rig = Rig::fake(&null);
    assert!(is_done(&rig.write(7, 3, 0xaa)));
    assert_eq!(rig.read(7, 3), vec![0; 3 * 512]);
    assert_eq!(rig.status(0, 1 << 31), (Provisioning::Deallocated, 1 << 31));
    assert!(is_done(&rig.flush()));
    assert!(null.is_empty_at_start());
}

#[test]
fn null_lends_the_same_memory_to_all() {
    let null = Null::new(1 << 20, 512).unwrap();
    let mut rig = Rig::fake(&null);
    let extent = Extent::new(0, 512);
    let first = rig.lease(MediumOp::PrepareWrite { extent });
    let second = rig.lease(MediumOp::PrepareWrite { extent });
    assert_eq!(first.len(), 512 * 512);
    assert!(first.buffer().is_same_memory(second.buffer()));
    assert_eq!(rig.pool.in_use(), 0);
}

#[test]
fn null_has_private_memory_for_comparisons() {
    let null = Null::new(1 << 20, 512).unwrap();
    let mut rig = Rig::fake(&null);
    let first = rig.lease(MediumOp::Buffer { bytes: 4096 });
    let second = rig.lease(MediumOp::Buffer { bytes: 4096 });
    assert!(!first.buffer().is_same_memory(second.buffer()));
}

/// Else a core would do nothing else until a volume of many TiB was formatted.
#[test]
fn null_lets_other_operations_in_between_the_steps_of_long_ones() {
    let null = Null::new(1 << 40, 512).unwrap();
    let mut rig = Rig::fake(&null);
    let extent = Extent::new(0, 1 << 15);
    let pattern = || crate::lease::BlockLease::from_bytes(vec![0xaa; 512]);
    for op in [
        MediumOp::Sanitize {
            extent,
            method: Sanitize::Overwrite { pattern: pattern() },
        },
        MediumOp::Sanitize {
            extent,
            method: Sanitize::BlockErase,
        },
        same(extent, Some(pattern())),
        unmapping(extent),
    ] {
        let what = format!("{op:?}");
        let id = rig.submit(0, op);
        assert!(rig.result(id).is_none(), "{what}");
        assert_eq!(rig.read(7, 1), vec![0; 512]);
        rig.turn();
        assert!(is_done(&rig.result(id).unwrap()), "{what}");
    }
    let extent = Extent::new(0, 8);
    let id = rig.submit(0, same(extent, None));
    assert!(
        is_done(&rig.result(id).unwrap()),
        "a short one is done at once"
    );
}

#[test]
fn readonly_refuses_everything_that_changes_something() {
    let memory = MemoryLimit::new(1 << 30);
    let ram = Ram::new(1 << 20, 512, &memory).unwrap();
    let volume = Readonly::new(Arc::new(ram));
    assert!(volume.traits().read_only);
    assert!(volume.is_empty_at_start());
    let mut rig = Rig::fake(&volume);
    let extent = Extent::new(0, 8);
    for op in [
        MediumOp::PrepareWrite { extent },
        rig.write_op(0, 8, 1, false),
        same(extent, None),
        unmapping(extent),
    ] {
        let what = format!("{op:?}");
        let result = rig.run(op);
        assert!(
            matches!(result, Err(MediumError::ReadOnly)),
            "{what}: {result:?}"
        );
    }
    assert_eq!(rig.read(0, 8), vec![0; 8 * 512]);
    assert!(is_done(&rig.flush()));
    assert_eq!(memory.used(), 0);
    assert!(volume.traits().unmap_granularity.is_some());
    assert_eq!(rig.status(0, 8), (Provisioning::Deallocated, 8));
}
