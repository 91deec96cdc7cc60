//! The ring over io_uring.
//!
//! `wait` is one system call, which submits whatever was asked for and waits. A receive names no
//! buffer: the kernel chooses one of few when bytes come, so that thousands of idle connections
//! hold none and a busy one finds them in the cache. A send is one SENDMSG that the kernel carries
//! on with until all has left; a large one does without a copy (`uring/zero_copy.rs`). While the
//! thread spins it receives and sends by itself (`uring/hot.rs`). Files are read and written by the
//! kernel too; those that lie in memory by plain system calls in `wait`.
//!
//! An operation owns what it points to until its completion was taken; a socket that is closed
//! stays until then, and a ring that is dropped waits.

mod buffers;
mod file;
mod fixed;
mod hot;
mod listen;
mod queue;
mod socket;
mod zero_copy;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, Timespec};
use io_uring::{cqueue, opcode};
use slab::Slab;

use self::buffers::Buffers;
use self::file::FileTask;
use self::fixed::FixedBuffers;
use self::hot::{HOT_MAX, HotSockets};
use self::listen::Listeners;
use self::queue::{Op, UringQueue};
use self::socket::{CompletionStep, UringSocket};
use self::zero_copy::ZeroCopySends;
use super::bell::{Bell, DONE, WOKEN};
use super::blocking::{Blocking, BlockingJob, ImmediateJobs};
use super::lend::Received;
use super::{PAUSE, Ring, RingEvent, SendBatch, SocketId, SocketRing, Token, Waker, busy_poll};
use crate::memory::drain_stores;

/// Where the kernel reads how long a pause is.
static PAUSED: Timespec = Timespec::new().nsec(PAUSE.subsec_nanos());

/// As many completions as are soon worked on.
const MANY: usize = 3;

/// A [`Ring`] over io_uring, from Linux 5.19 on.
pub struct UringRing {
    queue: UringQueue,
    buffers: Buffers,
    bell: Arc<Bell>,
    sockets: Slab<UringSocket>,
    hot: HotSockets,
    listeners: Listeners,
    zero_copy: ZeroCopySends,
    watched: Slab<(Arc<OwnedFd>, Token)>,
    paused: Slab<Token>,
    /// Before `files`, so that its threads have ended when the buffers go.
    blocking: Blocking,
    files: Slab<FileTask>,
    /// Memory of pools that the kernel knows.
    fixed: FixedBuffers,
    /// Started by the next `wait`.
    jobs: Vec<(usize, BlockingJob)>,
    /// Done by the next `wait`, and by those after it.
    at_once: ImmediateJobs,
    done: Vec<(usize, io::Result<u64>)>,
    /// Sockets whose receive waits for a buffer.
    starved: VecDeque<u32>,
    /// Events that did not come as completions.
    events: VecDeque<RingEvent<Received>>,
    /// Completions that the last `wait` has found and that were not taken.
    found: usize,
    /// They are many. A socket received from long before it is heard may have more by then; if that
    /// had to wait its turn again, sessions whose commands come in two halves would get half as
    /// much done as others, for as long as they are busy.
    late: bool,
}

impl UringRing {
    /// Opens a ring, for this thread alone.
    ///
    /// # Errors
    ///
    /// The kernel is too old, or something forbids io_uring; the error says what.
    pub fn open() -> io::Result<Self> {
        let queue = UringQueue::new(queue::open()?);
        let buffers = Buffers::register(queue.ring())?;
        let bell = Bell::new()?;
        let mut ring = Self {
            queue,
            buffers,
            blocking: Blocking::new(&bell)?,
            bell,
            sockets: Slab::new(),
            hot: HotSockets::new(),
            listeners: Listeners::default(),
            zero_copy: ZeroCopySends::default(),
            watched: Slab::new(),
            paused: Slab::new(),
            files: Slab::new(),
            fixed: FixedBuffers::default(),
            jobs: Vec::new(),
            at_once: ImmediateJobs::default(),
            done: Vec::new(),
            starved: VecDeque::new(),
            // What was received and sent without the kernel's queues takes no memory.
            events: VecDeque::with_capacity(2 * HOT_MAX),
            found: 0,
            late: false,
        };
        ring.listen_to_bell();
        Ok(ring)
    }

