//! `file:PATH`: a volume in a file.
//!
//! The capacity is the file's size in whole blocks; it follows when the file grows. A file is
//! created and extended to the size that is asked for, and never made shorter. Extending reserves
//! the space, unless `sparse` says that it shall be taken when blocks are written. UNMAP gives
//! space back in either case, reserved or not.
//!
//! A writer locks the file exclusively and a reader locks it against writers, so that two servers,
//! or a server and QEMU, never write to the same file.

mod holder;
mod identity;
mod lock;
mod open;
mod reserved;
mod room;
mod undo;
mod warnings;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scsi::medium::Traits;
use scsi::statistics::SpaceUsage;

use crate::backing::Backing;
use crate::error::VolumeError;
use crate::identity::Details;
use crate::volume::{CoreContext, Handle, OpenMode, Volume};
pub use holder::FileHolder;
use lock::WriterLocks;
pub use reserved::ReservedPlaces;
use room::ReservedRoom;
pub use undo::{UndoEntries, UndoLog};

/// How a file is to be opened.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// Where it is.
    pub path: PathBuf,
    /// Create it, or extend it to this many bytes.
    pub size: Option<u64>,
    /// Do not reserve space for what is created or extended.
    pub sparse: bool,
    /// Past the page cache.
    pub direct: bool,
    /// Every write is durable when it ends (WCE = 0).
    pub sync: bool,
    /// Only for reading.
    pub read_only: bool,
    /// Neither create nor extend it, whatever `size` says.
    pub as_is: bool,
    /// Keep the identity with the file, in an extended attribute, where it may be written.
    pub keep_identity: bool,
    /// Where it must not be.
    pub reserved: ReservedPlaces,
    /// Where it is noted that the file was created or extended.
    pub undo: Option<UndoLog>,
    /// Bytes in a logical block; `None`: 512, or what direct I/O needs at least.
    pub block_size: Option<u32>,
    /// Where direct I/O needs more than 512 bytes, `block_size` has to say so. That depends on the
    /// kernel, the file system and the disk, so blocks whose size followed from it would change
    /// under what initiators have stored.
    pub lasting_block_size: bool,
}

/// A volume in a file.
#[derive(Debug)]
pub struct FileVolume {
    backing: Arc<Backing>,
    identity: Option<String>,
    /// Behind the end of the file, whatever its blocks.
    room: Arc<ReservedRoom>,
    /// Upgrades of the lock by which it is read.
    writers: WriterLocks,
    /// How it was opened, without what that did to it.
    options: FileOptions,
    /// When it had been written to last, as it was opened.
    written_before: (i64, u64),
}

impl FileVolume {
    /// Opens, creates or extends a file.
    ///
    /// # Errors
    ///
    /// What does not fit, and what the kernel refuses. A file is then as it was before.
    pub fn open(options: &FileOptions) -> Result<Self, VolumeError> {
        let (backing, written_before) = open::open(options)?;
        let keep = options.keep_identity && !options.read_only;
        let identity = identity::of(backing.master(), &options.path, keep);
        let options = FileOptions {
            size: None,
            undo: None,
            ..options.clone()
        };
        Ok(Self {
            backing,
            identity,
            room: Arc::default(),
            writers: WriterLocks::default(),
            options,
            written_before,
        })
    }

    fn with_options(&self, options: FileOptions) -> Result<Self, VolumeError> {
        let backing = if self.options.read_only && !options.read_only {
            open::for_writing(&self.backing, &self.writers, &options)?
        } else {
            open::again(&self.backing, &options)?
        };
        Ok(Self {
            backing,
            identity: self.identity.clone(),
            room: Arc::clone(&self.room),
            writers: self.writers.clone(),
            written_before: self.written_before,
            options,
        })
    }
}

/// Tells the file of this path from all others that there are or will be on this machine.
pub(crate) fn place(path: &Path) -> Option<String> {
    identity::place(path)
}

impl Volume for FileVolume {
    fn traits(&self) -> Traits {
        self.backing.traits()
    }

    fn prepare(&self, cores: u16) -> io::Result<()> {
        self.backing.prepare(cores)
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.backing.attach(core)
    }

    fn usage(&self) -> Option<SpaceUsage> {
        self.backing.usage()
    }

    fn shortened_to(&self) -> Option<u64> {
        let size = rustix::fs::fstat(self.backing.master()).ok()?.st_size;
        self.backing.shortened_to(u64::try_from(size).unwrap_or(0))
    }

    fn is_removed(&self) -> bool {
        let ours = rustix::fs::fstat(self.backing.master());
        match (std::fs::metadata(&self.options.path), ours) {
            (Ok(found), Ok(ours)) => (found.dev(), found.ino()) != (ours.st_dev, ours.st_ino),
            (Err(error), _) => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
            _ => false,
        }
    }

    fn written(&self) -> Vec<(i64, u64)> {
        let stat = rustix::fs::fstat(self.backing.master());
        let times = stat.map(|stat| (stat.st_mtime, stat.st_mtime_nsec));
        times.into_iter().collect()
    }

    fn written_before(&self) -> Vec<(i64, u64)> {
        vec![self.written_before]
    }

    fn particulars(&self) -> Details {
        Details::new(self.traits(), self.identity.clone())
    }

    fn extend(&self, bytes: u64, sparse: bool) -> Result<(), VolumeError> {
        self.room.extend(self.backing.master(), bytes, sparse)
    }

    fn reserve(&self, bytes: u64) -> Result<(), VolumeError> {
        self.room.reserve(self.backing.master(), bytes)
    }

    fn release(&self) {
        self.room.release(self.backing.master());
    }

    fn reopen(&self, mode: OpenMode) -> Option<Result<Arc<dyn Volume>, VolumeError>> {
        if mode.sync != self.options.sync && !self.options.read_only {
            return Some(Err(VolumeError::CacheInUse));
        }
        let file = self.with_options(FileOptions {
            block_size: mode.block_size,
            read_only: self.options.read_only && mode.read_only,
            direct: mode.direct,
            sync: mode.sync,
            sparse: mode.sparse,
            ..self.options.clone()
        });
        Some(file.map(|file| Arc::new(file) as _))
    }

    fn can_grow(&self) -> bool {
        true
    }

    fn refresh(&self) -> io::Result<bool> {
        let _held = self.room.hold();
        let stat = rustix::fs::fstat(self.backing.master())?;
        if stat.st_nlink == 0 {
            self.backing.is_removed();
        }
        Ok(self
            .backing
            .resize(u64::try_from(stat.st_size).unwrap_or(0)))
    }
}
