//! Files in memory, mapped so that what is read of them can be sent from where it lies.
//!
//! Only the kernel reads such a mapping, as it sends. Where the file lost a page meanwhile and gets
//! none in its place, the send fails (EFAULT); a load by this process would end the process instead
//! (SIGBUS). So a [`Buffer`] of a map refuses every access but to be sent. Nothing is written by
//! way of a map.
//!
//! After such a failure the ring reads what was not sent yet (pread), and sends that: a hole reads
//! as zeros then. Only what another process truncated cannot be read, and ends the connection.
//!
//! # Holes
//!
//! Reading a hole by way of a map would have the file system take memory for it. So a page is lent
//! only when the file system says that it has it, which is asked once (`SEEK_DATA`) and kept in a
//! bit, until [`FileMap::forget`] is told that the page was given back. A page that is given back
//! while it is on its way to a socket may be taken again, as zeros; where memory is full, it stays
//! a hole. Giving back could wait until nothing of the page is on its way, but that is for a peer
//! to decide, on whichever core, and UNMAP would have to lock what it unmaps on all of them.
//!
//! # The end
//!
//! Behind the end of a file, the rest of its last page reads as zeros, and no send fails for it. So
//! a lender compares with [`LocalFileMap::file_end`] first, and what ends there later is told
//! by the next look.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::fs::SeekFrom;
use rustix::mm::Advice;

use super::bitmap::Bitmap;
use super::buffer::Buffer;
use super::granules::GRANULE;
use super::mapping::Mapping;
use super::region::Recall;
use crate::limits::address_space;
use crate::ring::RingFile;
use crate::sync::AtomicU64;

/// A file in memory, mapped for all cores.
#[derive(Debug)]
pub struct FileMap {
    bytes: Mapping,
    /// The byte behind the last.
    end: u64,
    /// Pages that the file was seen to have.
    present: Bitmap,
    /// How often pages were forgotten.
    changes: AtomicU64,
    /// The file was found to be shorter than what was lent: nothing is lent any more.
    is_lost: AtomicBool,
}

impl FileMap {
    /// Maps the first `end` bytes (more than 0) of a file in memory.
    ///
    /// # Errors
    ///
    /// Of mmap, such as no address space; or it would take what the limit of address space leaves
    /// for all else.
    pub fn new(file: &RingFile, end: u64) -> io::Result<Arc<Self>> {
        let len = usize::try_from(end).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if address_space().is_some_and(|left| left / 2 < end) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let bytes = Mapping::of_file(file, len)?;
        bytes.advise(0, bytes.len(), Advice::LinuxDontDump);
        Ok(Arc::new(Self {
            bytes,
            end,
            present: Bitmap::new(end.div_ceil(GRANULE))?,
            changes: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
        }))
    }

    /// Where the map ends, in bytes from the begin of the file.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Pages of this range were given back. To be told after that was done.
    pub fn forget(&self, range: &Range<u64>) {
        // A core that looks at this moment either finds the change, or is overwritten by us.
        self.changes.fetch_add(1, SeqCst);
        self.present
            .clear(pages(range.start.min(self.end)..range.end.min(self.end)));
    }

    /// Asks for pages that are not known.
    #[cold]
    fn look(&self, file: &RingFile, pages: Range<u64>) -> bool {
        let changes = self.changes.load(SeqCst);
        if !are_present(file, &pages) {
            return false;
        }
        self.present.set(pages.clone());
        let is_sure = self.changes.load(SeqCst) == changes;
        if !is_sure {
            self.present.clear(pages);
        }
        is_sure
    }
}

/// A map as one core uses it.
#[derive(Debug)]
pub struct LocalFileMap {
    view: Rc<FileView>,
    /// Earlier views that buffers may still hold.
    earlier: Vec<Weak<dyn Debug>>,
}

/// What claims hold.
#[derive(Debug)]
pub(super) struct FileView {
    map: Arc<FileMap>,
    /// The core's own description of the file: several would wait for each other to seek in one.
    file: Arc<RingFile>,
}

impl LocalFileMap {
    /// What a core works with that reads the file by `file`.
    #[must_use]
    pub fn new(map: Arc<FileMap>, file: Arc<RingFile>) -> Self {
        Self {
            view: Rc::new(FileView { map, file }),
            earlier: Vec::new(),
        }
    }

    /// Where the map ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.view.map.end
    }

    /// Takes another map of the same file, such as one that is longer.
    pub fn renew(&mut self, map: Arc<FileMap>) {
        let file = Arc::clone(&self.view.file);
        let view = std::mem::replace(&mut self.view, Rc::new(FileView { map, file }));
        self.earlier.retain(|claims| claims.strong_count() > 0);
        let view: Weak<FileView> = Rc::downgrade(&view);
        self.earlier.push(view);
    }

    /// Where the file ends now, in bytes: one short system call. 0 if that cannot be told.
    #[must_use]
    pub fn file_end(&self) -> u64 {
        rustix::fs::seek(&**self.view.file, SeekFrom::End(0)).unwrap_or(0)
    }

    /// The data of a range, only to be sent; `None` where that may be a hole, or cannot be lent.
    #[must_use]
    pub fn buffer(&self, range: Range<u64>) -> Option<Buffer> {
        let map = &self.view.map;
        if range.start > range.end || range.end > map.end || map.is_lost.load(Relaxed) {
            return None;
        }
        let touched = pages(range.clone());
        if !map.present.all(touched.clone()) && !map.look(&self.view.file, touched) {
            return None;
        }
        let start = map.bytes.at(range.start as usize);
        let len = (range.end - range.start) as usize;
        Some(Buffer::of_file(start, len, Rc::clone(&self.view)))
    }

    /// Tells apart what was lent until now from what will be: that alone is waited for by what is
    /// returned.
    pub fn recall(&mut self) -> Recall {
        self.renew(Arc::clone(&self.view.map));
        Recall::of_all(self.earlier.clone())
    }
}

impl FileView {
    /// What the file holds in the place of what was lent. Its pages are asked for anew. If the file
    /// has lost it, nothing more is lent.
    pub(super) fn copy(&self, address: usize, len: usize) -> Option<Buffer> {
        let start = (address - self.map.bytes.at(0).addr().get()) as u64;
        self.map.forget(&(start..start + len as u64));
        let copy = read_whole(&self.file, start, len);
        self.map.is_lost.fetch_or(copy.is_none(), Relaxed);
        copy.map(Buffer::from_vec)
    }
}

/// Reads so many bytes; `None` where there are fewer.
fn read_whole(file: &RingFile, start: u64, len: usize) -> Option<Vec<u8>> {
    let file = File::from((**file).try_clone().ok()?);
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// Whether a file has pages, and not a hole or its end among them. What was swapped out counts as
/// well.
///
/// Each is asked for by itself (0.7 us). To be told where the next hole is (`SEEK_HOLE`) would take
/// one call for all of them, but that looks at every page up to there, which may be the end of the
/// file: 2 ms where that is 512 MiB away.
fn are_present(file: &RingFile, pages: &Range<u64>) -> bool {
    let is_present = |page| {
        let start = page * GRANULE;
        rustix::fs::seek(&**file, SeekFrom::Data(start)) == Ok(start)
    };
    pages.clone().all(is_present)
}

/// The pages that a range touches. Where the kernel's are larger, each is several of ours.
fn pages(range: Range<u64>) -> Range<u64> {
    range.start / GRANULE..range.end.div_ceil(GRANULE)
}
