//! What the kernel tells of block devices under `/sys/dev/block`.

use std::fs;
use std::path::PathBuf;

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
