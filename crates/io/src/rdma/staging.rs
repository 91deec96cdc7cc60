//! Memory of an initiator that the target may reach, for one session.
//!
//! Data is copied into it, or out of it. Each buffer has a key of its own, which reaches that
//! buffer in one direction and nothing else. The key stays as it is when the buffer is used again,
//! as registering costs more than a small transfer: whoever withdraws one sees to it that the
//! target is done with it, by its response, by its answer to an abort, or as the pair has ended.

use std::sync::Arc;

use super::domain::RdmaDomain;
use super::memory::Budget;
use super::registration::OwnRegion;
use super::sys::verbs::{IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE};
use super::{RemoteAccess, RemoteAddress};
use crate::memory::Buffer;

/// The staging buffers of a session.
pub(super) struct Staging {
    budget: Budget,
    free: Vec<StagingBuffer>,
    out: Vec<Advertised>,
    domain: Arc<RdmaDomain>,
}

struct StagingBuffer {
    access: RemoteAccess,
    /// As was asked for: the kernel's pages may be longer.
    len: usize,
    region: OwnRegion,
}

/// A buffer that the target knows of.
struct Advertised {
    staging: StagingBuffer,
    /// Where data goes that the target writes.
    sink: Option<Buffer>,
}

/// The shortest, in bytes. Others are twice as long, and so on.
const SHORTEST: usize = 16 << 10;

impl Staging {
    /// Of `bytes` at the most.
    pub(super) fn new(domain: &Arc<RdmaDomain>, bytes: usize) -> Self {
        Self {
            budget: Budget::new(bytes),
            free: Vec::new(),
            out: Vec::new(),
            domain: Arc::clone(domain),
        }
    }

    /// Whether `len` bytes can be advertised now.
    pub(super) fn has_room(&mut self, len: usize, access: RemoteAccess) -> bool {
        let Some(staging) = self.take(size_of_buffer(len), access) else {
            return false;
        };
        self.free.push(staging);
        true
    }

    /// Lets the target reach what is in a buffer, or gather there what it writes; `None` when there
    /// is no memory for that.
    pub(super) fn advertise(&mut self, of: &Buffer, access: RemoteAccess) -> Option<RemoteAddress> {
        let staging = self.take(size_of_buffer(of.len()), access)?;
        let start = staging.region.at(0);
        let address = RemoteAddress {
            key: staging.region.rkey(),
            address: start.addr().get() as u64,
        };
        let sink = match access {
            RemoteAccess::Write => Some(of.clone()),
            RemoteAccess::Read => {
                // SAFETY: mapped, and at least as long.
                unsafe { of.copy_to_address(0, start, of.len()) };
                None
            }
        };
        self.out.push(Advertised { staging, sink });
        Some(address)
    }

    /// Takes a buffer back, and has what the target wrote where it belongs.
    pub(super) fn withdraw(&mut self, key: u32) {
        let is_it = |one: &Advertised| one.staging.region.rkey() == key;
        let Some(at) = self.out.iter().position(is_it) else {
            return;
        };
        let Advertised { staging, sink } = self.out.swap_remove(at);
        if let Some(sink) = sink {
            // SAFETY: mapped, and at least as long. A target may write still, against the rules: no
            // reference to these bytes exists.
            unsafe { sink.copy_from_address(0, staging.region.at(0), sink.len()) };
        }
        self.free.push(staging);
    }

    /// Takes a buffer of exactly `len` bytes, which was there or is made; others make room.
    fn take(&mut self, len: usize, access: RemoteAccess) -> Option<StagingBuffer> {
        let fits = |one: &StagingBuffer| (one.access, one.len) == (access, len);
        if let Some(at) = self.free.iter().rposition(fits) {
            return Some(self.free.swap_remove(at));
        }
        while !self.budget.take(len) {
            self.give_up_one()?;
        }
        let flags = match access {
            RemoteAccess::Read => IBV_ACCESS_REMOTE_READ,
            RemoteAccess::Write => IBV_ACCESS_REMOTE_WRITE,
        };
        loop {
            if let Ok(region) = OwnRegion::new(&self.domain, len, flags) {
                return Some(StagingBuffer {
                    access,
                    len,
                    region,
                });
            }
            // RLIMIT_MEMLOCK may be the narrower limit.
            if self.give_up_one().is_none() {
                self.budget.give_back(len);
                return None;
            }
        }
    }

    /// Makes room: a buffer that is not in use goes.
    fn give_up_one(&mut self) -> Option<()> {
        let one = self.free.pop()?;
        self.budget.give_back(one.len);
        Some(())
    }
}

/// How long a buffer is for `len` bytes: one of few sizes, so that it will be used again.
fn size_of_buffer(len: usize) -> usize {
    let size = len.max(SHORTEST).checked_next_power_of_two();
    size.unwrap_or(usize::MAX >> 1)
}
