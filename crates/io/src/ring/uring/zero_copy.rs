//! Large sends without a copy: SENDMSG_ZC has the network card read the data from where it lies.
//!
//! Such a send completes twice. Once the socket has taken all of it: then the next may follow, and
//! the sender gets another batch in place of this one. And once nothing reads the memory any more,
//! as the peer has acknowledged everything: with this notification the batch is let go, and what
//! was lent for it. A thread that wakes for a notification finds no event, and sleeps again.
//!
//! Pinning the pages and a second completion pay only where they save a copy. A kernel that had to
//! copy, as over loopback and veth, says so in the notification; the connection does without from
//! then on. Linux 6.2 is the first that says it; earlier ones refuse the send, and it is made
//! again.

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::types::{Fd, Timespec};
use io_uring::{cqueue, opcode, squeue};
use slab::Slab;

use super::UringRing;
use super::fixed::pinned_max;
use super::queue::Op;
use crate::ring::SendBatch;
use crate::tcp::{local_address, peer_address};

/// From so many bytes on that lie in buffers. What is copied into a batch anyhow is still in the
/// cache when the kernel copies it again. An assumption, not measured.
pub(super) const WORTH: usize = 32 << 10;

/// Bytes that a ring has lent for such sends at the most; the next is copied. Buffers are missing
/// elsewhere for as long as peers do not acknowledge. An assumption, not measured.
const LENT_MAX: usize = 32 << 20;

/// Empty batches that are kept: each may have room for 256 KiB.
const SPARE_MAX: usize = 32;

/// How long after a socket is closed its peer has to acknowledge what it was sent. An assumption,
/// not measured.
static LINGER: Timespec = Timespec::new().sec(5);

/// Bytes that the kernel had to copy nevertheless (IORING_NOTIF_USAGE_ZC_COPIED).
const COPIED: u32 = 1 << 31;

/// Has the notification tell so (IORING_SEND_ZC_REPORT_USAGE, Linux 6.2).
const REPORT_USAGE: u16 = 1 << 3;

/// Whether a connection's large sends are made without a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    /// The first one will tell.
    Untried,
    /// The first one is under way.
    Tried,
    /// The kernel has not copied yet.
    Pays,
    /// Nobody has allowed it, or the kernel has copied, or refuses such sends.
    #[default]
    Off,
}

/// Of one connection, known to its socket and to each of its sends that is not over.
pub(super) type ZeroCopyState = Rc<Cell<ZeroCopy>>;

/// The sends of a ring that were begun without a copy.
#[derive(Default)]
pub(super) struct ZeroCopySends {
    sends: Slab<ZeroCopySend>,
    /// Bytes of all of them.
    lent: usize,
    lent_max: Option<usize>,
    /// Empty batches, of which the one used last is used first.
    #[expect(clippy::vec_box, reason = "senders have their batches in boxes")]
    spare: Vec<Box<SendBatch>>,
    /// The fewest there were since the last trim.
    idle: usize,
    /// Bytes that the kernel has not copied.
    uncopied: u64,
    /// Sockets that were closed with sends that are not over.
    lingering: Slab<(OwnedFd, ZeroCopyState)>,
    /// Set by tests: every peer counts as far.
    pretends_far: bool,
    /// Set by tests: the kernel counts as never copying.
    pretends_uncopied: bool,
}

/// A send of which there will be a notification.
struct ZeroCopySend {
    /// The socket, as long as it has the batch.
    socket: u32,
    state: ZeroCopyState,
    len: usize,
    /// Bytes that the kernel took without a copy.
    taken: usize,
    /// What the kernel still reads, when the socket has sent all of it.
    batch: Option<Box<SendBatch>>,
}

impl ZeroCopySends {
    /// Begins a send of a socket's batch if it is worth it. Returns its number and entry.
    fn begin(
        &mut self,
        (key, fd): (u32, &OwnedFd),
        state: &ZeroCopyState,
        batch: &mut SendBatch,
    ) -> Option<(usize, squeue::Entry)> {
        let len = batch.len();
        let max = *self
            .lent_max
            .get_or_insert_with(|| LENT_MAX.min(pinned_max()));
        if self.lent + len > max || !self.may_try(fd, state) {
            return None;
        }
        self.lent += len;
        let number = self.sends.insert(ZeroCopySend {
            socket: key,
            state: Rc::clone(state),
            len,
            taken: 0,
            batch: None,
        });
        let send = opcode::SendMsgZc::new(Fd(fd.as_raw_fd()), batch.message());
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let send = send.ioprio(REPORT_USAGE).flags(flags as u32);
        Some((number, send.build()))
    }

    fn may_try(&self, fd: &OwnedFd, state: &ZeroCopyState) -> bool {
        match state.get() {
            ZeroCopy::Untried => {
                let far = self.pretends_far || is_far(fd);
                state.set(if far { ZeroCopy::Tried } else { ZeroCopy::Off });
                far
            }
            state => state == ZeroCopy::Pays,
        }
    }

    /// Keeps a batch that has left until its notification. Returns an empty one.
    pub(super) fn keep(&mut self, number: usize, batch: Box<SendBatch>) -> Box<SendBatch> {
        self.sends[number].batch = Some(batch);
        let spare = self.spare.pop().unwrap_or_default();
        self.idle = self.idle.min(self.spare.len());
        spare
    }

