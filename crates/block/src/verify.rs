//! `verify(A)`: checks what it reads against what was written through it.
//!
//! The CRC32C of every block that is written is kept, on all cores together. A read that finds
//! another one ends with a read error, and a line in the log names the first such block.
//!
//! # What is judged
//!
//! A block whose last write through this volume went well and was alone at it, from its begin to
//! its end. Writes that overlap in time leave blocks of either; a read beside a write may find
//! either content: such a block is not judged, and after writes that overlapped, or failed, it is
//! unknown until it is written again, alone. So are blocks that were never written since the volume
//! was opened, and those of a WRITE SAME, UNMAP or SANITIZE of more than 4,096 blocks.
//!
//! # What it costs
//!
//! 16 bytes of memory a block, in pieces of 512 blocks where something was written: 3.1 % of what
//! was written in blocks of 512, 0.4 % in blocks of 4,096; and 1 GiB at the most, which is 32 or
//! 256 GiB of blocks. What is written beyond is not judged, as the log says once. Everything read
//! is copied, so that what was checked is what is sent, and nothing is received into the memory of
//! the volume inside.

mod checksum_map;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::io::memory::Pool;
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumOutcome, MediumResult, Now, ReadMemory,
    Sanitize,
};

use crate::filter::{Filter, Intercepted, Interceptor};
use crate::lease::BlockLease;
use crate::size::BlockSize;
use crate::volume::{CoreContext, Handle, Volume};
use checksum_map::{ChecksumMap, ReadSnapshot};

/// A volume that is checked.
#[derive(Debug)]
pub struct VerifyVolume {
    inside: Arc<dyn Volume>,
    shared: Arc<VerifyState>,
}

#[derive(Debug)]
struct VerifyState {
    /// How the log calls it.
    name: String,
    book: Mutex<ChecksumMap>,
    told: Mutex<MismatchLog>,
}

/// What the log has been told.
#[derive(Debug, Default)]
struct MismatchLog {
    last: Option<Now>,
    left_out: u64,
}

impl VerifyVolume {
    /// Checks a volume; `name` is its address, for the log.
    #[must_use]
    pub fn new(inside: Arc<dyn Volume>, name: String) -> Self {
        let shared = VerifyState {
            name,
            book: Mutex::default(),
            told: Mutex::default(),
        };
        let shared = Arc::new(shared);
        Self { inside, shared }
    }
}

impl Filter for VerifyVolume {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let traits = self.inside.traits();
        let block_size = BlockSize::new(traits.block_size).map_err(io::Error::other)?;
        let verifier = Verifier {
            shared: Arc::clone(&self.shared),
            block_size,
            read_only: traits.read_only,
            pool: core.pool.clone(),
            bytes: vec![0; traits.block_size as usize],
            sums: Vec::new(),
            expected: Vec::new(),
        };
        Ok(Box::new(Intercepted::attach(
            &*self.inside,
            core,
            verifier,
        )?))
    }
}

impl VerifyState {
    fn book(&self) -> MutexGuard<'_, ChecksumMap> {
        // A panic within would be one of ours, and its books are as good as none.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a block that differs, once a minute, and then how many were left out.
    fn log_mismatch(&self, now: Now, lba: u64, blocks: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.last.is_some_and(|last| now < last + QUIET) {
            told.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut told.left_out);
        told.last = Some(now);
        tracing::error!(
            "{}: wrong data at LBA {lba} (wrong blocks in this read: {blocks}, mismatches not \
             logged: {left_out})",
            self.name
        );
    }
}

struct Verifier {
    shared: Arc<VerifyState>,
    block_size: BlockSize,
    read_only: bool,
    pool: Pool,
    /// Room for one block.
    bytes: Vec<u8>,
    /// Of the blocks that are to be written.
    sums: Vec<u32>,
    /// Of the blocks that were read; `None` where they are not judged.
    expected: Vec<Option<u32>>,
}

/// What an operation inside is checked for.
enum CheckKind {
    /// Nothing to be checked.
    Other,
    Read(Extent, ReadSnapshot),
    Write(Extent),
    /// A change of more blocks than are looked at one by one.
    Long(Extent),
}

