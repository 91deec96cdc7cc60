//! Files: created, extended, grown, full.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use scsi::medium::{Extent, MediumError, Provisioning};

use super::fake::FakeRing;
use super::places::{Folder, SmallDisk, at, disk, fails, read_only, reopen, sized};
use super::rig::{self, Rig, is_done, reading, same};
use crate::error::VolumeError;
use crate::file::{FileOptions, FileVolume};
use crate::volume::Volume;

#[test]
fn open_creates_a_file_for_its_owner_and_reserves_space() {
    let (_folder, path) = disk();
    let file = FileVolume::open(&sized(path.clone(), 1 << 20)).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!(
        (found.len(), found.permissions().mode() & 0o777),
        (1 << 20, 0o600)
    );
    assert!(found.blocks() * 512 >= 1 << 20, "space is reserved");
    let traits = file.traits();
    assert_eq!((traits.block_size, traits.blocks), (512, 2048));
    assert!(traits.write_cache && !traits.read_only);
    assert_eq!(traits.sanitize, []);
}

#[test]
fn open_sparse_reserves_nothing() {
    let (_folder, path) = disk();
    let options = FileOptions {
        sparse: true,
        ..sized(path.clone(), 1 << 40)
    };
    FileVolume::open(&options).unwrap();
    assert!(std::fs::metadata(&path).unwrap().blocks() < 100);
}

#[test]
fn open_extends_and_never_shrinks() {
    let (_folder, path) = disk();
    std::fs::write(&path, [7; 1024]).unwrap();
    let extended = FileVolume::open(&sized(path.clone(), 4096)).unwrap();
    assert_eq!(extended.traits().blocks, 8);
    let mut rig = Rig::fake(&extended);
    assert_eq!(rig.read(1, 2), [[7; 512], [0; 512]].concat());
    drop((rig, extended));
    let longer = reopen(|| FileVolume::open(&sized(path.clone(), 512)));
    assert_eq!(longer.traits().blocks, 8);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
}

#[test]
fn bytes_behind_the_last_whole_block_are_not_part_of_it() {
    let (_folder, path) = disk();
    std::fs::write(&path, [7; 1500]).unwrap();
    let file = FileVolume::open(&at(path.clone())).unwrap();
    assert_eq!(file.traits().blocks, 2);
    let mut rig = Rig::fake(&file);
    assert!(is_done(&rig.unmap(0, 2)));
    let found = std::fs::read(&path).unwrap();
    assert_eq!((found.len(), &found[1024..]), (1500, &[7; 476][..]));
}

#[test]
fn open_refuses_what_is_no_file() {
    let folder = Folder::on_disk();
    let error = |options: &FileOptions| FileVolume::open(options).unwrap_err();
    fails!(error(&at(folder.file("none"))), VolumeError::NoFile);
    let to_read = read_only(folder.file("none"));
    let text = error(&to_read).to_string();
    assert!(!text.contains("size="), "{text}");
    let nowhere = folder.file("none").join("disk");
    fails!(error(&sized(nowhere, 512)), VolumeError::NoDirectory);
    // No user may create files there, and some containers have it mounted read-only.
    let text = error(&sized("/sys/lunar-none".into(), 512)).to_string();
    assert!(text.starts_with("it cannot be created: "), "{text}");
    assert!(!text.contains("readonly"), "{text}");
    assert!(matches!(error(&at(folder.file(""))), VolumeError::Neither));
    fails!(error(&at("/dev/null".into())), VolumeError::Neither);
    std::fs::write(folder.file("empty"), []).unwrap();
    fails!(error(&at(folder.file("empty"))), VolumeError::Empty);
    // It would not be extended by the option that the usual text gives.
    let to_be_read = FileOptions {
        as_is: true,
        ..at(folder.file("empty"))
    };
    assert!(matches!(error(&to_be_read), VolumeError::NothingInIt));
    std::fs::write(folder.file("short"), [0; 511]).unwrap();
    fails!(
        error(&at(folder.file("short"))),
        VolumeError::TooSmall { .. }
    );
    let wrong_block = FileOptions {
        block_size: Some(1024),
        ..sized(folder.file("new"), 1 << 20)
    };
    fails!(error(&wrong_block), VolumeError::BlockSize { bytes: 1024 });
    assert!(
        !folder.file("new").exists(),
        "what was created is taken away again"
    );
}

