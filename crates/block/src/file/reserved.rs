//! Folders whose files are no volumes, as they are a program's own.
//!
//! It is the opened file that is looked at, not its path: a path can lead there by symbolic links
//! and `..`, and can be made to lead elsewhere between a look at it and its use.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;

use crate::error::VolumeError;

/// Folders, and files outside of them, that no volume may be in. None by default.
#[derive(Clone, Debug, Default)]
pub struct ReservedPlaces(Arc<[PathBuf]>);

/// Device and inode number.
type Inode = (u64, u64);

impl ReservedPlaces {
    /// Those at these paths, as they are when a volume is opened.
    #[must_use]
    pub fn new(places: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(places.into_iter().collect())
    }

    /// Refuses an open file or folder that is in one of them.
    pub(crate) fn refuse(&self, file: &OwnedFd) -> Result<(), VolumeError> {
        let place = self.holding(file).map(Path::to_owned);
        place.map_or(Ok(()), |place| Err(VolumeError::Reserved(place)))
    }

    /// The place that an open file or folder is in, at any depth or by any hard link of a file.
    fn holding(&self, file: &OwnedFd) -> Option<&Path> {
        let known = self.0.iter().filter_map(|path| Some((inode(path)?, path)));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return None;
        }
        let stat = rustix::fs::fstat(file).ok()?;
        let own = (stat.st_dev, stat.st_ino);
        let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok();
        let above = name.iter().flat_map(|name| name.ancestors().skip(1));
        let inodes: Vec<_> = above.filter_map(inode).chain([own]).collect();
        let place = known.iter().find(|(place, _)| inodes.contains(place));
        if let Some((_, path)) = place {
            return Some(path);
        }
        // Another name of it may lie there.
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let has_one_name = is_folder || stat.st_nlink == 1;
        let is_known = has_one_name && name.is_some_and(|name| inode(&name) == Some(own));
        let mut left = known.iter().filter(|_| !is_known);
        let place = left.find(|(_, path)| has(path, own));
        place.map(|(_, path)| &***path)
    }
}

fn inode(path: impl AsRef<Path>) -> Option<Inode> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Whether a folder has this file, at any depth.
fn has(folder: &Path, file: Inode) -> bool {
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link is not followed.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if (found.dev(), found.ino()) == file {
                return true;
            }
            if found.is_dir() {
                left.push(entry.path());
            }
        }
    }
    false
}
