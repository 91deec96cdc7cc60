//! Volumes that stay open while what is around them changes: a limit that comes, a file that
//! grows, a mirror that gets a second part. Opened anew, a file would be locked by ourselves, and
//! what a RAM disk holds would be lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::{Address, BlockAddress, FileAddress, Size};
use block::VolumeError;
use block::volume::{OpenMode, Volume};

use super::{OpenCause, OpenError, OpenOptions};

/// The volumes without others inside of a volume that was opened, in the order of its address.
#[derive(Clone, Debug, Default)]
pub struct OpenLeaves(Vec<OpenLeaf>);

#[derive(Clone, Debug)]
struct OpenLeaf {
    address: Address,
    /// What could be written, and is only to be read, has `Readonly` around it.
    mode: OpenMode,
    volume: Arc<dyn Volume>,
}

impl OpenLeaf {
    /// Whether it can be used so.
    fn fits(&self, mode: OpenMode) -> bool {
        let read_only = self.mode.read_only && mode.read_only;
        self.mode == OpenMode { read_only, ..mode }
    }
}

impl OpenLeaves {
    /// Those that are files or devices, which are locked while they are open. What is in memory
    /// goes with its unit.
    #[must_use]
    pub fn files(&self) -> Self {
        let is_file =
            |leaf: &&OpenLeaf| matches!(leaf.address, Address::File(_) | Address::Block(_));
        Self(self.0.iter().filter(is_file).cloned().collect())
    }

    /// Adds others.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether all of these are among them.
    #[must_use]
    pub fn has_all(&self, others: &Self) -> bool {
        let has = |other: &OpenLeaf| {
            self.0
                .iter()
                .any(|one| Arc::ptr_eq(&one.volume, &other.volume))
        };
        others.0.iter().all(has)
    }

    /// How many commands were sent again to units behind other targets; `None` where there are no
    /// such units among them.
    #[must_use]
    pub fn retries(&self) -> Option<u64> {
        let remote = self.0.iter().filter_map(|leaf| leaf.volume.retries());
        remote.reduce(|sum, more| sum + more)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether these are the same volumes.
    #[cfg(test)]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.len() == other.len() && pairs.all(|(one, two)| Arc::ptr_eq(&one.volume, &two.volume))
    }
}

/// What opening an address may go on with, and what it has opened.
#[derive(Clone, Debug, Default)]
pub struct LeafReuse(Arc<Mutex<Lists>>);

#[derive(Debug, Default)]
struct Lists {
    known: OpenLeaves,
    opened: OpenLeaves,
    growth: Growth,
}

impl LeafReuse {
    /// Goes on with these, each once.
    #[must_use]
    pub fn of(known: OpenLeaves) -> Self {
        Self(Arc::new(Mutex::new(Lists {
            known,
            ..Lists::default()
        })))
    }

    /// What was opened, or went on.
    #[must_use]
    pub fn opened(&self) -> OpenLeaves {
        self.lists().opened.clone()
    }

    /// What was not gone on with.
    #[must_use]
    pub fn left(&self) -> OpenLeaves {
        self.lists().known.clone()
    }

