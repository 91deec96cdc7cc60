//! The thread that reads and writes the list of N_Port_IDs: a disk or a file server may take its
//! time, which the thread that forwards frames must not wait for.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fc::wire::names::{FcId, Wwn};
use scsi::medium::Now;
use tracing::Span;

use super::ids::{IdList, IdsError};

/// Where the list is kept.
pub(super) trait IdsDisk: Send + 'static {
    /// The list that was written last, by whichever switch; an empty one if there was none.
    fn read(&mut self) -> Result<IdList, IdsError>;

    /// Puts a list in place of the one before.
    fn write(&mut self, ids: &[(Wwn, FcId)]) -> Result<(), IdsError>;
}

/// Reads and writes a list on a thread of its own. Of several lists that wait to be written only
/// the last one is kept, so a disk that hangs costs the memory of one.
///
/// Dropping it waits for the last write, but no longer than [`END`].
#[derive(Debug)]
pub(super) struct IdsKeeper {
    shared: Arc<SharedWork>,
}

/// The rate limit of writes: the list is written at once, and then not again for
/// [`WRITE_INTERVAL`] and [`ENTRY_INTERVAL`] for each of its entries. It has up to 16,384 of them,
/// and a flood of logins changes it in each turn of a core.
#[derive(Debug, Default)]
pub(super) struct WritePace {
    due: Option<Now>,
    /// When it may be written again.
    next: Now,
}

#[derive(Debug, Default)]
struct SharedWork {
    work: Mutex<Work>,
    changed: Condvar,
}

/// What the thread is to do, and whether it is at it.
#[derive(Debug, Default)]
struct Work {
    /// To be written.
    list: Option<IdList>,
    /// The list is to be read at once.
    reads: bool,
    /// The list is to be read every [`LOOK`], as another switch writes it.
    watches: bool,
    is_busy: bool,
    ends: bool,
}

#[derive(Debug)]
enum Task {
    Read,
    Write(IdList),
}

impl WritePace {
    /// The list has changed.
    pub(super) fn changed(&mut self, now: Now) {
        self.due.get_or_insert(self.next.max(now));
    }

    /// What has changed is written now, whenever that was last.
    pub(super) fn hurry(&mut self) {
        self.due = self.due.map(|_| Now::ZERO);
    }

    /// What has changed is not written: the list is another switch's now.
    pub(super) const fn cancel(&mut self) {
        self.due = None;
    }

    /// When it is to be written.
    pub(super) const fn due(&self) -> Option<Now> {
        self.due
    }

    /// Whether it is to be written now. It is asked once.
    pub(super) fn take_due(&mut self, now: Now) -> bool {
        self.due.take_if(|at| *at <= now).is_some()
    }

    /// It is written now, with so many entries.
    pub(super) const fn written(&mut self, now: Now, entries: usize) {
        let more = ENTRY_INTERVAL.saturating_mul(entries as u32);
        self.next = now.saturating_add(WRITE_INTERVAL).saturating_add(more);
    }
}

impl IdsKeeper {
    /// Starts the thread. It has `told` know of each list that it has read, if that is not empty
    /// and another one than before.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub(super) fn start(
        mut disk: impl IdsDisk,
        told: impl Fn(IdList) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(SharedWork::default());
        let its = Arc::clone(&shared);
        let span = Span::current();
        let thread = thread::Builder::new().name("n-port-ids".to_owned());
        thread.spawn(move || {
            let _named = span.entered();
            let mut last = IdList::new();
            while let Some(task) = its.next() {
                match task {
                    Task::Read => look(&mut disk, &mut last, &told),
                    Task::Write(ids) => write(&mut disk, &ids),
                }
            }
        })?;
        Ok(Self { shared })
    }

    /// Has a list written in place of the one before.
    pub(super) fn write(&self, ids: IdList) {
        self.shared.change(|work| work.list = Some(ids));
    }

    /// Has the list read now, before anything is written.
    pub(super) fn read(&self) {
        self.shared.change(|work| work.reads = true);
    }

    /// Has the list read again and again, or not any more: a standby knows it before it needs it.
    pub(super) fn watch(&self, watches: bool) {
        self.shared.change(|work| work.watches = watches);
    }

    /// Ends it. Returns whether the last list was written within that time.
    pub(super) fn end(&self, limit: Duration) -> bool {
        self.shared.change(|work| work.ends = true);
        let until = Instant::now() + limit;
        let mut work = self.shared.lock();
        while work.is_busy || work.list.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            work = self.shared.wait(work, left);
        }
        true
    }
}

impl Drop for IdsKeeper {
    fn drop(&mut self) {
        if !self.end(END) {
            tracing::error!(
                "--state: its disk does not answer, so N_Port_IDs that were given last may not be \
                 remembered"
            );
        }
    }
}

impl SharedWork {
    fn lock(&self) -> MutexGuard<'_, Work> {
        // Each change leaves it whole.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Until something has changed, or for so long.
    fn wait<'a>(&self, work: MutexGuard<'a, Work>, limit: Duration) -> MutexGuard<'a, Work> {
        let waited = self.changed.wait_timeout(work, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// What to do next; `None` at the end. What was done before is over.
    fn next(&self) -> Option<Task> {
        let mut work = self.lock();
        work.is_busy = false;
        self.changed.notify_all();
        let mut look_at = Instant::now() + LOOK;
        loop {
            let is_time = work.watches && Instant::now() >= look_at;
            if let Some(task) = work.task(is_time) {
                work.is_busy = true;
                return Some(task);
            }
            if work.ends {
                return None;
            }
            if !work.watches {
                look_at = Instant::now() + LOOK;
            }
            work = self.wait(work, LOOK);
        }
    }
}

impl Work {
    /// A list that another switch has written is read before ours takes its place.
    fn task(&mut self, is_time: bool) -> Option<Task> {
        if !self.ends && (std::mem::take(&mut self.reads) || is_time) {
            return Some(Task::Read);
        }
        self.list.take().map(Task::Write)
    }
}

/// Reads the list. One that is empty or cannot be read changes nothing.
fn look(disk: &mut impl IdsDisk, last: &mut IdList, told: &impl Fn(IdList)) {
    match disk.read() {
        Ok(ids) if ids.is_empty() || ids == *last => {}
        Ok(ids) => {
            last.clone_from(&ids);
            told(ids);
        }
        Err(cause) => complain(&cause, "N_Port_IDs stay as they were known before"),
    }
}

fn write(disk: &mut impl IdsDisk, ids: &[(Wwn, FcId)]) {
    if let Err(cause) = disk.write(ids) {
        let what = "cannot remember N_Port_IDs, so ports may have others after a restart";
        complain(&cause, what);
    }
}

fn complain(cause: &dyn fmt::Display, what: &str) {
    tracing::error!("{cause}: {what}");
}

/// How often the list is written at the most, but for what its length adds.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// What each entry adds to that: some 150 times what it takes to be listed and written, so that the
/// list takes less than a hundredth of a processor however long it is.
const ENTRY_INTERVAL: Duration = Duration::from_micros(50);

/// How often a standby reads the list.
const LOOK: Duration = Duration::from_secs(5);

/// How long the end of a switch waits for its disk.
const END: Duration = Duration::from_secs(1);
