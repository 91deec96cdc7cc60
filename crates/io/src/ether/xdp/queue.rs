//! A socket of AF_XDP: memory for frames, and four rings that tell whose they are.
//!
//! Of the memory, the first half of the chunks is for what comes in: those that are not in the fill
//! ring are in the receive ring, or being looked at. The second half is for what is sent: chunks
//! are free, in the transmit ring, or in the completion ring.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpMmapOffsets, XdpOptionsFlags,
    XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{RecvFlags, SendFlags, bind, recv, send, sockopt};

use crate::ether::shared::RingMapping;
use crate::ether::{HEADER_MAX, PRIORITY, raw};

/// A socket behind one queue of an interface.
#[derive(Debug)]
pub(super) struct XdpQueue {
    /// Before the memory, so that the kernel does not write there any more when it goes.
    socket: OwnedFd,
    incoming: XdpRing,
    fill: XdpRing,
    outgoing: XdpRing,
    completion: XdpRing,
    memory: RingMapping,
    chunk: usize,
    /// Chunks for what is sent.
    free: Vec<u64>,
    given: usize,
    /// There was no slot for a frame.
    full: bool,
    /// What was told of frames that were lost.
    told: u64,
    /// The driver works on our memory itself.
    is_zero_copy: bool,
}

impl XdpQueue {
    /// Opens a socket for frames of this many bytes behind their header, `size` bytes of them.
    pub(super) fn new(
        interface: i32,
        number: u32,
        sends: bool,
        payload_max: usize,
        size: usize,
    ) -> io::Result<Self> {
        let chunk = match HEADROOM + HEADER_MAX + payload_max {
            0..=2048 => 2048,
            2049..=CHUNK_MAX => CHUNK_MAX,
            _ => return Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
        };
        // Rings have a length that is a power of two.
        let frames = (size / chunk).max(64).next_power_of_two() as u32;
        let sent = if sends { frames } else { 0 };
        let socket = raw::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        raw::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &PRIORITY)?;
        sockopt::set_socket_send_buffer_size(&socket, size)?;
        let memory = RingMapping::anonymous((frames + sent) as usize * chunk)?;
        sockopt::set_xdp_umem_reg(
            &socket,
            XdpUmemReg {
                addr: memory.address(),
                len: memory.len() as u64,
                chunk_size: chunk as u32,
                headroom: 0,
                flags: XdpUmemRegFlags::empty(),
                tx_metadata_len: 0,
            },
        )?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, frames)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, frames)?;
        sockopt::set_xdp_rx_ring_size(&socket, frames)?;
        sockopt::set_xdp_tx_ring_size(&socket, frames)?;
        let XdpMmapOffsets { rx, tx, fr, cr } = sockopt::xdp_mmap_offsets(&socket)?;
        let ring = |at, offsets, width| XdpRing::map(&socket, at, &offsets, frames, width);
        let mut queue = Self {
            incoming: ring(XDP_PGOFF_RX_RING, rx, DESCRIPTOR)?,
            fill: ring(XDP_UMEM_PGOFF_FILL_RING, fr, ADDRESS)?,
            outgoing: ring(XDP_PGOFF_TX_RING, tx, DESCRIPTOR)?,
            completion: ring(XDP_UMEM_PGOFF_COMPLETION_RING, cr, ADDRESS)?,
            socket,
            memory,
            chunk,
            free: (frames..frames + sent)
                .map(|at| u64::from(at) * chunk as u64)
                .collect(),
            given: 0,
            full: false,
            told: 0,
            is_zero_copy: false,
        };
        (0..frames).for_each(|at| queue.fill.push_address(u64::from(at) * chunk as u64));
        queue.fill.publish();
        // Without XDP_COPY and XDP_ZEROCOPY the kernel asks the driver to work on our memory, and
        // copies if that cannot.
        let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        bind(
            &queue.socket,
            &SocketAddrXdp::new(flags, interface as u32, number),
        )?;
        let bound = sockopt::xdp_options(&queue.socket)?;
        queue.is_zero_copy = bound.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(queue)
    }

    /// Whether the driver receives into our memory and sends from it, and the kernel copies
    /// nothing.
    pub(super) const fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Gives frames that have come in, `max` of them.
    pub(super) fn receive(&mut self, max: usize, mut taken: impl FnMut(&[u8])) -> usize {
        let count = self.incoming.filled().min(max as u32);
        for _ in 0..count {
            let (address, len) = self.incoming.pop_descriptor();
            // SAFETY: the kernel has given us this chunk, and has it back when it is in the fill
            // ring.
            taken(unsafe { self.memory.bytes(address as usize, len as usize) });
            self.fill
                .push_address(address - address % self.chunk as u64);
        }
        if count > 0 {
            self.incoming.release();
            self.fill.publish();
        }
        if self.fill.needs_wakeup() {
            // It tells the driver that there are chunks; there is nothing to be received.
            let _ = recv(&self.socket, &mut [0; 0], RecvFlags::DONTWAIT);
        }
        count as usize
    }

    /// Memory for a frame.
    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.free.is_empty() {
            self.take_back();
        }
        let address = self.free.last().copied();
        self.full = address.is_none();
        if len > self.chunk {
            return None;
        }
        self.given = len;
        // SAFETY: a free chunk has no other user.
        address.map(|address| unsafe { self.memory.bytes_mut(address as usize, len) })
    }

    /// Puts the slot that was given last into the transmit ring.
    pub(super) fn commit(&mut self, len: usize) {
        assert!(len <= self.given, "{len} bytes in a slot of {}", self.given);
        self.given = 0;
        if let Some(address) = self.free.pop() {
            self.outgoing.push_descriptor(address, len as u32);
        }
    }

    /// Has the kernel send. Returns whether all has left; frames that were lost are counted. After
    /// an error nothing that waits counts as sent, but the kernel sends it when it can again: it
    /// may know more of the ring than it has told, so nothing can be taken back. Only closing
    /// helps.
    pub(super) fn flush(&mut self, lost: &mut u64) -> io::Result<bool> {
        self.outgoing.publish();
        while self.outgoing.waiting() > 0 {
            let before = self.outgoing.waiting();
            let kicked = if self.outgoing.needs_wakeup() {
                send(&self.socket, &[], SendFlags::DONTWAIT)
            } else {
                break;
            };
            match kicked {
                // It sends some at a time.
                Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                    if self.outgoing.waiting() == before {
                        break;
                    }
                }
                // The one that it came to is lost.
                Err(Errno::BUSY) => *lost += 1,
                Err(error) => {
                    *lost += u64::from(self.outgoing.waiting());
                    return Err(error.into());
                }
            }
        }
        self.full = self.full && {
            self.take_back();
            self.free.is_empty()
        };
        Ok(self.outgoing.waiting() == 0 && !self.full)
    }

    /// Takes chunks back that have been sent.
    fn take_back(&mut self) {
        let count = self.completion.filled();
        for _ in 0..count {
            self.free.push(self.completion.pop_address());
        }
        self.completion.release();
    }

    /// Frames that were lost for want of room, since this was asked before.
    pub(super) fn dropped(&mut self) -> io::Result<u64> {
        let statistics = sockopt::xdp_statistics(&self.socket)?;
        let now = statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0);
        Ok(now - std::mem::replace(&mut self.told, now))
    }
}

