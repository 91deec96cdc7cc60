//! The two rings of a packet socket (packet(7), and packet_mmap in the kernel's documentation).
//!
//! Both consist of blocks of memory with frames of one length, each behind a header whose first
//! word says whose it is. They are one mapping, that of what comes in first.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{TP_STATUS_AVAILABLE, TP_STATUS_KERNEL, TP_STATUS_SEND_REQUEST, TP_STATUS_USER};

use super::raw;
use crate::ether::shared::Shared;

/// The memory of both rings, and where in them we are.
#[derive(Debug)]
pub(super) struct Rings {
    memory: Shared,
    incoming: Frames,
    outgoing: Frames,
    /// The next frame that comes in.
    received: usize,
    /// The next frame to be written.
    written: usize,
    /// Frames before it that the kernel has not been seen to take.
    unsent: usize,
    /// Octets of the slot that was given last.
    given: usize,
    /// There was no slot for a frame.
    full: bool,
}

/// How far frames have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The kernel has all, and there is room for more.
    Sent,
    /// The kernel has to be told.
    Unsent,
    /// The kernel has all, and they take up all the room.
    Full,
}

impl Rings {
    /// Has the socket make rings of frames of up to `frame_max` octets, `size` octets each.
    pub(super) fn new(socket: &OwnedFd, frame_max: usize, size: usize) -> io::Result<Self> {
        let len = (BEFORE_MAX + frame_max).next_multiple_of(CACHE_LINE);
        let frames = Frames {
            base: 0,
            len,
            // What does not fit into a block of whole frames is lost: little, in large blocks.
            per_block: BLOCK / len,
            count: (size / BLOCK).max(1) * (BLOCK / len),
        };
        let invalid = |cause| io::Error::new(io::ErrorKind::InvalidInput, cause);
        let word = |value: usize| u32::try_from(value).map_err(invalid);
        let request = libc::tpacket_req {
            tp_block_size: word(BLOCK)?,
            tp_block_nr: word((size / BLOCK).max(1))?,
            tp_frame_size: word(len)?,
            tp_frame_nr: word(frames.count)?,
        };
        for ring in [libc::PACKET_RX_RING, libc::PACKET_TX_RING] {
            raw::set(socket, raw::SOL_PACKET, ring, &request)?;
        }
        let half = request.tp_block_nr as usize * BLOCK;
        Ok(Self {
            memory: Shared::map(socket, 0, 2 * half)?,
            incoming: frames,
            outgoing: Frames {
                base: half,
                ..frames
            },
            received: 0,
            written: 0,
            unsent: 0,
            given: 0,
            full: false,
        })
    }

    /// Gives the next frame that has come in, with the tag that stood in it; `None` for one that
    /// was too long. Returns whether there was one.
    pub(super) fn receive(&mut self, taken: impl FnOnce(Option<(&[u8], Option<u16>)>)) -> bool {
        let at = self.incoming.at(self.received);
        let status = self.memory.word(at).load(Acquire);
        if status & TP_STATUS_USER == 0 {
            return false;
        }
        let word = |field: usize| self.memory.word(at + field).load(Relaxed);
        let halves = |field: usize| split(word(field));
        let (len, here) = (word(LEN), word(SNAPLEN));
        if len == here {
            let start = at + usize::from(halves(MAC).0);
            // SAFETY: the status says that the kernel leaves this frame to us, until it is told
            // otherwise below.
            let octets = unsafe { self.memory.octets(start, here as usize) };
            let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
            taken(Some((octets, tagged.then(|| halves(VLAN_TCI).0))));
        } else {
            taken(None);
        }
        self.memory.word(at).store(TP_STATUS_KERNEL, Release);
        self.received = self.incoming.after(self.received);
        true
    }

    /// Memory for a frame.
    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let at = self.outgoing.at(self.written);
        let free = self.memory.word(at).load(Acquire) & OF_THE_KERNEL == 0;
        self.full = !free;
        if !free || DATA + len > self.outgoing.len {
            return None;
        }
        self.given = len;
        // SAFETY: the status says that the kernel is done with this frame, and `commit` alone says
        // otherwise.
        Some(unsafe { self.memory.octets_mut(at + DATA, len) })
    }

    /// Gives the kernel the slot that was given last.
    pub(super) fn commit(&mut self, len: usize) {
        assert!(
            len <= self.given,
            "{len} octets in a slot of {}",
            self.given
        );
        self.given = 0;
        let at = self.outgoing.at(self.written);
        self.memory.word(at + LEN).store(len as u32, Relaxed);
        self.memory.word(at).store(TP_STATUS_SEND_REQUEST, Release);
        self.written = self.outgoing.after(self.written);
        self.unsent += 1;
    }

    pub(super) fn state(&self) -> State {
        match (self.unsent, self.full) {
            (0, false) => State::Sent,
            (0, true) => State::Full,
            _ => State::Unsent,
        }
    }

    /// Takes note of what the kernel has taken.
    pub(super) fn settle(&mut self) {
        while self.unsent > 0 && self.status_of_first_unsent() != TP_STATUS_SEND_REQUEST {
            self.unsent -= 1;
        }
        if self.full {
            let next = self.outgoing.at(self.written);
            self.full = self.memory.word(next).load(Acquire) & OF_THE_KERNEL != 0;
        }
    }

    fn status_of_first_unsent(&self) -> u32 {
        let at = self
            .outgoing
            .at(self.outgoing.before(self.written, self.unsent));
        self.memory.word(at).load(Acquire)
    }

    /// Takes back what the kernel has not taken, and returns how many those were. It goes on where
    /// it stopped, so that the next frame has to stand there.
    pub(super) fn give_up(&mut self) -> u64 {
        let first = self.outgoing.before(self.written, self.unsent);
        for _ in 0..self.unsent {
            self.written = self.outgoing.before(self.written, 1);
            let at = self.outgoing.at(self.written);
            self.memory.word(at).store(TP_STATUS_AVAILABLE, Release);
        }
        debug_assert_eq!(self.written, first);
        self.full = false;
        std::mem::take(&mut self.unsent) as u64
    }
}

/// Where the frames of a ring lie.
#[derive(Clone, Copy, Debug)]
struct Frames {
    base: usize,
    len: usize,
    per_block: usize,
    count: usize,
}

impl Frames {
    fn at(&self, index: usize) -> usize {
        let (block, within) = (index / self.per_block, index % self.per_block);
        self.base + block * BLOCK + within * self.len
    }

    fn after(&self, index: usize) -> usize {
        match index + 1 {
            end if end == self.count => 0,
            next => next,
        }
    }

    fn before(&self, index: usize, by: usize) -> usize {
        (index + self.count - by) % self.count
    }
}

/// Octets of a block: what the kernel finds in one piece, if not always, and large beside a frame.
const BLOCK: usize = 256 << 10;

const CACHE_LINE: usize = 64;

/// The most that stands before a frame that has come in: its header, the address of its sender,
/// and what brings the network header into line.
const BEFORE_MAX: usize = 96;

/// Fields of `tpacket2_hdr` behind its status. MAC and VLAN_TCI are halves of a word.
const LEN: usize = 4;
const SNAPLEN: usize = 8;
const MAC: usize = 12;
const VLAN_TCI: usize = 24;

/// Where a frame to be sent begins.
const DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();

/// A frame to be sent is in the kernel's hands.
const OF_THE_KERNEL: u32 = TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING;

/// The two fields of 16 bits that make up a word of the kernel's.
fn split(word: u32) -> (u16, u16) {
    let [a, b, c, d] = word.to_ne_bytes();
    (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]))
}