    /// See [`AnyRing::busy_poll`](super::AnyRing::busy_poll).
    pub(super) fn busy_poll(&self, limit: Duration) -> io::Result<()> {
        busy_poll::of_uring(self.queue.ring(), limit)
    }

    fn cancel_accepts(&mut self, keys: Vec<u32>) {
        for key in keys {
            let cancel = opcode::AsyncCancel::new(Op::Accept(key).data()).build();
            // SAFETY: it points to nothing.
            unsafe { self.queue.push(cancel, Op::Cancel) };
        }
    }

    fn listen_to_bell(&mut self) {
        let fd = Fd(self.bell.as_fd().as_raw_fd());
        let poll = opcode::PollAdd::new(fd, libc::POLLIN as u32).multi(true);
        // SAFETY: it points to nothing, and the bell lives as long as we do.
        unsafe { self.queue.push(poll.build(), Op::Bell) };
    }

    fn submit_receive(&mut self, key: u32) {
        if let Some(socket) = self.sockets.get(key as usize) {
            // SAFETY: it points to nothing: the buffer is one of those registered. The socket
            // stays until the operation is over.
            unsafe { self.queue.push(socket.receive_entry(), Op::Receive(key)) };
        }
    }

    fn submit_send(&mut self, key: u32) {
        let socket = self.sockets.get_mut(key as usize);
        if let Some(entry) = socket.and_then(UringSocket::send_entry) {
            // SAFETY: the socket and its batch stay until the operation is over.
            unsafe { self.queue.push(entry, Op::Send(key)) };
        }
    }

    fn submit_accept(&mut self, key: u32) {
        if let Some(entry) = self.listeners.arm(key) {
            // SAFETY: it points to nothing, and the socket stays until the accept is over.
            unsafe { self.queue.push(entry, Op::Accept(key)) };
        }
    }

    /// Takes a completion.
    fn complete(&mut self, completion: &cqueue::Entry) -> Option<RingEvent<Received>> {
        match Op::of(completion.user_data()) {
            Op::Bell => {
                if !cqueue::more(completion.flags()) {
                    self.listen_to_bell();
                }
                None
            }
            Op::Cancel => None,
            Op::Accept(key) => {
                let (event, again) = self.listeners.accepted(key, completion);
                if again {
                    self.submit_accept(key);
                }
                event
            }
            Op::Receive(key) => self.received(key, completion),
            Op::Send(key) => self.sent(key, completion),
            Op::File(key) => self.transferred(key, completion),
            Op::Watch(key) => {
                let (_, token) = self.watched.remove(key as usize);
                Some(RingEvent::Ready { token })
            }
            Op::Pause(key) => {
                let token = self.paused.remove(key as usize);
                Some(RingEvent::Ready { token })
            }
            Op::SendUncopied(number) => {
                let key = self.sent_uncopied(number, completion)?;
                self.sent(key, completion)
            }
            Op::Linger(key) => {
                self.lingered(key);
                None
            }
        }
    }

    fn received(&mut self, key: u32, completion: &cqueue::Entry) -> Option<RingEvent<Received>> {
        let socket = self.sockets.get_mut(key as usize)?;
        match socket.received(completion, &mut self.buffers, self.late)? {
            CompletionStep::Event(event) => {
                self.forget_closed(key);
                return Some(event);
            }
            CompletionStep::Again => self.submit_receive(key),
            CompletionStep::Starved => self.starved.push_back(key),
        }
        None
    }

    fn sent(&mut self, key: u32, completion: &cqueue::Entry) -> Option<RingEvent<Received>> {
        let socket = self.sockets.get_mut(key as usize)?;
        match socket.sent(completion, &mut self.zero_copy)? {
            CompletionStep::Event(event) => {
                self.forget_closed(key);
                return Some(event);
            }
            CompletionStep::Again | CompletionStep::Starved => self.submit_send(key),
        }
        None
    }

