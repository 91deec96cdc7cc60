//! Opens, creates and extends files.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ::io::files::sync_parent;
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Mode, OFlags, Stat, Statx, StatxFlags, Timespec, Timestamps,
    UTIME_OMIT,
};
use rustix::io::Errno;
use scsi::medium::Atomic;

use super::FileOptions;
use super::lock::{WriterLocks, lock};
use super::undo::{FileChange, UndoLog};
use super::warnings;
use crate::backing::{Backing, BackingRules, LockedFile, Zeroing, punch};
use crate::device::is_solid_state;
use crate::error::{VolumeError, is_unsupported};
use crate::size::{BlockSize, DEFAULT_BLOCK_SIZE};

pub(super) fn open(options: &FileOptions) -> Result<(Arc<Backing>, (i64, u64)), VolumeError> {
    open_with(options, |file| rustix::fs::fsync(file))
}

/// Opens a file that `sync` makes durable. What was done to the file is undone before the lock on
/// it goes, so that another program never has it meanwhile.
fn open_with(
    options: &FileOptions,
    sync: impl Fn(&OwnedFd) -> rustix::io::Result<()>,
) -> Result<(Arc<Backing>, (i64, u64)), VolumeError> {
    let log = options.undo.as_ref().filter(|_| options.size.is_some());
    let mut entries = log.map(UndoLog::entries);
    let (file, created) = open_or_create(options)?;
    check_type(&file)?;
    let path = &options.path;
    options.reserved.refuse(&file)?;
    match lock(&file, options.read_only) {
        Ok(()) => {}
        // Another program that found the file between its creation and this lock owns it now.
        Err(error @ VolumeError::Locked(_)) => return Err(error),
        Err(error) => {
            if created {
                FileChange::Created.undo(&file, path);
            }
            return Err(error);
        }
    }
    let found = len(&file)?;
    let written = written(&file)?;
    let change = change(options, created, (found, written));
    let punches = |end| can_punch(&file, end).unwrap_or(false);
    let prepared = prepare(&file, found, options, punches).and_then(|prepared| {
        change.map_or(Ok(()), |change| settle(&file, path, change, &sync))?;
        settle_cache(&file, options, &sync)?;
        Ok(prepared)
    });
    if prepared.is_err()
        && let Some(change) = change
    {
        change.undo(&file, path);
    }
    let (rules, blocks) = prepared?;
    let backing = Backing::new(file, rules, blocks);
    if let (Some(entries), Some(change)) = (&mut entries, change) {
        entries.add(&backing, path, change);
    }
    Ok((backing, written))
}

/// The same file, still locked, to be treated as these options say.
pub(super) fn again(backing: &Backing, options: &FileOptions) -> Result<Arc<Backing>, VolumeError> {
    // It is in use, so nothing is tried behind its end: it may be longer by then.
    let punches = |_: &OwnedFd, _| backing.traits().unmap_granularity.is_some();
    beside(backing, backing.duplicate()?, options, punches)
}

/// The same file for writing, locked by the descriptor that reads it.
pub(super) fn for_writing(
    backing: &Backing,
    writers: &WriterLocks,
    options: &FileOptions,
) -> Result<Arc<Backing>, VolumeError> {
    let reopened = backing.reopen(options.read_only);
    let master = reopened.map_err(|error| refused(error, options))?;
    let lock = writers.upgrade(backing.duplicate()?.master)?;
    settle_cache(&master, options, |file| rustix::fs::fsync(file))?;
    let claim = Some(Arc::new(lock) as _);
    let punches = |file: &OwnedFd, end| can_punch(file, end).unwrap_or(false);
    beside(backing, LockedFile { master, claim }, options, punches)
}

fn beside(
    backing: &Backing,
    file: LockedFile,
    options: &FileOptions,
    punches: impl FnOnce(&OwnedFd, u64) -> bool,
) -> Result<Arc<Backing>, VolumeError> {
    let master = &file.master;
    let punches = |end| punches(master, end);
    let (rules, blocks) = prepare(master, len(master)?, options, punches)?;
    Ok(backing.another(file, rules, blocks))
}

