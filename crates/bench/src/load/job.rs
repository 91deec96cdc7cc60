//! One thread: it attaches a volume, and keeps a queue depth of I/Os in flight on it.

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::lease::BlockLease;
use client::pair::way_out;
use client::worker::{Worker, WorkerResult};
use fastrand::Rng;
use scsi::medium::{Extent, MediumError, MediumOp, MediumOutcome, MediumResult, ReadMemory};

use super::stamp::BlockStamp;
use super::write_generations::{self, WriteGenerations};
use super::{LoadVolume, LoadWaits, fill};
use crate::load_threads::{LoadPhase, LoadThread, ThreadTotals};
use crate::outcome::{DataDirection, Load};
use crate::plan::{FioOptions, IoRegion};

/// What a job is told.
pub(super) struct JobSpec<'a> {
    pub(super) subject: &'a LoadVolume,
    pub(super) words: &'a FioOptions,
    pub(super) load: Load,
    /// Its place among the jobs of this volume.
    pub(super) number: u32,
    pub(super) run: u64,
}

pub(super) struct LoadJob<'a> {
    task: &'a JobSpec<'a>,
    post: &'a LoadThread<'a>,
    worker: Worker,
    random: Rng,
    places: IoRegion,
    slots: Vec<IoSlot>,
    free: Vec<u32>,
    pace: Option<IoPacing>,
    book: Option<WriteGenerations>,
    report: ThreadTotals,
    /// The last turn of which the report was handed in.
    reported: u32,
}

/// An I/O that may be in flight.
struct IoSlot {
    began: Instant,
    place: u64,
    write: bool,
    /// It began while everything is counted, and so it counts whenever it ends.
    counts: bool,
    /// What is written; none where nothing is.
    data: Option<BlockLease>,
}

/// What holds I/Os back.
struct IoPacing {
    begin: Instant,
    gap: Duration,
    begun: u32,
}

/// The id of what is not an I/O of a slot.
const GREETING: u64 = u64::MAX;

/// So often results are taken without looking at the ring, where a volume answers at once.
const TURNS: u32 = 16;

/// This many places are tried before a job that verifies waits for one to be given back.
const TRIES: usize = 8;

/// Buffers of a pool have sizes of their own, and sessions take some too.
const SPARE_MEMORY: usize = 16 << 20;

impl<'a> LoadJob<'a> {
    pub(super) fn run(task: &JobSpec<'_>, waits: LoadWaits, post: &LoadThread<'_>) -> ThreadTotals {
        let failed = |what: &str, cause: &dyn Display| ThreadTotals {
            failure: Some(format!("{}: {what}: {cause}", task.subject.address)),
            ..ThreadTotals::default()
        };
        match LoadJob::new(task, waits, post) {
            Ok(mut job) => match job.work() {
                Ok(()) => job.leave(),
                Err(cause) => failed("the ring failed", &cause),
            },
            Err(cause) => failed("it cannot be used", &cause),
        }
    }

    fn new(task: &'a JobSpec<'a>, waits: LoadWaits, post: &'a LoadThread<'a>) -> io::Result<Self> {
        let (words, load, span) = (task.words, task.load, task.subject.span);
        let (bytes, depth) = (load.block_bytes as usize, load.depth as usize);
        let memory = bytes.next_power_of_two().max(4096) * 4 * 2 * depth + SPARE_MEMORY;
        let worker = Worker::new(&[Arc::clone(&task.subject.volume)], waits.ring, memory)?;
        let worker = worker.polls(waits.poll);
        let block_size = span.block_size;
        // Each block has one writer, else its content would not be known.
        let (part, parts) = if words.verify {
            (task.number, load.jobs)
        } else {
            (0, 1)
        };
        let blocks = u64::from(load.block_bytes / block_size);
        let places = IoRegion::new(span, blocks, load.order, part, parts);
        let reads_only = load.direction == DataDirection::Read;
        let count = places.count();
        let book = || WriteGenerations::new(words.seed, task.run, block_size, reads_only, count);
        let mut job = Self {
            task,
            post,
            worker,
            random: words.random(task.number),
            book: words.verify.then(book),
            places,
            slots: Vec::with_capacity(depth),
            free: (0..load.depth).rev().collect(),
            pace: words.rate_iops.map(IoPacing::new),
            report: ThreadTotals::default(),
            reported: 0,
        };
        for _ in 0..depth {
            let slot = job.slot(reads_only)?;
            job.slots.push(slot);
        }
        Ok(job)
    }

