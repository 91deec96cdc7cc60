//! The loop around a machine.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::time::{Duration, Instant};

use ::io::ring::RingKind;
use block::lease::BlockLease;
use rustix::io::Errno;
use scsi::medium::MediumError;

use super::copy::{CopyMachine, CopyPlan};
use super::open::{PairOptions, VolumePair};
use super::ranges::Ranges;
use super::record::{FileTimes, Record, SavedCopy, UNKNOWN};
use super::verify::{Differences, VerifyMachine};
use super::{
    CHUNK, CopyProgress, PairError, PairFailure, PairMachine, PairOrder, PairSide, VolumeProblem,
};
use crate::worker::Worker;
use address::Address;
use address::human_size;
use block::volumes::tell_gathered;

/// What came of a copy that was begun.
#[derive(Clone, Debug)]
pub struct Copied {
    /// How far it came.
    pub progress: CopyProgress,
    /// This many bytes at the start of B are those of A, and durable.
    pub durable: u64,
    /// But for these, which cannot be read from A, and are zeros at B.
    pub unreadable: Ranges,
    /// Another run can go on from there.
    pub resumable: bool,
    /// Others wrote to A meanwhile, as far as that can be known: B may hold some of what was there
    /// before and some of what came then.
    pub changed: bool,
    /// What ended it before it was complete.
    pub failure: Option<PairFailure>,
    /// How long it took.
    pub time: Duration,
    /// What came of reading back, where that was wanted and the copy is complete.
    pub verified: Option<Verified>,
}

impl Copied {
    /// Whether all of A is at B, but for what cannot be read.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.durable == self.progress.total
    }
}

/// What came of a comparison that was begun.
#[derive(Clone, Debug)]
pub struct Verified {
    /// How far it came.
    pub progress: CopyProgress,
    /// What differs.
    pub differences: Differences,
    /// Bytes in a block of A.
    pub block_size: u64,
    /// What ended it before it was complete.
    pub failure: Option<PairFailure>,
    /// How long it took.
    pub time: Duration,
}

impl Verified {
    /// Whether all of A was compared.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.progress.done() == self.progress.total
    }
}

/// How often the caller is asked whether to go on, at least.
const TICK: Duration = Duration::from_millis(200);

/// How often it is remembered how far a copy came: each time costs two syncs.
const REMEMBERED_EVERY: Duration = Duration::from_secs(1);

/// How a copy begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// It goes on from where the last run came to.
    pub resume: bool,
    /// Once all of it is durable, both are read again and compared.
    pub verify: bool,
    /// What of A cannot be read becomes zeros at B, and the copy goes on.
    pub skip_unreadable: bool,
}

/// Copies A onto the beginning of B. `watch` is told how far it is several times a second, and says
/// whether to go on; where B is read back it hears of that as of another copy.
///
/// # Errors
///
/// When nothing was begun. What went wrong later is in [`Copied::failure`].
pub fn copy(
    options: &PairOptions,
    how: CopyOptions,
    watch: &mut dyn FnMut(&CopyProgress) -> bool,
) -> Result<Copied, PairError> {
    let pair = VolumePair::open(options, false)?;
    let begun = Checkpoint::begin(&pair, options, how);
    let mut checkpoint = begun.map_err(|error| pair.undo(error))?;
    let [a, b] = pair.shapes;
    let plan = CopyPlan {
        from: checkpoint.durable,
        depth: options.depth,
        timeout: options.timeout,
        skip_unreadable: how.skip_unreadable,
    };
    let mut worker = worker(&pair, options).map_err(|error| pair.undo(error))?;
    let mut machine = CopyMachine::new(a, b, plan);
    // From before there is a record: a user that stops it then is told of that.
    if !watch(&machine.progress()) {
        machine.stop();
    }
    checkpoint.save();
    let checkpoint = RefCell::new(checkpoint);
    let start = Instant::now();
    let ended = drive(
        &mut worker,
        &mut machine,
        &mut |machine, news| match news {
            RunEvent::Durable(at) => checkpoint.borrow_mut().advance(at, machine.unreadable()),
            RunEvent::Back { at, bytes } => tell_back(&options.b, at, bytes),
        },
        &mut |progress| {
            let goes_on = checkpoint.borrow_mut().goes_on();
            watch(progress) && goes_on
        },
    )?;
    let mut checkpoint = checkpoint.into_inner();
    checkpoint.advance(checkpoint.durable, machine.unreadable());
    if checkpoint.durable < a.bytes {
        checkpoint.ended = true;
        checkpoint.save();
    }
    let ended = whole(ended, checkpoint.lost.or(checkpoint.shortened));
    let time = start.elapsed();
    let verified = (how.verify && ended.is_ok() && checkpoint.durable == a.bytes)
        .then(|| compare(&mut worker, &pair, options.depth, watch))
        .transpose()?;
    let changed = pair.is_changed();
    checkpoint.look();
    leave(worker);
    tell_gathered(&pair.volumes);
    Ok(Copied {
        progress: machine.progress(),
        failure: ended.err().or(checkpoint.lost),
        time,
        verified,
        ..checkpoint.end(changed)
    })
}