/// What opening does to a file that has this length, and was written to last at this time.
fn change(
    options: &FileOptions,
    created: bool,
    (from, written): (u64, (i64, u64)),
) -> Option<FileChange> {
    match options.size {
        _ if created => Some(FileChange::Created),
        Some(size) if size > from => Some(FileChange::Extended { from, written }),
        _ => None,
    }
}

/// Makes durable what opening has changed: flushes of the volume reach its data, not the name of
/// the file.
fn settle(
    file: &OwnedFd,
    path: &Path,
    change: FileChange,
    sync: impl Fn(&OwnedFd) -> rustix::io::Result<()>,
) -> Result<(), VolumeError> {
    sync(file).map_err(VolumeError::kernel("make it durable"))?;
    if change == FileChange::Created {
        sync_parent(path).map_err(VolumeError::kernel("make its name durable"))?;
    }
    Ok(())
}

/// Without a write cache hosts take all that was written for durable: it has to be, also what
/// another program has left in the page cache.
fn settle_cache(
    file: &OwnedFd,
    options: &FileOptions,
    sync: impl Fn(&OwnedFd) -> rustix::io::Result<()>,
) -> Result<(), VolumeError> {
    if options.sync && !options.read_only {
        sync(file).map_err(VolumeError::kernel("make it durable"))?;
    }
    Ok(())
}

/// The file, and whether it was created.
fn open_or_create(options: &FileOptions) -> Result<(OwnedFd, bool), VolumeError> {
    match open_existing(options) {
        Err(Errno::NOENT) => {}
        result => {
            return result
                .map(|file| (file, false))
                .map_err(|e| refused(e, options));
        }
    }
    if options.as_is {
        return Err(VolumeError::Missing);
    }
    if options.size.is_none() {
        return Err(if options.read_only {
            VolumeError::NothingToRead
        } else {
            VolumeError::NoFile
        });
    }
    create(options).map(|file| (file, true))
}

/// Creates the file in a folder that was opened and looked at before: nothing is made where none
/// may be, not even for a moment.
fn create(options: &FileOptions) -> Result<OwnedFd, VolumeError> {
    let not_created = |error| match error {
        Errno::NOENT => VolumeError::NoDirectory,
        Errno::ACCESS | Errno::PERM => VolumeError::DeniedToCreate,
        Errno::ROFS => VolumeError::NoneCreated,
        error => refused(error, options),
    };
    let path = options.path.as_os_str().as_bytes();
    let name = path.iter().rposition(|&byte| byte == b'/');
    let (folder, name) = path.split_at(name.map_or(0, |at| at + 1));
    let folder = if folder.is_empty() { b"." } else { folder };
    let look = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, look, Mode::empty()).map_err(not_created)?;
    options.reserved.refuse(&folder)?;
    let flags = flags(options) | OFlags::CREATE | OFlags::EXCL;
    // Whatever the initiators store is private to them.
    rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).map_err(not_created)
}

/// Without waiting for the other end, should it be a FIFO.
fn open_existing(options: &FileOptions) -> rustix::io::Result<OwnedFd> {
    let file = rustix::fs::open(
        &options.path,
        flags(options) | OFlags::NONBLOCK,
        Mode::empty(),
    )?;
    let now = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, now - OFlags::NONBLOCK)?;
    Ok(file)
}

fn flags(options: &FileOptions) -> OFlags {
    let access = if options.read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    let direct = if options.direct {
        OFlags::DIRECT
    } else {
        OFlags::empty()
    };
    access | direct | OFlags::CLOEXEC | OFlags::NOCTTY
}