/// A ring of addresses or descriptors, of which one side is ours.
#[derive(Debug)]
struct XdpRing {
    memory: RingMapping,
    producer: usize,
    consumer: usize,
    flags: Option<usize>,
    entries: usize,
    width: usize,
    mask: u32,
    /// How far we are.
    ours: u32,
}

impl XdpRing {
    fn map(
        socket: impl AsFd,
        at: u64,
        offsets: &XdpRingOffset,
        count: u32,
        width: usize,
    ) -> io::Result<Self> {
        let entries = offsets.desc as usize;
        Ok(Self {
            memory: RingMapping::map(socket, at, entries + count as usize * width)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags.map(|flags| flags as usize),
            entries,
            width,
            mask: count - 1,
            ours: 0,
        })
    }

    /// Entries for us to take.
    fn filled(&self) -> u32 {
        let producer = self.memory.word(self.producer).load(Acquire);
        producer.wrapping_sub(self.ours)
    }

    /// Entries that we have published and the kernel has not taken.
    fn waiting(&self) -> u32 {
        let consumer = self.memory.word(self.consumer).load(Acquire);
        self.ours.wrapping_sub(consumer)
    }

    /// The kernel may have what we took.
    fn release(&self) {
        self.memory.word(self.consumer).store(self.ours, Release);
    }

    /// The kernel may take what we gave.
    fn publish(&self) {
        self.memory.word(self.producer).store(self.ours, Release);
    }

    fn needs_wakeup(&self) -> bool {
        let flags = self.flags.map(|at| self.memory.word(at).load(Relaxed));
        flags.is_none_or(|flags| flags & libc::XDP_RING_NEED_WAKEUP != 0)
    }

    fn entry(&self) -> usize {
        self.entries + (self.ours & self.mask) as usize * self.width
    }

    fn pop_address(&mut self) -> u64 {
        let address = self.memory.double(self.entry()).load(Relaxed);
        self.ours = self.ours.wrapping_add(1);
        address
    }

    fn push_address(&mut self, address: u64) {
        self.memory.double(self.entry()).store(address, Relaxed);
        self.ours = self.ours.wrapping_add(1);
    }

    fn pop_descriptor(&mut self) -> (u64, u32) {
        let len = self.memory.word(self.entry() + ADDRESS).load(Relaxed);
        (self.pop_address(), len)
    }

    fn push_descriptor(&mut self, address: u64, len: u32) {
        let entry = self.entry();
        self.memory.word(entry + ADDRESS).store(len, Relaxed);
        self.memory.word(entry + ADDRESS + 4).store(0, Relaxed);
        self.push_address(address);
    }
}

/// Bytes of an entry: an address, or an address with length and options.
const ADDRESS: usize = 8;
const DESCRIPTOR: usize = 16;

/// What drivers keep before a frame that comes in.
const HEADROOM: usize = 256;

/// The kernel takes chunks of up to a page.
const CHUNK_MAX: usize = 4096;
