//! Every volume against a model of plain bytes: whatever is done, reads give what the model has,
//! and what is told to be deallocated reads as zeros.

use ::io::memory::{LockError, MemoryLimit, Pages};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use scsi::medium::{Extent, Lease as _, MediumError, MediumOp, MediumOutcome, Provisioning};

use super::places::{Folder, LoopDevice, reopen, sized, sparse};
use super::rig::{self, FLUSH, Files, Rig, bytes, reading, same, writing};
use crate::device::{DeviceOptions, DeviceVolume};
use crate::error::VolumeError;
use crate::file::{FileOptions, FileVolume};
use crate::lease::BlockLease;
use crate::ram::Ram;
use crate::volume::Volume;

/// Not a multiple of a segment, or of a huge page.
const SIZE: u64 = (2 << 20) + (13 << 12);

#[derive(Clone, Debug)]
pub(super) enum Step {
    Read,
    /// Into memory that was lent for it.
    WriteLent {
        byte: u8,
        fua: bool,
    },
    /// From private memory.
    WritePrivate {
        byte: u8,
    },
    /// From the middle of a buffer on the heap, so that direct I/O cannot take it as it is.
    WriteUnaligned {
        byte: u8,
    },
    /// What is at another place, as a copy within the volume does.
    Copy {
        from: u64,
    },
    Zero,
    Same {
        byte: u8,
    },
    Unmap,
    Status,
    Flush,
    Prefetch,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<(bool, Step, u64, u64)>> {
    let step = prop_oneof![
        3 => Just(Step::Read),
        2 => (1u8.., any::<bool>()).prop_map(|(byte, fua)| Step::WriteLent { byte, fua }),
        2 => (1u8..).prop_map(|byte| Step::WritePrivate { byte }),
        1 => (1u8..).prop_map(|byte| Step::WriteUnaligned { byte }),
        1 => any::<u64>().prop_map(|from| Step::Copy { from }),
        1 => Just(Step::Zero),
        1 => (1u8..).prop_map(|byte| Step::Same { byte }),
        2 => Just(Step::Unmap),
        2 => Just(Step::Status),
        1 => Just(Step::Flush),
        1 => Just(Step::Prefetch),
    ];
    let len = prop_oneof![1u64..20, 1u64..5000];
    prop::collection::vec((any::<bool>(), step, any::<u64>(), len), 1..40)
}

/// A volume and what it should hold.
pub(super) struct Oracle<R> {
    rig: Rig<R>,
    model: Vec<u8>,
    block_size: u64,
    blocks: u64,
    read_only: bool,
    unmaps: bool,
}

impl<R: Files> Oracle<R> {
    pub(super) fn new(ring: R, volume: &dyn Volume) -> Self {
        let traits = volume.traits();
        let block_size = u64::from(traits.block_size);
        Self {
            rig: Rig::new(ring, volume),
            model: vec![0; (traits.blocks * block_size) as usize],
            block_size,
            blocks: traits.blocks,
            read_only: traits.read_only,
            unmaps: traits.unmap_granularity.is_some(),
        }
    }

    /// Somewhere inside the volume, as the numbers have it.
    fn extent(&self, at: u64, len: u64, longest: u64) -> Extent {
        let lba = at % self.blocks;
        Extent::new(lba, len.min(self.blocks - lba).min(longest))
    }

    fn range(&self, extent: Extent) -> std::ops::Range<usize> {
        (extent.lba * self.block_size) as usize..(extent.end() * self.block_size) as usize
    }