    fn do_at_once(&mut self) {
        while let Some((key, job)) = self.at_once.next() {
            let event = self.file_over(key, job.run());
            self.events.push_back(event);
        }
    }

    fn forget_closed(&mut self, key: u32) {
        if self
            .sockets
            .get(key as usize)
            .is_some_and(UringSocket::is_over)
        {
            let (fd, state) = self.sockets.remove(key as usize).into_parts();
            self.linger(fd, state);
        }
    }

    /// Gives the kernel buffers, and the receives that wait for them.
    fn hand_over_buffers(&mut self) {
        if self.buffers.hand_over() {
            while let Some(key) = self.starved.pop_front() {
                self.submit_receive(key);
            }
        }
    }

    fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let now = Some(Duration::ZERO);
        if !self.events.is_empty() || timeout == now {
            return self.queue.enter(now);
        }
        let timeout = match self.listeners.pause_left() {
            Some(left) => Some(timeout.map_or(left, |timeout| timeout.min(left))),
            None => timeout,
        };
        let timeout = if self.bell.sleep() { timeout } else { now };
        self.queue.enter(timeout)
    }

    fn answer_bell(&mut self) {
        let rung = self.bell.answer();
        if rung & DONE != 0 {
            let mut done = std::mem::take(&mut self.done);
            self.blocking.done(&mut done);
            for (key, result) in done.drain(..) {
                let event = self.file_over(key, result);
                self.events.push_back(event);
            }
            self.done = done;
        }
        if rung & WOKEN != 0 {
            self.events.push_back(RingEvent::Woken);
        }
    }
}

impl Ring for UringRing {
    type Received = Received;

    fn listen(&mut self, listener: OwnedFd, token: Token) -> io::Result<()> {
        let key = self.listeners.add(listener, token)?;
        self.submit_accept(key);
        Ok(())
    }

    fn stop_listening(&mut self) {
        let stopped = self.listeners.stop(|_| true);
        self.cancel_accepts(stopped);
    }

    fn stop_listening_to(&mut self, token: Token) {
        let stopped = self.listeners.stop(|one| one == token);
        self.cancel_accepts(stopped);
    }

    fn release(&mut self, socket: SocketId) -> OwnedFd {
        // Looked at before it is taken out, as a panic would drop what the kernel may be reading.
        let idle = self.sockets[socket.0 as usize].is_idle();
        assert!(idle, "a socket is released with operations under way");
        self.sockets.remove(socket.0 as usize).into_parts().0
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        drain_stores();
        self.blocking.start(&mut self.jobs);
        let has_buffers = self.buffers.has_free();
        self.hot
            .before_wait(timeout, self.sockets.len(), has_buffers);
        while let Some(key) = self.hot.next_cold() {
            self.submit_receive(key);
        }
        self.hand_over_buffers();
        for key in self.listeners.resume() {
            self.submit_accept(key);
        }
        if !self.at_once.is_empty() {
            // Answers do not wait for copies that have nothing to do with them.
            self.queue.enter(Some(Duration::ZERO))?;
            self.do_at_once();
        }
        let entered = self.enter(timeout);
        self.answer_bell();
        self.receive_hot();
        self.found = self.queue.completed();
        self.late = self.found > MANY;
        entered
    }

    fn next_event(&mut self) -> Option<RingEvent<Received>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        while self.found > 0 {
            self.found -= 1;
            let completion = self.queue.next()?;
            if let Some(event) = self.complete(&completion) {
                return Some(event);
            }
        }
        None
    }

    fn pauses(&self) -> bool {
        !self.paused.is_empty()
    }

    fn has_idle(&self) -> bool {
        self.buffers.has_idle() || self.fixed.has_idle() || self.zero_copy.has_idle()
    }

    fn trim(&mut self) {
        self.buffers.trim();
        self.fixed.trim(self.queue.ring());
        self.zero_copy.trim();
    }

    fn refusal(&mut self) -> Option<io::Error> {
        self.fixed.refusal()
    }

    fn uncopied(&self) -> u64 {
        self.zero_copy.uncopied()
    }

    fn waker(&self) -> Waker {
        Waker::new(&self.bell)
    }
}