/// In one line, as it happens again and again where a target does not stay.
fn tell_back(b: &Address, at: u64, bytes: u64) {
    tracing::warn!(
        "{b}: unflushed data may be lost: going back to byte {at}, to copy {} again",
        human_size(bytes)
    );
}

/// Compares A with the beginning of B. `watch` is as for [`copy`].
///
/// # Errors
///
/// When nothing was begun. What went wrong later is in [`Verified::failure`].
pub fn verify(
    options: &PairOptions,
    watch: &mut dyn FnMut(&CopyProgress) -> bool,
) -> Result<Verified, PairError> {
    let pair = VolumePair::open(options, true)?;
    let mut worker = worker(&pair, options)?;
    let verified = compare(&mut worker, &pair, options.depth, watch)?;
    leave(worker);
    tell_gathered(&pair.volumes);
    Ok(verified)
}

fn compare(
    worker: &mut Worker,
    pair: &VolumePair,
    depth: usize,
    watch: &mut dyn FnMut(&CopyProgress) -> bool,
) -> Result<Verified, PairError> {
    let [a, b] = pair.shapes;
    let mut machine = VerifyMachine::new(a, b, depth);
    let start = Instant::now();
    let ended = drive(worker, &mut machine, &mut |_, _| {}, watch)?;
    let ended = whole(ended, shortened(pair, &[PairSide::A, PairSide::B]));
    Ok(Verified {
        progress: machine.progress(),
        differences: machine.differences().clone(),
        block_size: a.block_size,
        failure: ended.err(),
        time: start.elapsed(),
    })
}

/// How much of a copy is durable, and remembered.
struct Checkpoint<'a> {
    pair: &'a VolumePair,
    record: Option<Record>,
    durable: u64,
    /// Of that, what could not be read, and what of it an earlier run could not read.
    unreadable: Ranges,
    earlier: Ranges,
    /// When it was remembered last.
    remembered: Instant,
    /// When the files of B had been written to last, then.
    written: FileTimes,
    /// Nothing more is written to B.
    ended: bool,
    /// Where A was found shorter, be it longer again since.
    shortened: Option<PairFailure>,
    /// Others took something of B away: what it holds now is unknown, and stays so.
    lost: Option<PairFailure>,
}

impl<'a> Checkpoint<'a> {
    /// What is known of this copy before it begins, or goes on.
    fn begin(
        pair: &'a VolumePair,
        options: &PairOptions,
        how: CopyOptions,
    ) -> Result<Self, PairError> {
        let dir = options.state_dir.as_deref();
        let record = dir.map_or(Ok(None), |dir| Record::of(pair, dir))?;
        let written = pair.volumes[PairSide::B as usize].written();
        let found = pair.volumes[PairSide::B as usize].written_before();
        let before = match (&record, how.resume) {
            (Some(record), true) => record.load(&found)?,
            (None, true) => return Err(PairError::Resume(UNKNOWN)),
            (_, false) => SavedCopy::default(),
        };
        if before.copied > 0 && before.written != found && !how.verify {
            tracing::warn!(
                "the copy was cut off: if another program wrote to B within seconds of that, B is \
                 not the same as A; compare them with: lunar verify {} {}",
                options.a,
                options.b
            );
        }
        let [a, b] = pair.shapes;
        let unit = a.block_size.max(b.block_size);
        let unreadable = before.unreadable;
        Ok(Self {
            pair,
            record,
            durable: before.copied.min(a.bytes) / unit * unit,
            earlier: unreadable.clone(),
            unreadable,
            remembered: Instant::now(),
            written,
            ended: false,
            shortened: None,
            lost: None,
        })
    }

