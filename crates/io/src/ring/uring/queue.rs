//! The two queues of an io_uring, what is between them, and how it is opened with what this kernel
//! has.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

/// An io_uring, used by the thread that made it.
///
/// Entries are kept until the next `enter`, however many they are; each completes once or, when
/// multishot, several times.
pub(super) struct UringQueue {
    ring: IoUring,
    /// What does not fit into the submission queue.
    backlog: VecDeque<squeue::Entry>,
    /// Entries in the kernel, or on their way, that have not completed for the last time.
    in_flight: usize,
}

impl UringQueue {
    pub(super) fn new(ring: IoUring) -> Self {
        Self {
            ring,
            backlog: VecDeque::new(),
            in_flight: 0,
        }
    }

    pub(super) fn ring(&self) -> &IoUring {
        &self.ring
    }

    /// Adds an entry.
    ///
    /// # Safety
    ///
    /// What it points to stays valid until its last completion was taken by [`Self::next`], or
    /// [`Self::drain`] has returned well. Its file descriptor stays open until then as well.
    pub(super) unsafe fn push(&mut self, entry: squeue::Entry, op: Op) {
        let entry = entry.user_data(op.data());
        // SAFETY: the promise made to us.
        if self.backlog.is_empty() && unsafe { self.ring.submission().push(&entry) }.is_ok() {
            self.in_flight += 1;
        } else {
            self.backlog.push_back(entry);
        }
    }

    /// Moves entries from the backlog to the submission queue.
    fn fill(&mut self) {
        let mut submission = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: the promise of `push`.
            if unsafe { submission.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
            self.in_flight += 1;
        }
    }

    /// Submits all entries, and waits for a completion for `timeout` at the most. Makes no system
    /// call when there is nothing to submit, and no time to wait, and the kernel has nothing for
    /// us.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            let more = !self.backlog.is_empty();
            let at_once = more || self.completed() > 0;
            let entered = self.enter_once(if at_once {
                Some(Duration::ZERO)
            } else {
                timeout
            });
            match entered.map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) => {}
                // Time is up; a signal; completions must be taken, or memory be freed, before more
                // can be submitted: entries that were not taken stay in the queue.
                Err((
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ENOMEM),
                    _,
                )) => return Ok(()),
                Err((_, error)) => return Err(error),
            }
            if !more {
                return Ok(());
            }
            self.fill();
        }
    }

    fn enter_once(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let submission = self.ring.submission();
        let to_submit = submission.len() as u32;
        let news = submission.taskrun() || submission.cq_overflow();
        drop(submission);
        let submitter = self.ring.submitter();
        let flags = EnterFlags::GETEVENTS.bits();
        let timespec;
        let entered = match timeout {
            Some(Duration::ZERO) if to_submit == 0 && !news => return Ok(()),
            // SAFETY: no argument; entries are as `push` was promised.
            Some(Duration::ZERO) => unsafe { submitter.enter::<()>(to_submit, 0, flags, None) },
            // SAFETY: as above.
            None => unsafe { submitter.enter::<()>(to_submit, 1, flags, None) },
            Some(timeout) => {
                timespec = Timespec::from(timeout);
                let arguments = SubmitArgs::new().timespec(&timespec);
                let flags = flags | EnterFlags::EXT_ARG.bits();
                // SAFETY: the argument is what EXT_ARG announces, and lives until we return.
                unsafe { submitter.enter(to_submit, 1, flags, Some(&arguments)) }
            }
        };
        entered.map(|_| ())
    }

    /// How many completions there are.
    pub(super) fn completed(&mut self) -> usize {
        self.ring.completion().len()
    }

    /// Takes the next completion.
    pub(super) fn next(&mut self) -> Option<cqueue::Entry> {
        let completion = self.ring.completion().next()?;
        if !cqueue::more(completion.flags()) {
            self.in_flight -= 1;
        }
        Some(completion)
    }

    /// Cancels everything and waits until all of it is over. `over` gets each completion. After an
    /// error the kernel may still use what entries point to. The last `lent` entries are those of
    /// [`Op::SendUncopied`], for which others are waited for: it is an error if that takes long.
    pub(super) fn drain(
        &mut self,
        mut lent: usize,
        mut over: impl FnMut(&cqueue::Entry),
    ) -> io::Result<()> {
        self.backlog.clear();
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any().all()).build();
        // SAFETY: it points to nothing.
        unsafe { self.push(cancel, Op::Cancel) };
        while self.in_flight > 0 {
            let only_lent = self.in_flight <= lent;
            self.enter(only_lent.then_some(LENT_TIME))?;
            if only_lent && self.completed() == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            while let Some(completion) = self.next() {
                let is_last = !cqueue::more(completion.flags());
                let is_lent = matches!(Op::of(completion.user_data()), Op::SendUncopied(_));
                lent -= usize::from(is_last && is_lent);
                over(&completion);
            }
        }
        Ok(())
    }
}

