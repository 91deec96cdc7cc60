//! RAM disks: whose memory it is, how much of it there is, and when it goes.

use ::io::memory::{MemoryLimit, Pages};
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumOutcome, Provisioning, ReadMemory, Sanitize,
    SanitizeKind,
};
use scsi::statistics::SpaceUsage;

use super::fake::{FakeRing, Sort};
use super::rig::{Rig, bytes, is_done, reading, same, writing};
use crate::error::VolumeError;
use crate::lease::BlockLease;
use crate::ram::Ram;
use crate::volume::Volume;

const MIB: u64 = 1 << 20;

/// A RAM disk too large for its limit, so that memory is taken by granules of 4 KiB.
fn thin(limit: u64) -> (MemoryLimit, Rig<FakeRing>) {
    let memory = MemoryLimit::new(limit);
    let ram = Ram::new(1 << 40, 512, &memory).unwrap();
    (memory, Rig::fake(&ram))
}

#[test]
fn read_of_a_hole_takes_no_memory() {
    let (memory, mut rig) = thin(MIB);
    assert_eq!(rig.read(1 << 30, 512), vec![0; 512 * 512]);
    assert_eq!(memory.used(), 0);
    assert_eq!(rig.pool.in_use(), 0);
}

#[test]
fn usage_follows_what_is_written_and_unmapped() {
    let memory = MemoryLimit::new(MIB);
    let ram = Ram::with_pages(16 * MIB, 512, &memory, Pages::Small).unwrap();
    let mut rig = Rig::fake(&ram);
    let usage = |used, available| Some(SpaceUsage { used, available });
    assert_eq!(ram.usage(), usage(0, 2048), "the limit, not the size");
    assert!(is_done(&rig.write(0, 1, 1)));
    assert_eq!(ram.usage(), usage(8, 2040));
    assert!(is_done(&rig.unmap(0, 8)));
    assert_eq!(ram.usage(), usage(0, 2048));
    let small = Ram::new(4096, 512, &memory).unwrap();
    assert_eq!(small.usage(), usage(0, 8), "no more than there are holes");
}

#[test]
fn lend_and_read_give_the_memory_itself() {
    let (memory, mut rig) = thin(MIB);
    let extent = Extent::new(16, 8);
    let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
    assert_eq!(memory.used(), 4096);
    lent.copy_in(0, &[7; 4096]);
    let op = MediumOp::Write {
        extent,
        data: lent.clone(),
        fua: true,
        atomic: false,
    };
    rig.does(op);
    let read = rig.lease(reading(extent));
    assert!(read.buffer().is_same_memory(lent.buffer()));
    assert_eq!(bytes(&read), [7; 4096]);
    assert!(rig.ring.log.is_empty(), "RAM needs no ring");
}

#[test]
fn a_copy_stays_what_it_was_when_it_was_read() {
    let (_, mut rig) = thin(MIB);
    assert!(is_done(&rig.write(16, 8, 1)));
    let extent = Extent::new(16, 8);
    let read = |memory| MediumOp::Read { extent, memory };
    let (lent, copy) = (
        rig.lease(read(ReadMemory::Lent)),
        rig.lease(read(ReadMemory::Private)),
    );
    assert_eq!(bytes(&lent), bytes(&copy));
    assert!(is_done(&rig.write(16, 8, 2)));
    assert_eq!(bytes(&lent), [2; 4096], "it is the volume's own memory");
    assert_eq!(bytes(&copy), [1; 4096]);
}

#[test]
fn what_was_lent_for_reading_is_waited_for_and_nothing_else() {
    let (_, mut rig) = thin(MIB);
    let extent = Extent::new(0, 16);
    let to_be_written = rig.lease(MediumOp::PrepareWrite { extent });
    let read = |memory| MediumOp::Read { extent, memory };
    let (lent, _copy) = (
        rig.lease(read(ReadMemory::Lent)),
        rig.lease(read(ReadMemory::Private)),
    );
    let part = lent.slice(512, 512);
    drop(lent);
    let recall = rig.handles[0].recall().unwrap();
    let _lent_later = rig.lease(read(ReadMemory::Lent));
    assert!(!recall.is_over(), "a part of it is still away");
    drop(part);
    assert!(recall.is_over());
    drop(to_be_written);
}

#[test]
fn unmap_between_lend_and_write_does_not_lose_the_write() {
    let (memory, mut rig) = thin(MIB);
    let extent = Extent::new(0, 8);
    let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
    assert!(is_done(&rig.unmap(0, 8)));
    lent.copy_in(0, &[7; 4096]);
    let op = writing(extent, lent);
    rig.does(op);
    assert_eq!(rig.read(0, 8), [7; 4096]);
    assert_eq!(memory.used(), 4096);
}