    /// With data that can be neither compressed nor deduplicated.
    fn slot(&mut self, reads_only: bool) -> io::Result<IoSlot> {
        let mut data = None;
        if !reads_only {
            let buffer = self.worker.buffer(self.task.load.block_bytes as usize);
            let mut buffer = buffer.ok_or(io::ErrorKind::OutOfMemory)?;
            let base = BlockStamp::base(self.random.u64(..), self.task.run);
            write_generations::fill(&mut buffer, 512, |lba| BlockStamp { lba, ..base });
            data = Some(buffer);
        }
        Ok(IoSlot {
            began: Instant::now(),
            place: 0,
            write: false,
            counts: false,
            data,
        })
    }

    fn work(&mut self) -> io::Result<()> {
        self.greet()?;
        self.post.ready(Some(self.worker.waker()));
        let mut turns = 0;
        while self.goes_on() {
            let idle = self.turn() == 0;
            turns += 1;
            if idle || turns == TURNS {
                self.worker.wait(self.patience())?;
                turns = 0;
            }
        }
        self.drain()?;
        if self.book.is_some() && self.task.load.direction != DataDirection::Read {
            self.read_back()?;
            self.drain()?;
        }
        Ok(())
    }

    /// Takes what is over, and begins as much while nothing failed. Returns how much was over.
    fn turn(&mut self) -> usize {
        let (turn, phase) = self.post.at();
        let finished = self.finish();
        match phase {
            _ if self.report.failure.is_some() => {}
            LoadPhase::Rest => self.rest(turn),
            _ => self.start(phase == LoadPhase::Measure),
        }
        finished
    }

    /// Hands in what was counted in a turn, once nothing of it is in flight any more.
    fn rest(&mut self, turn: u32) {
        if self.reported != turn && !self.is_busy() {
            self.reported = turn;
            self.post.rested(mem::take(&mut self.report));
        }
    }

    /// Reads once, so that a session is there before anything is measured.
    fn greet(&mut self) -> io::Result<()> {
        let extent = self.places.extent(0);
        self.worker.submit(0, GREETING, read(extent));
        while !matches!(self.post.phase(), LoadPhase::Cancel | LoadPhase::Abandon) {
            // Should it fail, the load will tell.
            if self.worker.next_done().is_some() {
                break;
            }
            self.worker.wait(Some(Duration::from_millis(100)))?;
        }
        Ok(())
    }

    fn goes_on(&self) -> bool {
        let over = self.post.phase().is_end();
        !over && self.report.failure.is_none()
    }

    /// Begins as many I/Os as may be in flight.
    fn start(&mut self, counts: bool) {
        while let Some(&slot) = self.free.last() {
            if self.pace.as_mut().is_some_and(|pace| !pace.permits()) {
                return;
            }
            let Some(place) = self.place() else { return };
            self.free.pop();
            let JobSpec { words, load, .. } = self.task;
            let write = words.next_writes(load.direction, &mut self.random);
            self.submit(slot, place, write, counts);
        }
    }

    /// The next place; where data is checked, one that is free.
    fn place(&mut self) -> Option<u64> {
        for _ in 0..TRIES {
            let place = self.places.next(&mut self.random);
            if self.book.as_mut().is_none_or(|book| book.take(place)) {
                return Some(place);
            }
        }
        None
    }

    fn submit(&mut self, number: u32, place: u64, write: bool, counts: bool) {
        let extent = self.places.extent(place);
        let slot = &mut self.slots[number as usize];
        (slot.place, slot.write, slot.counts) = (place, write, counts);
        let op = match &mut slot.data {
            Some(data) if write => {
                if let Some(book) = &self.book {
                    book.stamp(place, extent, data);
                }
                fill::write(extent, data.clone())
            }
            _ => read(extent),
        };
        slot.began = Instant::now();
        self.worker.submit(0, u64::from(number), op);
    }

    /// How long to wait for results.
    fn patience(&self) -> Option<Duration> {
        let pace = self.pace.as_ref().filter(|_| !self.free.is_empty())?;
        Some(pace.next().saturating_duration_since(Instant::now()))
    }

    /// Takes what is over. Returns how much that was.
    fn finish(&mut self) -> usize {
        let mut count = 0;
        let mut now = None;
        while let Some(done) = self.worker.next_done() {
            let now = *now.get_or_insert_with(Instant::now);
            self.finished(done, now);
            count += 1;
        }
        if count > 0 {
            self.post.show(&self.report);
        }
        count
    }