impl SocketRing for UringRing {
    fn adopt(&mut self, socket: OwnedFd) -> io::Result<SocketId> {
        // A non-blocking socket would make operations fail instead of wait.
        rustix::io::ioctl_fionbio(&socket, false)?;
        Ok(SocketId(
            self.sockets.insert(UringSocket::new(socket)) as u32
        ))
    }

    fn lend_sends(&mut self, socket: SocketId) {
        if let Some(entry) = self.sockets.get(socket.0 as usize) {
            entry.lend_sends();
        }
    }

    fn receive(&mut self, socket: SocketId, token: Token) {
        if let Some(entry) = self.sockets.get_mut(socket.0 as usize) {
            entry.ask_receive(token);
            if !self.hot.take(socket.0) {
                self.submit_receive(socket.0);
            }
        }
    }

    fn send(&mut self, socket: SocketId, token: Token, batch: Box<SendBatch>) {
        let Some(entry) = self.sockets.get_mut(socket.0 as usize) else {
            return;
        };
        if !entry.ask_send(token, batch) {
            let sent = entry.end_send(Ok(()), &mut self.zero_copy);
            self.events.extend(sent);
        } else if !(entry.may_lend() && self.send_uncopied(socket.0)) {
            self.send_copied(socket.0);
        }
    }

    fn send_now(
        &mut self,
        socket: SocketId,
        token: Token,
        batch: Box<SendBatch>,
    ) -> Option<Box<SendBatch>> {
        let entry = self.sockets.get_mut(socket.0 as usize)?;
        entry.ask_send(token, batch);
        if entry.may_lend() && self.send_uncopied(socket.0) {
            drain_stores();
            // What is wrong with the ring is told by the next wait.
            let _ = self.queue.enter(Some(Duration::ZERO));
            return None;
        }
        let left = self.sockets.get_mut(socket.0 as usize)?.send_now();
        if left.is_none() {
            self.submit_send(socket.0);
        }
        left
    }

    fn watch(&mut self, fd: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        let key = self.watched.insert((Arc::clone(fd), token)) as u32;
        let poll = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLIN as u32);
        // SAFETY: it points to nothing, and we hold the descriptor until it is over.
        unsafe { self.queue.push(poll.build(), Op::Watch(key)) };
        Ok(())
    }

    fn watch_later(&mut self, _: &Arc<OwnedFd>, token: Token) -> io::Result<()> {
        let key = self.paused.insert(token) as u32;
        let pause = opcode::Timeout::new(&PAUSED);
        // SAFETY: it points to what lives for ever.
        unsafe { self.queue.push(pause.build(), Op::Pause(key)) };
        Ok(())
    }

    fn close(&mut self, socket: SocketId) {
        let Some(entry) = self.sockets.get_mut(socket.0 as usize) else {
            return;
        };
        entry.close();
        if self.hot.forget(socket.0) {
            self.events.extend(entry.cancel_receive());
        }
        if let Some(at) = self.starved.iter().position(|key| *key == socket.0) {
            self.starved.remove(at);
            self.events.extend(entry.cancel_receive());
        }
        self.forget_closed(socket.0);
    }
}

impl Drop for UringRing {
    /// Sockets are shut down first, so that a send in the middle of a batch ends, and reset where
    /// peers have not acknowledged what is lent.
    fn drop(&mut self) {
        for (_, socket) in &mut self.sockets {
            socket.abort();
        }
        self.zero_copy.abort();
        let lent = self.zero_copy.len();
        let drained = self.queue.drain(lent, |completion| {
            if let Op::Accept(_) = Op::of(completion.user_data()) {
                drop(listen::accepted_socket(completion));
            }
        });
        if drained.is_err() {
            // The kernel may go on writing to the memory: better it is never free again.
            std::mem::forget(std::mem::take(&mut self.files));
            std::mem::forget(std::mem::take(&mut self.sockets));
            std::mem::forget(std::mem::take(&mut self.zero_copy));
            self.buffers.leak();
        }
    }
}

impl std::fmt::Debug for UringRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sockets = self.sockets.len();
        write!(f, "UringRing({sockets} sockets)")
    }
}