/// An initiator aborts its write when a part of the data has come, while another one unmaps.
#[test]
fn write_given_up_beside_an_unmap_leaves_nothing_for_the_next_one() {
    let (memory, mut rig) = thin(MIB);
    let extent = Extent::new(0, 8);
    let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
    let mut half = lent.slice(2048, 2048);
    assert!(is_done(&rig.unmap(0, 8)));
    lent.copy_in(0, &[7; 1024]);
    half.copy_in(0, &[7; 2048]);
    drop((lent, half));
    assert_eq!(rig.status(0, 8), (Provisioning::Mapped, 8));
    assert_eq!(memory.used(), 4096, "what takes memory is counted");

    assert!(is_done(&rig.unmap(0, 8)));
    assert_eq!(memory.used(), 0);
    assert!(is_done(&rig.write(0, 1, 1)));
    assert_eq!(rig.read(1, 7), [0; 7 * 512]);
}

#[test]
fn write_given_up_in_the_middle_of_a_block_leaves_the_block() {
    for block in [512, 4096] {
        let ram = Ram::new(MIB, block, &MemoryLimit::new(MIB)).unwrap();
        let mut rig = Rig::fake(&ram);
        let block = block as usize;
        assert!(is_done(&rig.write(0, 3, 1)));
        let extent = Extent::new(0, 3);
        let mut lent = rig.lease(MediumOp::PrepareWrite { extent });
        lent.copy_in(0, &vec![2; 2 * block - 1]);
        drop(lent);
        let whole = [vec![2; block], vec![1; 2 * block]].concat();
        assert_eq!(rig.read(0, 3), whole);
    }
}

#[test]
fn write_from_elsewhere_is_copied() {
    let (_, mut rig) = thin(MIB);
    let extent = Extent::new(0, 8);
    let mut private = rig.lease(MediumOp::Buffer { bytes: 4096 });
    private.copy_in(0, &[1; 4096]);
    let op = MediumOp::Write {
        extent,
        data: private.clone(),
        fua: false,
        atomic: true,
    };
    rig.does(op);
    private.copy_in(0, &[2; 4096]);
    assert_eq!(rig.read(0, 8), [1; 4096]);
}

#[test]
fn unmap_gives_memory_back_and_status_tells() {
    let (memory, mut rig) = thin(MIB);
    assert!(is_done(&rig.write(0, 24, 9)));
    assert_eq!(memory.used(), 3 * 4096);
    assert!(is_done(&rig.unmap(8, 8)));
    assert_eq!(memory.used(), 2 * 4096);
    assert_eq!(rig.status(0, 64), (Provisioning::Mapped, 8));
    assert_eq!(rig.status(8, 64), (Provisioning::Deallocated, 8));
    assert_eq!(rig.status(12, 64), (Provisioning::Deallocated, 4));
    assert_eq!(rig.status(16, 4), (Provisioning::Mapped, 4));
    assert_eq!(rig.status(24, 64), (Provisioning::Deallocated, 64));
    assert_eq!(rig.read(8, 8), [0; 4096]);
}

#[test]
fn unmap_of_less_than_a_granule_zeroes_it() {
    let (memory, mut rig) = thin(MIB);
    assert!(is_done(&rig.write(0, 8, 9)));
    assert!(is_done(&rig.unmap(2, 3)));
    assert_eq!(memory.used(), 4096);
    let read = rig.read(0, 8);
    let expected = |at: usize| if (2..5).contains(&(at / 512)) { 0 } else { 9 };
    assert!((0..4096).all(|at| read[at] == expected(at)));
}

#[test]
fn unmap_with_anchor_is_not_offered() {
    let (_, mut rig) = thin(MIB);
    let extent = Extent::new(0, 8);
    let op = MediumOp::Unmap {
        extent,
        anchor: true,
    };
    rig.fails(op, MediumError::Unsupported);
}

#[test]
fn memory_limit_ends_writes_and_nothing_else() {
    let (memory, mut rig) = thin(2 * 4096);
    assert!(is_done(&rig.write(0, 16, 5)));
    assert!(matches!(rig.write(16, 8, 6), Err(MediumError::NoSpace)));
    let extent = Extent::new(1000, 8);
    rig.fails(MediumOp::PrepareWrite { extent }, MediumError::NoSpace);
    assert!(
        is_done(&rig.write(8, 8, 7)),
        "what has memory can be written"
    );
    assert_eq!(rig.read(16, 8), [0; 4096]);
    assert!(is_done(&rig.unmap(0, 8)));
    assert!(
        is_done(&rig.write(16, 8, 6)),
        "what was given back is there"
    );
    assert_eq!(memory.used(), 2 * 4096);
}

#[test]
fn write_same_of_a_long_range_goes_by_steps() {
    let (memory, mut rig) = thin(64 * MIB);
    let (long, pattern) = (Extent::new(3, 70_000), BlockLease::from_bytes(vec![3; 512]));
    let id = rig.submit(0, same(long, Some(pattern)));
    rig.turn();
    assert!(rig.result(id).is_none(), "one step does not do it");
    assert!(
        is_done(&rig.write(1_000_000, 1, 1)),
        "others go on in between"
    );
    while rig.result(id).is_none() {
        rig.turn();
    }
    assert_eq!(rig.ring.log, [Sort::Blocking; 3]);
    assert_eq!(rig.read(2, 2), [vec![0; 512], vec![3; 512]].concat());
    assert_eq!(rig.read(70_002, 2), [vec![3; 512], vec![0; 512]].concat());
    assert!(memory.used() >= 70_000 * 512);
}

