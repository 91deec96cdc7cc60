//! Memory that a device knows: pinned, and named by a key.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;

use super::RdmaError;
use super::domain::RdmaDomain;
use super::library::RdmaLibrary;
use super::sys::verbs::{IBV_ACCESS_LOCAL_WRITE, IbvMr};
use crate::memory::Mapping;

/// Where a key reaches.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRange {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) lkey: u32,
}

/// A key. Its domain is there for as long as it is; its memory, because what is posted holds
/// buffers of that, and a region has its keys given up when the last of its buffers is gone.
pub(super) struct Registration {
    mr: *mut IbvMr,
    library: Arc<RdmaLibrary>,
}

// SAFETY: it is read-only, and given up by one call of a library that locks.
unsafe impl Send for Registration {}

impl Registration {
    /// Registers mapped memory, which is pinned from then on.
    pub(super) fn new(
        domain: &RdmaDomain,
        start: NonNull<u8>,
        len: usize,
        access: c_int,
    ) -> Result<Self, RdmaError> {
        let (address, library) = (start.as_ptr().cast(), domain.library());
        // SAFETY: a valid domain. The kernel checks that the memory is mapped, and whoever holds
        // the registration sees to it that it stays so.
        let mr = unsafe { (library.verbs.reg_mr)(domain.pd(), address, len, access) };
        if mr.is_null() {
            return Err(domain.failed("ibv_reg_mr", len));
        }
        let library = Arc::clone(library);
        Ok(Self { mr, library })
    }

    fn lkey(&self) -> u32 {
        // SAFETY: valid until `drop`.
        unsafe { (*self.mr).lkey }
    }

    fn rkey(&self) -> u32 {
        // SAFETY: valid until `drop`.
        unsafe { (*self.mr).rkey }
    }

    pub(super) fn range(&self) -> KeyRange {
        // SAFETY: valid until `drop`.
        let (start, len) = unsafe { ((*self.mr).addr as usize, (*self.mr).length) };
        let lkey = self.lkey();
        KeyRange { start, len, lkey }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: ours, once. No request has it: each holds a buffer of the memory until it is
        // complete, or its queue pair is destroyed.
        unsafe { (self.library.verbs.dereg_mr)(self.mr) };
    }
}

/// Memory of somebody else that is registered, such as a part of a pool.
pub(super) struct MemoryRegion {
    registration: Registration,
    /// Goes after the registration.
    _domain: Arc<RdmaDomain>,
}

impl MemoryRegion {
    pub(super) fn new(
        domain: &Arc<RdmaDomain>,
        start: NonNull<u8>,
        len: usize,
    ) -> Result<Self, RdmaError> {
        Ok(Self {
            registration: Registration::new(domain, start, len, IBV_ACCESS_LOCAL_WRITE)?,
            _domain: Arc::clone(domain),
        })
    }

    pub(super) fn range(&self) -> KeyRange {
        self.registration.range()
    }
}

/// Registered memory of its own.
pub(super) struct OwnRegion {
    registration: Registration,
    /// Go after the registration.
    memory: Mapping,
    _domain: Arc<RdmaDomain>,
}

impl OwnRegion {
    /// `len` bytes, which the device may write, and the peer as `access` has it.
    pub(super) fn new(
        domain: &Arc<RdmaDomain>,
        len: usize,
        access: c_int,
    ) -> Result<Self, RdmaError> {
        let memory = Mapping::reserve(len.max(1)).map_err(|cause| RdmaError::Call {
            call: "mmap",
            device: domain.device().name.clone(),
            cause,
        })?;
        let access = access | IBV_ACCESS_LOCAL_WRITE;
        Ok(Self {
            registration: Registration::new(domain, memory.at(0), memory.len(), access)?,
            memory,
            _domain: Arc::clone(domain),
        })
    }

    pub(super) fn lkey(&self) -> u32 {
        self.registration.lkey()
    }

    pub(super) fn rkey(&self) -> u32 {
        self.registration.rkey()
    }

    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        self.memory.at(offset)
    }
}
