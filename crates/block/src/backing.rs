//! What files and block devices have in common: blocks behind a descriptor.
//!
//! # Failed writes are remembered
//!
//! After a write-back failed the kernel marks the pages clean and tells the error once. A later
//! fdatasync succeeds although the data is gone, so from the first such failure on every flush and
//! every forced write of the volume fails, on all cores, until it is opened anew. Writes that were
//! refused before anything was taken (no space, write protection) do not count.
//!
//! The kernel tells the error once to each open file description, and each core has two of its
//! own: one to write through the cache and flush, one for writes that are durable when they end.
//! So no core, and no flush beside a durable write, takes another one's error away. On one core
//! flushes go one after the other; those that come while one is in flight share the next.

mod handle;
mod lent;
mod notices;
mod space;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::memory::FileMap;
use ::io::ring::RingFile;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use scsi::medium::{Atomic, Extent, MediumError, Traits};
use scsi::statistics::SpaceUsage;

use crate::error::{VolumeError, read_error, write_error};
use crate::size::BlockSize;
use crate::volume::{CoreContext, Handle};

pub(crate) use space::{Zeroing, punch};

/// Blocks behind a descriptor, for all cores.
#[derive(Debug)]
pub(crate) struct Backing {
    /// Each core opens its own by the descriptor in it.
    file: LockedFile,
    rules: BackingRules,
    blocks: AtomicU64,
    /// The byte where a file ended when it was shortest. What was behind it is lost, whatever the
    /// length is now: a write there would extend the file by zeros that were never written.
    end: AtomicU64,
    /// Data that was accepted is lost.
    lost: Arc<AtomicBool>,
    unsupported: space::Unsupported,
    notices: notices::Notices,
    /// The traits that were told last say that it unmaps.
    told_to_unmap: AtomicBool,
    /// A file in memory, once reads are sent from it.
    map: Mutex<Option<Arc<FileMap>>>,
    /// Opened for cores that have not attached it yet.
    prepared: Mutex<Vec<[OwnedFd; 2]>>,
}

/// An open file or device that others are kept away from.
#[derive(Debug)]
pub(crate) struct LockedFile {
    /// Holds the lock, unless `claim` does.
    pub(crate) master: OwnedFd,
    pub(crate) claim: Option<Claim>,
}

/// What keeps others away from a file or device that was opened for reading first, then by another
/// descriptor for writing. It goes with the last volume that has it.
pub(crate) type Claim = Arc<dyn std::fmt::Debug + Send + Sync>;

/// How a backing is to be treated; fixed when it is opened.
#[derive(Debug)]
pub(crate) struct BackingRules {
    /// Its address, for the log.
    pub(crate) name: String,
    /// It is a block device, of which nothing is there behind its end.
    pub(crate) is_device: bool,
    pub(crate) block_size: BlockSize,
    pub(crate) physical_exponent: u8,
    pub(crate) read_only: bool,
    /// There is a volatile cache below, of the kernel or of the device.
    pub(crate) write_cache: bool,
    /// Every write is durable when it ends.
    pub(crate) sync: bool,
    /// Reads and writes go past the page cache, from memory aligned to this many bytes.
    pub(crate) direct: Option<usize>,
    /// Blocks in the granule of UNMAP.
    pub(crate) unmap_granularity: Option<u32>,
    /// How zeros are made, the best way first; without any that works they are written.
    pub(crate) zeroing: &'static [Zeroing],
    /// Holes can be told from data.
    pub(crate) knows_holes: bool,
    pub(crate) atomic: Option<Atomic>,
    pub(crate) solid_state: bool,
}

impl Backing {
    pub(crate) fn new(master: OwnedFd, rules: BackingRules, blocks: u64) -> Arc<Self> {
        let claim = None;
        Self::with_losses(LockedFile { master, claim }, rules, blocks, Arc::default())
    }

    /// The same file or device, opened another time. What it has lost is lost.
    pub(crate) fn another(&self, file: LockedFile, rules: BackingRules, blocks: u64) -> Arc<Self> {
        Self::with_losses(file, rules, blocks, Arc::clone(&self.lost))
    }