#[test]
fn write_same_without_room_tells() {
    let (_, mut rig) = thin(MIB);
    let op = same(
        Extent::new(0, 70_000),
        Some(BlockLease::from_bytes(vec![3; 512])),
    );
    rig.fails(op, MediumError::NoSpace);
}

fn overwrite(byte: u8) -> Sanitize<BlockLease> {
    Sanitize::Overwrite {
        pattern: BlockLease::from_bytes(vec![byte; 512]),
    }
}

#[test]
fn overwriting_with_zeros_fills_no_holes() {
    let (memory, mut rig) = thin(MIB);
    let at = 1 << 20;
    assert!(is_done(&rig.write(at, 50, 0x77)));
    let lease_from_before = rig.lease(reading(Extent::new(at, 50)));
    let (extent, used) = (Extent::new(at - 4096, 8192), memory.used());
    let method = overwrite(0);
    assert!(is_done(&rig.run(MediumOp::Sanitize { extent, method })));
    assert_eq!(bytes(&lease_from_before), vec![0; 50 * 512]);
    assert_eq!(memory.used(), used);
    let method = overwrite(1);
    rig.fails(MediumOp::Sanitize { extent, method }, MediumError::NoSpace);
}

#[test]
fn sanitize_leaves_nothing() {
    let memory = MemoryLimit::new(8 * MIB);
    let ram = Ram::new(4 * MIB, 512, &memory).unwrap();
    let kinds = [SanitizeKind::Overwrite, SanitizeKind::BlockErase];
    assert_eq!(ram.traits().sanitize, kinds);
    let mut rig = Rig::fake(&ram);
    let extent = Extent::new(0, 8192);
    assert!(is_done(&rig.write(100, 50, 0x77)));
    let lease_from_before = rig.lease(reading(Extent::new(100, 50)));
    let method = overwrite(0xe5);
    assert!(is_done(&rig.run(MediumOp::Sanitize { extent, method })));
    assert_eq!(rig.read(100, 50), vec![0xe5; 50 * 512]);
    assert_eq!(bytes(&lease_from_before), vec![0xe5; 50 * 512]);
    let method = Sanitize::BlockErase;
    assert!(is_done(&rig.run(MediumOp::Sanitize { extent, method })));
    assert_eq!(rig.read(100, 50), vec![0; 50 * 512]);
    assert_eq!(bytes(&lease_from_before), vec![0; 50 * 512]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn the_last_block_can_be_used() {
    let memory = MemoryLimit::new(64 * MIB);
    let ram = Ram::new(MIB + 1000, 512, &memory).unwrap();
    let last = ram.traits().blocks - 1;
    assert_eq!(last, 2048, "one whole block fits into the 1000 bytes");
    let mut rig = Rig::fake(&ram);
    assert!(is_done(&rig.write(last, 1, 1)));
    assert_eq!(rig.read(last, 1), [1; 512]);
    assert_eq!(rig.status(last, 1), (Provisioning::Mapped, 1));
    assert!(is_done(&rig.unmap(0, last + 1)));
    assert_eq!(rig.read(last, 1), [0; 512]);
    assert_eq!(memory.used(), 0);
}

#[test]
fn pool_exhausted_is_busy_and_not_for_ever() {
    let memory = MemoryLimit::new(MIB);
    let ram = Ram::new(1 << 30, 512, &memory).unwrap();
    let mut rig = Rig::with_pool(FakeRing::default(), &ram, 256 << 10);
    let bytes = 256 << 10;
    let held = rig.lease(MediumOp::Buffer { bytes });
    rig.fails(MediumOp::Buffer { bytes }, MediumError::Busy);
    drop(held);
    assert!(matches!(
        rig.run(MediumOp::Buffer { bytes }),
        Ok(MediumOutcome::Lease(_))
    ));
}

#[test]
fn a_disk_larger_than_the_machine_opens_at_once() {
    let memory = MemoryLimit::new(MIB);
    let ram = Ram::new(16 << 40, 4096, &memory).unwrap();
    assert_eq!(ram.traits().blocks, 4 << 30);
    assert!(ram.is_empty_at_start());
}

#[test]
fn sizes_that_cannot_be() {
    let memory = MemoryLimit::new(MIB);
    let error = |size, block_size| Ram::new(size, block_size, &memory).unwrap_err();
    assert!(matches!(error(4095, 4096), VolumeError::TooSmall { .. }));
    assert!(matches!(
        error(MIB, 520),
        VolumeError::BlockSize { bytes: 520 }
    ));
    assert!(matches!(error(1 << 62, 512), VolumeError::Kernel { .. }));
}