#[test]
fn open_does_not_wait_for_a_fifo() {
    let folder = Folder::on_disk();
    let path = folder.file("fifo");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let read_only = read_only(path.clone());
    for options in [at(path), read_only] {
        fails!(FileVolume::open(&options), Err(VolumeError::Neither));
    }
}

#[test]
fn read_only_file_cannot_be_changed() {
    let (_folder, path) = disk();
    std::fs::write(&path, [7; 4096]).unwrap();
    let options = read_only(path);
    let file = FileVolume::open(&options).unwrap();
    assert!(file.traits().read_only);
    let mut rig = Rig::fake(&file);
    assert!(matches!(rig.write(0, 1, 1), Err(MediumError::ReadOnly)));
    assert!(matches!(rig.unmap(0, 1), Err(MediumError::ReadOnly)));
    assert!(is_done(&rig.flush()));
    assert_eq!(rig.read(0, 8), [7; 4096]);
}

#[test]
fn read_only_file_tells_its_holes() {
    let (_folder, path) = disk();
    let sparse = std::fs::File::create(&path).unwrap();
    sparse.set_len(1 << 20).unwrap();
    let mut options = at(path);
    options.read_only = true;
    let file = FileVolume::open(&options).unwrap();
    assert!(file.traits().unmap_granularity.is_some());
    let mut rig = Rig::fake(&file);
    assert_eq!(rig.status(0, 2048), (Provisioning::Deallocated, 2048));
}

#[test]
fn usage_of_a_sparse_file_is_what_it_has_storage_for() {
    let folder = Folder::on_disk();
    let mut options = sized(folder.file("disk"), 1 << 20);
    options.sparse = true;
    let file = FileVolume::open(&options).unwrap();
    let used = || file.usage().map(|usage| usage.used);
    assert_eq!(used(), Some(0));
    let mut rig = Rig::fake(&file);
    assert!(is_done(&rig.write(0, 256, 1)));
    assert!(is_done(&rig.flush()));
    assert_eq!(used(), Some(256));
    assert!(is_done(&rig.unmap(0, 256)));
    assert_eq!(used(), Some(0));
}

#[test]
fn growth_is_noticed_and_what_was_cut_off_cannot_be_read() {
    let (_folder, path) = disk();
    let file = FileVolume::open(&sized(path.clone(), 4096)).unwrap();
    assert!(file.can_grow());
    assert!(!file.refresh().unwrap());
    let outside = std::fs::File::options().write(true).open(&path).unwrap();
    outside.set_len(8192 + 100).unwrap();
    assert!(file.refresh().unwrap());
    assert_eq!(file.traits().blocks, 16);
    outside.set_len(1024).unwrap();
    assert!(!file.refresh().unwrap());
    assert_eq!(file.traits().blocks, 16);
    let mut rig = Rig::fake(&file);
    let extent = Extent::new(1, 2);
    rig.fails(reading(extent), MediumError::Read);
    assert_eq!(rig.read(0, 2), [0; 1024]);
    assert_eq!(
        rig.status(2, 14),
        (Provisioning::Mapped, 14),
        "it is no hole"
    );
    assert_eq!(file.shortened_to(), Some(1024));
    assert!(is_done(&rig.write(0, 1, 1)));
    assert!(!file.refresh().unwrap(), "our own writes are no growth");
}

/// A write there would extend the file, and what was lost would read as zeros.
#[test]
fn what_a_file_has_lost_fails_until_it_is_opened_again() {
    let (_folder, path) = disk();
    let file = FileVolume::open(&sized(path.clone(), 8192)).unwrap();
    let mut rig = Rig::fake(&file);
    assert!(is_done(&rig.write(0, 16, 1)));
    let outside = std::fs::File::options().write(true).open(&path).unwrap();
    outside.set_len(4096).unwrap();
    let extent = Extent::new(8, 1);
    let read = |rig: &mut Rig<FakeRing>| rig.run(reading(extent));
    assert!(matches!(read(&mut rig), Err(MediumError::Read)));
    for op in [rig.write_op(7, 2, 1, false), same(Extent::new(15, 1), None)] {
        rig.fails(op, MediumError::Write);
    }
    assert_eq!(outside.metadata().unwrap().len(), 4096);
    outside.set_len(8192).unwrap();
    assert!(!file.refresh().unwrap());
    assert!(matches!(read(&mut rig), Err(MediumError::Read)));
    assert!(is_done(&rig.write(0, 8, 2)));
}