    fn finished(&mut self, WorkerResult { id, result, .. }: WorkerResult, now: Instant) {
        let Some(slot) = self.slots.get(id as usize) else {
            return;
        };
        let (place, write, began) = (slot.place, slot.write, slot.began);
        let counts = slot.counts && result.is_ok();
        self.free.push(id as u32);
        let wrong = self.judge(place, write, &result);
        let tally = self.report.tally(write);
        if let Some(wrong) = wrong {
            let failure = format!("{}: {wrong}", self.task.subject.address);
            tally.fail(|| failure.clone());
            self.report.failure.get_or_insert(failure);
        } else if counts {
            let latency = now.saturating_duration_since(began).as_nanos() as u64;
            tally.record(u64::from(self.task.load.block_bytes), latency);
        }
    }

    /// What is wrong with a result.
    fn judge(
        &mut self,
        place: u64,
        write: bool,
        result: &MediumResult<BlockLease>,
    ) -> Option<String> {
        let extent = self.places.extent(place);
        let error = result.as_ref().err();
        let failed = error.filter(|error| **error != MediumError::Cancelled);
        let mut wrong = failed.map(|error| {
            let Load { block_bytes, .. } = self.task.load;
            let what = if write { "write" } else { "read" };
            let offset = extent.lba * u64::from(self.task.subject.span.block_size);
            let way_out = way_out(*error);
            format!("{what} of {block_bytes} bytes at offset {offset}: {error}{way_out}")
        });
        if let Some(book) = &mut self.book {
            if write {
                book.written(place, result.is_ok());
            } else {
                if let Ok(MediumOutcome::Lease(data)) = result {
                    wrong = book.check(place, extent, data);
                }
                book.release(place);
            }
        }
        wrong
    }

    /// Waits for what is in flight: an I/O that hangs is one of those that count most. It ends by
    /// the volume's own timeouts, or is given up where there is nothing more to learn.
    fn drain(&mut self) -> io::Result<()> {
        let mut is_cancelled = false;
        while self.is_busy() && self.post.phase() != LoadPhase::Abandon {
            let in_vain = self.report.failure.is_some() || self.post.phase() == LoadPhase::Cancel;
            if in_vain && !is_cancelled {
                is_cancelled = true;
                self.worker.cancel(0);
            }
            self.worker.wait(None)?;
            self.finish();
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.free.len() < self.slots.len()
    }

    /// Reads everything again that was written.
    fn read_back(&mut self) -> io::Result<()> {
        let mut place = 0;
        let count = self.book.as_ref().map_or(0, WriteGenerations::len);
        while place < count && self.report.failure.is_none() {
            if matches!(self.post.phase(), LoadPhase::Cancel | LoadPhase::Abandon) {
                break;
            }
            while place < count
                && let Some(&slot) = self.free.last()
            {
                let book = self.book.as_mut();
                if book.is_some_and(|book| book.is_written(place) && book.take(place)) {
                    self.free.pop();
                    self.submit(slot, place, false, false);
                }
                place += 1;
            }
            if self.is_busy() {
                self.worker.wait(None)?;
                self.finish();
            }
        }
        Ok(())
    }

    fn leave(self) -> ThreadTotals {
        let mut report = self.report;
        // The buffers are the worker's.
        let idle = self.free.len() == self.slots.len();
        drop(self.slots);
        if idle
            && let Err(cause) = self.worker.leave()
            && report.failure.is_none()
        {
            report.failure = Some(format!("{}: {cause}", self.task.subject.address));
        }
        report
    }
}

fn read(extent: Extent) -> MediumOp<BlockLease> {
    MediumOp::Read {
        extent,
        memory: ReadMemory::Lent,
    }
}

impl IoPacing {
    fn new(iops: u64) -> Self {
        Self {
            begin: Instant::now(),
            gap: Duration::from_secs(1).div_f64(iops.max(1) as f64),
            begun: 0,
        }
    }

    /// When the next I/O may begin.
    fn next(&self) -> Instant {
        self.begin + self.gap * self.begun
    }

    /// Whether it may now; it counts as begun then.
    fn permits(&mut self) -> bool {
        let now = Instant::now();
        if self.begun >= BATCH {
            // So that the count stays small; what was missed until here is kept.
            self.begin += self.gap * self.begun;
            self.begun = 0;
        }
        let permits = self.next() <= now;
        self.begun += u32::from(permits);
        permits
    }
}

/// After this many I/Os a pace counts anew.
const BATCH: u32 = 1 << 16;