    pub(super) fn step(&mut self, core: usize, step: &Step, at: u64, len: u64) {
        let segment = scsi::medium::SEGMENT_BYTES / self.block_size;
        let short = self.extent(at, len, segment);
        let long = self.extent(at, len, u64::MAX);
        match step {
            Step::Read => self.check(short),
            Step::Status => self.status(core, long),
            Step::Flush => self.done(core, FLUSH),
            Step::Prefetch => self.done(core, MediumOp::Prefetch { extent: long }),
            _ if self.read_only => self.refused(core, long),
            Step::WriteLent { byte, fua } => {
                let lease = self.rig.lease(MediumOp::PrepareWrite { extent: short });
                self.store(
                    core,
                    short,
                    lease,
                    &pattern(*byte, self.range(short).len()),
                    *fua,
                );
            }
            Step::WritePrivate { byte } => {
                let bytes = self.range(short).len();
                let lease = self.rig.lease(MediumOp::Buffer {
                    bytes: bytes as u32,
                });
                self.store(core, short, lease, &pattern(*byte, bytes), false);
            }
            Step::WriteUnaligned { byte } => {
                let bytes = self.range(short).len();
                let lease = BlockLease::from_bytes(vec![0; bytes + 24]).slice(8, bytes);
                self.store(core, short, lease, &pattern(*byte, bytes), false);
            }
            Step::Copy { from } => self.copy(core, short, *from),
            Step::Zero => self.same(core, long, None),
            Step::Same { byte } => self.same(core, long, Some(*byte)),
            Step::Unmap => self.unmap(core, long),
        }
    }

    fn done(&mut self, core: usize, op: MediumOp<BlockLease>) {
        let result = self.rig.run_on(core, op);
        assert!(rig::is_done(&result), "{result:?}");
    }

    fn refused(&mut self, core: usize, extent: Extent) {
        let result = self.rig.run_on(core, same(extent, None));
        assert!(matches!(result, Err(MediumError::ReadOnly)), "{result:?}");
    }

    fn check(&mut self, extent: Extent) {
        let read = self.rig.read(extent.lba, extent.blocks);
        assert!(read == self.model[self.range(extent)], "{extent:?} differs");
    }

    fn store(
        &mut self,
        core: usize,
        extent: Extent,
        mut lease: BlockLease,
        bytes: &[u8],
        fua: bool,
    ) {
        lease.copy_in(0, bytes);
        let op = MediumOp::Write {
            extent,
            data: lease,
            fua,
            atomic: false,
        };
        self.done(core, op);
        let range = self.range(extent);
        self.model[range].copy_from_slice(bytes);
    }

    fn copy(&mut self, core: usize, to: Extent, from: u64) {
        let from = self.extent(from, to.blocks, u64::MAX);
        let to = Extent::new(to.lba, from.blocks);
        // Bytes of overlapping ranges may be copied in any order.
        if to.overlaps(from) {
            return;
        }
        let lease = self.rig.lease(reading(from));
        let now = bytes(&lease);
        let op = writing(to, lease);
        self.done(core, op);
        let range = self.range(to);
        self.model[range].copy_from_slice(&now);
    }

    fn same(&mut self, core: usize, extent: Extent, byte: Option<u8>) {
        let block = byte.map(|byte| pattern(byte, self.block_size as usize));
        let op = same(extent, block.clone().map(BlockLease::from_bytes));
        self.done(core, op);
        let range = self.range(extent);
        let block = block.unwrap_or_else(|| vec![0; self.block_size as usize]);
        for blocks in self.model[range].chunks_mut(block.len()) {
            blocks.copy_from_slice(&block);
        }
    }

    fn unmap(&mut self, core: usize, extent: Extent) {
        let anchor = false;
        let result = self.rig.run_on(core, MediumOp::Unmap { extent, anchor });
        if matches!(result, Err(MediumError::Unsupported)) {
            // A device may turn out not to unmap when it is first asked to.
            self.unmaps = false;
            return;
        }
        assert!(self.unmaps && rig::is_done(&result), "{result:?}");
        let range = self.range(extent);
        self.model[range].fill(0);
    }

    fn status(&mut self, core: usize, extent: Extent) {
        let result = self.rig.run_on(core, MediumOp::Status { extent });
        let Ok(MediumOutcome::Provisioning { blocks, state }) = result else {
            panic!("no status but {result:?}");
        };
        assert!(
            (1..=extent.blocks).contains(&blocks),
            "{blocks} of {extent:?}"
        );
        if state == Provisioning::Deallocated {
            let range = self.range(Extent::new(extent.lba, blocks));
            let zeros = self.model[range].iter().all(|byte| *byte == 0);
            assert!(zeros, "{extent:?} is told to have no storage");
        }
    }

