//! All that a port waits for, as one descriptor, and when to try again what has failed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer, which becomes readable when it is time.
#[derive(Debug)]
pub(super) struct Retry {
    timer: OwnedFd,
    is_set: bool,
}

impl Retry {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            is_set: false,
        })
    }

    pub(super) fn timer(&self) -> &OwnedFd {
        &self.timer
    }

    pub(super) fn set(&mut self, pause: Timespec) -> io::Result<()> {
        let when = Itimerspec {
            it_interval: Timespec::default(),
            it_value: pause,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &when)?;
        self.is_set = true;
        Ok(())
    }

    /// Whether it is time, which is told once.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.is_set && rustix::io::read(&self.timer, &mut [0; 8]).is_ok();
        self.is_set &= !is_due;
        is_due
    }
}

/// So that what fails for good makes few lines in a log, and what does not delays nothing.
pub(super) const PAUSE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// So that a queue that has no room empties in the meantime: at 10 Gb/s, 500 of the longest frames
/// leave.
pub(super) const SHORT_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

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
