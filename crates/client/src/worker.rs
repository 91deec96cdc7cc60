//! One thread that uses volumes without serving them: a ring, handles on the volumes, and time.
//!
//! It is what the verbs that copy, compare and measure stand on. Operations go in with a number of
//! the caller's, their results come out with it; nothing moves but inside [`Worker::wait`] and
//! [`Worker::submit`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::limits::processor_quota;
use ::io::memory::Pool;
use ::io::ring::{AnyRing, Received, Ring, RingEvent, RingKind, Waker};
use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle, Volume};
use scsi::medium::{MediumOp, MediumResult, Now};

use block::volumes::{SharedResources, Volumes, hand_on};
pub use runtime::polling::PollMode;
use runtime::polling::{OF_A_CLIENT, Polling, thread_time};

/// A thread's use of some volumes. It belongs to the thread that made it.
pub struct Worker {
    ring: AnyRing,
    volumes: Volumes,
    /// How many volumes there are: the key of each is its place.
    attached: u32,
    pool: Pool,
    start: Instant,
    polling: Polling,
    /// Results of the volume that acts.
    results: Vec<(u64, MediumResult<BlockLease>)>,
    done: VecDeque<WorkerResult>,
    /// How many operations have ended.
    completed: u64,
    /// When memory that is idle is looked at.
    trim_at: Option<Now>,
}

/// What became of an operation.
#[derive(Debug)]
pub struct WorkerResult {
    /// The volume's place among those that the worker was made with.
    pub volume: usize,
    /// As given to [`Worker::submit`].
    pub id: u64,
    /// How it ended.
    pub result: MediumResult<BlockLease>,
}

/// How long sessions have to end when a worker leaves.
const LEAVE: Duration = Duration::from_secs(2);

/// How long idle memory is kept, at the least; twice that at the most.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Duration = Duration::from_millis(1);

impl Worker {
    /// Opens a ring on this thread and attaches the volumes to it. Their buffers, and those of
    /// [`Self::buffer`], are at most `memory` bytes.
    ///
    /// # Errors
    ///
    /// When there is no ring or no memory to be had, or a volume cannot be attached.
    pub fn new(volumes: &[Arc<dyn Volume>], ring: RingKind, memory: usize) -> io::Result<Self> {
        let (ring, _) = AnyRing::open(ring)?;
        let pool = Pool::new(memory)?;
        let attached = volumes.len() as u32;
        let volumes = Volumes::attach(volumes, &CoreContext::new(pool.clone()))?;
        Ok(Self {
            ring,
            volumes,
            attached,
            pool,
            start: Instant::now(),
            polling: polling(PollMode::Adaptive),
            results: Vec::new(),
            done: VecDeque::new(),
            completed: 0,
            trim_at: None,
        })
    }

    /// The same, which spins when `mode` says.
    #[must_use]
    pub fn polls(self, mode: PollMode) -> Self {
        Self {
            polling: polling(mode),
            ..self
        }
    }

    /// The time since the worker was made: what the volumes go by.
    #[must_use]
    pub fn now(&self) -> Now {
        self.start.elapsed()
    }

    /// Memory of `len` bytes for data; `None` while all of it is in use.
    #[must_use]
    pub fn buffer(&self, len: usize) -> Option<BlockLease> {
        self.pool.buffer(len).map(BlockLease::from)
    }

