//! Reads that are sent from the pages of a file in memory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use scsi::medium::{Extent, MediumError, MediumOp, MediumOutcome, ReadMemory};

use super::fake::FakeRing;
use super::places::{Folder, sized};
use super::rig::{Rig, bytes, is_done, reading, same, unmapping};
use crate::file::{FileOptions, FileVolume};
use crate::lease::BlockLease;
use crate::volume::Volume;

const MIB: u64 = 1 << 20;

fn sparse(folder: &Folder) -> (FileVolume, Rig<FakeRing>) {
    let file = FileVolume::open(&FileOptions {
        sparse: true,
        ..sized(folder.file("disk"), MIB)
    });
    let file = file.unwrap();
    let rig = Rig::fake(&file);
    (file, rig)
}

fn to_be_sent(lba: u64, blocks: u64) -> MediumOp<BlockLease> {
    let (extent, memory) = (Extent::new(lba, blocks), ReadMemory::Sent);
    MediumOp::Read { extent, memory }
}

fn is_lent(rig: &mut Rig<FakeRing>, lba: u64, blocks: u64) -> bool {
    rig.lease(to_be_sent(lba, blocks)).buffer().is_of_file()
}

/// As at the begin of a turn.
fn later(rig: &mut Rig<FakeRing>) {
    rig.now += Duration::from_micros(1);
}

fn is_in_tmpfs(path: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(path).unwrap().f_type == TMPFS_MAGIC
}

fn blocks(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks()
}

#[test]
fn only_what_is_to_be_sent_is_lent() {
    let folder = Folder::in_memory();
    let (_file, mut rig) = sparse(&folder);
    assert!(is_done(&rig.write(0, 16, 1)));
    rig.ring.log.clear();
    assert!(is_lent(&mut rig, 3, 9));
    assert!(rig.ring.log.is_empty(), "no system call reads it");
    let extent = Extent::new(0, 16);
    for memory in [ReadMemory::Private, ReadMemory::Lent] {
        let read = rig.lease(MediumOp::Read { extent, memory });
        assert_eq!(bytes(&read), [1; 8192]);
    }
}

#[test]
fn a_file_on_a_disk_or_past_the_cache_is_read() {
    let (disk, memory) = (Folder::on_disk(), Folder::in_memory());
    let direct = FileOptions {
        direct: true,
        block_size: Some(4096),
        ..sized(memory.file("direct"), MIB)
    };
    for options in [sized(disk.file("disk"), MIB), direct] {
        let Ok(file) = FileVolume::open(&options) else {
            eprintln!("SKIPPED: no O_DIRECT in memory here");
            continue;
        };
        if !options.direct && is_in_tmpfs(&options.path) {
            eprintln!("SKIPPED: temporary files lie in memory here");
            continue;
        }
        let mut rig = Rig::fake(&file);
        assert!(is_done(&rig.write(0, 2, 1)));
        assert!(!is_lent(&mut rig, 0, 2));
    }
}

#[test]
fn a_hole_is_read_and_stays_a_hole() {
    let folder = Folder::in_memory();
    let (_file, mut rig) = sparse(&folder);
    assert!(is_done(&rig.write(0, 64, 1)));
    assert!(is_lent(&mut rig, 0, 64));
    rig.does(unmapping(Extent::new(8, 8)));
    rig.does(same(Extent::new(32, 8), None));
    let before = blocks(&folder.file("disk"));
    for (lba, blocks) in [(8, 8), (0, 64), (15, 2), (32, 1), (64, 512)] {
        let read = rig.lease(to_be_sent(lba, blocks));
        assert!(!read.buffer().is_of_file());
        let read = bytes(&read);
        for (block, bytes) in (lba..).zip(read.chunks(512)) {
            let is_hole = matches!(block, 8..16 | 32..40 | 64..);
            assert_eq!(bytes, [u8::from(!is_hole); 512], "block {block}");
        }
    }
    assert_eq!(blocks(&folder.file("disk")), before);
    assert!(is_done(&rig.write(8, 8, 2)));
    assert!(is_lent(&mut rig, 0, 32), "it is no hole any more");
}

