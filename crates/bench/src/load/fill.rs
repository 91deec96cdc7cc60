//! Volumes before they are measured: what was never written reads as zeros from nowhere, and that
//! flatters.

use std::io;
use std::sync::Arc;

use ::io::ring::RingKind;
use block::lease::BlockLease;
use client::pair::way_out;
use client::worker::{Worker, WorkerResult};
use scsi::medium::{Extent, MediumError, MediumOp, MediumOutcome, Provisioning, SEGMENT_BYTES};

use super::LoadVolume;
use super::stamp::{self, BlockStamp};
use super::write_generations;
use crate::load_threads::{LiveFigures, RunObserver};

/// Writes that are in flight at a time.
const DEPTH: usize = 8;

/// Why a volume could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// Our machine.
    #[error("cannot fill it: {0}")]
    Machine(#[from] io::Error),
    /// The volume, from the start.
    #[error("it is read-only, but --fill writes: omit --fill")]
    ReadOnly,
    /// The volume.
    #[error("cannot fill it: {}{}", .0, way_out(*.0))]
    Volume(#[from] MediumError),
}

/// Writes the whole span once, with blocks that a load that verifies knows by `seed`. Ends early
/// when it is told to stop.
///
/// # Errors
///
/// When a write fails.
pub fn fill(
    subject: &LoadVolume,
    seed: u64,
    ring: RingKind,
    watch: &mut RunObserver<'_>,
) -> Result<(), FillError> {
    if subject.volume.traits().read_only {
        return Err(FillError::ReadOnly);
    }
    let span = subject.span;
    let mut worker = worker(subject, ring)?;
    let base = BlockStamp::base(seed, stamp::new_run());
    let step = SEGMENT_BYTES / u64::from(span.block_size);
    let bytes = |blocks: u64| blocks * u64::from(span.block_size);
    let (mut begun, mut done, mut in_flight) = (0, 0, 0);
    while done < span.blocks {
        while begun < span.blocks && in_flight < DEPTH && !watch.stopped() {
            let blocks = step.min(span.blocks - begun);
            let extent = Extent::new(span.first + begun, blocks);
            let buffer = worker.buffer(bytes(blocks) as usize);
            let mut data = buffer.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
            write_generations::fill(&mut data, span.block_size as usize, |block| BlockStamp {
                lba: extent.lba + block,
                ..base
            });
            worker.submit(0, blocks, write(extent, data));
            begun += blocks;
            in_flight += 1;
        }
        if in_flight == 0 {
            break;
        }
        let WorkerResult { id, result, .. } = next(&mut worker)?;
        result?;
        done += id;
        in_flight -= 1;
        let (done, total) = (bytes(done), bytes(span.blocks));
        (watch.live)(LiveFigures::Fill { done, total });
    }
    Ok(worker.leave()?)
}

/// How much of a span was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwrittenRange {
    /// None, as far as the volume can tell.
    None,
    /// Some of it.
    Some,
    /// All of it.
    All,
}

/// This many times a volume is asked for a hole; one that is in many pieces is taken for full.
const QUESTIONS: usize = 64;

/// How much of the span was never written, as far as the volume can tell.
///
/// # Errors
///
/// Of our own machine.
pub fn holes(subject: &LoadVolume, ring: RingKind) -> io::Result<UnwrittenRange> {
    let mut worker = worker(subject, ring)?;
    let end = subject.span.first + subject.span.blocks;
    let mut first = subject.span.first;
    let mut holes = UnwrittenRange::None;
    for _ in 0..QUESTIONS {
        let extent = Extent::new(first, end - first);
        worker.submit(0, 0, MediumOp::Status { extent });
        let Ok(MediumOutcome::Provisioning { blocks, state }) = next(&mut worker)?.result else {
            break;
        };
        let is_hole = state == Provisioning::Deallocated;
        if is_hole {
            let is_all = first == subject.span.first && first + blocks >= end;
            holes = if is_all {
                UnwrittenRange::All
            } else {
                UnwrittenRange::Some
            };
        }
        first = first.saturating_add(blocks.max(1));
        if is_hole || first >= end {
            break;
        }
    }
    worker.leave()?;
    Ok(holes)
}

fn worker(subject: &LoadVolume, ring: RingKind) -> io::Result<Worker> {
    let memory = 4 * DEPTH * SEGMENT_BYTES as usize;
    Worker::new(&[Arc::clone(&subject.volume)], ring, memory)
}

pub(super) fn write(extent: Extent, data: BlockLease) -> MediumOp<BlockLease> {
    MediumOp::Write {
        extent,
        data,
        fua: false,
        atomic: false,
    }
}

fn next(worker: &mut Worker) -> io::Result<WorkerResult> {
    loop {
        if let Some(done) = worker.next_done() {
            return Ok(done);
        }
        worker.wait(None)?;
    }
}