/// A user may have 128 of them, all programs together.
#[test]
fn file_takes_no_inotify_instance() {
    let folder = Folder::on_disk();
    let file = FileVolume::open(&sized(folder.file("disk"), 4096)).unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = descriptors.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    assert!(
        names
            .into_iter()
            .all(|name| !name.to_string_lossy().contains("inotify"))
    );
    drop(file);
}

#[test]
fn status_tells_holes_from_data() {
    let folder = Folder::on_disk();
    let options = FileOptions {
        sparse: true,
        ..sized(folder.file("disk"), 1 << 20)
    };
    let file = FileVolume::open(&options).unwrap();
    let unit = u64::from(file.traits().unmap_granularity.unwrap());
    let mut rig = Rig::fake(&file);
    assert_eq!(rig.status(0, 2048), (Provisioning::Deallocated, 2048));
    assert!(is_done(&rig.write(4 * unit, unit, 1)));
    assert_eq!(rig.status(0, 2048), (Provisioning::Deallocated, 4 * unit));
    assert_eq!(
        rig.status(4 * unit, 2048 - 4 * unit),
        (Provisioning::Mapped, unit)
    );
    assert!(is_done(&rig.unmap(4 * unit, unit)));
    assert_eq!(rig.status(0, 2048), (Provisioning::Deallocated, 2048));
}

#[test]
fn sync_file_has_no_write_cache() {
    let folder = Folder::on_disk();
    let options = FileOptions {
        sync: true,
        ..sized(folder.file("disk"), 4096)
    };
    assert!(!FileVolume::open(&options).unwrap().traits().write_cache);
}

#[test]
fn direct_file_that_is_served_has_blocks_of_512_or_is_refused() {
    let folder = Folder::on_disk();
    let options = FileOptions {
        direct: true,
        lasting_block_size: true,
        ..sized(folder.file("disk"), 1 << 20)
    };
    match FileVolume::open(&options) {
        Ok(file) => assert_eq!(file.traits().block_size, 512),
        Err(VolumeError::Granularity { asked, least }) => assert_eq!((asked, least), (512, 4096)),
        Err(error) => panic!("{error}"),
    }
    let large = FileOptions {
        block_size: Some(4096),
        ..options
    };
    assert_eq!(
        reopen(|| FileVolume::open(&large)).traits().block_size,
        4096
    );
}

#[test]
fn full_file_system_refuses_a_reservation_and_leaves_no_file() {
    let Some(disk) = SmallDisk::mount(1 << 20) else {
        return;
    };
    let path = disk.file("disk");
    let error = FileVolume::open(&sized(path.clone(), 2 << 20)).unwrap_err();
    assert!(
        matches!(error, VolumeError::NoSpace { bytes } if bytes == 2 << 20),
        "{error}"
    );
    assert!(!path.exists());
    std::fs::write(&path, [7; 4096]).unwrap();
    FileVolume::open(&sized(path.clone(), 2 << 20)).unwrap_err();
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        4096,
        "it is as it was"
    );
}

#[test]
fn full_file_system_ends_writes_and_nothing_else() {
    let Some(disk) = SmallDisk::mount(1 << 20) else {
        return;
    };
    let options = FileOptions {
        sparse: true,
        ..sized(disk.file("disk"), 8 << 20)
    };
    for ring in rig::rings() {
        let file = reopen(|| FileVolume::open(&options));
        let mut rig = Rig::new(ring, &file);
        let writes = (0..32).map(|n| rig.write(n * 512, 512, 1));
        let results: Vec<_> = writes.collect();
        let full = results.iter().position(|result| !is_done(result)).unwrap();
        assert!((2..=4).contains(&full), "{full} segments fit");
        for result in &results[full..] {
            assert!(matches!(result, Err(MediumError::NoSpace)), "{result:?}");
        }
        assert_eq!(rig.read(0, 512), vec![1; 512 * 512]);
        assert!(is_done(&rig.flush()));
        let extent = Extent::new(0, 16384);
        let zeroed = rig.run(same(extent, None));
        assert!(is_done(&zeroed), "zeros need no space: {zeroed:?}");
        assert!(is_done(&rig.write(8192, 512, 3)), "and make some");
        assert!(is_done(&rig.unmap(0, 16384)));
    }
}
