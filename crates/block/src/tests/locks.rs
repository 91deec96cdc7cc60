//! Locks of files: flock and QEMU's bytes, upgraded and downgraded, and the holder that is named.

use super::places::{at, disk, fails, mode, read_only, reopen, sized};
use super::rig::{Rig, is_done};
use crate::error::VolumeError;
use crate::file::{FileOptions, FileVolume};
use crate::volume::Volume;

#[test]
fn lock_keeps_a_second_writer_out() {
    let (_folder, path) = disk();
    let read_only = read_only(path.clone());
    let writer = FileVolume::open(&sized(path.clone(), 4096)).unwrap();
    fails!(
        FileVolume::open(&at(path.clone())),
        Err(VolumeError::Locked(_))
    );
    fails!(FileVolume::open(&read_only), Err(VolumeError::Locked(_)));
    drop(writer);
    let readers = [
        reopen(|| FileVolume::open(&read_only)),
        reopen(|| FileVolume::open(&read_only)),
    ];
    fails!(
        FileVolume::open(&at(path.clone())),
        Err(VolumeError::Locked(_))
    );
    drop(readers);
    reopen(|| FileVolume::open(&at(path.clone())));
}

/// It is never unlocked: another program finds it locked before, while both are there, and after.
#[test]
fn a_file_gets_other_blocks_and_stays_locked() {
    let (_folder, path) = disk();
    let is_locked = || {
        let opened = FileVolume::open(&at(path.clone()));
        matches!(opened, Err(VolumeError::Locked(_)))
    };
    let file = FileVolume::open(&sized(path.clone(), 1 << 20)).unwrap();
    let larger = file.reopen(mode(Some(4096), false)).unwrap().unwrap();
    let traits = larger.traits();
    assert_eq!((traits.block_size, traits.blocks), (4096, 256));
    let mut rig = Rig::fake(&*larger);
    assert!(is_done(&rig.write(1, 1, 7)));
    drop(rig);
    assert!(is_locked());
    drop(file);
    assert!(is_locked(), "it is the other one's now");
    let usual = larger.reopen(mode(None, false)).unwrap().unwrap();
    drop(larger);
    assert_eq!(Rig::fake(&*usual).read(8, 8), [7; 4096]);
    assert!(usual.reopen(mode(Some(1024), false)).unwrap().is_err());
    drop(usual);
    reopen(|| FileVolume::open(&at(path.clone())));
}

/// A reader that is to write. While another program reads the file, it cannot.
#[test]
fn a_file_that_is_read_is_written_and_stays_locked() {
    let (_folder, path) = disk();
    std::fs::write(&path, [1; 4096]).unwrap();
    let reading = read_only(path.clone());
    let is_locked = |options: &FileOptions| {
        let opened = FileVolume::open(options);
        matches!(opened, Err(VolumeError::Locked(_)))
    };
    let qemu = std::fs::File::open(&path).unwrap();
    let is_used = |permission: u64| ::io::files::is_byte_locked(&qemu, 100 + permission).unwrap();
    let reader = FileVolume::open(&reading).unwrap();
    assert!(
        reader
            .reopen(mode(None, true))
            .unwrap()
            .unwrap()
            .traits()
            .read_only
    );

    let other = FileVolume::open(&reading).unwrap();
    fails!(
        reader.reopen(mode(None, false)).unwrap(),
        Err(VolumeError::Locked(_))
    );
    drop(other);
    drop(reopen(|| FileVolume::open(&reading)));
    assert!(
        is_locked(&at(path.clone())),
        "others may read it, as before"
    );
    ::io::files::share_byte(&qemu, 201).unwrap();
    fails!(
        reader.reopen(mode(None, false)).unwrap(),
        Err(VolumeError::Locked(_))
    );
    ::io::files::release_byte(&qemu, 201).unwrap();

    // One that is not kept leaves the reader as it was.
    let writer = reopen(|| reader.reopen(mode(None, false)).unwrap());
    assert!(is_locked(&reading) && is_used(1) && is_used(3));
    drop(writer);
    assert!(!is_used(1) && !is_used(3));
    drop(reopen(|| FileVolume::open(&reading)));

    let writer = reopen(|| reader.reopen(mode(None, false)).unwrap());
    let larger = writer.reopen(mode(Some(4096), false)).unwrap().unwrap();
    drop((reader, writer));
    assert!(is_locked(&reading), "the lock is that of the last one");
    let mut rig = Rig::fake(&*larger);
    assert!(is_done(&rig.write(0, 1, 7)));
    drop(rig);
    assert_eq!(std::fs::read(&path).unwrap(), [7; 4096]);
    drop(larger);
    reopen(|| FileVolume::open(&at(path.clone())));
}