    /// Whether something of B was taken away. Our own writes make a file longer again, so that
    /// its length tells that it is shorter, but not how short it was: nothing at B is taken for
    /// copied any more, and no later run goes on from there.
    fn is_lost(&mut self) -> bool {
        if self.lost.is_none() {
            self.lose(shortened(self.pair, &[PairSide::B]));
        }
        self.lost.is_some()
    }

    /// Whether B is still whole, and the file that its address names.
    fn look(&mut self) {
        if !self.is_lost() && self.pair.volumes[PairSide::B as usize].is_removed() {
            let (side, at, error) = (PairSide::B, None, VolumeProblem::Removed);
            self.lose(Some(PairFailure { side, at, error }));
        }
    }

    fn lose(&mut self, found: Option<PairFailure>) {
        self.lost = found;
        if found.is_some() {
            self.durable = 0;
            self.forget();
            self.record = None;
        }
    }

    /// So much of what was read is durable, which is a copy so far as both were whole.
    fn advance(&mut self, copied: u64, unreadable: &Ranges) {
        self.look();
        if self.lost.is_some() {
            return;
        }
        let found = self.shortened.into_iter();
        let found = found.chain(shortened(self.pair, &[PairSide::A]));
        self.shortened = found.min_by_key(|failure| failure.at);
        let whole = self.shortened.and_then(|failure| failure.at);
        let durable = whole.map_or(copied, |whole| whole.min(copied));
        self.unreadable.clone_from(&self.earlier);
        self.unreadable.merge(unreadable.clone());
        let before = mem::replace(&mut self.durable, durable);
        let is_news = durable != before && durable < self.pair.shapes[0].bytes;
        if is_news && (self.is_late() || before == 0 || durable < before) {
            self.save();
        }
    }

    /// Remembers that B was written to, too, even if nothing more is durable there: a later run
    /// takes what is much newer than the record for the work of others. Returns whether B is whole.
    fn goes_on(&mut self) -> bool {
        if self.is_lost() {
            return false;
        }
        let b = &self.pair.volumes[PairSide::B as usize];
        if self.is_late() && self.durable > 0 && self.written != b.written() {
            self.save();
        }
        true
    }

    fn is_late(&self) -> bool {
        self.remembered.elapsed() >= REMEMBERED_EVERY
    }

    /// A record that cannot be saved makes a copy that cannot be resumed, and no more.
    fn save(&mut self) {
        self.remembered = Instant::now();
        self.written = self.pair.volumes[PairSide::B as usize].written();
        let Some(record) = &self.record else { return };
        let state = SavedCopy {
            copied: self.durable,
            unreadable: self.unreadable.clone(),
            written: self.written.clone(),
            ended: self.ended,
        };
        if let Err(cause) = record.save(&state) {
            let way_out = match Errno::from_io_error(&cause) {
                Some(Errno::MFILE) => "raise the limit (ulimit -n)",
                _ => "give another one with --state-dir",
            };
            tracing::warn!(
                "this copy cannot be resumed if it is interrupted, as the state directory cannot \
                 be written: {cause}; {way_out}"
            );
            self.record = None;
        }
    }

    fn forget(&self) {
        if let Some(Err(cause)) = self.record.as_ref().map(Record::forget) {
            tracing::warn!("the record of the copy cannot be removed: {cause}");
        }
    }

