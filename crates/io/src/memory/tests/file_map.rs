//! Which pages of a file are lent, and for what.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags};

use super::super::{Buffer, FileMap, LocalFileMap};
use crate::ring::RingFile;

const PAGE: u64 = 4096;

/// A file of 8 pages, of which the first two and the last hold data.
fn file() -> (File, Arc<RingFile>, Arc<FileMap>) {
    let fd = rustix::fs::memfd_create("io-test", MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(fd.try_clone().unwrap());
    file.write_all_at(&[1; 2 * PAGE as usize], 0).unwrap();
    file.write_all_at(&[2; PAGE as usize], 7 * PAGE).unwrap();
    let fd = Arc::new(RingFile::new(fd));
    let map = FileMap::new(&fd, 8 * PAGE).unwrap();
    (file, fd, map)
}

fn punch(file: &File, map: &FileMap, start: u64, len: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, start, len).unwrap();
    map.forget(&(start..start + len));
}

#[test]
fn data_is_lent_and_holes_are_not() {
    let (file, fd, map) = file();
    let map = LocalFileMap::new(map, fd);
    let blocks = file.metadata().unwrap().blocks();
    for range in [0..512, 512..2 * PAGE, 7 * PAGE..8 * PAGE] {
        let lent = map.buffer(range.clone()).unwrap();
        assert_eq!(lent.len() as u64, range.end - range.start);
        assert!(lent.is_of_file() && lent.slice(0, 512).is_of_file());
    }
    for hole in [PAGE..3 * PAGE, 2 * PAGE..2 * PAGE + 512, 0..8 * PAGE] {
        assert!(map.buffer(hole).is_none());
    }
    assert!(map.buffer(7 * PAGE..9 * PAGE).is_none(), "past the end");
    file.write_all_at(&[3], 2 * PAGE).unwrap();
    assert!(map.buffer(0..3 * PAGE).is_some());
    drop(map);
    assert_eq!(file.metadata().unwrap().blocks(), blocks + PAGE / 512);
}

#[test]
fn what_was_given_back_is_asked_for_anew() {
    let (file, fd, shared) = file();
    let map = LocalFileMap::new(Arc::clone(&shared), fd);
    assert!(map.buffer(0..2 * PAGE).is_some());
    punch(&file, &shared, PAGE, PAGE);
    assert!(map.buffer(0..2 * PAGE).is_none());
    assert!(map.buffer(0..PAGE).is_some());
    // A part of a page stays taken, and what lies behind the map is nothing to it.
    punch(&file, &shared, 7 * PAGE + 512, 4 * PAGE);
    assert!(map.buffer(7 * PAGE..8 * PAGE).is_some());
}

#[test]
fn a_recall_waits_for_what_every_map_of_before_has_lent() {
    let (file, fd, map) = file();
    let mut local = LocalFileMap::new(map, Arc::clone(&fd));
    let first = local.buffer(0..PAGE).unwrap();
    file.write_all_at(&[4; PAGE as usize], 8 * PAGE).unwrap();
    local.renew(FileMap::new(&fd, 9 * PAGE).unwrap());
    assert_eq!((local.end(), local.file_end()), (9 * PAGE, 9 * PAGE));
    let second = local.buffer(8 * PAGE..9 * PAGE).unwrap().slice(0, 512);
    let recall = local.recall();
    let _later = local.buffer(0..PAGE);
    drop(second);
    assert!(!recall.is_over());
    drop(first);
    assert!(recall.is_over());
}

/// A load of a page that the file has lost would end the process.
#[test]
fn this_process_never_reads_what_is_only_sent() {
    let (_, fd, map) = file();
    let lent = LocalFileMap::new(map, fd).buffer(0..PAGE).unwrap();
    let own = Buffer::from_vec(vec![0; PAGE as usize]);
    let reads: [&dyn Fn(); 6] = [
        &|| lent.copy_out(0, &mut [0; 8]),
        &|| lent.append_to(&mut Vec::new()),
        &|| own.copy_from(0, &lent),
        &|| assert!(own.difference(&lent).is_none()),
        &|| own.or_with(&lent),
        &|| lent.copy_in(0, &[1]),
    ];
    for (at, read) in reads.iter().enumerate() {
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err(), "{at}");
    }
}