    /// Ends [`Self::wait`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.ring.waker()
    }

    /// Starts an operation. Its result comes out of [`Self::next_done`] under `id`.
    pub fn submit(&mut self, volume: usize, id: u64, op: MediumOp<BlockLease>) {
        let now = self.now();
        self.act(now, volume as u32, |handle, cx| handle.submit(cx, id, op));
    }

    /// Gives up all operations of a volume that have not reached its medium; they end with
    /// [`scsi::medium::MediumError::Cancelled`].
    pub fn cancel(&mut self, volume: usize) {
        let now = self.now();
        self.act(now, volume as u32, |handle, cx| {
            handle.cancel(cx, &(0..u64::MAX));
        });
    }

    /// The next operation that is over.
    pub fn next_done(&mut self) -> Option<WorkerResult> {
        self.done.pop_front()
    }

    /// Carries on with what was started, and waits until something has happened, for `limit` at
    /// the most; not at all while there are results to be taken.
    ///
    /// # Errors
    ///
    /// When the ring fails.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let now = self.now();
        while let Some(volume) = self.volumes.next_soon() {
            self.act(now, volume, |handle, cx| handle.resume(cx));
        }
        let deadlines = [self.volumes.next_deadline(), self.trim_later(now)];
        let deadline = deadlines.into_iter().flatten().min();
        let deadline = deadline.map(|at| at.saturating_sub(now).max(SHORTEST));
        let mut patience = limit.into_iter().chain(deadline).min();
        if !self.done.is_empty() {
            patience = Some(Duration::ZERO);
        }
        while !self.wait_once(patience)? {}
        let now = self.now();
        self.expire(now);
        self.trim(now);
        Ok(())
    }

    /// When idle memory is to be looked at. Where there is none, nothing wakes the thread for it.
    fn trim_later(&mut self, now: Now) -> Option<Now> {
        let has_idle = self.pool.resident() > self.pool.in_use() || self.ring.has_idle();
        if self.trim_at.is_none() && has_idle {
            self.trim_at = Some(now + TRIM_INTERVAL);
        }
        self.trim_at
    }

    /// Gives back what was not needed since the last time, when it is time for that.
    fn trim(&mut self, now: Now) {
        if self.trim_at.take_if(|at| *at <= now).is_some() {
            self.pool.trim();
            self.ring.trim();
        }
    }

    /// Waits while spinning pays, or for `patience`; returns whether that is it.
    fn wait_once(&mut self, patience: Option<Duration>) -> io::Result<bool> {
        let timeout = if self.ring.pauses() {
            patience
        } else {
            self.polling.timeout(self.now(), patience)
        };
        self.ring.wait(timeout)?;
        let now = self.now();
        let mut over = timeout == patience;
        while let Some(event) = self.ring.next_event() {
            over = true;
            // That something has left is nothing to do, as a rule.
            if !matches!(event, RingEvent::Sent { .. }) {
                self.polling.arrived(now, self.completed, thread_time);
            }
            self.event(now, event);
        }
        Ok(over)
    }

    /// Ends what the volumes have with others, such as sessions. Nothing may be in flight.
    ///
    /// # Errors
    ///
    /// When the ring fails.
    pub fn leave(mut self) -> io::Result<()> {
        let now = self.now();
        for volume in 0..self.attached {
            self.act(now, volume, |handle, cx| handle.leave(cx));
        }
        let limit = now + LEAVE;
        while !self.volumes.have_left() {
            let left = limit.saturating_sub(self.now());
            if left.is_zero() {
                break;
            }
            self.done.clear();
            self.wait(Some(left))?;
        }
        Ok(())
    }

    fn event(&mut self, now: Now, event: RingEvent<Received>) {
        hand_on(event, |node, slot, event| {
            if let Some(volume) = self.volumes.of_node(node) {
                self.act(now, volume, |handle, cx| {
                    handle.event(cx, node, slot, event);
                });
            }
        });
    }

    /// Calls each volume whose instant has come, once.
    fn expire(&mut self, now: Now) {
        for volume in 0..self.attached {
            if self.volumes.expired(volume, now) {
                self.act(now, volume, |handle, cx| handle.resume(cx));
            }
        }
    }

    fn act(&mut self, now: Now, volume: u32, act: impl FnOnce(&mut dyn Handle, &mut Context<'_>)) {
        let mut around = SharedResources {
            ring: &mut self.ring,
            done: &mut self.results,
            now,
        };
        self.volumes.act(volume, &mut around, act);
        self.completed += self.results.len() as u64;
        let done = |(id, result)| WorkerResult {
            volume: volume as usize,
            id,
            result,
        };
        self.done.extend(self.results.drain(..).map(done));
    }
}

fn polling(mode: PollMode) -> Polling {
    Polling::new(mode.within(processor_quota(), 1), OF_A_CLIENT)
}
