//! Block devices, as loop devices where the machine lets us make them.

use std::path::PathBuf;

use ::io::ring::AnyRing;
use scsi::medium::{Extent, MediumError, Provisioning};

use super::places::{Folder, LoopDevice, Mount, fails, mode, reopen, run};
use super::rig::{self, Rig, is_done, reading, same};
use crate::device::{DeviceOptions, DeviceVolume};
use crate::error::VolumeError;
use crate::file::{FileOptions, FileVolume};
use crate::volume::Volume;

fn at(path: PathBuf) -> DeviceOptions {
    DeviceOptions {
        path,
        ..DeviceOptions::default()
    }
}

fn ring() -> AnyRing {
    rig::rings().remove(0)
}

#[test]
fn device_has_its_own_block_size() {
    for size in [512, 4096] {
        let sectors = size.to_string();
        let Some(disk) = LoopDevice::new(1 << 20, &["--sector-size", &sectors]) else {
            return;
        };
        let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
        let traits = device.traits();
        assert_eq!(
            (traits.block_size, traits.blocks),
            (size, (1 << 20) / u64::from(size))
        );
        assert_eq!(traits.sanitize, []);
        assert!(!device.is_empty_at_start());
        let mut rig = Rig::new(ring(), &device);
        assert!(is_done(&rig.write(3, 2, 0x42)));
        assert_eq!(rig.read(3, 2), vec![0x42; 2 * size as usize]);
        assert_eq!(rig.status(0, 100), (Provisioning::Mapped, 100));
        assert!(is_done(&rig.flush()));
    }
}

#[test]
fn larger_blocks_can_be_asked_for_and_smaller_ones_cannot() {
    let Some(small) = LoopDevice::new((1 << 20) + 512, &[]) else {
        return;
    };
    let large_blocks = DeviceOptions {
        block_size: Some(4096),
        ..at(small.node.clone())
    };
    assert_eq!(
        reopen(|| DeviceVolume::open(&large_blocks)).traits().blocks,
        256
    );
    let Some(large) = LoopDevice::new(1 << 20, &["--sector-size", "4096"]) else {
        return;
    };
    let small_blocks = DeviceOptions {
        block_size: Some(512),
        ..at(large.node.clone())
    };
    let error = DeviceVolume::open(&small_blocks).unwrap_err();
    fails!(
        error,
        VolumeError::Granularity {
            asked: 512,
            least: 4096
        }
    );
}

#[test]
fn device_is_opened_by_one_server_only() {
    let Some(disk) = LoopDevice::new(1 << 20, &[]) else {
        return;
    };
    let first = DeviceVolume::open(&at(disk.node.clone())).unwrap();
    let second = DeviceVolume::open(&at(disk.node.clone())).unwrap_err();
    assert!(matches!(second, VolumeError::Held));
    drop(first);
    reopen(|| DeviceVolume::open(&at(disk.node.clone())));
}

#[test]
fn mounted_device_is_refused() {
    let Some(disk) = LoopDevice::new(16 << 20, &[]) else {
        return;
    };
    let place = disk.folder().file("place");
    std::fs::create_dir(&place).unwrap();
    let node = disk.node.display().to_string();
    if run("mkfs.ext4", &["-q", &node], None).is_none() {
        return;
    }
    let Some(mount) = Mount::new(&[&node], &place) else {
        return;
    };
    let error = DeviceVolume::open(&at(disk.node.clone())).unwrap_err();
    assert!(matches!(error, VolumeError::Held), "{error}");
    assert!(error.to_string().contains("mounted"));
    drop(mount);
    reopen(|| DeviceVolume::open(&at(disk.node.clone())));
}

#[test]
fn read_only_device_must_be_asked_for_as_such() {
    let Some(disk) = LoopDevice::new(1 << 20, &["--read-only"]) else {
        return;
    };
    let error = DeviceVolume::open(&at(disk.node.clone())).unwrap_err();
    assert!(matches!(error, VolumeError::Unwritable));
    let read_only = DeviceOptions {
        read_only: true,
        ..at(disk.node.clone())
    };
    let device = DeviceVolume::open(&read_only).unwrap();
    assert!(device.traits().read_only);
    let mut rig = Rig::new(ring(), &device);
    assert!(matches!(rig.write(0, 1, 1), Err(MediumError::ReadOnly)));
    assert_eq!(rig.read(0, 8), [0; 4096]);
    fails!(
        device.reopen(mode(None, false)).unwrap(),
        Err(VolumeError::Unwritable)
    );
}

/// It is this process's all the time: by the descriptor that reads it.
#[test]
fn a_device_that_is_read_is_written_and_stays_ours() {
    let Some(disk) = LoopDevice::new(1 << 20, &[]) else {
        return;
    };
    let read_only = DeviceOptions {
        read_only: true,
        ..at(disk.node.clone())
    };
    let reader = DeviceVolume::open(&read_only).unwrap();
    let writer = reader.reopen(mode(None, false)).unwrap().unwrap();
    drop(reader);
    fails!(
        DeviceVolume::open(&at(disk.node.clone())),
        Err(VolumeError::Held)
    );
    let mut rig = Rig::new(ring(), &*writer);
    assert!(is_done(&rig.write(0, 1, 7)));
    assert_eq!(rig.read(0, 1), [7; 512]);
    drop((rig, writer));
    reopen(|| DeviceVolume::open(&at(disk.node.clone())));
}