fn refused(error: Errno, options: &FileOptions) -> VolumeError {
    let kind = rustix::fs::stat(&options.path).map(|stat| file_type(&stat));
    match (error, kind) {
        (_, Ok(FileType::BlockDevice)) => VolumeError::IsDevice,
        (_, Ok(kind)) if kind != FileType::RegularFile => VolumeError::Neither,
        (Errno::ISDIR | Errno::NXIO, _) => VolumeError::Neither,
        (Errno::ACCESS | Errno::PERM, _) => VolumeError::denied(&options.path, options.read_only),
        (Errno::ROFS, _) => VolumeError::Unwritable,
        (Errno::EXIST, Err(_)) => VolumeError::Dangling,
        (Errno::INVAL, _) if options.direct => VolumeError::NoDirect,
        (error, _) => VolumeError::kernel("open it")(error),
    }
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn check_type(file: &OwnedFd) -> Result<(), VolumeError> {
    match file_type(&stat(file)?) {
        FileType::RegularFile => Ok(()),
        FileType::BlockDevice => Err(VolumeError::IsDevice),
        _ => Err(VolumeError::Neither),
    }
}

fn stat(file: &OwnedFd) -> Result<Stat, VolumeError> {
    rustix::fs::fstat(file).map_err(VolumeError::kernel("inspect it"))
}

/// When it was written to last, in seconds and nanoseconds.
fn written(file: &OwnedFd) -> Result<(i64, u64), VolumeError> {
    stat(file).map(|stat| (stat.st_mtime, stat.st_mtime_nsec))
}

/// Sets that back to what it was, where this user may.
pub(super) fn set_written(file: &OwnedFd, (seconds, nanoseconds): (i64, u64)) {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let nanoseconds = i64::try_from(nanoseconds).unwrap_or(0);
    let times = Timestamps {
        last_access: time(0, UTIME_OMIT),
        last_modification: time(seconds, nanoseconds),
    };
    let _ = rustix::fs::futimens(file, &times);
}

pub(super) fn len(file: &OwnedFd) -> Result<u64, VolumeError> {
    Ok(u64::try_from(stat(file)?.st_size).unwrap_or(0))
}

/// Everything between a locked file of this many bytes and a volume: how it is to be treated, and
/// its blocks. `punches` tells whether holes can be made in a file of a length.
fn prepare(
    file: &OwnedFd,
    found: u64,
    options: &FileOptions,
    punches: impl FnOnce(u64) -> bool,
) -> Result<(BackingRules, u64), VolumeError> {
    let facts = facts(file)?;
    let direct = options.direct.then(|| Direct::of(&facts)).transpose()?;
    let block_size = block_size(options, direct.as_ref())?;
    let bytes = options.size.map_or(found, |size| size.max(found));
    if options.as_is && bytes > found {
        return Err(VolumeError::Shorter { found, size: bytes });
    }
    if bytes == 0 {
        return Err(if options.as_is {
            VolumeError::NothingInIt
        } else {
            VolumeError::Empty
        });
    }
    let blocks = block_size.capacity(bytes)?;
    if bytes > found {
        extend(file, found, bytes, options.sparse)?;
    }
    warnings::of_tail(&options.path, bytes, block_size);
    warnings::of_format(&options.path);
    // What is read-only cannot be tried; it tells which holes it has all the same.
    let unmaps = options.read_only || punches(bytes);
    let rules = BackingRules {
        name: format!("file:{}", options.path.display()),
        is_device: false,
        block_size,
        physical_exponent: block_size.physical_exponent(),
        read_only: options.read_only,
        write_cache: !options.sync,
        sync: options.sync,
        direct: direct.as_ref().map(|direct| direct.memory),
        unmap_granularity: unmaps
            .then(|| unmap_granularity(file, block_size))
            .flatten(),
        zeroing: if options.sparse {
            &[Zeroing::Punch, Zeroing::Range]
        } else {
            &[Zeroing::Range]
        },
        knows_holes: true,
        atomic: direct.and_then(|_| atomic(&facts, block_size)),
        solid_state: is_solid_state(stat(file)?.st_dev),
    };
    Ok((rules, blocks))
}

pub(super) fn facts(file: &OwnedFd) -> Result<Statx, VolumeError> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME | DIRECT_ALIGNMENT | WRITE_ATOMIC;
    rustix::fs::statx(file, Path::new(""), AtFlags::EMPTY_PATH, mask)
        .map_err(VolumeError::kernel("inspect it"))
}

/// What direct I/O must be aligned to, in bytes.
struct Direct {
    memory: usize,
    offset: u32,
}