    /// What came of it, where A may have been changed meanwhile; a complete copy needs no record.
    fn end(self, changed: bool) -> Copied {
        let is_complete = self.durable == self.pair.shapes[0].bytes;
        if is_complete {
            self.forget();
        }
        Copied {
            progress: CopyProgress::default(),
            durable: self.durable,
            unreadable: self.unreadable,
            resumable: self.record.is_some() && !changed,
            changed,
            failure: None,
            time: Duration::ZERO,
            verified: None,
        }
    }
}

/// Where the first byte is that others took away from one of these volumes.
fn shortened(pair: &VolumePair, sides: &[PairSide]) -> Option<PairFailure> {
    let failures = sides.iter().filter_map(|&side| {
        let at = pair.volumes[side as usize].shortened_to();
        let error = VolumeProblem::Medium(MediumError::Gone);
        at.is_some().then_some(PairFailure { side, at, error })
    });
    failures.min_by_key(|failure| failure.at)
}

/// How it ended, where a volume was found shorter: that is why what was taken away failed.
fn whole(
    ended: Result<(), PairFailure>,
    shortened: Option<PairFailure>,
) -> Result<(), PairFailure> {
    let Some(failure) = shortened else {
        return ended;
    };
    let is_elsewhere = |first: &PairFailure| first.side != failure.side || first.at < failure.at;
    if ended.as_ref().is_err_and(is_elsewhere) {
        return ended;
    }
    let PairFailure { side, at, error } = failure;
    if error == VolumeProblem::Removed {
        return Err(failure);
    }
    let at = at.unwrap_or_default();
    let side = match side {
        PairSide::A => "A",
        PairSide::B => "B",
    };
    tracing::error!("{side} shrank during the copy: it ends at byte {at}");
    Err(failure)
}

/// A thread's use of both. A piece takes two buffers: one more than its own where its memory is not
/// aligned as the other volume wants it. Each volume around others may take as much again, to put
/// their parts together; what they do not use takes no memory.
fn worker(pair: &VolumePair, options: &PairOptions) -> Result<Worker, PairError> {
    let is_nested = |address: &Address| !address.inner().is_empty();
    let around = if is_nested(&options.a) || is_nested(&options.b) {
        16
    } else {
        1
    };
    let memory = (2 * options.depth + 4) * CHUNK as usize * around;
    Worker::new(&pair.volumes, RingKind::Auto, memory).map_err(ring)
}

fn ring(cause: io::Error) -> PairError {
    let what = "work on the volumes";
    PairError::Machine { what, cause }
}

fn leave(worker: Worker) {
    if let Err(cause) = worker.leave() {
        tracing::warn!("sessions were not logged out: {cause}");
    }
}

/// What a machine tells on its way.
enum RunEvent {
    Durable(u64),
    Back { at: u64, bytes: u64 },
}

fn drive<M: PairMachine<BlockLease>>(
    worker: &mut Worker,
    machine: &mut M,
    told: &mut dyn FnMut(&M, RunEvent),
    watch: &mut dyn FnMut(&CopyProgress) -> bool,
) -> Result<Result<(), PairFailure>, PairError> {
    let mut stopped = false;
    loop {
        while let Some(order) = machine.poll(worker.now()) {
            match order {
                PairOrder::Submit(PairSide::A, id, op) => worker.submit(0, id, op),
                PairOrder::Submit(PairSide::B, id, op) => worker.submit(1, id, op),
                PairOrder::Durable(at) => told(machine, RunEvent::Durable(at)),
                PairOrder::Back { at, bytes } => told(machine, RunEvent::Back { at, bytes }),
                PairOrder::Cancel => cancel(worker),
                PairOrder::End(result) => return Ok(result),
            }
        }
        if !watch(&machine.progress()) && !stopped {
            stopped = true;
            machine.stop();
            cancel(worker);
        }
        worker.wait(Some(TICK)).map_err(ring)?;
        while let Some(done) = worker.next_done() {
            machine.done(done.id, done.result);
        }
    }
}

/// Gives up what is in flight at both volumes.
fn cancel(worker: &mut Worker) {
    for volume in [0, 1] {
        worker.cancel(volume);
    }
}
