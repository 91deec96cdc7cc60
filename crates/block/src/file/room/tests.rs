//! Room that is taken and given back while others are at the file.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;

use crate::file::{FileOptions, FileVolume};
use crate::volume::Volume;

const MIB: u64 = 1 << 20;

/// A file of 1 MiB in a folder that goes when the test ends.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        let name = format!("lunar-block-room-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("disk")
    }

    fn open(&self) -> FileVolume {
        let options = FileOptions {
            path: self.path(),
            size: Some(MIB),
            ..FileOptions::default()
        };
        FileVolume::open(&options).unwrap()
    }

    /// What another program has open.
    fn file(&self) -> File {
        let mut options = File::options();
        options.read(true).write(true).open(self.path()).unwrap()
    }

    /// Its length, and what it takes.
    fn bytes(&self) -> (u64, u64) {
        let found = fs::metadata(self.path()).unwrap();
        (found.len(), found.blocks() * 512)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn room_that_was_taken_is_given_back() {
    let disk = Disk::new("back");
    let volume = disk.open();
    let before = disk.bytes();
    volume.reserve(4 * MIB).unwrap();
    let (len, taken) = disk.bytes();
    assert!(len == MIB && taken >= 4 * MIB);
    volume.release();
    assert_eq!(disk.bytes(), before);
}

#[test]
fn room_that_another_program_has_taken_stays() {
    let disk = Disk::new("other");
    let volume = disk.open();
    let (flags, file) = (FallocateFlags::KEEP_SIZE, disk.file());
    rustix::fs::fallocate(&file, flags, 0, 4 * MIB).unwrap();
    let before = disk.bytes();
    volume.release();
    assert_eq!(disk.bytes(), before);
}

#[test]
fn a_file_that_has_grown_since_is_not_cut_off() {
    let disk = Disk::new("grown");
    let volume = disk.open();
    volume.reserve(4 * MIB).unwrap();
    disk.file().write_all_at(b"theirs", 2 * MIB).unwrap();
    assert!(volume.refresh().unwrap());
    volume.release();
    let mut found = [0; 6];
    disk.file().read_exact_at(&mut found, 2 * MIB).unwrap();
    assert_eq!(found, *b"theirs");
}

/// Hosts write to what they are told of: that must be there.
#[test]
fn no_host_is_told_of_what_is_being_cut_off() {
    let disk = Disk::new("meanwhile");
    let volume = disk.open();
    volume.reserve(2 * MIB).unwrap();
    thread::scope(|scope| {
        // As while room is given back.
        let held = volume.room.hold();
        disk.file().set_len(4 * MIB).unwrap();
        let looking = scope.spawn(|| volume.refresh().unwrap());
        let soon = Instant::now() + Duration::from_millis(100);
        while !looking.is_finished() && Instant::now() < soon {
            thread::yield_now();
        }
        disk.file().set_len(MIB).unwrap();
        drop(held);
    });
    let traits = volume.traits();
    let told = traits.blocks * u64::from(traits.block_size);
    assert!(told <= disk.bytes().0, "{told}");
}