    /// Which files that went on are to be longer now.
    #[must_use]
    pub fn growth(&self) -> Growth {
        self.lists().growth.clone()
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume of a leaf: one that is open, or what `open` gives.
    pub(super) fn leaf(
        &self,
        leaf: &Address,
        options: &OpenOptions,
        open: impl FnOnce() -> Result<Arc<dyn Volume>, OpenCause>,
    ) -> Result<Arc<dyn Volume>, OpenCause> {
        let (place, mode) = (place(leaf), mode(leaf, options));
        let known = self.lists().known.take(&place, mode)?;
        let opened = match known {
            Some(known) => {
                if !mode.read_only && !options.as_is {
                    self.lists().growth.add(leaf, &known.volume);
                }
                known
            }
            None => {
                let volume = open()?;
                OpenLeaf {
                    address: place,
                    mode: OpenMode {
                        read_only: mode.read_only && volume.traits().read_only,
                        ..mode
                    },
                    volume,
                }
            }
        };
        let volume = Arc::clone(&opened.volume);
        self.lists().opened.0.push(opened);
        Ok(volume)
    }
}

impl OpenLeaves {
    /// Takes out what is open at a place, in blocks as they are to be, and for writing where it is
    /// to be written. A file or device that is open in another way is opened another time by what
    /// has it: opened anew it would be found locked.
    fn take(&mut self, place: &Address, mode: OpenMode) -> Result<Option<OpenLeaf>, OpenCause> {
        let is_there = |one: &OpenLeaf| one.address == *place;
        let fits = |one: &OpenLeaf| is_there(one) && one.fits(mode);
        if let Some(at) = self.0.iter().position(fits) {
            return Ok(Some(self.0.remove(at)));
        }
        let Some(at) = self.0.iter().position(is_there) else {
            return Ok(None);
        };
        let Some(reopened) = self.0[at].volume.reopen(mode) else {
            return Ok(None);
        };
        let reopened = reopened?;
        let mut leaf = self.0.remove(at);
        let before = leaf.volume.traits().block_size;
        // It may have been told the size of blocks that it has.
        leaf.mode.block_size = mode.block_size;
        if !leaf.fits(mode) || before != reopened.traits().block_size {
            let read_only = leaf.mode.read_only && mode.read_only;
            leaf.mode = OpenMode { read_only, ..mode };
            leaf.volume = reopened;
        }
        Ok(Some(leaf))
    }
}

/// What a leaf is, however large it is to be and however it is used.
fn place(leaf: &Address) -> Address {
    match leaf.clone() {
        Address::File(file) => Address::File(FileAddress {
            path: file.path,
            ..FileAddress::default()
        }),
        Address::Block(device) => Address::Block(BlockAddress {
            read_only: false,
            ..device
        }),
        leaf => leaf,
    }
}

/// How a leaf is to be used.
fn mode(leaf: &Address, options: &OpenOptions) -> OpenMode {
    let mode = OpenMode {
        block_size: options.block_size,
        read_only: options.read_only || is_read_only(leaf),
        ..OpenMode::default()
    };
    match leaf {
        Address::File(file) => OpenMode {
            direct: file.direct,
            sync: file.sync,
            sparse: file.sparse,
            ..mode
        },
        _ => mode,
    }
}

/// Whether an address says of itself that nothing is to be written there.
pub(super) fn is_read_only(leaf: &Address) -> bool {
    match leaf {
        Address::File(file) => file.read_only,
        Address::Block(device) => device.read_only,
        _ => false,
    }
}

/// Files that are served, and are to be longer when a change is made.
///
/// Hosts see at once how long a file is, and may write to all of it. Had it grown before it is sure
/// that the change is made, it could not be cut off again without what they have written since. So
/// room is taken first, without a byte more in the file, which is all that can well fail; the file
/// grows when the change is kept, before hosts are told of it. A server that is killed in between
/// has kept the change and not noted that it was served, so the next start extends the file.
#[derive(Clone, Debug, Default)]
pub struct Growth(Vec<GrownFile>);

#[derive(Clone, Debug)]
struct GrownFile {
    file: FileAddress,
    bytes: u64,
    volume: Arc<dyn Volume>,
}

impl Growth {
    fn add(&mut self, leaf: &Address, volume: &Arc<dyn Volume>) {
        if let Address::File(file) = leaf
            && let (Some(Size(bytes)), false) = (file.size, file.read_only)
        {
            self.0.push(GrownFile {
                file: file.clone(),
                bytes,
                volume: Arc::clone(volume),
            });
        }
    }

    /// Adds what others are to be.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Takes the room for it, where it is not to be taken later.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub fn reserve(&self) -> Result<(), OpenError> {
        let mut solid = self.0.iter().filter(|one| !one.file.sparse);
        solid.try_for_each(|one| one.or(one.volume.reserve(one.bytes)))
    }

    /// Makes the files as long as they are to be.
    ///
    /// # Errors
    ///
    /// One cannot be so long.
    pub fn make(&self) -> Result<(), OpenError> {
        let extend = |one: &GrownFile| one.or(one.volume.extend(one.bytes, one.file.sparse));
        self.0.iter().try_for_each(extend)
    }

    /// Gives back the room: the change is not made.
    pub fn release(&self) {
        let solid = self.0.iter().filter(|one| !one.file.sparse);
        solid.for_each(|one| one.volume.release());
    }
}

impl GrownFile {
    fn or(&self, result: Result<(), VolumeError>) -> Result<(), OpenError> {
        result.map_err(|cause| OpenError {
            address: Address::File(self.file.clone()).to_string(),
            cause: cause.into(),
        })
    }
}
