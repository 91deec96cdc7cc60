//! Opens two volumes, and looks whether they go together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use block::file::UndoLog;
use block::identity::Details;
use block::volume::Volume;

use super::{PairError, VolumeMismatch, VolumeShape};
use crate::open::{self, OpenOptions};
use address::{Address, FileAddress, Size};

/// What is to be done with which volumes.
#[derive(Clone, Debug)]
pub struct PairOptions {
    /// The first volume, which is only read.
    pub a: Address,
    /// The second one.
    pub b: Address,
    /// Pieces at a time, from 1 to [`super::MOST_DEPTH`].
    pub depth: usize,
    /// How volumes are opened.
    pub open: OpenOptions,
    /// Where records of copies are kept; `None`: none are.
    pub state_dir: Option<PathBuf>,
    /// For how long a copy may make no progress, and a remote unit be away.
    pub timeout: Duration,
}

/// Both of them.
#[derive(Debug)]
pub(super) struct VolumePair {
    pub(super) volumes: [Arc<dyn Volume>; 2],
    pub(super) shapes: [VolumeShape; 2],
    /// What each says of itself.
    pub(super) particulars: [Details; 2],
    /// When the files of A had been written to last.
    pub(super) written: Vec<(i64, u64)>,
    /// What opening B did to files.
    undo: UndoLog,
}

impl VolumePair {
    /// Opens A for reading, then B for writing, or for reading too if `read_only`. A file that B
    /// names and that is not there is created, as long as A and without taking room.
    pub(super) fn open(options: &PairOptions, read_only: bool) -> Result<Self, PairError> {
        if shares_a_file(&options.a, &options.b) {
            return Err(same(options));
        }
        let undo = UndoLog::default();
        let for_writing = OpenOptions {
            replacement: options.timeout,
            undo: Some(undo.clone()),
            ..options.open.clone()
        };
        let for_reading = OpenOptions {
            read_only: true,
            ..for_writing.clone()
        };
        let a = open::volume(&options.a, &for_reading)?;
        let written = a.written();
        let bytes = VolumeShape::of(&a.traits()).bytes;
        even(&options.a, &a.traits().block_size.into())?;
        let (address, how) = if read_only {
            (options.b.clone(), &for_reading)
        } else {
            (with_size(&options.b, bytes), &for_writing)
        };
        let b = open::volume(&address, how).inspect_err(|_| drop(undo.undo()))?;
        let pair = Self {
            shapes: [VolumeShape::of(&a.traits()), VolumeShape::of(&b.traits())],
            particulars: [a.particulars(), b.particulars()],
            written,
            volumes: [a, b],
            undo,
        };
        match pair.fit(options, read_only) {
            Ok(()) => Ok(pair),
            Err(misfit) => Err(pair.undo(misfit)),
        }
    }

    /// Nothing comes of it: as if it had not been tried.
    pub(super) fn undo(&self, error: PairError) -> PairError {
        drop(self.undo.undo());
        error
    }

    /// Whether A was written to since it was opened, as far as that can be known.
    pub(super) fn is_changed(&self) -> bool {
        self.written != self.volumes[0].written()
    }

    fn fit(&self, options: &PairOptions, read_only: bool) -> Result<(), PairError> {
        let [a, b] = self.shapes;
        let [ours, theirs] = &self.particulars;
        let leaves = theirs.leaves();
        if ours.leaves().iter().any(|leaf| leaves.contains(leaf)) {
            return Err(same(options));
        }
        if a.bytes > b.bytes {
            let (a_bytes, b_bytes) = (a.bytes, b.bytes);
            let (a, b) = names(options);
            return Err(PairError::Misfit(VolumeMismatch::Larger {
                a,
                a_bytes,
                b,
                b_bytes,
                extended: (!read_only)
                    .then(|| extended(&options.b, a_bytes))
                    .flatten(),
            }));
        }
        if !read_only && theirs.traits.read_only {
            return Err(PairError::Misfit(VolumeMismatch::ReadOnly(
                options.b.to_string(),
            )));
        }
        let block_size = a.block_size.max(b.block_size);
        if !a.bytes.is_multiple_of(block_size) {
            return Err(uneven(&options.a, a.bytes, block_size));
        }
        Ok(())
    }
}

fn names(options: &PairOptions) -> (String, String) {
    (options.a.to_string(), options.b.to_string())
}

fn same(options: &PairOptions) -> PairError {
    let (a, b) = names(options);
    PairError::Misfit(VolumeMismatch::Same { a, b })
}

fn uneven(volume: &Address, bytes: u64, block_size: u64) -> PairError {
    PairError::Misfit(VolumeMismatch::Uneven {
        volume: volume.to_string(),
        bytes,
        block_size,
    })
}

/// A file's bytes behind its last whole block are not part of the volume: they would be left out
/// without a word.
fn even(address: &Address, block_size: &u64) -> Result<(), PairError> {
    for leaf in address.leaves() {
        if let Address::File(file) = leaf
            && let Ok(facts) = fs::metadata(&file.path)
            && !facts.len().is_multiple_of(*block_size)
        {
            return Err(uneven(leaf, facts.len(), *block_size));
        }
    }
    Ok(())
}

/// The address, with what it takes to create a file that is not there.
fn with_size(address: &Address, bytes: u64) -> Address {
    let mut address = address.clone();
    if let Address::File(file) = &mut address
        && file.size.is_none()
        && file.path.symlink_metadata().is_err()
    {
        file.size = Some(Size(bytes));
        file.sparse = true;
    }
    address
}

/// The address that extends a file to `bytes` bytes. A read-only file is not extended.
fn extended(address: &Address, bytes: u64) -> Option<String> {
    match address {
        Address::File(file) if !file.read_only => {
            let file = FileAddress {
                size: Some(Size(bytes)),
                ..file.clone()
            };
            Some(Address::File(file).to_string())
        }
        _ => None,
    }
}

/// Whether two addresses name one file or device: it would be found locked by ourselves.
fn shares_a_file(a: &Address, b: &Address) -> bool {
    let ours: Vec<_> = a.leaves().filter_map(file_id).collect();
    b.leaves()
        .filter_map(file_id)
        .any(|file| ours.contains(&file))
}

/// Tells a file or device from others as long as it is there.
fn file_id(leaf: &Address) -> Option<(u64, u64)> {
    let path: &Path = match leaf {
        Address::File(file) => &file.path,
        Address::Block(device) => &device.device,
        _ => return None,
    };
    let facts = fs::metadata(path).ok()?;
    Some(match facts.rdev() {
        0 => (facts.dev(), facts.ino()),
        device => (device, 0),
    })
}