    /// The kernel has let go of a send's memory. Returns the socket that has its batch, if one has.
    fn end(&mut self, number: usize, copied: bool) -> Option<u32> {
        let send = self.sends.remove(number);
        self.lent -= send.len;
        if copied && !self.pretends_uncopied {
            send.state.set(ZeroCopy::Off);
        } else {
            self.uncopied += send.taken as u64;
            if send.state.get() == ZeroCopy::Tried {
                send.state.set(ZeroCopy::Pays);
            }
        }
        let Some(mut batch) = send.batch else {
            return Some(send.socket);
        };
        if self.spare.len() < SPARE_MAX {
            batch.clear();
            self.spare.push(batch);
        }
        None
    }

    /// How many are not over.
    pub(super) fn len(&self) -> usize {
        self.sends.len()
    }

    /// Bytes that the kernel was spared to copy.
    pub(super) fn uncopied(&self) -> u64 {
        self.uncopied
    }

    /// Whether a trim, now or later, can give memory back.
    pub(super) fn has_idle(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Gives back the spare batches that were not needed since the last call.
    pub(super) fn trim(&mut self) {
        self.spare.drain(..self.idle);
        self.idle = self.spare.len();
    }

    /// Has the kernel give up what sockets that were closed have not sent.
    pub(super) fn abort(&mut self) {
        for (_, (fd, state)) in &self.lingering {
            end_lending(fd, state);
        }
    }
}

impl UringRing {
    /// Begins the send that a socket was asked for, if it can do without a copy.
    pub(super) fn send_uncopied(&mut self, key: u32) -> bool {
        let Some(socket) = self.sockets.get_mut(key as usize) else {
            return false;
        };
        let sends = &mut self.zero_copy;
        let begin = |fd: &_, state: &_, batch: &mut _| sends.begin((key, fd), state, batch);
        let Some((number, entry)) = socket.lend(begin) else {
            return false;
        };
        // SAFETY: the batch stays with the socket, which stays as well, until the send is over, and
        // then with us until the notification, which is the last completion.
        unsafe { self.queue.push(entry, Op::SendUncopied(number as u32)) };
        true
    }

    /// Takes a completion. Returns the socket that goes on with it as with any other of a send.
    pub(super) fn sent_uncopied(&mut self, number: u32, completion: &cqueue::Entry) -> Option<u32> {
        let number = number as usize;
        if cqueue::notif(completion.flags()) {
            let copied = completion.result() as u32 & COPIED != 0;
            self.uncopied_is_over(number, copied);
            return None;
        }
        let send = self.zero_copy.sends.get_mut(number)?;
        let key = send.socket;
        let is_refused = completion.result() < 0;
        if is_refused {
            send.state.set(ZeroCopy::Off);
        } else {
            send.taken = completion.result() as usize;
        }
        if !cqueue::more(completion.flags()) {
            self.uncopied_is_over(number, is_refused);
        }
        if is_refused {
            // If it is not only for this way of sending, that will tell.
            self.submit_send(key);
            return None;
        }
        Some(key)
    }

    fn uncopied_is_over(&mut self, number: usize, copied: bool) {
        let holder = self.zero_copy.end(number, copied);
        if let Some(socket) = holder.and_then(|key| self.sockets.get_mut(key as usize)) {
            socket.lends_no_more();
        }
    }

    /// A socket that is closed goes. Its peer has some time for what it has not acknowledged; were
    /// that for the peer alone to say, writers that wait for the memory could wait for ever.
    pub(super) fn linger(&mut self, fd: OwnedFd, state: ZeroCopyState) {
        if is_lent(&state) {
            let key = self.zero_copy.lingering.insert((fd, state)) as u32;
            let pause = opcode::Timeout::new(&LINGER);
            // SAFETY: it points to what lives for ever.
            unsafe { self.queue.push(pause.build(), Op::Linger(key)) };
        }
    }

    /// The time of such a peer is up.
    pub(super) fn lingered(&mut self, key: u32) {
        let (fd, state) = self.zero_copy.lingering.remove(key as usize);
        end_lending(&fd, &state);
    }
}

/// Whether a connection has sends that are not over.
fn is_lent(state: &ZeroCopyState) -> bool {
    Rc::strong_count(state) > 1
}

/// Resets a connection if memory is lent for it: what it has not sent is dropped.
pub(super) fn end_lending(fd: &OwnedFd, state: &ZeroCopyState) {
    if is_lent(state) {
        // It fails only when there is no connection any more.
        let _ = rustix::net::connect_unspec(fd);
    }
}

/// Whether a socket's peer may be on another machine.
fn is_far(fd: &OwnedFd) -> bool {
    let (Ok(ours), Ok(theirs)) = (local_address(fd), peer_address(fd)) else {
        return false;
    };
    let (ours, theirs) = (ours.ip().to_canonical(), theirs.ip().to_canonical());
    ours != theirs && !ours.is_loopback() && !theirs.is_loopback()
}

#[cfg(test)]
impl UringRing {
    /// Takes every peer for one on another machine, and what the kernel copies for uncopied.
    pub(in crate::ring) fn pretend(&mut self, is_far: bool, is_uncopied: bool) {
        self.zero_copy.pretends_far = is_far;
        self.zero_copy.pretends_uncopied = is_uncopied;
    }
}
