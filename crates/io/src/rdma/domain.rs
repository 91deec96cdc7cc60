//! A device as opened, with a protection domain: keys and queue pairs work together within one.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use super::RdmaError;
use super::library::{RdmaDeviceInfo, RdmaLibrary, RdmaTransport, device_info};
use super::locked::LockedMemory;
use super::sys::verbs::{IBV_DEVICE_MEM_MGT_EXTENSIONS, IbvContext, IbvDeviceAttr, IbvPd};
use crate::limits::memlock;

/// Reads of either end that may be outstanding at once, at the most. RNICs serve 16 as a rule.
pub(super) const DEPTH_MAX: u8 = 32;

/// A device with a protection domain. Targets have one for all of the process, initiators one a
/// session, so that no key of a session reaches the memory of another one.
pub struct RdmaDomain {
    context: *mut IbvContext,
    pd: *mut IbvPd,
    device: RdmaDeviceInfo,
    limits: DeviceLimits,
    /// Goes first: it is of the domain.
    locked: LockedMemory,
    library: Arc<RdmaLibrary>,
    /// Goes last: what is above is of an open device.
    #[expect(dead_code, reason = "held")]
    open: OpenDevices,
}

/// Keeps devices open that librdmacm has. It closes those that have gone and that no identifier is
/// bound to as soon as it looks for others; what was made on them would be freed with them.
struct OpenDevices {
    list: *mut *mut IbvContext,
    library: Arc<RdmaLibrary>,
}

impl OpenDevices {
    /// Those that are open now, if one of them is of this context, which an identifier is bound to.
    fn with(library: &Arc<RdmaLibrary>, context: *mut IbvContext) -> Result<Self, RdmaError> {
        // SAFETY: how many there are is not asked for.
        let list = unsafe { (library.cm.get_devices)(ptr::null_mut()) };
        if list.is_null() {
            return Err(RdmaError::last("rdma_get_devices", ""));
        }
        let library = Arc::clone(library);
        let open = Self { list, library };
        if open.contexts().any(|one| one == context) {
            Ok(open)
        } else {
            Err(RdmaError::NoDevice)
        }
    }

    fn contexts(&self) -> impl Iterator<Item = *mut IbvContext> {
        // SAFETY: the list ends with a null, up to which it is read.
        let at = |index| unsafe { *self.list.add(index) };
        (0..).map(at).take_while(|context| !context.is_null())
    }
}

impl Drop for OpenDevices {
    fn drop(&mut self) {
        // SAFETY: the library's list, once.
        unsafe { (self.library.cm.free_devices)(self.list) };
    }
}

/// What a device can do, as far as it limits a queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceLimits {
    /// Pieces of memory of a send or write.
    pub(super) send_pieces: usize,
    /// Pieces of memory of a read.
    pub(super) read_pieces: usize,
    /// Reads of ours at once.
    pub(super) ord: u8,
    /// Reads of the peer at once.
    pub(super) ird: u8,
    /// Work requests of a queue.
    pub(super) requests: u32,
    /// Entries of a completion queue.
    pub(super) completions: u32,
    /// A send can invalidate a key of the peer.
    pub(super) can_invalidate: bool,
}

// SAFETY: the library locks what its objects share; context and domain are valid until `drop`.
unsafe impl Send for RdmaDomain {}
// SAFETY: as above.
unsafe impl Sync for RdmaDomain {}

impl RdmaDomain {
    /// A new domain on an open device, which an identifier of the caller's is bound to. It stays
    /// open for as long as the domain is there, also if it is taken away.
    pub(super) fn new(
        library: &Arc<RdmaLibrary>,
        context: *mut IbvContext,
    ) -> Result<Arc<Self>, RdmaError> {
        let open = OpenDevices::with(library, context)?;
        // SAFETY: an open context has a device.
        let device = device_info(unsafe { (*context).device });
        let limits = DeviceLimits::of(library, context, &device)?;
        // SAFETY: an open context.
        let pd = unsafe { (library.verbs.alloc_pd)(context) };
        if pd.is_null() {
            return Err(RdmaError::last("ibv_alloc_pd", &device.name));
        }
        Ok(Arc::new(Self {
            context,
            pd,
            device,
            limits,
            locked: LockedMemory::default(),
            library: Arc::clone(library),
            open,
        }))
    }

    /// Which device it is.
    #[must_use]
    pub fn device(&self) -> &RdmaDeviceInfo {
        &self.device
    }

    /// The memory that is registered for good, and what is copied for want of that.
    pub(super) fn locked(&self) -> &LockedMemory {
        &self.locked
    }

    pub(super) fn context(&self) -> *mut IbvContext {
        self.context
    }

    pub(super) fn pd(&self) -> *mut IbvPd {
        self.pd
    }

    pub(super) fn library(&self) -> &Arc<RdmaLibrary> {
        &self.library
    }

    pub(super) fn limits(&self) -> DeviceLimits {
        self.limits
    }

    /// Whether a read's sink has to be open to the peer's writes.
    pub(super) fn is_iwarp(&self) -> bool {
        self.device.transport == RdmaTransport::Iwarp
    }

    /// What the last call failed with, if that is memory that cannot be pinned.
    pub(super) fn failed(&self, call: &'static str, bytes: usize) -> RdmaError {
        let cause = std::io::Error::last_os_error();
        if cause.raw_os_error() == Some(libc::ENOMEM) {
            let limit = memlock();
            let limit = limit.map_or("unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
            return RdmaError::NoLockedMemory { bytes, limit };
        }
        let device = self.device.name.clone();
        RdmaError::Call {
            call,
            device,
            cause,
        }
    }
}

impl Drop for RdmaDomain {
    fn drop(&mut self) {
        self.locked.clear();
        // SAFETY: ours; queue pairs and registrations of it hold the domain, so there are none.
        unsafe { (self.library.verbs.dealloc_pd)(self.pd) };
    }
}

impl std::fmt::Debug for RdmaDomain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaDomain({})", self.device.name)
    }
}

impl DeviceLimits {
    fn of(
        library: &RdmaLibrary,
        context: *mut IbvContext,
        device: &RdmaDeviceInfo,
    ) -> Result<Self, RdmaError> {
        // SAFETY: numbers, for which all zeros is a value.
        let mut attr: IbvDeviceAttr = unsafe { std::mem::zeroed() };
        // SAFETY: an open context, and a struct of ours that is filled.
        match unsafe { (library.verbs.query_device)(context, &mut attr) } {
            0 => Ok(Self::of_attributes(&attr)),
            number => Err(RdmaError::Call {
                call: "ibv_query_device",
                device: device.name.clone(),
                cause: std::io::Error::from_raw_os_error(number),
            }),
        }
    }

    fn of_attributes(attr: &IbvDeviceAttr) -> Self {
        let pieces = |most: c_int| usize::try_from(most).unwrap_or(0).max(1);
        let depth = |most: c_int| u8::try_from(most).unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let count = |most: c_int| u32::try_from(most).unwrap_or(0);
        Self {
            send_pieces: pieces(attr.max_sge),
            // Some drivers have a limit of its own for reads, others leave it 0.
            read_pieces: match attr.max_sge_rd {
                0 => pieces(attr.max_sge),
                most => pieces(most.min(attr.max_sge)),
            },
            ord: depth(attr.max_qp_init_rd_atom),
            ird: depth(attr.max_qp_rd_atom),
            requests: count(attr.max_qp_wr),
            completions: count(attr.max_cqe),
            can_invalidate: attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS != 0,
        }
    }
}
