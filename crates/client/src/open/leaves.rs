//! Volumes that stay open while what is around them changes: a limit that comes, a file that
//! grows, a mirror that gets a second part. Opened anew, a file would be locked by ourselves, and
//! what a RAM disk holds would be lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::{Address, FileAddress, Size};
use block::VolumeError;
use block::volume::Volume;

use super::{OpenCause, OpenOptions};

/// The volumes without others inside of a volume that was opened, in the order of its address.
#[derive(Clone, Debug, Default)]
pub struct OpenLeaves(Vec<OpenLeaf>);

#[derive(Clone, Debug)]
struct OpenLeaf {
    address: Address,
    read_only: bool,
    block_size: Option<u32>,
    volume: Arc<dyn Volume>,
}

impl OpenLeaves {
    /// Adds what of others is a file or a device, which is locked while it is open. What is in
    /// memory goes with its unit.
    pub fn add_files(&mut self, others: Self) {
        let is_file =
            |leaf: &OpenLeaf| matches!(leaf.address, Address::File(_) | Address::Block(_));
        self.0.extend(others.0.into_iter().filter(is_file));
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
pub struct LeafReuse(Arc<Mutex<(OpenLeaves, OpenLeaves)>>);

impl LeafReuse {
    /// Goes on with these, each once.
    #[must_use]
    pub fn of(known: OpenLeaves) -> Self {
        Self(Arc::new(Mutex::new((known, OpenLeaves::default()))))
    }

    /// What was opened, or went on.
    #[must_use]
    pub fn opened(&self) -> OpenLeaves {
        self.lists().1.clone()
    }

    fn lists(&self) -> MutexGuard<'_, (OpenLeaves, OpenLeaves)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume of a leaf: one that is open, or what `open` gives.
    pub(super) fn leaf(
        &self,
        leaf: &Address,
        options: &OpenOptions,
        open: impl FnOnce() -> Result<Arc<dyn Volume>, OpenCause>,
    ) -> Result<Arc<dyn Volume>, OpenCause> {
        let place = place(leaf);
        let fits = |one: &OpenLeaf| {
            let may_write = !one.read_only || options.read_only;
            one.address == place && one.block_size == options.block_size && may_write
        };
        let known = {
            let known = &mut self.lists().0.0;
            let at = known.iter().position(fits);
            at.map(|at| known.remove(at))
        };
        let opened = match known {
            Some(known) => {
                if !options.read_only && !options.as_is {
                    extend(leaf, &*known.volume)?;
                }
                known
            }
            None => OpenLeaf {
                address: place,
                read_only: options.read_only,
                block_size: options.block_size,
                volume: open()?,
            },
        };
        let volume = Arc::clone(&opened.volume);
        self.lists().1.0.push(opened);
        Ok(volume)
    }
}

/// What a leaf is, however large it is to be.
fn place(leaf: &Address) -> Address {
    match leaf {
        Address::File(file) => Address::File(FileAddress {
            size: None,
            ..file.clone()
        }),
        leaf => leaf.clone(),
    }
}

fn extend(leaf: &Address, volume: &dyn Volume) -> Result<(), VolumeError> {
    match leaf {
        Address::File(FileAddress {
            size: Some(Size(size)),
            sparse,
            read_only: false,
            ..
        }) => volume.extend(*size, *sparse),
        _ => Ok(()),
    }
}
