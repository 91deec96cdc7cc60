//! `block:DEV`: a block device of the kernel, past its page cache.
//!
//! It is opened exclusively: what is mounted, or part of a RAID, of LVM or of another server, is
//! refused. Blocks have the device's own size unless a larger one is asked for. UNMAP is offered
//! where the device then reads as zeros; the kernel does not tell what is mapped, so everything is
//! said to be.

mod identity;
mod open;
pub(crate) mod sysfs;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use scsi::medium::Traits;

use crate::backing::Backing;
use crate::details::Details;
use crate::error::VolumeError;
use crate::volume::{CoreContext, Handle, Volume};

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
}

impl DeviceVolume {
    /// Opens a device for this process alone.
    ///
    /// # Errors
    ///
    /// What does not fit, and what the kernel refuses.
    pub fn open(options: &DeviceOptions) -> Result<Self, VolumeError> {
        open::open(options).map(|backing| Self { backing })
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
        let bytes = ::io::device::size(self.backing.master()).unwrap_or(0);
        self.backing.shortened_to(bytes)
    }

    fn can_grow(&self) -> bool {
        true
    }

    fn refresh(&self) -> io::Result<bool> {
        let bytes = ::io::device::size(self.backing.master())?;
        Ok(self.backing.resize(bytes))
    }
}