/// Behind its end, the last page of a file reads as zeros.
#[test]
fn what_a_file_has_lost_is_an_error_from_the_next_turn_on() {
    let folder = Folder::in_memory();
    let (_file, mut rig) = sparse(&folder);
    assert!(is_done(&rig.write(0, 64, 1)));
    assert!(is_lent(&mut rig, 0, 64));
    let mut options = std::fs::File::options();
    let outside = options.write(true).open(folder.file("disk")).unwrap();
    outside.set_len(4096 + 512).unwrap();
    later(&mut rig);
    for (lba, blocks) in [(9, 1), (8, 2), (16, 48)] {
        rig.fails(to_be_sent(lba, blocks), MediumError::Read);
    }
    assert!(is_lent(&mut rig, 0, 9), "the rest is served");
    outside.set_len(MIB).unwrap();
    later(&mut rig);
    rig.fails(to_be_sent(9, 1), MediumError::Read);
}

#[test]
fn what_a_file_grows_by_is_lent() {
    let folder = Folder::in_memory();
    let (file, mut rig) = sparse(&folder);
    assert!(is_done(&rig.write(0, 8, 1)));
    let of_before = rig.lease(to_be_sent(0, 8));
    assert!(rig.run_on(1, to_be_sent(0, 8)).is_ok());
    file.extend(2 * MIB, true).unwrap();
    assert!(file.refresh().unwrap());
    assert!(is_done(&rig.write(4088, 8, 2)));
    later(&mut rig);
    assert!(is_lent(&mut rig, 4088, 8) && is_lent(&mut rig, 0, 8));
    for (handle, lba) in [(0, 4088), (1, 0)] {
        rig.does(unmapping(Extent::new(lba, 8)));
        let Ok(MediumOutcome::Lease(read)) = rig.run_on(handle, to_be_sent(lba, 8)) else {
            panic!("no data");
        };
        assert!(!read.buffer().is_of_file(), "core {handle}");
    }
    let recall = rig.handles[0].recall().unwrap();
    assert!(!recall.is_over());
    drop(of_before);
    assert!(recall.is_over());
}

/// The capacity never gets less, so the map of a core that has slept is found to be an old one.
#[test]
fn a_core_that_slept_while_a_file_grew_and_was_cut_takes_the_new_map() {
    let folder = Folder::in_memory();
    let (file, mut rig) = sparse(&folder);
    assert!(is_done(&rig.write(0, 8, 1)));
    assert!(rig.run_on(1, to_be_sent(0, 8)).is_ok());
    file.extend(2 * MIB, true).unwrap();
    assert!(file.refresh().unwrap());
    later(&mut rig);
    assert!(is_lent(&mut rig, 0, 8));
    let mut options = std::fs::File::options();
    let outside = options.write(true).open(folder.file("disk")).unwrap();
    outside.set_len(MIB).unwrap();
    assert!(!file.refresh().unwrap());
    later(&mut rig);
    rig.does(unmapping(Extent::new(0, 8)));
    let Ok(MediumOutcome::Lease(read)) = rig.run_on(1, to_be_sent(0, 8)) else {
        panic!("no data");
    };
    assert!(!read.buffer().is_of_file());
}

#[test]
fn what_was_lent_is_waited_for() {
    let folder = Folder::in_memory();
    let (_file, mut rig) = sparse(&folder);
    assert!(rig.handles[0].recall().is_none(), "nothing was lent ever");
    assert!(is_done(&rig.write(0, 8, 1)));
    let part = rig.lease(to_be_sent(0, 8)).buffer().slice(512, 512);
    let recall = rig.handles[0].recall().unwrap();
    let _later = rig.lease(to_be_sent(0, 8));
    let _copy = rig.lease(reading(Extent::new(0, 8)));
    assert!(!recall.is_over());
    drop(part);
    assert!(recall.is_over());
}
