//! Notices that a file was changed, by us or by others.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// An inotify instance that watches one file.
#[derive(Debug)]
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new(file: &OwnedFd) -> rustix::io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // By descriptor, so that it is this very file, whatever its path names by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        inotify::add_watch(&watch, path, WatchFlags::MODIFY)?;
        Ok(Self(watch))
    }

    /// Takes all events. Returns whether there were any.
    pub(super) fn drain(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut room);
        let mut any = false;
        while reader.next().is_ok() {
            any = true;
        }
        any
    }
}
