//! The two libraries, opened when RDMA is asked for: the program starts without them.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use libloading::Library;
use rustix::event::{EventfdFlags, eventfd};

use super::RdmaError;
use super::domain::RdmaDomain;
use super::sys::cm::{RdmaCmEvent, RdmaCmId, RdmaConnParam, RdmaEventChannel};
use super::sys::verbs::{
    IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP, IbvAsyncEvent, IbvCompChannel, IbvContext, IbvCq,
    IbvDevice, IbvDeviceAttr, IbvMr, IbvPd, IbvQpInitAttr,
};

/// libibverbs and librdmacm, as opened. They stay open until the process ends.
pub struct RdmaLibrary {
    pub(super) verbs: VerbsFunctions,
    pub(super) cm: CmFunctions,
    /// One protection domain a device, for all cores: a connection that moves to another core keeps
    /// its own, so the two have to be the same.
    domains: Mutex<Vec<Weak<RdmaDomain>>>,
    /// A descriptor that is always readable.
    always: OwnedFd,
}

/// A device of RDMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaDeviceInfo {
    /// As `rdma link` and `ibv_devices` have it: `mlx5_0`, `rxe0`.
    pub name: String,
    /// What it speaks on its wire.
    pub transport: RdmaTransport,
}

/// What a device speaks on its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaTransport {
    /// InfiniBand, or its packets in UDP (RoCE): one kind for all who use a queue pair.
    InfiniBand,
    /// iWARP.
    Iwarp,
    /// Something that has no reliable connections.
    Other,
}

impl RdmaTransport {
    /// What `ibv_device.transport_type` means.
    fn of(number: c_int) -> Self {
        match number {
            IBV_TRANSPORT_IB => Self::InfiniBand,
            IBV_TRANSPORT_IWARP => Self::Iwarp,
            _ => Self::Other,
        }
    }
}

/// The file names by which the dynamic linker finds them, each with Debian's package.
const VERBS: (&str, &str) = ("libibverbs.so.1", "libibverbs1");
const CM: (&str, &str) = ("librdmacm.so.1", "librdmacm1");

impl RdmaLibrary {
    /// Opens the libraries of this system.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoLibrary`]; [`RdmaError::Call`] without a descriptor.
    pub fn open() -> Result<Arc<Self>, RdmaError> {
        Self::open_at(VERBS.0.as_ref(), CM.0.as_ref())
    }

    /// Opens two files that have what libibverbs and librdmacm have: other builds of them, or what
    /// tests take for them. It is code that runs in this process.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_at(verbs: &OsStr, cm: &OsStr) -> Result<Arc<Self>, RdmaError> {
        let always = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let always = always.map_err(|cause| RdmaError::Call {
            call: "eventfd",
            device: String::new(),
            cause: cause.into(),
        })?;
        Ok(Arc::new(Self {
            verbs: load(VerbsFunctions::load, verbs, VERBS.1)?,
            cm: load(CmFunctions::load, cm, CM.1)?,
            domains: Mutex::default(),
            always,
        }))
    }

    /// A descriptor that is always readable.
    pub(super) fn always_readable(&self) -> &OwnedFd {
        &self.always
    }

    /// The devices of this machine, without those that have no reliable connections.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoDevice`] when there are none.
    pub fn devices(&self) -> Result<Vec<RdmaDeviceInfo>, RdmaError> {
        let mut count: c_int = 0;
        // SAFETY: `count` is ours.
        let list = unsafe { (self.verbs.get_device_list)(&mut count) };
        if list.is_null() {
            return Err(RdmaError::NoDevice);
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the list has so many devices, and lives until it is freed below.
        let found = unsafe { std::slice::from_raw_parts(list, count) };
        let mut devices: Vec<_> = found.iter().map(|one| device_info(*one)).collect();
        // SAFETY: it came from `get_device_list`, and nothing refers to it any more.
        unsafe { (self.verbs.free_device_list)(list) };
        devices.retain(|device| device.transport != RdmaTransport::Other);
        if devices.is_empty() {
            return Err(RdmaError::NoDevice);
        }
        Ok(devices)
    }

    /// The domains that targets have, of the devices that are in use.
    #[must_use]
    pub fn domains(&self) -> Vec<Arc<RdmaDomain>> {
        let domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        domains.iter().filter_map(Weak::upgrade).collect()
    }

    /// The protection domain that all cores share on a device.
    pub(super) fn shared_domain(
        self: &Arc<Self>,
        context: *mut IbvContext,
    ) -> Result<Arc<RdmaDomain>, RdmaError> {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        domains.retain(|domain| domain.strong_count() > 0);
        let mut known = domains.iter().filter_map(Weak::upgrade);
        if let Some(domain) = known.find(|domain| domain.context() == context) {
            return Ok(domain);
        }
        let domain = RdmaDomain::new(self, context)?;
        domains.push(Arc::downgrade(&domain));
        Ok(domain)
    }
}

impl std::fmt::Debug for RdmaLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RdmaLibrary")
    }
}

/// What a device is. The pointer is one of the library's, valid for this call.
pub(super) fn device_info(device: *mut IbvDevice) -> RdmaDeviceInfo {
    // SAFETY: a device of a list or of an open context; its name ends with a NUL.
    let (name, transport) = unsafe {
        let name = CStr::from_ptr((&raw const (*device).name).cast());
        (name, (*device).transport_type)
    };
    RdmaDeviceInfo {
        name: name.to_string_lossy().into_owned(),
        transport: RdmaTransport::of(transport),
    }
}

