//! Operations that block, on threads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::BlockingLane;
use super::bell::{Bell, DONE};
use super::file::{RingFile, Transfer, TransferDirection};
use crate::cpu;
use crate::memory::drain_stores;

/// Maximum number of concurrent operations on media where threads read and write files. Each
/// costs a stack, and takes the processor from the reactor when
/// the files are in the cache.
const MEDIUM_MAX: usize = 8;

/// Connections that are made at the same time: each may take seconds.
const CONNECT_MAX: usize = 8;

/// Maximum number of concurrent checks of media, so that a stuck one does not delay the others.
const WATCH_MAX: usize = 4;

/// Lanes, the first of which a free thread looks into first, each with how many of its operations
/// run at the same time.
const LANES: [usize; 4] = [1, MEDIUM_MAX, CONNECT_MAX, WATCH_MAX];

/// Threads of a ring at the most. Each lane can have all that it may.
const THREADS_MAX: usize = 1 + MEDIUM_MAX + CONNECT_MAX + WATCH_MAX;

/// What a thread does.
pub(super) enum BlockingJob {
    /// A part of a transfer.
    Transfer(Transfer),
    /// fdatasync.
    DataSync(Arc<RingFile>),
    /// Anything that a medium takes its time for.
    Call(Call),
    /// Anything else.
    Apart(BlockingLane, Call),
}

type Call = Box<dyn FnOnce() -> io::Result<u64> + Send>;

/// A pool of threads. The first is there from the begin, so that whatever comes is done in the end;
/// more are started when they are needed, as far as the machine lets us.
pub(super) struct Blocking {
    shared: Arc<BlockingShared>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
}

struct BlockingShared {
    state: Mutex<BlockingState>,
    work: Condvar,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct BlockingState {
    lanes: [LaneQueue; LANES.len()],
    done: Vec<(usize, io::Result<u64>)>,
    idle: usize,
    closing: bool,
}

/// The operations of a lane.
#[derive(Default)]
struct LaneQueue {
    jobs: VecDeque<(usize, BlockingJob)>,
    running: usize,
}

impl Blocking {
    /// A pool that rings `bell` when something is done.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(super) fn new(bell: &Arc<Bell>) -> io::Result<Self> {
        Self::with_threads(bell, THREADS_MAX)
    }

    /// The same with at most `threads_max` threads.
    pub(super) fn with_threads(bell: &Arc<Bell>, threads_max: usize) -> io::Result<Self> {
        let shared = BlockingShared {
            state: Mutex::default(),
            work: Condvar::new(),
            bell: Arc::clone(bell),
        };
        let mut pool = Self {
            shared: Arc::new(shared),
            threads: Vec::new(),
            threads_max,
        };
        let first = pool.spawn()?;
        pool.threads.push(first);
        Ok(pool)
    }

    /// Starts jobs, each with the number that it is known by. What memory they point to must stay
    /// until [`Self::done`] has told of them, or the pool was dropped. Where no thread can be
    /// started they wait for one that is there.
    pub(super) fn start(&mut self, jobs: &mut Vec<(usize, BlockingJob)>) {
        if jobs.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        for (number, job) in jobs.drain(..) {
            state.lanes[job.lane()].jobs.push_back((number, job));
        }
        let (ready, idle) = (state.ready(), state.idle);
        drop(state);
        for _ in 0..ready.min(idle) {
            self.shared.work.notify_one();
        }
        let more = ready.saturating_sub(idle);
        for _ in 0..more.min(self.threads_max - self.threads.len()) {
            match self.spawn() {
                Ok(thread) => self.threads.push(thread),
                Err(_) => break,
            }
        }
    }

    /// Moves what is done to `done`.
    pub(super) fn done(&self, done: &mut Vec<(usize, io::Result<u64>)>) {
        done.append(&mut self.shared.lock().done);
    }

    fn spawn(&self) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        cpu::spawn_helper("lunar-file", move || shared.work())
    }
}

impl Drop for Blocking {
    /// Waits for what has begun; what has not never will.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closing = true;
        state.lanes = Default::default();
        drop(state);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A job that panicked has told so on standard error.
            let _ = thread.join();
        }
    }
}

