//! All that a port waits for, as one descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// An epoll instance, which a ring can wait for as for any descriptor.
#[derive(Debug)]
pub(super) struct EpollSet {
    epoll: Arc<OwnedFd>,
    /// Whether room to send is waited for.
    room: bool,
}

impl EpollSet {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        Ok(Self { epoll, room: false })
    }

    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        &self.epoll
    }

    /// Where room was waited for is gone.
    pub(super) fn forget_room(&mut self) {
        self.room = false;
    }

    /// Waits for something to come in there. It leaves by being closed.
    pub(super) fn input(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(0),
            EventFlags::IN,
        )?)
    }

    /// Waits for something to come in there, and for room to send there, or no longer for that.
    pub(super) fn room(&mut self, fd: impl AsFd, wanted: bool) -> io::Result<()> {
        if wanted != self.room {
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, wanted);
            epoll::modify(&self.epoll, fd, EventData::new_u64(0), flags)?;
            self.room = wanted;
        }
        Ok(())
    }
}
