//! Opens block devices.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::Attributes;
use super::DeviceOptions;
use crate::backing::{Backing, BackingRules, LockedFile, Zeroing};
use crate::error::VolumeError;
use crate::size::BlockSize;

pub(super) fn open(options: &DeviceOptions) -> Result<Arc<Backing>, VolumeError> {
    let number = device_number(&options.path)?;
    let attributes = Attributes::of(number);
    check_protection(options, &attributes)?;
    let device = open_exclusively(options)?;
    if number_of(&device)? != number {
        return Err(VolumeError::NoDevice);
    }
    let (rules, blocks) = prepare(&device, options)?;
    Ok(Backing::new(device, rules, blocks))
}

/// The same device, still exclusive, to be treated as these options say.
pub(super) fn again(
    backing: &Backing,
    options: &DeviceOptions,
) -> Result<Arc<Backing>, VolumeError> {
    let device = backing.duplicate()?;
    let (rules, blocks) = prepare(&device.master, options)?;
    Ok(backing.another(device, rules, blocks))
}

/// The same device for writing, exclusive by the descriptor that reads it.
pub(super) fn for_writing(
    backing: &Backing,
    options: &DeviceOptions,
) -> Result<Arc<Backing>, VolumeError> {
    check_protection(options, &Attributes::of(number_of(backing.master())?))?;
    let reopened = backing.reopen(options.read_only);
    let master = reopened.map_err(|error| refused(error, options))?;
    let (rules, blocks) = prepare(&master, options)?;
    let claim = Some(Arc::new(backing.duplicate()?.master) as _);
    Ok(backing.another(LockedFile { master, claim }, rules, blocks))
}

fn check_protection(options: &DeviceOptions, device: &Attributes) -> Result<(), VolumeError> {
    if !options.read_only && device.own("ro").as_deref() == Some("1") {
        return Err(VolumeError::Unwritable);
    }
    Ok(())
}

/// How a device that is open is to be treated, and its capacity in blocks.
fn prepare(device: &OwnedFd, options: &DeviceOptions) -> Result<(BackingRules, u64), VolumeError> {
    let attributes = Attributes::of(number_of(device)?);
    let bytes = ::io::files::device_size(device).map_err(|cause| VolumeError::Kernel {
        what: "determine its size",
        cause,
    })?;
    if bytes == 0 {
        return Err(VolumeError::NoMedium);
    }
    let rules = rules(device, options, &attributes)?;
    let blocks = rules.block_size.capacity(bytes)?;
    Ok((rules, blocks))
}

fn number_of(device: &OwnedFd) -> Result<u64, VolumeError> {
    let stat = rustix::fs::fstat(device).map_err(VolumeError::kernel("inspect it"))?;
    Ok(stat.st_rdev)
}

fn device_number(path: &Path) -> Result<u64, VolumeError> {
    let stat = match rustix::fs::stat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(VolumeError::NoDevice),
        Err(Errno::ACCESS) => return Err(VolumeError::Denied),
        Err(error) => return Err(VolumeError::kernel("inspect it")(error)),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => Ok(stat.st_rdev),
        FileType::RegularFile => Err(VolumeError::IsFile),
        _ => Err(VolumeError::Neither),
    }
}

fn open_exclusively(options: &DeviceOptions) -> Result<OwnedFd, VolumeError> {
    let access = if options.read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    let flags = access | OFlags::EXCL | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(&options.path, flags, Mode::empty());
    opened.map_err(|error| refused(error, options))
}

fn refused(error: Errno, options: &DeviceOptions) -> VolumeError {
    match error {
        Errno::BUSY => VolumeError::Held,
        Errno::ROFS => VolumeError::Unwritable,
        Errno::ACCESS | Errno::PERM => VolumeError::denied(&options.path, options.read_only),
        Errno::NXIO | Errno::NODEV | Errno::NOENT => VolumeError::NoDevice,
        Errno::NOMEDIUM => VolumeError::NoMedium,
        Errno::INVAL => VolumeError::NoDirect,
        error => VolumeError::kernel("open it")(error),
    }
}

fn rules(
    device: &OwnedFd,
    options: &DeviceOptions,
    attributes: &Attributes,
) -> Result<BackingRules, VolumeError> {
    let own = rustix::fs::ioctl_blksszget(device).map_err(VolumeError::kernel("inspect it"))?;
    let physical = rustix::fs::ioctl_blkpbszget(device).unwrap_or(own);
    let block_size = BlockSize::new(options.block_size.unwrap_or(own))?;
    if block_size.bytes() < own {
        return Err(VolumeError::Granularity {
            asked: block_size.bytes(),
            least: own,
        });
    }
    // A user who asks for 512 is told of 4 KiB, as for every other volume.
    let told = options
        .block_size
        .map_or(0, |_| block_size.physical_exponent());
    Ok(BackingRules {
        name: format!("block:{}", options.path.display()),
        is_device: true,
        block_size,
        physical_exponent: block_size.exponent_of(physical).max(told),
        read_only: options.read_only,
        write_cache: attributes.queue("write_cache").as_deref() != Some("write through"),
        sync: false,
        direct: Some(memory_alignment(device, own)),
        unmap_granularity: unmap_granularity(options, attributes, block_size),
        zeroing: &[Zeroing::Range],
        knows_holes: false,
        atomic: None,
        solid_state: attributes.queue_number("rotational") != Some(1),
    })
}

/// What the device's DMA needs; where the kernel does not tell, a block is enough.
fn memory_alignment(device: &OwnedFd, own: u32) -> usize {
    let facts = rustix::fs::statx(device, Path::new(""), AtFlags::EMPTY_PATH, DIRECT_ALIGNMENT);
    let told = facts.ok().map(|facts| facts.stx_dio_mem_align);
    told.filter(|alignment| *alignment > 0).unwrap_or(own) as usize
}

/// Blocks in the granule of UNMAP. It is done by what makes zeros, where that can discard.
fn unmap_granularity(
    options: &DeviceOptions,
    attributes: &Attributes,
    block_size: BlockSize,
) -> Option<u32> {
    let most = |name| attributes.queue_number(name).unwrap_or(0);
    let able = most("discard_max_bytes") > 0 && most("write_zeroes_max_bytes") > 0;
    if options.read_only || !able {
        return None;
    }
    let blocks = most("discard_granularity") / u64::from(block_size.bytes());
    u32::try_from(blocks.max(1)).ok()
}

/// STATX_DIOALIGN, since Linux 6.1.
const DIRECT_ALIGNMENT: StatxFlags = StatxFlags::from_bits_retain(0x2000);
