//! Memory that is registered with a device for good, for all cores: that of locked RAM disks.
//!
//! Neither what is sent of it nor whole blocks that are read into it are copied. A region is found
//! by the address of a buffer, so volumes around a RAM disk need not know of it. Registering blocks
//! for long: it is done by a thread that is no core's, and data is copied until it is done.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::RdmaError;
use super::domain::RdmaDomain;
use super::registration::{KeyRange, Registration};
use super::sys::verbs::IBV_ACCESS_LOCAL_WRITE;
use crate::memory::{MemoryLimit, Region, RegionUser, lock};

/// The locked regions that a domain has registered, and what was copied.
#[derive(Default)]
pub(super) struct LockedMemory {
    registrations: Mutex<Vec<Registration>>,
    /// How often that has changed, so that a core need not look.
    generation: AtomicU64,
    /// Where the regions begin that the device could not have. They are not tried again.
    refused: Mutex<Vec<usize>>,
    /// Held by whoever registers, as two must not register the same.
    turn: Mutex<()>,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Bytes that were copied between the memory of buffers and memory that a device knows. Data in a
/// message that came, as of a WRITE with immediate data, is not among them: its user copies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdmaCopies {
    /// Before it was sent or written.
    pub sent: u64,
    /// After it was read.
    pub received: u64,
}

/// What became of a region that a device was to know.
#[derive(Debug)]
pub struct RegionRegistered {
    /// Its length in bytes.
    pub bytes: u64,
    /// Why its data is copied, if it is.
    pub result: Result<(), RdmaError>,
}

impl RdmaDomain {
    /// Registers the locked regions that the device does not know yet, and tells what became of
    /// each. One that cannot be registered is copied from and to, and is not tried again. It
    /// blocks.
    pub fn register_all(self: &Arc<Self>, memory: &MemoryLimit) -> Vec<RegionRegistered> {
        let _turn = lock(&self.locked().turn);
        let mut regions = memory.locked_regions();
        regions.retain(|region| !self.locked().knows(start_of(region)));
        let register = |region: &Arc<Region>| {
            let (bytes, result) = (region.len(), self.add_locked(region));
            if result.is_err() {
                lock(&self.locked().refused).push(start_of(region));
                region.users().add(self.as_user());
            }
            RegionRegistered { bytes, result }
        };
        regions.iter().map(register).collect()
    }

    /// Registers all of a region. Its memory must be locked, and must never be given back to the
    /// kernel: the device would go on with the pages that were there before.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoLockedMemory`], and what else the device refuses.
    pub(super) fn add_locked(self: &Arc<Self>, region: &Arc<Region>) -> Result<(), RdmaError> {
        let (start, len) = region.span();
        let registration = Registration::new(self, start, len, IBV_ACCESS_LOCAL_WRITE)?;
        region.users().add(self.as_user());
        lock(&self.locked().registrations).push(registration);
        self.locked().generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn as_user(self: &Arc<Self>) -> Weak<dyn RegionUser> {
        let domain: Weak<Self> = Arc::downgrade(self);
        domain
    }

    /// How many bytes are registered for good.
    #[must_use]
    pub fn locked_bytes(&self) -> u64 {
        let ranges = self.locked().ranges();
        ranges.iter().map(|range| range.len as u64).sum()
    }

    /// What was copied on all cores, by all connections that were on the device since it came.
    #[must_use]
    pub fn copies(&self) -> RdmaCopies {
        RdmaCopies {
            sent: self.locked().sent.load(Ordering::Relaxed),
            received: self.locked().received.load(Ordering::Relaxed),
        }
    }
}

impl RegionUser for RdmaDomain {
    fn forget(&self, start: NonNull<u8>) {
        let (locked, start) = (self.locked(), start.addr().get());
        lock(&locked.refused).retain(|refused| *refused != start);
        let is_it = |one: &mut Registration| one.range().start == start;
        let mut registrations = lock(&locked.registrations);
        let gone: Vec<_> = registrations.extract_if(.., is_it).collect();
        drop(registrations);
        // Before the memory goes: no core may take what comes at its addresses for it.
        if !gone.is_empty() {
            locked.generation.fetch_add(1, Ordering::Release);
        }
    }
}

/// What tells a region from others, for as long as it is there.
fn start_of(region: &Region) -> usize {
    region.span().0.addr().get()
}

impl LockedMemory {
    /// Changes when [`Self::ranges`] does.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What is registered.
    pub(super) fn ranges(&self) -> Vec<KeyRange> {
        let registrations = lock(&self.registrations);
        registrations.iter().map(Registration::range).collect()
    }

    /// Whether a region was registered, or refused.
    fn knows(&self, start: usize) -> bool {
        let registrations = lock(&self.registrations);
        let is_there = registrations.iter().any(|one| one.range().start == start);
        is_there || lock(&self.refused).contains(&start)
    }

    /// Counts what one core has copied.
    pub(super) fn count(&self, copies: RdmaCopies) {
        self.sent.fetch_add(copies.sent, Ordering::Relaxed);
        self.received.fetch_add(copies.received, Ordering::Relaxed);
    }

    /// Gives up all registrations, before their domain goes.
    pub(super) fn clear(&mut self) {
        let registrations = self.registrations.get_mut();
        registrations
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