#[test]
fn unmap_and_zeros_reach_the_device() {
    let Some(disk) = LoopDevice::new(4 << 20, &[]) else {
        return;
    };
    let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
    assert!(
        device.traits().unmap_granularity.is_some(),
        "loop devices discard"
    );
    let mut rig = Rig::new(ring(), &device);
    for lba in (0..8192).step_by(512) {
        assert!(is_done(&rig.write(lba, 512, 9)));
    }
    assert!(is_done(&rig.unmap(0, 4096)));
    let extent = Extent::new(4096, 1000);
    rig.does(same(extent, None));
    assert_eq!(rig.read(0, 512), vec![0; 512 * 512]);
    assert_eq!(rig.read(5095, 2), [[0; 512], [9; 512]].concat());
}

/// A file in memory cannot be told to keep its space. Once a loop device on it has found that out,
/// the kernel refuses to give space back as well.
#[test]
fn device_that_turns_out_not_to_zero_is_written() {
    let Some(disk) = LoopDevice::in_folder(Folder::in_memory(), 4 << 20, &[]) else {
        return;
    };
    let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
    assert!(device.traits().unmap_granularity.is_some());
    let mut rig = Rig::new(ring(), &device);
    for lba in (0..8192).step_by(512) {
        assert!(is_done(&rig.write(lba, 512, 9)));
    }
    let extent = Extent::new(4096, 1000);
    rig.does(same(extent, None));
    let unmapped = rig.unmap(0, 4095);
    assert!(
        matches!(unmapped, Err(MediumError::Unsupported)),
        "{unmapped:?}"
    );
    for _ in 0..2 {
        let extent = Extent::new(0, 4095);
        rig.does(same(extent, None));
    }
    assert_eq!(rig.read(0, 512), vec![0; 512 * 512]);
    assert_eq!(rig.read(4094, 3), [[0; 512], [9; 512], [0; 512]].concat());
    assert_eq!(rig.read(5095, 2), [[0; 512], [9; 512]].concat());
    assert_eq!(device.traits().unmap_granularity, None, "it costs writes");
    assert!(device.refresh().unwrap(), "which initiators are told");
    assert!(!device.refresh().unwrap());
}

#[test]
fn growth_of_a_device_is_noticed() {
    let Some(disk) = LoopDevice::new(1 << 20, &[]) else {
        return;
    };
    let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
    assert!(device.can_grow() && !device.refresh().unwrap());
    disk.resize(2 << 20);
    assert!(device.refresh().unwrap());
    assert_eq!(device.traits().blocks, 4096);
    assert!(!device.refresh().unwrap());
}

#[test]
fn device_that_became_shorter_is_gone_behind_its_end() {
    for ring in rig::rings() {
        let Some(disk) = LoopDevice::new(2 << 20, &[]) else {
            return;
        };
        let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
        let mut rig = Rig::new(ring, &device);
        assert!(is_done(&rig.write(0, 512, 1)));
        assert_eq!(device.shortened_to(), None);
        disk.resize(1 << 20);
        assert!(!device.refresh().unwrap());
        assert_eq!(device.traits().blocks, 4096);
        assert_eq!(device.shortened_to(), Some(1 << 20));
        for lba in [2047, 2048] {
            let extent = Extent::new(lba, 2);
            rig.fails(reading(extent), MediumError::Gone);
        }
        let written = rig.write(2048, 8, 1);
        assert!(matches!(written, Err(MediumError::Gone)), "{written:?}");
        assert_eq!(rig.read(0, 1), [1; 512]);
        assert!(is_done(&rig.flush()), "nothing that was taken is lost");
    }
}

/// Long reads and writes have io_uring register the memory that they go to and come from.
#[test]
fn device_that_vanishes_while_its_buffers_are_registered_is_gone() {
    for ring in rig::rings() {
        let Some(disk) = LoopDevice::new(2 << 20, &[]) else {
            return;
        };
        let device = DeviceVolume::open(&at(disk.node.clone())).unwrap();
        let mut rig = Rig::new(ring, &device);
        for byte in 0..40 {
            assert!(is_done(&rig.write(512, 512, byte)));
            assert!(rig.read(512, 512) == [byte; 256 << 10]);
        }
        disk.resize(0);
        for _ in 0..2 {
            rig.fails(reading(Extent::new(512, 512)), MediumError::Gone);
            let written = rig.write(512, 512, 1);
            assert!(matches!(written, Err(MediumError::Gone)), "{written:?}");
        }
        disk.resize(2 << 20);
        assert!(is_done(&rig.write(512, 512, 7)), "it is back");
        assert!(rig.read(512, 512) == [7; 256 << 10]);
    }
}

#[test]
fn open_refuses_what_is_no_device() {
    let error = |path: &str| DeviceVolume::open(&at(path.into())).unwrap_err();
    fails!(error("/dev/no-such-device"), VolumeError::NoDevice);
    assert!(matches!(error("/dev/null"), VolumeError::Neither));
    fails!(
        error(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
        VolumeError::IsFile
    );
    let Some(disk) = LoopDevice::new(1 << 20, &[]) else {
        return;
    };
    let as_file = FileOptions {
        path: disk.node.clone(),
        ..FileOptions::default()
    };
    fails!(FileVolume::open(&as_file), Err(VolumeError::IsDevice));
}