/// What an entry is for, and how the kernel carries it.
#[derive(Clone, Copy)]
pub(super) enum Op {
    Bell,
    Cancel,
    Accept(u32),
    Receive(u32),
    Send(u32),
    File(u32),
    Watch(u32),
    Pause(u32),
    SendUncopied(u32),
    Linger(u32),
}

impl Op {
    pub(super) fn data(self) -> u64 {
        let (kind, key) = match self {
            Self::Bell => (0, 0),
            Self::Cancel => (1, 0),
            Self::Accept(key) => (2, key),
            Self::Receive(key) => (3, key),
            Self::Send(key) => (4, key),
            Self::File(key) => (5, key),
            Self::Watch(key) => (6, key),
            Self::Pause(key) => (7, key),
            Self::SendUncopied(key) => (8, key),
            Self::Linger(key) => (9, key),
        };
        kind << 32 | u64::from(key)
    }

    pub(super) fn of(data: u64) -> Self {
        let key = data as u32;
        match data >> 32 {
            0 => Self::Bell,
            2 => Self::Accept(key),
            3 => Self::Receive(key),
            4 => Self::Send(key),
            5 => Self::File(key),
            6 => Self::Watch(key),
            7 => Self::Pause(key),
            8 => Self::SendUncopied(key),
            9 => Self::Linger(key),
            _ => Self::Cancel,
        }
    }
}

/// Entries of the submission queue: the operations that are begun by one system call. More are
/// submitted by another.
const SUBMISSIONS: u32 = 1024;

/// Entries of the completion queue. The kernel keeps what does not fit.
const COMPLETIONS: u32 = 8192;

/// How long a ring that is dropped waits for network cards to let go of memory.
const LENT_TIME: Duration = Duration::from_secs(1);

/// Opens an io_uring for this thread.
///
/// Completions are made when we ask for them (DEFER_TASKRUN, Linux 6.1), so that no interrupt
/// breaks into the work; or when we enter the kernel anyhow (COOP_TASKRUN, 5.19); or at any time.
pub(super) fn open() -> io::Result<IoUring> {
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS);
    let cooperative = || {
        IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
    };
    let ring = match deferred {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => cooperative(),
        ring => ring,
    };
    ring.map_err(|error| explain(&error))
}

/// Says what an error of io_uring_setup most probably means.
fn explain(error: &io::Error) -> io::Error {
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has none",
        Some(libc::EPERM | libc::EACCES) => {
            "forbidden by the sysctl kernel.io_uring_disabled, a container or a security policy"
        }
        Some(libc::EINVAL) => "this kernel is older than Linux 5.19",
        Some(libc::ENOMEM) => "the limit of locked memory is too low",
        _ => return io::Error::new(error.kind(), format!("io_uring: {error}")),
    };
    io::Error::new(error.kind(), format!("io_uring: {error}: {cause}"))
}

#[cfg(test)]
mod tests;