    pub(super) fn check_all(&mut self) {
        let segment = scsi::medium::SEGMENT_BYTES / self.block_size;
        for lba in (0..self.blocks).step_by(segment as usize) {
            self.check(self.extent(lba, segment, segment));
        }
    }
}

/// Bytes that tell their place.
fn pattern(byte: u8, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| byte.wrapping_add((at / 97) as u8) | 1)
        .collect()
}

/// Runs random stories on fresh volumes, on every ring.
fn agrees(cases: u32, open: impl Fn() -> Box<dyn Volume>) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    for number in 0..rig::rings().len() {
        let story = |steps: Vec<(bool, Step, u64, u64)>| {
            let volume = open();
            let ring = rig::rings().remove(number);
            let mut oracle = Oracle::new(ring, &*volume);
            for (core, step, at, len) in &steps {
                oracle.step(usize::from(*core), step, *at, *len);
            }
            oracle.check_all();
            Ok::<(), TestCaseError>(())
        };
        TestRunner::new(config.clone())
            .run(&steps(), story)
            .unwrap();
    }
}

fn file(options: &FileOptions) -> Box<dyn Volume> {
    let _ = std::fs::remove_file(&options.path);
    Box::new(FileVolume::open(options).unwrap())
}

#[test]
fn ram_agrees_with_the_model() {
    let memory = MemoryLimit::new(64 << 20);
    agrees(48, || Box::new(Ram::new(SIZE, 512, &memory).unwrap()));
    assert_eq!(memory.used(), 0, "memory that nobody has");
}

#[test]
fn locked_ram_agrees_with_the_model() {
    let memory = MemoryLimit::new(64 << 20);
    let open = || Ram::locked(SIZE, 512, &memory);
    if let Err(error @ VolumeError::Lock(LockError::Memlock { .. })) = open() {
        return eprintln!("skipped: {error}");
    }
    agrees(12, || Box::new(open().unwrap()));
    assert_eq!(memory.used(), 0);
}

#[test]
fn ram_on_small_pages_agrees_with_the_model() {
    let memory = MemoryLimit::new(64 << 20);
    let open = || Ram::with_pages(SIZE, 4096, &memory, Pages::Small).unwrap();
    agrees(24, || Box::new(open()));
}

#[test]
fn file_in_memory_agrees_with_the_model() {
    let folder = Folder::in_memory();
    let options = sized(folder.file("disk"), SIZE);
    agrees(24, || file(&options));
}

#[test]
fn file_on_disk_agrees_with_the_model() {
    let folder = Folder::on_disk();
    let options = sparse(folder.file("disk"), SIZE);
    agrees(12, || file(&options));
}

#[test]
fn direct_file_agrees_with_the_model() {
    let folder = Folder::on_disk();
    let options = FileOptions {
        path: folder.file("disk"),
        size: Some(SIZE),
        direct: true,
        ..FileOptions::default()
    };
    agrees(12, || file(&options));
}

#[test]
fn sync_file_agrees_with_the_model() {
    let folder = Folder::in_memory();
    let options = FileOptions {
        path: folder.file("disk"),
        size: Some(SIZE),
        sync: true,
        ..FileOptions::default()
    };
    agrees(12, || file(&options));
}

#[test]
fn device_agrees_with_the_model() {
    let Some(disk) = LoopDevice::new(SIZE, &[]) else {
        return;
    };
    let at = DeviceOptions {
        path: disk.node.clone(),
        ..DeviceOptions::default()
    };
    let zero = || {
        let device = reopen(|| DeviceVolume::open(&at));
        let ring = rig::rings().remove(0);
        let mut rig = Rig::new(ring, &device);
        let blocks = device.traits().blocks;
        let extent = Extent::new(0, blocks);
        rig.does(same(extent, None));
        Box::new(device) as Box<dyn Volume>
    };
    agrees(8, zero);
}
