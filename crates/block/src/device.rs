//! `block:DEV`: a block device of the kernel, past its page cache.
//!
//! It is opened exclusively: what is mounted, or part of a RAID, of LVM or of another server, is
//! refused. Blocks have the device's own size unless a larger one is asked for. UNMAP is offered
//! where the device then reads as zeros; the kernel does not tell what is mapped, so everything is
//! said to be.

mod identity;
mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use scsi::medium::Traits;

use crate::backing::Backing;
use crate::error::VolumeError;
use crate::identity::Details;
use crate::volume::{CoreContext, Handle, OpenMode, Volume};

/// How a device is to be opened.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Its node.
    pub path: PathBuf,
    /// Only for reading.
    pub read_only: bool,
    /// Bytes in a logical block; `None`: the device's own.
    pub block_size: Option<u32>,
}

/// A block device.
#[derive(Debug)]
pub struct DeviceVolume {
    backing: Arc<Backing>,
    options: DeviceOptions,
}

impl DeviceVolume {
    /// Opens a device for this process alone.
    ///
    /// # Errors
    ///
    /// What does not fit, and what the kernel refuses.
    pub fn open(options: &DeviceOptions) -> Result<Self, VolumeError> {
        let options = options.clone();
        open::open(&options).map(|backing| Self { backing, options })
    }
}

impl Volume for DeviceVolume {
    fn traits(&self) -> Traits {
        self.backing.traits()
    }

    fn prepare(&self, cores: u16) -> io::Result<()> {
        self.backing.prepare(cores)
    }

    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        self.backing.attach(core)
    }

    fn particulars(&self) -> Details {
        Details::new(self.traits(), identity::of(self.backing.master()))
    }

    fn shortened_to(&self) -> Option<u64> {
        // One that is gone may not say so much.
        let bytes = ::io::files::device_size(self.backing.master()).unwrap_or(0);
        self.backing.shortened_to(bytes)
    }

    fn reopen(&self, mode: OpenMode) -> Option<Result<Arc<dyn Volume>, VolumeError>> {
        let options = DeviceOptions {
            block_size: mode.block_size,
            read_only: self.options.read_only && mode.read_only,
            ..self.options.clone()
        };
        let backing = if self.options.read_only && !options.read_only {
            open::for_writing(&self.backing, &options)
        } else {
            open::again(&self.backing, &options)
        };
        Some(backing.map(|backing| Arc::new(Self { backing, options }) as _))
    }

    fn can_grow(&self) -> bool {
        true
    }

    fn refresh(&self) -> io::Result<bool> {
        let bytes = ::io::files::device_size(self.backing.master())?;
        Ok(self.backing.resize(bytes))
    }
}

/// A block device by its number.
pub(crate) struct Attributes {
    folder: PathBuf,
}

impl Attributes {
    pub(crate) fn of(device: u64) -> Self {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        Self { folder }
    }

    /// The device that has this folder.
    #[cfg(test)]
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder of the device under `/sys/devices`.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        fs::canonicalize(&self.folder).ok()
    }

    /// An attribute of the device itself.
    pub(crate) fn own(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// An attribute of its queue; a partition has that of the disk around it.
    pub(crate) fn queue(&self, name: &str) -> Option<String> {
        ["queue", "../queue"]
            .iter()
            .find_map(|queue| self.own(&format!("{queue}/{name}")))
    }

    /// The same as a number.
    pub(crate) fn queue_number(&self, name: &str) -> Option<u64> {
        self.queue(name)?.parse().ok()
    }
}

/// Whether what has this number does not rotate. So says the kernel; memory and networks do not.
pub(crate) fn is_solid_state(device: u64) -> bool {
    Attributes::of(device).queue_number("rotational") != Some(1)
}