    fn with_losses(
        file: LockedFile,
        rules: BackingRules,
        blocks: u64,
        lost: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            file,
            rules,
            blocks: AtomicU64::new(blocks),
            end: AtomicU64::new(u64::MAX),
            lost,
            unsupported: space::Unsupported::default(),
            notices: notices::Notices::default(),
            told_to_unmap: AtomicBool::new(true),
            map: Mutex::default(),
            prepared: Mutex::default(),
        })
    }

    pub(crate) fn master(&self) -> &OwnedFd {
        &self.file.master
    }

    /// Another descriptor of what is open. The lock holds until both are closed.
    pub(crate) fn duplicate(&self) -> Result<LockedFile, VolumeError> {
        let master = self.file.master.try_clone();
        Ok(LockedFile {
            master: master.map_err(|cause| VolumeError::Kernel {
                what: "open it another time",
                cause,
            })?,
            claim: self.file.claim.clone(),
        })
    }

    pub(crate) fn traits(&self) -> Traits {
        let rules = &self.rules;
        Traits {
            block_size: rules.block_size.bytes(),
            blocks: self.blocks.load(SeqCst),
            physical_exponent: rules.physical_exponent,
            read_only: rules.read_only,
            write_cache: rules.write_cache,
            unmap_granularity: rules.unmap_granularity.filter(|_| self.unmaps()),
            anchor: false,
            atomic: rules.atomic,
            // Below us may be copies on write, journals, snapshots and flash translation: nothing
            // can tell whether overwriting or discarding reaches the old data.
            sanitize: &[],
            solid_state: rules.solid_state,
            write_same_to_end: false,
            shared: false,
        }
    }

    /// What a file takes of its file system, and what that could still give it.
    pub(crate) fn usage(&self) -> Option<SpaceUsage> {
        self.rules.unmap_granularity?;
        let file = rustix::fs::fstat(&self.file.master).ok()?;
        let system = rustix::fs::fstatvfs(&self.file.master).ok()?;
        let bytes = u64::from(self.rules.block_size.bytes());
        let used = u64::try_from(file.st_blocks).ok()? * ST_BLOCK / bytes;
        let holes = self.blocks.load(SeqCst).saturating_sub(used);
        let free = system.f_bavail.saturating_mul(system.f_frsize) / bytes;
        Some(SpaceUsage {
            used,
            available: free.min(holes),
        })
    }

    /// Opens the file for cores that will attach it, as a file system may take its time for that.
    pub(crate) fn prepare(&self, cores: u16) -> io::Result<()> {
        for _ in 0..cores {
            let files = self.core_files()?;
            self.prepared().push(files);
        }
        Ok(())
    }

    pub(crate) fn attach(self: &Arc<Self>, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let prepared = self.prepared().pop();
        let [data, durable] = prepared.map_or_else(|| self.core_files(), Ok)?;
        let [data, durable] = [data, durable].map(|file| Arc::new(RingFile::new(file)));
        Ok(Box::new(handle::BackingHandle::new(
            Arc::clone(self),
            data,
            durable,
            core,
        )))
    }

    /// Records the current size in bytes. Returns whether the traits have changed: the volume has
    /// grown, or was found not to support UNMAP. A shorter file keeps its capacity, and its
    /// missing blocks can be neither read nor written until it is opened again.
    pub(crate) fn resize(&self, bytes: u64) -> bool {
        if !self.rules.is_device && bytes < self.bytes() {
            self.end.fetch_min(bytes, SeqCst);
        }
        self.notices.len(&self.rules, bytes, self.bytes());
        let blocks = bytes / u64::from(self.rules.block_size.bytes());
        let has_grown = self.blocks.fetch_max(blocks, SeqCst) < blocks;
        let unmaps = self.unmaps();
        let is_news = self.told_to_unmap.swap(unmaps, SeqCst) != unmaps;
        has_grown || is_news && self.rules.unmap_granularity.is_some()
    }

    /// Records that the file has no name any more: its data is lost when it is closed.
    pub(crate) fn is_removed(&self) {
        self.notices.removed(&self.rules);
    }

    /// The byte at which the volume ends, if `bytes` is less than its capacity.
    pub(crate) fn shortened_to(&self, bytes: u64) -> Option<u64> {
        (bytes < self.bytes()).then_some(bytes)
    }

    /// The capacity.
    fn bytes(&self) -> u64 {
        self.blocks.load(SeqCst) * u64::from(self.rules.block_size.bytes())
    }

    /// Space can be given back, as far as that was tried.
    fn unmaps(&self) -> bool {
        self.unsupported.allows(Zeroing::Punch)
    }

    fn prepared(&self) -> MutexGuard<'_, Vec<[OwnedFd; 2]>> {
        let locked = self.prepared.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_map(&self) -> MutexGuard<'_, Option<Arc<FileMap>>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a core uses: one for data, and one whose writes are durable when they end.
    fn core_files(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.core_file()?, self.core_file()?])
    }

    fn core_file(&self) -> io::Result<OwnedFd> {
        let file = self.reopen(self.rules.read_only);
        file.map_err(|cause| self.not_reopened(cause))
    }

    /// A file description of one's own, whatever the name leads to by now. A program that the lock
    /// excludes is excluded already.
    pub(crate) fn reopen(&self, read_only: bool) -> rustix::io::Result<OwnedFd> {
        let access = if read_only {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let direct = match self.rules.direct {
            Some(_) => OFlags::DIRECT,
            None => OFlags::empty(),
        };
        let path = format!("/proc/self/fd/{}", self.file.master.as_raw_fd());
        let flags = access | direct | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::open(path, flags, Mode::empty())
    }

    fn not_reopened(&self, cause: Errno) -> io::Error {
        let name = &self.rules.name;
        let why = match cause {
            Errno::NOENT => "each core opens it through /proc/self/fd; mount /proc".to_owned(),
            cause => VolumeError::kernel("open it for a core")(cause).to_string(),
        };
        io::Error::new(cause.kind(), format!("{name}: {why}"))
    }

    /// Whether what was accepted can still be made durable.
    fn check(&self) -> Result<(), MediumError> {
        if self.lost.load(SeqCst) {
            Err(MediumError::Write)
        } else {
            Ok(())
        }
    }

    /// Refuses an operation on blocks that a file has lost.
    fn check_end(&self, extent: Extent, refusal: MediumError) -> Result<(), MediumError> {
        if self.rules.block_size.range(extent).end > self.end.load(Relaxed) {
            Err(refusal)
        } else {
            Ok(())
        }
    }

    /// What a failed read means.
    fn read_failed(&self, error: &io::Error) -> MediumError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof if self.rules.is_device => MediumError::Gone,
            io::ErrorKind::UnexpectedEof => self.ended_early(),
            _ => read_error(error),
        }
    }

    /// The file is shorter than the volume, which is recorded before a write extends it again.
    #[cold]
    fn ended_early(&self) -> MediumError {
        if let Ok(file) = rustix::fs::fstat(&self.file.master) {
            self.resize(u64::try_from(file.st_size).unwrap_or(0));
        }
        MediumError::Read
    }

    /// What a failed write means, and what follows from it.
    fn write_failed(&self, error: &io::Error) -> MediumError {
        let meaning = write_error(error);
        if meaning == MediumError::NoSpace {
            return self.no_space();
        }
        if !was_refused(error) {
            self.lose(error);
        }
        meaning
    }

    /// A device says so too of what lies behind its end.
    fn no_space(&self) -> MediumError {
        let has_shrunk = |bytes| bytes < self.bytes();
        if self.rules.is_device && ::io::files::device_size(&self.file.master).is_ok_and(has_shrunk)
        {
            return MediumError::Gone;
        }
        self.notices.full(&self.rules);
        MediumError::NoSpace
    }

    /// What a failed flush means. Whatever the cause, data may be gone.
    fn flush_failed(&self, error: &io::Error) -> MediumError {
        self.lose(error);
        write_error(error)
    }

    fn lose(&self, error: &io::Error) {
        if !self.lost.swap(true, SeqCst) {
            self.notices.lost(&self.rules, error);
        }
    }
}

/// Whether a write took no data that it could have lost.
fn was_refused(error: &io::Error) -> bool {
    matches!(
        write_error(error),
        MediumError::NoSpace | MediumError::ReadOnly | MediumError::Unsupported
    ) || matches!(
        Errno::from_io_error(error),
        Some(Errno::INVAL | Errno::NOMEM | Errno::AGAIN | Errno::INTR)
    )
}

/// What `st_blocks` counts, in bytes, whatever the blocks of the file system.
const ST_BLOCK: u64 = 512;