/// Opens a file and looks its functions up.
fn load<T>(
    functions: fn(&Library) -> Result<T, libloading::Error>,
    file: &OsStr,
    package: &'static str,
) -> Result<T, RdmaError> {
    let failed = |cause: libloading::Error| RdmaError::NoLibrary {
        file: file.to_string_lossy().into_owned(),
        package,
        cause: cause.to_string(),
    };
    // SAFETY: what runs when these libraries are opened is theirs, as if they had been linked.
    let library = unsafe { Library::new(file) }.map_err(failed)?;
    let functions = functions(&library).map_err(failed)?;
    // They have threads and tables of their own, and function pointers were copied: never unloaded.
    std::mem::forget(library);
    Ok(functions)
}

/// Declares a table of functions, and how it is filled.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident {
        $($name:ident = $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$doc])*
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            fn load(library: &Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: the library declares the function so.
                    let $name = *unsafe { library.get($symbol.as_bytes())? };
                )*
                Ok(Self { $($name,)* })
            }
        }
    };
}

functions! {
    /// Of libibverbs.
    VerbsFunctions {
        get_device_list = "ibv_get_device_list" (*mut c_int) -> *mut *mut IbvDevice;
        free_device_list = "ibv_free_device_list" (*mut *mut IbvDevice);
        query_device = "ibv_query_device" (*mut IbvContext, *mut IbvDeviceAttr) -> c_int;
        alloc_pd = "ibv_alloc_pd" (*mut IbvContext) -> *mut IbvPd;
        dealloc_pd = "ibv_dealloc_pd" (*mut IbvPd) -> c_int;
        reg_mr = "ibv_reg_mr" (*mut IbvPd, *mut c_void, usize, c_int) -> *mut IbvMr;
        dereg_mr = "ibv_dereg_mr" (*mut IbvMr) -> c_int;
        create_comp_channel = "ibv_create_comp_channel" (*mut IbvContext) -> *mut IbvCompChannel;
        destroy_comp_channel = "ibv_destroy_comp_channel" (*mut IbvCompChannel) -> c_int;
        create_cq = "ibv_create_cq"
            (*mut IbvContext, c_int, *mut c_void, *mut IbvCompChannel, c_int) -> *mut IbvCq;
        destroy_cq = "ibv_destroy_cq" (*mut IbvCq) -> c_int;
        get_cq_event = "ibv_get_cq_event"
            (*mut IbvCompChannel, *mut *mut IbvCq, *mut *mut c_void) -> c_int;
        ack_cq_events = "ibv_ack_cq_events" (*mut IbvCq, c_uint);
        get_async_event = "ibv_get_async_event" (*mut IbvContext, *mut IbvAsyncEvent) -> c_int;
        ack_async_event = "ibv_ack_async_event" (*mut IbvAsyncEvent);
    }
}

functions! {
    /// Of librdmacm.
    CmFunctions {
        create_event_channel = "rdma_create_event_channel" () -> *mut RdmaEventChannel;
        destroy_event_channel = "rdma_destroy_event_channel" (*mut RdmaEventChannel);
        create_id = "rdma_create_id"
            (*mut RdmaEventChannel, *mut *mut RdmaCmId, *mut c_void, c_int) -> c_int;
        destroy_id = "rdma_destroy_id" (*mut RdmaCmId) -> c_int;
        get_devices = "rdma_get_devices" (*mut c_int) -> *mut *mut IbvContext;
        free_devices = "rdma_free_devices" (*mut *mut IbvContext);
        set_option = "rdma_set_option" (*mut RdmaCmId, c_int, c_int, *mut c_void, usize) -> c_int;
        bind_addr = "rdma_bind_addr" (*mut RdmaCmId, *mut libc::sockaddr) -> c_int;
        listen = "rdma_listen" (*mut RdmaCmId, c_int) -> c_int;
        resolve_addr = "rdma_resolve_addr"
            (*mut RdmaCmId, *mut libc::sockaddr, *mut libc::sockaddr, c_int) -> c_int;
        resolve_route = "rdma_resolve_route" (*mut RdmaCmId, c_int) -> c_int;
        create_qp = "rdma_create_qp" (*mut RdmaCmId, *mut IbvPd, *mut IbvQpInitAttr) -> c_int;
        destroy_qp = "rdma_destroy_qp" (*mut RdmaCmId);
        connect = "rdma_connect" (*mut RdmaCmId, *mut RdmaConnParam) -> c_int;
        accept = "rdma_accept" (*mut RdmaCmId, *mut RdmaConnParam) -> c_int;
        reject = "rdma_reject" (*mut RdmaCmId, *const c_void, u8) -> c_int;
        disconnect = "rdma_disconnect" (*mut RdmaCmId) -> c_int;
        get_cm_event = "rdma_get_cm_event"
            (*mut RdmaEventChannel, *mut *mut RdmaCmEvent) -> c_int;
        ack_cm_event = "rdma_ack_cm_event" (*mut RdmaCmEvent) -> c_int;
        migrate_id = "rdma_migrate_id" (*mut RdmaCmId, *mut RdmaEventChannel) -> c_int;
    }
}

// A name of the device is read as characters.
const _: () = assert!(size_of::<c_char>() == 1);
