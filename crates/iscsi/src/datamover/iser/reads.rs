//! RDMA Reads: data that is wanted, cut by MaxBurstLength, and what is outstanding of it (RFC 7145
//! §7.3.6, §8.2).

use rdma::verbs::{self, ReadId, Work};
use scsi::medium::{Lease, Now};

use crate::datamover::{TaskSlot, WantedData};

/// The reads of all tasks. A read is cut from its memory when it is posted, so what waits costs one
/// entry a lease, however short bursts are.
#[derive(Debug)]
pub(super) struct TaskReads<L> {
    /// In the order in which they were asked for.
    gets: Vec<DataGet<L>>,
    posted: Vec<PostedRead>,
    /// Those of `posted` that the queue pair is to give up.
    cancelled: Vec<ReadId>,
    next_get: GetId,
    next_read: ReadId,
}

/// Names a *Get_Data*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GetId(u32);

/// One *Get_Data*.
#[derive(Debug)]
struct DataGet<L> {
    id: GetId,
    task: TaskSlot,
    /// Where the first byte of the command's data would be.
    from: verbs::Tag,
    wanted: WantedData<L>,
    /// Bytes from the beginning of its memory that are there, or for which a read was posted.
    asked: u32,
    /// No more reads are posted for it.
    is_stopped: bool,
    /// When it was asked for.
    since: Now,
}

impl<L: Lease> DataGet<L> {
    /// Whether a read is to be posted for it.
    fn is_waiting(&self) -> bool {
        !self.is_stopped && (self.asked as usize) < self.wanted.into.len()
    }
}

/// A read that was posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedRead {
    id: ReadId,
    /// `None` when the task was aborted.
    pub(super) task: Option<TaskSlot>,
    /// What it is a part of; `None` when its data is not wanted any more.
    get: Option<GetId>,
    len: u32,
    /// When it was asked for.
    since: Now,
}

impl PostedRead {
    /// Its length in bytes.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }
}

impl<L: Lease> TaskReads<L> {
    pub(super) const fn new() -> Self {
        Self {
            gets: Vec::new(),
            posted: Vec::new(),
            cancelled: Vec::new(),
            next_get: GetId(0),
            next_read: ReadId(0),
        }
    }

    /// Asks for what is missing of `wanted`. `from` is where the first byte of the command's data
    /// would be.
    pub(super) fn want(
        &mut self,
        (now, task): (Now, TaskSlot),
        from: verbs::Tag,
        wanted: WantedData<L>,
    ) {
        let id = self.next_get;
        self.next_get = GetId(id.0.wrapping_add(1));
        self.gets.push(DataGet {
            id,
            task,
            from,
            asked: wanted.filled,
            wanted,
            is_stopped: false,
            since: now,
        });
    }

    /// Reads that were not posted will not be.
    pub(super) fn stop_asking(&mut self, task: TaskSlot) {
        self.retain(|other| other != task);
    }

    /// Keeps only reads of some tasks among those that were not posted.
    pub(super) fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        let stopped = self.gets.iter_mut().filter(|get| !keep(get.task));
        stopped.for_each(|get| get.is_stopped = true);
    }

    /// Gives up what is outstanding of a task, and the memory that was to be filled.
    pub(super) fn cancel(&mut self, task: TaskSlot) {
        self.gets.retain(|get| get.task != task);
        let mut posted = self.posted.iter_mut();
        while let Some(read) = posted.find(|read| read.task == Some(task)) {
            if read.get.take().is_some() {
                self.cancelled.push(read.id);
            }
        }
    }

    /// The task is over: its place may become another one's.
    pub(super) fn forget(&mut self, task: TaskSlot) {
        self.stop_asking(task);
        self.cancel(task);
        let posted = self.posted.iter_mut();
        let own = posted.filter(|read| read.task == Some(task));
        own.for_each(|read| read.task = None);
    }

    /// Whether reads wait to be posted.
    pub(super) fn are_waiting(&self) -> bool {
        self.gets.iter().any(DataGet::is_waiting)
    }

    /// How many leases wait for reads to be posted, and how many reads are to be given up.
    pub(super) fn to_do(&self) -> usize {
        let waiting = self.gets.iter().filter(|get| get.is_waiting());
        waiting.count() + self.cancelled.len()
    }

    /// Whether something is outstanding of a task.
    pub(super) fn is_getting(&self, task: TaskSlot) -> bool {
        self.posted.iter().any(|read| read.task == Some(task))
    }

    /// Whether something is outstanding that was given up.
    pub(super) fn are_draining(&self) -> bool {
        self.posted.iter().any(|read| read.get.is_none())
    }

    /// Since when something was asked for that has not come.
    pub(super) fn oldest(&self) -> Option<Now> {
        let waiting = self.gets.iter().filter(|get| get.is_waiting());
        let waiting = waiting.map(|get| get.since);
        let posted = self.posted.iter().map(|read| read.since);
        waiting.chain(posted).min()
    }

    /// Whether some are to be given up.
    pub(super) const fn has_cancelled(&self) -> bool {
        !self.cancelled.is_empty()
    }

    /// The next one to be given up.
    pub(super) fn pop_cancelled(&mut self) -> Option<ReadId> {
        self.cancelled.pop()
    }

    /// The next read to be posted, of at most `max_burst` bytes, while fewer than `ord` are
    /// outstanding.
    pub(super) fn pop(&mut self, ord: u16, max_burst: u32) -> Option<Work<L>> {
        if self.posted.len() >= usize::from(ord) {
            return None;
        }
        let get = self.gets.iter_mut().find(|get| get.is_waiting())?;
        let missing = get.wanted.into.len() as u32 - get.asked;
        let (at, len) = (get.asked, missing.min(max_burst.max(1)));
        get.asked += len;
        let id = self.next_read;
        self.next_read = ReadId(id.0.wrapping_add(1));
        self.posted.push(PostedRead {
            id,
            task: Some(get.task),
            get: Some(get.id),
            len,
            since: get.since,
        });
        Some(Work::Read {
            id,
            from: get.from.plus(u64::from(get.wanted.offset) + u64::from(at)),
            into: get.wanted.into.slice(at as usize, len as usize),
        })
    }

    /// A read is over.
    pub(super) fn over(&mut self, id: ReadId) -> Option<PostedRead> {
        let at = self.posted.iter().position(|read| read.id == id)?;
        self.cancelled.retain(|cancelled| *cancelled != id);
        Some(self.posted.swap_remove(at))
    }

    /// The data of a read that is over is there: the memory that is full with it.
    pub(super) fn filled(&mut self, read: &PostedRead) -> Option<WantedData<L>> {
        let of = read.get?;
        let at = self.gets.iter().position(|get| get.id == of)?;
        let wanted = &mut self.gets[at].wanted;
        wanted.filled += read.len;
        wanted.is_full().then(|| self.gets.remove(at).wanted)
    }

    pub(super) fn trim(&mut self) {
        self.gets.shrink_to_fit();
        self.posted.shrink_to_fit();
        self.cancelled.shrink_to_fit();
    }
}
