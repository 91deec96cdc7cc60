//! RDMA Reads: data that is wanted, cut by MaxBurstLength, and what is outstanding of it (RFC 7145
//! §7.3.6, §8.2).

use std::collections::VecDeque;

use rdma::verbs::{self, ReadId, Work};
use scsi::medium::{Lease, Now};

use crate::datamover::{TaskSlot, WantedData};

/// The reads of all tasks.
#[derive(Debug)]
pub(super) struct TaskReads<L> {
    gets: Vec<DataGet<L>>,
    waiting: VecDeque<WaitingRead<L>>,
    posted: Vec<PostedRead>,
    /// Those of `posted` that the queue pair is to give up.
    cancelled: Vec<ReadId>,
    next_id: u32,
}

/// One *Get_Data*, named by the first of its reads.
#[derive(Debug)]
struct DataGet<L> {
    id: ReadId,
    task: TaskSlot,
    wanted: WantedData<L>,
}

/// A read that was not posted.
#[derive(Debug)]
struct WaitingRead<L> {
    read: PostedRead,
    from: verbs::Tag,
    into: L,
}

/// A read that was posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedRead {
    id: ReadId,
    /// `None` when the task was aborted.
    pub(super) task: Option<TaskSlot>,
    /// What it is a part of; `None` when its data is not wanted any more.
    get: Option<ReadId>,
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
            waiting: VecDeque::new(),
            posted: Vec::new(),
            cancelled: Vec::new(),
            next_id: 0,
        }
    }

    /// Asks for what is missing of `wanted`, in reads of at most `max_burst` bytes. `from` is where
    /// the first byte of the command's data would be.
    pub(super) fn want(
        &mut self,
        (now, task): (Now, TaskSlot),
        from: verbs::Tag,
        wanted: WantedData<L>,
        max_burst: u32,
    ) {
        let get = ReadId(self.next_id);
        let end = wanted.into.len() as u32;
        let mut at = wanted.filled;
        while at < end {
            let len = (end - at).min(max_burst.max(1));
            let read = PostedRead {
                id: ReadId(self.next_id),
                task: Some(task),
                get: Some(get),
                len,
                since: now,
            };
            self.waiting.push_back(WaitingRead {
                read,
                from: from.plus(u64::from(wanted.offset) + u64::from(at)),
                into: wanted.into.slice(at as usize, len as usize),
            });
            self.next_id = self.next_id.wrapping_add(1);
            at += len;
        }
        self.gets.push(DataGet {
            id: get,
            task,
            wanted,
        });
    }

    /// Reads that were not posted will not be.
    pub(super) fn stop_asking(&mut self, task: TaskSlot) {
        self.retain(|other| other != task);
    }

    /// Keeps only reads of some tasks among those that were not posted.
    pub(super) fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|one| one.read.task.is_none_or(&keep));
        }
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
        !self.waiting.is_empty()
    }

    /// Whether something is outstanding of a task.
    pub(super) fn is_getting(&self, task: TaskSlot) -> bool {
        self.posted.iter().any(|read| read.task == Some(task))
    }

    /// Whether something is outstanding of tasks that were aborted.
    pub(super) fn is_draining(&self) -> bool {
        self.posted.iter().any(|read| read.task.is_none())
    }

    /// Since when something was asked for that has not come.
    pub(super) fn oldest(&self) -> Option<Now> {
        let waiting = self.waiting.iter().map(|one| one.read.since);
        let posted = self.posted.iter().map(|read| read.since);
        waiting.chain(posted).min()
    }

    /// The next one to be given up.
    pub(super) fn pop_cancelled(&mut self) -> Option<ReadId> {
        self.cancelled.pop()
    }

    /// The next read to be posted, while fewer than `ord` are outstanding.
    pub(super) fn pop(&mut self, ord: u16) -> Option<Work<L>> {
        if self.posted.len() >= usize::from(ord) {
            return None;
        }
        let WaitingRead { read, from, into } = self.waiting.pop_front()?;
        self.posted.push(read);
        Some(Work::Read {
            id: read.id,
            from,
            into,
        })
    }

    /// A read is over.
    pub(super) fn over(&mut self, id: ReadId) -> Option<PostedRead> {
        let at = self.posted.iter().position(|read| read.id == id)?;
        Some(self.posted.swap_remove(at))
    }

    /// The data of a read that is over is there: the memory that is full with it.
    pub(super) fn filled(&mut self, read: &PostedRead) -> Option<WantedData<L>> {
        let of = read.get?;
        let at = self.gets.iter().position(|get| get.id == of)?;
        let wanted = &mut self.gets[at].wanted;
        wanted.filled += read.len;
        wanted.is_full().then(|| self.gets.swap_remove(at).wanted)
    }

    pub(super) fn trim(&mut self) {
        self.gets.shrink_to_fit();
        self.waiting.shrink_to_fit();
        self.posted.shrink_to_fit();
        self.cancelled.shrink_to_fit();
    }
}