impl Direct {
    /// As the file system says; where it says nothing, a page, which is enough everywhere.
    fn of(facts: &Statx) -> Result<Self, VolumeError> {
        if facts.stx_mask & DIRECT_ALIGNMENT.bits() == 0 {
            return Ok(Self {
                memory: PAGE as usize,
                offset: PAGE,
            });
        }
        match (facts.stx_dio_mem_align, facts.stx_dio_offset_align) {
            (_, 0) => Err(VolumeError::NoDirect),
            (memory, offset) => Ok(Self {
                memory: memory.max(1) as usize,
                offset,
            }),
        }
    }
}

/// The block size, which must not be smaller than what is written at once: otherwise two
/// initiators that write neighbouring blocks would undo each other's writes.
fn block_size(options: &FileOptions, direct: Option<&Direct>) -> Result<BlockSize, VolumeError> {
    let least = direct.map_or(1, |direct| direct.offset);
    let asked = options.block_size.unwrap_or(if options.lasting_block_size {
        DEFAULT_BLOCK_SIZE
    } else {
        least.max(DEFAULT_BLOCK_SIZE)
    });
    let block_size = BlockSize::new(asked)?;
    if asked < least {
        Err(VolumeError::Granularity { asked, least })
    } else {
        Ok(block_size)
    }
}

/// Makes a file longer, or a part of that where it fails.
pub(super) fn extend(file: &OwnedFd, from: u64, to: u64, sparse: bool) -> Result<(), VolumeError> {
    let extended = if sparse {
        rustix::fs::ftruncate(file, to)
    } else {
        rustix::fs::fallocate(file, FallocateFlags::empty(), from, to - from)
    };
    extended.map_err(|error| not_extended(error, from, to))
}

pub(super) fn not_extended(error: Errno, from: u64, to: u64) -> VolumeError {
    match error {
        Errno::OPNOTSUPP | Errno::NOSYS => VolumeError::NoReservation,
        Errno::NOSPC | Errno::DQUOT => VolumeError::NoSpace { bytes: to - from },
        Errno::FBIG | Errno::INVAL => VolumeError::TooLong { bytes: to },
        error => VolumeError::kernel("extend it")(error),
    }
}

/// Blocks in the granule of UNMAP.
fn unmap_granularity(file: &OwnedFd, block_size: BlockSize) -> Option<u32> {
    let unit = rustix::fs::fstatvfs(file).map_or(u64::from(PAGE), |fs| fs.f_bsize);
    let blocks = unit / u64::from(block_size.bytes());
    u32::try_from(blocks.max(1)).ok()
}

/// Whether a hole can be punched behind the end, where nothing is; `None` where no file can be so
/// long. Nothing is written, so the file keeps its modification time, where we may set it: an
/// interrupted copy onto it tells by that whether others wrote to it.
fn can_punch(file: &OwnedFd, end: u64) -> Option<bool> {
    let behind = end.checked_next_multiple_of(u64::from(PAGE))?;
    let before = written(file);
    let result = punch(file, behind..behind.checked_add(u64::from(PAGE))?);
    if let Ok(before) = before {
        set_written(file, before);
    }
    Some(!result.is_err_and(|error| is_unsupported(&error)))
}

/// What RWF_ATOMIC keeps whole. It takes powers of two only, at their natural alignment; of those
/// the two longest make up all multiples of a granularity, which is how SBC-4 wants it told.
fn atomic(facts: &Statx, block_size: BlockSize) -> Option<Atomic> {
    if facts.stx_mask & WRITE_ATOMIC.bits() == 0 || facts.stx_atomic_write_segments_max == 0 {
        return None;
    }
    let blocks = |bytes: u32| bytes / block_size.bytes();
    let longest = blocks(facts.stx_atomic_write_unit_max);
    let shortest = blocks(facts.stx_atomic_write_unit_min).max(1);
    if longest == 0 || !longest.is_power_of_two() {
        return None;
    }
    Some(Atomic {
        max_blocks: longest,
        alignment: longest,
        granularity: shortest.max(longest / 2),
    })
}

/// STATX_DIOALIGN, since Linux 6.1.
const DIRECT_ALIGNMENT: StatxFlags = StatxFlags::from_bits_retain(0x2000);
/// STATX_WRITE_ATOMIC, since Linux 6.11.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);
const PAGE: u32 = 4096;

#[cfg(test)]
mod tests;
