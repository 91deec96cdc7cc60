//! What is to be sent by one operation.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::memory::{Buffer, drain_stores};

/// Pieces that fill a batch: enough that a system call is shared by many PDUs, and half of what
/// one sendmsg takes (UIO_MAXIOV), so that what is added last has room.
const PIECES_FULL: usize = 512;

/// Bytes that fill a batch; more than a socket's buffer takes at once.
const BYTES_FULL: usize = 1 << 20;

/// Bytes copied that fill a batch: they shall still be in the cache when the kernel copies them
/// again.
const COPIED_FULL: usize = 256 << 10;

/// The most pieces that the kernel takes at once (UIO_MAXIOV).
const IOVECS_MAX: usize = 1024;

/// What is to be sent: bytes copied, and buffers sent from where they lie. When it comes back
/// from a ring it is empty and has kept its room, so that filling it again allocates nothing; that
/// room can be 1 MiB, so an idle connection should not keep a batch.
#[derive(Debug, Default)]
pub struct SendBatch {
    bytes: Vec<u8>,
    pieces: Vec<BatchPiece>,
    len: usize,
    progress: SendProgress,
    /// What copies have taken the place of: of a send without a copy the kernel may still read it.
    replaced: Vec<Buffer>,
}

#[derive(Debug)]
enum BatchPiece {
    Bytes(Range<usize>),
    Buffer(Buffer),
}

/// Which memory is still to be sent, as the kernel wants to be told.
#[derive(Debug, Default)]
struct SendProgress {
    iovecs: Vec<libc::iovec>,
    /// The first of `iovecs` that was not sent whole.
    next: usize,
    header: MessageHeader,
}

#[derive(Debug)]
struct MessageHeader(libc::msghdr);

impl Default for MessageHeader {
    fn default() -> Self {
        // SAFETY: a C struct of integers and pointers, for which zeros are a value: no address, no
        // memory, no control data.
        Self(unsafe { std::mem::zeroed() })
    }
}

impl SendBatch {
    /// Copies bytes to the end of the batch.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.cover(bytes.len());
    }

    /// Puts a buffer at the end of the batch.
    pub fn buffer(&mut self, buffer: Buffer) {
        if buffer.is_empty() {
            return;
        }
        self.len += buffer.len();
        self.pieces.push(BatchPiece::Buffer(buffer));
    }

    /// Copies what a buffer holds to the end of the batch, and lends the copy, which does not
    /// change any more. For small buffers this is also cheaper than [`Self::buffer`].
    pub fn buffer_copied(&mut self, buffer: &Buffer) -> &[u8] {
        let start = self.bytes.len();
        buffer.append_to(&mut self.bytes);
        self.cover(buffer.len());
        &self.bytes[start..]
    }

    /// Whether more should wait for the next batch. More may be added nevertheless.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= PIECES_FULL
            || self.len >= BYTES_FULL
            || self.bytes.len() >= COPIED_FULL
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes to send that were not copied to the batch.
    pub(super) fn bytes_in_buffers(&self) -> usize {
        self.len - self.bytes.len()
    }

    /// Bytes to send.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// A copy of everything, for rings that are simulated.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.len);
        for piece in &self.pieces {
            match piece {
                BatchPiece::Bytes(range) => copy.extend_from_slice(&self.bytes[range.clone()]),
                BatchPiece::Buffer(buffer) => buffer.append_to(&mut copy),
            }
        }
        copy
    }

    /// Forgets everything, and lets go of the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
        self.replaced.clear();
        self.len = 0;
        self.progress.iovecs.clear();
        self.progress.next = 0;
    }

    /// A send has failed. Where the kernel could not take pages of files (EFAULT), what those hold
    /// is read into memory of our own; returns whether the rest can be sent so.
    pub(super) fn mend(&mut self, error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EFAULT) && self.copy_files()
    }

    /// The kernel takes several pieces at once: any of the rest may be to blame. What was copied
    /// is of no file, so this happens once in a batch.
    #[cold]
    fn copy_files(&mut self) -> bool {
        let next = self.progress.next;
        let mut has_copied = false;
        let rest = self.pieces.iter_mut().zip(&mut self.progress.iovecs);
        for (piece, iovec) in rest.skip(next) {
            if let BatchPiece::Buffer(buffer) = piece
                && buffer.is_of_file()
            {
                let Some(copy) = buffer.copied_from_file() else {
                    return false;
                };
                let sent = buffer.len() - iovec.iov_len;
                iovec.iov_base = copy.address().as_ptr().wrapping_add(sent).cast();
                self.replaced.push(std::mem::replace(buffer, copy));
                has_copied = true;
            }
        }
        has_copied
    }

    /// Counts `len` bytes at the end of `bytes` as part of the batch, with the piece before if
    /// that can be.
    fn cover(&mut self, len: usize) {
        let end = self.bytes.len();
        self.len += len;
        match self.pieces.last_mut() {
            _ if len == 0 => {}
            Some(BatchPiece::Bytes(range)) => range.end = end,
            _ => self.pieces.push(BatchPiece::Bytes(end - len..end)),
        }
    }

    /// Begins to send: from now until [`Self::clear`] the batch must not be added to, nor moved
    /// out of its box.
    pub(super) fn start(&mut self) {
        let bytes = self.bytes.as_ptr();
        let iovec = |piece: &BatchPiece| match piece {
            BatchPiece::Bytes(range) => libc::iovec {
                iov_base: bytes.wrapping_add(range.start).cast_mut().cast(),
                iov_len: range.len(),
            },
            BatchPiece::Buffer(buffer) => libc::iovec {
                iov_base: buffer.address().as_ptr().cast(),
                iov_len: buffer.len(),
            },
        };
        let progress = &mut self.progress;
        progress.iovecs.clear();
        progress.iovecs.extend(self.pieces.iter().map(iovec));
        progress.next = 0;
    }

    /// What to give to sendmsg next. It points into the batch, and stays valid until the next call
    /// of a method of the batch.
    pub(super) fn message(&mut self) -> *const libc::msghdr {
        let SendProgress {
            iovecs,
            next,
            header,
        } = &mut self.progress;
        let rest = &mut iovecs[*next..];
        header.0.msg_iov = rest.as_mut_ptr();
        header.0.msg_iovlen = rest.len().min(IOVECS_MAX);
        &raw const header.0
    }

    /// Counts bytes as sent. Returns whether there are more.
    pub(super) fn advance(&mut self, mut sent: usize) -> bool {
        let progress = &mut self.progress;
        while let Some(iovec) = progress.iovecs.get_mut(progress.next) {
            if sent < iovec.iov_len {
                iovec.iov_base = iovec.iov_base.wrapping_byte_add(sent);
                iovec.iov_len -= sent;
                return true;
            }
            sent -= iovec.iov_len;
            progress.next += 1;
        }
        false
    }
}

/// Sends what a socket takes of a batch that was started, without waiting; returns how many bytes
/// it took. What was written before, on which it may report, is there for all cores by then.
pub(super) fn send_once(fd: &OwnedFd, batch: &mut SendBatch) -> io::Result<usize> {
    drain_stores();
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the message points to memory that the batch holds.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), batch.message(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
