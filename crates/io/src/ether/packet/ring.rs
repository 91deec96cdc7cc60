//! The ring of a packet socket (packet(7), and packet_mmap in the kernel's documentation): blocks
//! of memory with frames of one length, each behind a header whose first word says whose it is.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{TP_STATUS_KERNEL, TP_STATUS_USER};

use super::raw;
use crate::ether::shared::RingMapping;

/// The memory of a ring, and where in it we are.
#[derive(Debug)]
pub(super) struct FrameRing {
    memory: RingMapping,
    /// Bytes of a frame, with what stands before it.
    len: usize,
    count: usize,
    /// The next frame that comes in.
    next: usize,
}

impl FrameRing {
    /// Has the socket make a ring of frames of up to `frame_max` bytes, `size` bytes in all.
    pub(super) fn new(socket: &OwnedFd, frame_max: usize, size: usize) -> io::Result<Self> {
        let len = (BEFORE_MAX + frame_max).next_multiple_of(CACHE_LINE);
        let blocks = (size / BLOCK).max(1);
        // What does not fit into a block of whole frames is lost: little, in large blocks.
        let count = blocks * (BLOCK / len);
        let invalid = |cause| io::Error::new(io::ErrorKind::InvalidInput, cause);
        let word = |value: usize| u32::try_from(value).map_err(invalid);
        let request = libc::tpacket_req {
            tp_block_size: word(BLOCK)?,
            tp_block_nr: word(blocks)?,
            tp_frame_size: word(len)?,
            tp_frame_nr: word(count)?,
        };
        raw::set(socket, raw::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            memory: RingMapping::map(socket, 0, blocks * BLOCK)?,
            len,
            count,
            next: 0,
        })
    }

    /// Gives the next frame that has come in, with the tag that stood in it; `None` for one that
    /// was too long. Returns whether there was one.
    pub(super) fn receive(&mut self, taken: impl FnOnce(Option<(&[u8], Option<u16>)>)) -> bool {
        let at = self.at();
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
            let bytes = unsafe { self.memory.bytes(start, here as usize) };
            let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
            taken(Some((bytes, tagged.then(|| halves(VLAN_TCI).0))));
        } else {
            taken(None);
        }
        self.memory.word(at).store(TP_STATUS_KERNEL, Release);
        self.next = (self.next + 1) % self.count;
        true
    }

    /// Where the next frame is.
    fn at(&self) -> usize {
        let in_block = BLOCK / self.len;
        self.next / in_block * BLOCK + self.next % in_block * self.len
    }
}

/// Bytes of a block: what the kernel finds in one piece, if not always, and large beside a frame.
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

/// The two fields of 16 bits that make up a word of the kernel's.
fn split(word: u32) -> (u16, u16) {
    let [a, b, c, d] = word.to_ne_bytes();
    (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]))
}
