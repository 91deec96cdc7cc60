//! Operations that block, on threads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::bell::{Bell, DONE};
use super::file::{Direction, File, Transfer};
use crate::memory::drain_stores;

/// Threads of a ring at the most: where files are read and written by threads, as many operations
/// as are under way at once. Each costs a stack, and takes the processor from the reactor when the
/// files are in the cache.
const THREADS_MAX: usize = 8;

/// What a thread does.
pub(super) enum Job {
    /// A part of a transfer.
    Transfer(Transfer),
    /// fdatasync.
    DataSync(Arc<File>),
    /// Anything.
    Call(Box<dyn FnOnce() -> io::Result<u64> + Send>),
}

/// A pool of threads that starts them when they are needed.
pub(super) struct Blocking {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<(usize, Job)>,
    done: Vec<(usize, io::Result<u64>)>,
    idle: usize,
    closing: bool,
}

impl Blocking {
    /// A pool that rings `bell` when something is done.
    pub(super) fn new(bell: &Arc<Bell>) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            bell: Arc::clone(bell),
        };
        Self {
            shared: Arc::new(shared),
            threads: Vec::new(),
        }
    }

    /// Starts jobs, each with the number that it is known by. What memory they point to must stay
    /// until [`Self::done`] has told of them, or the pool was dropped.
    ///
    /// # Errors
    ///
    /// When there is no thread, and none can be started; the jobs stay queued.
    pub(super) fn start(&mut self, jobs: &mut Vec<(usize, Job)>) -> io::Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        state.jobs.extend(jobs.drain(..));
        let (waiting, idle) = (state.jobs.len(), state.idle);
        drop(state);
        for _ in 0..waiting.min(idle) {
            self.shared.work.notify_one();
        }
        let more = waiting.saturating_sub(idle);
        for _ in 0..more.min(THREADS_MAX - self.threads.len()) {
            match self.spawn() {
                Ok(thread) => self.threads.push(thread),
                Err(error) if self.threads.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Moves what is done to `done`.
    pub(super) fn done(&self, done: &mut Vec<(usize, io::Result<u64>)>) {
        done.append(&mut self.shared.lock().done);
    }

    fn spawn(&self) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("lunar-file".into());
        builder.spawn(move || shared.work())
    }
}

impl Drop for Blocking {
    /// Waits for what has begun; what has not never will.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closing = true;
        state.jobs.clear();
        drop(state);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A job that panicked has told so on standard error.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some((number, job)) = self.next() {
            let result = job.run();
            drain_stores();
            self.lock().done.push((number, result));
            self.bell.ring(DONE);
        }
    }

    fn next(&self) -> Option<(usize, Job)> {
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let woken = self.work.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl Job {
    /// Whether it never waits, so that handing it to anybody else would only cost more: where files
    /// lie in memory io_uring knows of nothing better than threads, of which each transfer wakes
    /// one and is waited for by waking us.
    pub(super) fn never_waits(&self) -> bool {
        match self {
            Self::Transfer(transfer) => transfer.file.is_in_memory(),
            Self::DataSync(file) => file.is_in_memory(),
            Self::Call(_) => false,
        }
    }

    pub(super) fn run(self) -> io::Result<u64> {
        match self {
            Self::Transfer(transfer) => run(transfer),
            Self::DataSync(file) => Ok(rustix::fs::fdatasync(&**file).map(|()| 0)?),
            Self::Call(call) => call(),
        }
    }
}

fn run(mut transfer: Transfer) -> io::Result<u64> {
    loop {
        if let Some(result) = transfer.advance(once(&transfer)) {
            return result;
        }
    }
}

/// One preadv2 or pwritev2.
fn once(transfer: &Transfer) -> io::Result<usize> {
    let memory = libc::iovec {
        iov_base: transfer.address().cast(),
        iov_len: transfer.remaining(),
    };
    let file = transfer.file.as_raw_fd();
    let offset = transfer.position() as libc::off_t;
    let moved = match transfer.direction {
        // SAFETY: the memory is held by whoever started the job, until it is over.
        Direction::Read => unsafe { libc::preadv2(file, &raw const memory, 1, offset, 0) },
        // SAFETY: as above.
        Direction::Write { flags } => unsafe {
            libc::pwritev2(file, &raw const memory, 1, offset, flags)
        },
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}