impl Verifier {
    /// What to do inside, and what to do when it is done.
    fn begin(
        &mut self,
        op: MediumOp<BlockLease>,
    ) -> Result<(MediumOp<BlockLease>, CheckKind), MediumError> {
        match op {
            MediumOp::Read { extent, .. } => {
                let seen = self.shared.book().begin_read(extent);
                let memory = ReadMemory::Private;
                Ok((
                    MediumOp::Read { extent, memory },
                    CheckKind::Read(extent, seen),
                ))
            }
            op if self.read_only => Ok((op, CheckKind::Other)),
            MediumOp::PrepareWrite { extent } => {
                let bytes = self.block_size.len(extent);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                Ok((MediumOp::Buffer { bytes }, CheckKind::Other))
            }
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic,
            } => {
                let data = self.private(data)?;
                self.sum(&data);
                let kind = self.begin_write(extent);
                let op = MediumOp::Write {
                    extent,
                    data,
                    fua,
                    atomic,
                };
                Ok((op, kind))
            }
            MediumOp::WriteSame { extent, pattern } => {
                self.sum_of_each(extent, pattern.as_ref());
                let kind = self.begin_write(extent);
                Ok((MediumOp::WriteSame { extent, pattern }, kind))
            }
            MediumOp::Unmap { extent, anchor } => {
                self.sum_of_each(extent, None);
                let kind = self.begin_write(extent);
                Ok((MediumOp::Unmap { extent, anchor }, kind))
            }
            MediumOp::Sanitize { extent, method } => {
                let kind = match &method {
                    Sanitize::Overwrite { pattern } => {
                        self.sum_of_each(extent, Some(pattern));
                        self.begin_write(extent)
                    }
                    // What is found then is the medium's own affair.
                    Sanitize::BlockErase => self.begin_long(extent),
                };
                Ok((MediumOp::Sanitize { extent, method }, kind))
            }
            op => Ok((op, CheckKind::Other)),
        }
    }

    fn begin_write(&self, extent: Extent) -> CheckKind {
        if extent.blocks > SHORT {
            return self.begin_long(extent);
        }
        let mut book = self.shared.book();
        if !book.begin_write(extent, &self.sums) {
            tracing::warn!(
                "{}: verification table full: blocks not written so far are not checked",
                self.shared.name
            );
        }
        CheckKind::Write(extent)
    }

    fn begin_long(&self, extent: Extent) -> CheckKind {
        self.shared.book().begin_long(extent);
        CheckKind::Long(extent)
    }

    /// The data in memory that is written here alone: what lies in a RAM disk may change under us.
    fn private(&self, data: BlockLease) -> Result<BlockLease, MediumError> {
        if !data.buffer().is_of_region() {
            return Ok(data);
        }
        let copy = self.pool.buffer(data.len()).ok_or(MediumError::Busy)?;
        copy.copy_from(0, data.buffer());
        Ok(copy.into())
    }

    /// Sums up each block.
    fn sum(&mut self, data: &BlockLease) {
        self.sums.clear();
        for offset in (0..data.len()).step_by(self.bytes.len()) {
            data.copy_out(offset, &mut self.bytes);
            self.sums.push(crc_fast::crc32_iscsi(&self.bytes));
        }
    }

    /// Sums up blocks that are all alike; of zeros without a pattern.
    fn sum_of_each(&mut self, extent: Extent, pattern: Option<&BlockLease>) {
        match pattern {
            Some(pattern) => pattern.copy_out(0, &mut self.bytes),
            None => self.bytes.fill(0),
        }
        let sum = crc_fast::crc32_iscsi(&self.bytes);
        let blocks = extent.blocks.min(SHORT) as usize;
        self.sums.clear();
        self.sums.resize(blocks, sum);
    }

    fn judge(&mut self, now: Now, extent: Extent, data: BlockLease) -> MediumResult<BlockLease> {
        let (mut first, mut wrong) = (None, 0);
        for (at, expected) in self.expected.iter().enumerate() {
            let Some(expected) = expected else { continue };
            data.copy_out(at * self.bytes.len(), &mut self.bytes);
            if crc_fast::crc32_iscsi(&self.bytes) != *expected {
                first = first.or(Some(extent.lba + at as u64));
                wrong += 1;
            }
        }
        match first {
            None => Ok(MediumOutcome::Lease(data)),
            Some(lba) => {
                self.shared.log_mismatch(now, lba, wrong);
                Err(MediumError::Read)
            }
        }
    }
}

impl Interceptor for Verifier {
    type Note = CheckKind;

    fn enter(
        &mut self,
        _: Now,
        op: MediumOp<BlockLease>,
    ) -> Result<(MediumOp<BlockLease>, CheckKind), MediumResult<BlockLease>> {
        self.begin(op).map_err(Err)
    }

    fn leave(
        &mut self,
        now: Now,
        kind: CheckKind,
        result: MediumResult<BlockLease>,
    ) -> MediumResult<BlockLease> {
        match kind {
            CheckKind::Other => result,
            CheckKind::Write(extent) => {
                self.shared.book().end_write(extent, result.is_ok());
                result
            }
            CheckKind::Long(extent) => {
                self.shared.book().end_long(extent);
                result
            }
            CheckKind::Read(extent, seen) => {
                let mut book = self.shared.book();
                book.end_read(extent, &seen, &mut self.expected);
                drop(book);
                match result {
                    Ok(MediumOutcome::Lease(lease)) => self.judge(now, extent, lease),
                    other => other,
                }
            }
        }
    }
}

/// Up to this number, blocks are checked one by one, which takes a few microseconds.
const SHORT: u64 = 4096;

/// The shortest time between two mismatches in the log.
const QUIET: Duration = Duration::from_secs(60);