#[test]
fn two_writers_of_one_reader_have_one_lock() {
    let (_folder, path) = disk();
    std::fs::write(&path, [1; 4096]).unwrap();
    let reading = read_only(path.clone());
    let reader = FileVolume::open(&reading).unwrap();
    let first = reader.reopen(mode(None, false)).unwrap().unwrap();
    let second = reader.reopen(mode(None, false)).unwrap().unwrap();
    drop(first);
    fails!(FileVolume::open(&reading), Err(VolumeError::Locked(_)));
    drop(second);
    drop(reopen(|| FileVolume::open(&reading)));
}

/// As for everything else that is done with a volume, its name does not count any more.
#[test]
fn a_file_that_was_replaced_is_written_itself() {
    let (_folder, path) = disk();
    std::fs::write(&path, [1; 4096]).unwrap();
    let reader = FileVolume::open(&read_only(path.clone())).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, [2; 4096]).unwrap();
    let writer = reader.reopen(mode(None, false)).unwrap().unwrap();
    let mut rig = Rig::fake(&*writer);
    assert_eq!(rig.read(0, 1), [1; 512]);
    assert!(is_done(&rig.write(0, 1, 7)));
    assert_eq!(std::fs::read(&path).unwrap(), [2; 4096]);
}

/// QEMU locks byte 100 + n for what it does, and byte 200 + n for what others must not do.
#[test]
fn lock_keeps_to_those_of_qemu() {
    let (_folder, path) = disk();
    std::fs::write(&path, [0; 4096]).unwrap();
    let read_only = read_only(path.clone());
    for (byte, may_read, may_write) in [
        (100, true, true),
        (101, false, false),
        (103, false, false),
        (200, false, false),
        (201, true, false),
        (203, true, false),
    ] {
        let qemu = std::fs::File::open(&path).unwrap();
        ::io::files::share_byte(&qemu, byte).unwrap();
        for (options, may) in [(&read_only, may_read), (&at(path.clone()), may_write)] {
            if may {
                drop(reopen(|| FileVolume::open(options)));
            } else {
                assert!(
                    matches!(FileVolume::open(options), Err(VolumeError::Locked(_))),
                    "byte {byte}"
                );
            }
        }
    }
    let writer = reopen(|| FileVolume::open(&at(path.clone())));
    let qemu = std::fs::File::open(&path).unwrap();
    let locked = |byte: &u64| ::io::files::is_byte_locked(&qemu, *byte).unwrap();
    let bytes: Vec<u64> = (0..300).filter(locked).collect();
    assert_eq!(bytes, [100, 101, 103, 201, 203]);
    drop(writer);
}

#[test]
fn lock_tells_who_has_it() {
    let (_folder, path) = disk();
    let writer = FileVolume::open(&sized(path.clone(), 4096)).unwrap();
    let ours = FileVolume::open(&at(path.clone())).unwrap_err().to_string();
    assert!(ours.contains("given twice"), "{ours}");
    drop(writer);
    let mut other = std::process::Command::new("flock")
        .args(["--close".as_ref(), path.as_os_str(), "cat".as_ref()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // What it says shows that it has the lock.
    let mut answer = [0; 1];
    std::io::Write::write_all(other.stdin.as_mut().unwrap(), b"x").unwrap();
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut answer).unwrap();
    let theirs = FileVolume::open(&at(path)).unwrap_err().to_string();
    let id = format!("(pid {}) has it open", other.id());
    drop(other.stdin.take());
    other.wait().unwrap();
    assert!(theirs.contains(&id), "{theirs}");
}
