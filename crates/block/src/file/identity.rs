//! Which file it is: the same after a restart, a rename and growth, and another one than its copy.
//!
//! A file that is served keeps its identity in the extended attribute `user.lunar.identity`,
//! together with the place that it was made for: inode number and birth time, and on btrfs the
//! subvolume. `cp -a` and `rsync -X` copy the attribute, but not the place, so a copy is recognised
//! and gets an identity of its own. Whether the original is still in use somewhere cannot be known:
//! keeping the identity of a file that only moved would need that, and two disks of one identity
//! are worse than a disk that has to be told `--serial`.
//!
//! Where no attribute can be kept (the file system has none, the file may not be written) the
//! identity follows from the place and the machine. It is what a new attribute says, too, so that
//! it makes no difference whether a file was opened for reading first.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Statx, StatxFlags, XattrFlags};

use super::open::facts;
use crate::identity::{digest, hex, machine, serial};

/// The identity of a file; `None` where nothing tells it from others. With `keep` it is kept with
/// the file from now on, where that is possible.
pub(super) fn of(file: &OwnedFd, path: &Path, keep: bool) -> Option<String> {
    let place = InodeKey::of(file)?;
    let kept = StoredIdentity::read(file);
    if let Some(kept) = &kept
        && kept.place.matches(&place)
    {
        return Some(named(&kept.id));
    }
    let machine = machine();
    if keep {
        let id = place.lasting_id(machine.as_deref()).or_else(random_id);
        let renewed = id.and_then(|id| StoredIdentity { id, place }.write(file));
        if let Some(StoredIdentity { id, .. }) = renewed {
            if let Some(old) = kept {
                let old = serial(&named(&old.id));
                tracing::warn!(
                    "{} is a copy of a file that was served with serial number {old}, or was moved \
                     to another file system: it gets a new identity (if the original is no longer \
                     served, --serial {old} keeps the old one)",
                    path.display()
                );
            }
            return Some(named(&id));
        }
    }
    place.id(machine.as_deref()).map(|id| named(&id))
}

/// What tells a file from others as long as it is there, whether it is kept or not.
pub(super) fn place(path: &Path) -> Option<String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let place = InodeKey::of(&file)?;
    let (seconds, nanoseconds) = place.born?;
    Some(format!(
        "inode {} made {seconds}.{nanoseconds}",
        place.inode
    ))
}

fn named(id: &str) -> String {
    format!("file {id}")
}

fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// Where a file is, in what does not change when a machine starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InodeKey {
    inode: u64,
    /// Seconds since 1970 and nanoseconds; an inode number is given to another file when the first
    /// one is gone.
    born: Option<(i64, u32)>,
    /// Where file systems have snapshots with the same inode numbers and birth times, which one.
    subvolume: u64,
    /// The number of the file system, which may be another one after a restart.
    device: (u32, u32),
}

impl InodeKey {
    fn of(file: &OwnedFd) -> Option<Self> {
        let facts = facts(file).ok()?;
        Some(Self {
            inode: facts.stx_ino,
            born: born(&facts),
            subvolume: subvolume(file),
            device: (facts.stx_dev_major, facts.stx_dev_minor),
        })
    }

    /// Whether it is this place that is meant. A kernel may learn to tell birth times.
    fn matches(&self, other: &Self) -> bool {
        let born = self.born.is_none() || other.born.is_none() || self.born == other.born;
        self.inode == other.inode && self.subvolume == other.subvolume && born
    }

    /// What follows from the place, where no other file has ever been or will be there.
    fn lasting_id(&self, machine: Option<&str>) -> Option<String> {
        let (machine, (seconds, nanoseconds)) = (machine?, self.born?);
        Some(self.hash(machine, &format!("{seconds}.{nanoseconds}")))
    }

    /// The same where less is known.
    fn id(&self, machine: Option<&str>) -> Option<String> {
        match (machine, self.born) {
            (None, None) => None,
            (machine, Some((seconds, nanoseconds))) => {
                let born = format!("{seconds}.{nanoseconds}");
                Some(self.hash(machine.unwrap_or_default(), &born))
            }
            (Some(machine), None) => {
                let (major, minor) = self.device;
                Some(self.hash(machine, &format!("on {major}:{minor}")))
            }
        }
    }

    fn hash(&self, machine: &str, born: &str) -> String {
        let place = format!("{} {born} {}", self.inode, self.subvolume);
        hex(&digest(&[b"file", machine.as_bytes(), place.as_bytes()])[..16])
    }
}

fn born(facts: &Statx) -> Option<(i64, u32)> {
    let is_told = facts.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = facts.stx_btime;
    is_told.then_some((born.tv_sec, born.tv_nsec))
}

/// On btrfs f_fsid holds the number of the subvolume, and is the same at each mount.
fn subvolume(file: &OwnedFd) -> u64 {
    let Ok(facts) = rustix::fs::fstatfs(file) else {
        return 0;
    };
    match rustix::fs::fstatvfs(file) {
        Ok(told) if facts.f_type as u64 == BTRFS => told.f_fsid,
        _ => 0,
    }
}

/// What the attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredIdentity {
    /// 32 hexadecimal digits.
    id: String,
    place: InodeKey,
}

impl StoredIdentity {
    fn read(file: &OwnedFd) -> Option<Self> {
        let mut bytes = [0; 256];
        let len = rustix::fs::fgetxattr(file, NAME, &mut bytes[..]).ok()?;
        Self::parse(std::str::from_utf8(&bytes[..len]).ok()?)
    }

    /// Keeps it with the file, over a power cut too.
    fn write(self, file: &OwnedFd) -> Option<Self> {
        rustix::fs::fsetxattr(file, NAME, self.text().as_bytes(), XattrFlags::empty()).ok()?;
        rustix::fs::fsync(file).ok()?;
        Some(self)
    }

    fn text(&self) -> String {
        let InodeKey {
            inode, subvolume, ..
        } = self.place;
        let born = self.place.born.map(|(s, ns)| format!("{s}.{ns:09}"));
        let born = born.as_deref().unwrap_or("-");
        format!("1 {} {inode} {born} {subvolume:x}", self.id)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next() != Some("1") {
            return None;
        }
        let id = words.next()?.to_owned();
        let digits = id.bytes().all(|c| c.is_ascii_hexdigit());
        let inode = words.next()?.parse().ok()?;
        let born = match words.next()? {
            "-" => None,
            born => {
                let (seconds, nanoseconds) = born.split_once('.')?;
                Some((seconds.parse().ok()?, nanoseconds.parse().ok()?))
            }
        };
        let subvolume = u64::from_str_radix(words.next()?, 16).ok()?;
        let place = InodeKey {
            inode,
            born,
            subvolume,
            device: (0, 0),
        };
        (digits && id.len() == 32).then_some(Self { id, place })
    }
}

const NAME: &str = "user.lunar.identity";
/// BTRFS_SUPER_MAGIC (linux/magic.h).
const BTRFS: u64 = 0x9123_683e;

#[cfg(test)]
mod tests;
