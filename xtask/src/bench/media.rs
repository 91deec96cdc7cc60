//! What volumes are on: files in memory, loop devices on these, and file systems on the latter.
//!
//! Files lie in a tmpfs of this command's mount namespace, and loop devices end with their last
//! user, so that nothing is left of them however this command ends.

use std::any::Any;
use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tests::tool;

use super::VOLUME;
use super::contenders::Contender;

/// What a volume is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    /// A file in memory, through the page cache.
    File,
    /// The same with O_DIRECT.
    Direct,
    /// A loop device on such a file.
    Loop,
    /// A file of a file system on a loop device, through the page cache.
    On(FileSystem),
    /// The same with O_DIRECT.
    DirectOn(FileSystem),
}

/// A file system of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "file",
            Self::Direct => "file direct",
            Self::Loop => "loop device",
            Self::On(FileSystem::Ext4) => "ext4",
            Self::On(FileSystem::Xfs) => "xfs",
            Self::DirectOn(FileSystem::Ext4) => "ext4 direct",
            Self::DirectOn(FileSystem::Xfs) => "xfs direct",
        })
    }
}

impl Backend {
    pub(super) fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectOn(_))
    }

    /// Whether it takes a loop device, for which there may be no rights.
    pub(super) fn needs_loop(self) -> bool {
        matches!(self, Self::Loop | Self::On(_) | Self::DirectOn(_))
    }
}

/// Where files in memory are made.
const MEMORY: &str = "/dev/shm";

/// Covers it with a tmpfs of our own, in a mount namespace of our own.
pub(super) fn prepare() -> Result<()> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "lunar-bench", MEMORY]);
    tool::must(&mut command).context("no tmpfs").map(drop)
}

/// What a volume is on; it goes when this is dropped.
pub(crate) struct Medium {
    address: String,
    _held: Box<dyn Any>,
}

impl Medium {
    /// `user` tells it from others of its kind.
    pub(super) fn new(backend: Backend, user: Contender) -> Result<Self> {
        let user = user.to_string().replace(' ', "-");
        let name = format!("{MEMORY}/lunar-bench-{user}-{}", std::process::id());
        let (address, held): (_, Box<dyn Any>) = match backend {
            Backend::File | Backend::Direct => {
                let file = MemoryFile::new(name.into(), VOLUME)?;
                (format!("file:{}", file.0.display()), Box::new(file))
            }
            Backend::Loop => {
                let device = LoopDevice::new(name.into(), VOLUME)?;
                (format!("block:{}", device.path), Box::new(device))
            }
            Backend::On(system) | Backend::DirectOn(system) => {
                let mounted = Mounted::new(name.into(), system)?;
                let file = mounted.folder.join("volume");
                File::create(&file)?.set_len(VOLUME)?;
                (format!("file:{}", file.display()), Box::new(mounted))
            }
        };
        let options = if backend.is_direct() { "?direct" } else { "" };
        Ok(Self {
            address: address + options,
            _held: held,
        })
    }

    /// As a volume of `lunar serve`.
    pub(super) fn address(&self) -> String {
        self.address.clone()
    }
}

/// A sparse file in memory.
struct MemoryFile(PathBuf);

impl MemoryFile {
    fn new(path: PathBuf, size: u64) -> Result<Self> {
        let file = Self(path);
        File::create(&file.0)?.set_len(size)?;
        Ok(file)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // What is gone already needs no care.
        let _ = fs::remove_file(&self.0);
    }
}

/// A loop device on a file in memory, which has no name any more.
struct LoopDevice {
    path: String,
    _opened: File,
}

impl LoopDevice {
    /// The file is at `path` for a moment.
    fn new(path: PathBuf, size: u64) -> Result<Self> {
        let file = MemoryFile::new(path, size)?;
        let mut attach = Command::new("losetup");
        let path = tool::must(attach.args(["--find", "--show"]).arg(&file.0))?;
        let path = path.trim().to_owned();
        // A device that is open is detached when it is closed for the last time.
        let opened = File::open(&path);
        tool::must(Command::new("losetup").arg("--detach").arg(&path))?;
        Ok(Self {
            _opened: opened.with_context(|| path.clone())?,
            path,
        })
    }
}

/// A file system on a loop device.
struct Mounted {
    folder: PathBuf,
    /// The file system has it open as well, so that it ends with either.
    device: LoopDevice,
}

impl Mounted {
    fn new(folder: PathBuf, system: FileSystem) -> Result<Self> {
        /// XFS takes no less than 300 MiB.
        const ROOM: u64 = 256 << 20;
        let (make, options) = system.make();
        tool::present(&[make])?;
        let device = LoopDevice::new(folder.with_extension("disk"), VOLUME + ROOM)?;
        tool::must(Command::new(make).args(options).arg(&device.path))?;
        fs::create_dir(&folder)?;
        let mounted = Self { folder, device };
        let device = &mounted.device.path;
        tool::must(Command::new("mount").arg(device).arg(&mounted.folder))?;
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Where it was not mounted, there is nothing to undo.
        let _ = tool::must(Command::new("umount").arg(&self.folder));
        let _ = fs::remove_dir(&self.folder);
    }
}

impl FileSystem {
    /// What makes one, at once and whole: else a thread of the kernel writes to it later.
    fn make(self) -> (&'static str, &'static [&'static str]) {
        const LAZY: &str = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", LAZY]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
        }
    }
}