impl BlockingShared {
    fn lock(&self) -> MutexGuard<'_, BlockingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut ended = None;
        while let Some((number, job)) = self.next(ended) {
            let lane = job.lane();
            let result = job.run();
            drain_stores();
            self.lock().done.push((number, result));
            self.bell.ring(DONE);
            ended = Some(lane);
        }
    }

    /// The next job, for a thread that has done one of a lane.
    fn next(&self, ended: Option<usize>) -> Option<(usize, BlockingJob)> {
        let mut state = self.lock();
        if let Some(lane) = ended {
            let queue = &mut state.lanes[lane];
            queue.running = queue.running.saturating_sub(1);
        }
        loop {
            if state.closing {
                return None;
            }
            if let Some(job) = state.take() {
                return Some(job);
            }
            state.idle += 1;
            let woken = self.work.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl BlockingState {
    /// Jobs that may run now.
    fn ready(&self) -> usize {
        let ready = |(queue, max): (&LaneQueue, &usize)| {
            queue.jobs.len().min(max.saturating_sub(queue.running))
        };
        self.lanes.iter().zip(&LANES).map(ready).sum()
    }

    fn take(&mut self) -> Option<(usize, BlockingJob)> {
        let mut lanes = self.lanes.iter_mut().zip(LANES);
        lanes.find_map(|(queue, max)| {
            let job = (queue.running < max).then(|| queue.jobs.pop_front())?;
            queue.running += usize::from(job.is_some());
            job
        })
    }
}

/// Jobs that never wait. A turn runs only some of them, because other events wait meanwhile.
#[derive(Default)]
pub(super) struct ImmediateJobs {
    jobs: VecDeque<(usize, BlockingJob)>,
    /// What was done of the turn.
    bytes: usize,
    count: usize,
}

/// What a turn moves at the least, if it is there: 100 us of copies.
const TURN_BYTES: usize = 1 << 20;

/// Jobs of a turn at the most.
const TURN_JOBS: usize = 64;

impl ImmediateJobs {
    pub(super) fn push(&mut self, number: usize, job: BlockingJob) {
        self.jobs.push_back((number, job));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The next job of this turn; `None` begins another turn.
    pub(super) fn next(&mut self) -> Option<(usize, BlockingJob)> {
        let is_over = self.bytes >= TURN_BYTES || self.count >= TURN_JOBS;
        let next = (!is_over).then(|| self.jobs.pop_front()).flatten();
        match &next {
            Some((_, job)) => {
                self.bytes += job.bytes();
                self.count += 1;
            }
            None => (self.bytes, self.count) = (0, 0),
        }
        next
    }
}

impl BlockingJob {
    /// Whether it never waits, so that handing it to anybody else would only cost more: where files
    /// lie in memory io_uring knows of nothing better than threads, of which each transfer wakes
    /// one and is waited for by waking us.
    pub(super) fn never_waits(&self) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.file.is_in_memory(),
            Self::DataSync(file) => file.is_in_memory(),
            Self::Call(_) | Self::Apart(..) => false,
        }
    }

    /// What it has to move.
    fn bytes(&self) -> usize {
        match self {
            Self::Transfer(transfer) => transfer.remaining(),
            _ => 0,
        }
    }

    /// Its place in [`LANES`].
    fn lane(&self) -> usize {
        match self {
            Self::Apart(BlockingLane::Persist, _) => 0,
            Self::Transfer(_) | Self::DataSync(_) | Self::Call(_) => 1,
            Self::Apart(BlockingLane::Connect, _) => 2,
            Self::Apart(BlockingLane::Watch, _) => 3,
        }
    }

    /// Whether [`Self::run_cached`] may do some of it: reads only. What a file system answers to a
    /// write differs too much, and a write has to wait for a disk anyway when memory gets short.
    pub(super) fn may_be_cached(&self) -> bool {
        match self {
            Self::Transfer(transfer) => {
                matches!(transfer.direction, TransferDirection::Read)
                    && transfer.file.supports_nowait()
            }
            _ => false,
        }
    }

    /// Does as much of it as needs no waiting; gives back what is left. Only bytes that were moved
    /// count: with this flag some kernels tell of an end of file that is none (preadv2(2), BUGS).
    pub(super) fn run_cached(self) -> Result<io::Result<u64>, Self> {
        let mut transfer = match self {
            Self::Transfer(transfer) if !transfer.file.is_in_memory() => transfer,
            job => return Ok(job.run()),
        };
        loop {
            match once(&transfer, libc::RWF_NOWAIT) {
                Ok(moved) if moved > 0 => {
                    if let Some(result) = transfer.advance(Ok(moved)) {
                        return Ok(result);
                    }
                    continue;
                }
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    transfer.file.lacks_nowait();
                }
                _ => {}
            }
            return Err(Self::Transfer(transfer));
        }
    }

    pub(super) fn run(self) -> io::Result<u64> {
        match self {
            Self::Transfer(transfer) => run(transfer),
            Self::DataSync(file) => Ok(rustix::fs::fdatasync(&**file).map(|()| 0)?),
            Self::Call(call) | Self::Apart(_, call) => call(),
        }
    }
}

fn run(mut transfer: Transfer) -> io::Result<u64> {
    loop {
        if let Some(result) = transfer.advance(once(&transfer, 0)) {
            return result;
        }
    }
}

/// One preadv2 or pwritev2, with these flags beside its own.
fn once(transfer: &Transfer, extra_flags: i32) -> io::Result<usize> {
    let memory = libc::iovec {
        iov_base: transfer.address().cast(),
        iov_len: transfer.remaining(),
    };
    let file = transfer.file.as_raw_fd();
    let offset = transfer.position() as libc::off_t;
    let moved = match transfer.direction {
        // SAFETY: the memory is held by the starter of the job, until it is over.
        TransferDirection::Read => unsafe {
            libc::preadv2(file, &raw const memory, 1, offset, extra_flags)
        },
        // SAFETY: as above.
        TransferDirection::Write { flags } => unsafe {
            libc::pwritev2(file, &raw const memory, 1, offset, flags | extra_flags)
        },
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests;
