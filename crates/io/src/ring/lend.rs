//! The buffers that bytes are received in.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::rc::Rc;

use crate::memory::{Mapping, PageRules};

/// Bytes of a buffer: what a busy socket has ready at a time, at the most.
pub(super) const LENT_BYTES: usize = 256 << 10;

/// Bytes that came in. Dropping them gives the memory back to the ring.
pub struct Received {
    lender: Rc<Lender>,
    id: Option<u16>,
    len: usize,
}

/// Buffers that a ring receives in, numbered from 0. They take memory when they are used, until a
/// trim finds them idle; the one given back last is taken first, as it is in the cache.
pub(super) struct Lender {
    memory: Mapping,
    free: RefCell<Free>,
    /// Parts of the memory that may be written, from the first on.
    open: Cell<usize>,
}

/// Buffers that are not taken.
struct Free {
    /// Their numbers.
    ids: Vec<u16>,
    /// Of all buffers, whether they may have memory.
    resident: Vec<bool>,
    /// How many of the free ones may have memory.
    spare: usize,
    /// The fewest free ones there were since the last trim: those that no receive needed.
    idle: usize,
}

impl Free {
    fn take(&mut self) -> Option<u16> {
        let id = self.ids.pop()?;
        self.idle = self.idle.min(self.ids.len());
        if std::mem::replace(&mut self.resident[usize::from(id)], true) {
            self.spare -= 1;
        }
        Some(id)
    }

    fn give_back(&mut self, id: u16) {
        self.ids.push(id);
        self.spare += 1;
    }
}

impl Lender {
    pub(super) fn new(buffers: u16) -> io::Result<Rc<Self>> {
        let len = usize::from(buffers) * LENT_BYTES;
        let lender = Self {
            memory: Mapping::closed(len, PageRules::here())?,
            free: RefCell::new(Free {
                ids: (0..buffers).rev().collect(),
                resident: vec![false; usize::from(buffers)],
                spare: 0,
                idle: usize::from(buffers),
            }),
            open: Cell::new(0),
        };
        lender.open(0)?;
        Ok(Rc::new(lender))
    }

    /// Has the memory of a buffer be such that it may be written.
    fn open(&self, id: u16) -> io::Result<()> {
        let start = usize::from(id) * LENT_BYTES;
        let parts = self.memory.parts(start, LENT_BYTES);
        for part in parts
            .into_iter()
            .flatten()
            .skip_while(|part| *part < self.open.get())
        {
            self.memory.open(part)?;
            self.open.set(part + 1);
        }
        Ok(())
    }

    /// A buffer of [`LENT_BYTES`] to receive in; `None` when all are taken that there is memory
    /// for. Of those that were never used it is the first.
    pub(super) fn take(&self) -> Option<u16> {
        let id = self.free.borrow_mut().take()?;
        if self.open(id).is_err() {
            self.give_back(id);
            return None;
        }
        Some(id)
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.borrow().ids.is_empty()
    }

    pub(super) fn give_back(&self, id: u16) {
        self.free.borrow_mut().give_back(id);
    }

    /// Whether a trim, now or later, can give memory back.
    pub(super) fn has_idle(&self) -> bool {
        self.free.borrow().spare > 0
    }

    /// Gives back the memory of buffers that were not needed since the last trim.
    pub(super) fn trim(&self) {
        let mut free = self.free.borrow_mut();
        let Free {
            ids,
            resident,
            spare,
            idle,
        } = &mut *free;
        for id in &ids[..*idle] {
            if std::mem::take(&mut resident[usize::from(*id)]) {
                let start = usize::from(*id) * LENT_BYTES;
                self.memory.discard(start, LENT_BYTES);
                *spare -= 1;
            }
        }
        *idle = ids.len();
    }

    pub(super) fn address(&self, id: u16) -> NonNull<u8> {
        self.memory.at(usize::from(id) * LENT_BYTES)
    }

    /// Receives what is there, without waiting, behind the first `len` bytes of a buffer that was
    /// taken; returns how many bytes it holds then. An error is left for the next receive to tell.
    pub(super) fn top_up(&self, id: u16, len: usize, socket: &OwnedFd) -> usize {
        len + self.receive(id, len, socket).unwrap_or(0)
    }

    /// Receives what is there, without waiting, behind the first `len` bytes of a buffer that was
    /// taken; returns how many more bytes.
    pub(super) fn receive(&self, id: u16, len: usize, socket: &OwnedFd) -> io::Result<usize> {
        assert!(len <= LENT_BYTES, "{len} bytes received");
        let to = self.address(id).as_ptr().wrapping_add(len).cast();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the rest of the buffer is mapped, and was taken for this call.
        let more = unsafe { libc::recv(socket.as_raw_fd(), to, LENT_BYTES - len, flags) };
        usize::try_from(more).map_err(|_| io::Error::last_os_error())
    }

    /// Lends what was received in a buffer that was taken.
    ///
    /// # Safety
    ///
    /// Until the buffer is given back, it is neither written nor lent again.
    pub(super) unsafe fn lend(self: &Rc<Self>, id: u16, len: usize) -> Received {
        assert!(len <= LENT_BYTES, "{len} bytes received");
        Received {
            lender: Rc::clone(self),
            id: Some(id),
            len,
        }
    }

    /// Lends no bytes, and no buffer.
    pub(super) fn nothing(self: &Rc<Self>) -> Received {
        Received {
            lender: Rc::clone(self),
            id: None,
            len: 0,
        }
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let Some(id) = self.id else {
            return &[];
        };
        let start = self.lender.address(id);
        // SAFETY: mapped for as long as the lender lives, of that length, and by the promise of
        // `lend` not written while we are here.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.lender.give_back(id);
        }
    }
}

impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Received({} bytes)", self.len)
    }
}
