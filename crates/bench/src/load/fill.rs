//! Volumes before they are measured: what was never written reads as zeros from nowhere, and that
//! flatters.

use std::io;
use std::sync::Arc;

use ::io::ring::Kind;
use block::lease::Lease;
use engine::pair::way_out;
use engine::worker::{Done, Worker};
use scsi::medium::{Extent, MediumError, MediumOp, Outcome, Provisioning, SEGMENT_BYTES};

use super::Subject;
use super::book;
use super::stamp::{self, Stamp};
use crate::crew::{Live, Watch};

/// Writes that are under way at a time.
const DEPTH: usize = 8;

/// Why a volume could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// Our machine.
    #[error("cannot fill it: {0}")]
    Machine(#[from] io::Error),
    /// The volume, from the start.
    #[error("it cannot be written, and --fill writes: leave that out")]
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
    subject: &Subject,
    seed: u64,
    ring: Kind,
    watch: &mut Watch<'_>,
) -> Result<(), FillError> {
    if subject.volume.traits().read_only {
        return Err(FillError::ReadOnly);
    }
    let span = subject.span;
    let mut worker = worker(subject, ring)?;
    let run = stamp::new_run();
    let step = SEGMENT_BYTES / u64::from(span.block_size);
    let octets = |blocks: u64| blocks * u64::from(span.block_size);
    let (mut begun, mut done, mut under_way) = (0, 0, 0);
    while done < span.blocks {
        while begun < span.blocks && under_way < DEPTH && !watch.stopped() {
            let blocks = step.min(span.blocks - begun);
            let extent = Extent::new(span.first + begun, blocks);
            let buffer = worker.buffer(octets(blocks) as usize);
            let mut data = buffer.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
            book::fill(&mut data, span.block_size as usize, |block| Stamp {
                seed,
                run,
                lba: extent.lba + block,
                generation: 0,
            });
            worker.submit(0, blocks, write(extent, data));
            begun += blocks;
            under_way += 1;
        }
        if under_way == 0 {
            break;
        }
        let Done { id, result, .. } = next(&mut worker)?;
        result?;
        done += id;
        under_way -= 1;
        let (done, total) = (octets(done), octets(span.blocks));
        (watch.live)(Live::Fill { done, total });
    }
    Ok(worker.leave()?)
}

/// Whether the span begins with what was never written, as far as the volume can tell.
///
/// # Errors
///
/// Of our own machine.
pub fn is_hole(subject: &Subject, ring: Kind) -> io::Result<bool> {
    let mut worker = worker(subject, ring)?;
    let extent = Extent::new(subject.span.first, subject.span.blocks);
    worker.submit(0, 0, MediumOp::Status { extent });
    let done = next(&mut worker)?;
    worker.leave()?;
    let Ok(Outcome::Provisioning { state, .. }) = done.result else {
        return Ok(false);
    };
    Ok(state == Provisioning::Deallocated)
}

fn worker(subject: &Subject, ring: Kind) -> io::Result<Worker> {
    let memory = 4 * DEPTH * SEGMENT_BYTES as usize;
    Worker::new(&[Arc::clone(&subject.volume)], ring, memory)
}

fn write(extent: Extent, data: Lease) -> MediumOp<Lease> {
    MediumOp::Write {
        extent,
        data,
        fua: false,
        atomic: false,
    }
}

fn next(worker: &mut Worker) -> io::Result<Done> {
    loop {
        if let Some(done) = worker.next_done() {
            return Ok(done);
        }
        worker.wait(None)?;
    }
}
