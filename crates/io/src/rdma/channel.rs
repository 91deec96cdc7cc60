//! The connection manager's side: channels of events, and the identifiers they are about.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::RdmaError;
use super::library::{RdmaLibrary, device_info};
use super::sys::cm::{RDMA_PS_TCP, RdmaCmEvent, RdmaCmId, RdmaEventChannel};
use super::sys::verbs::IbvContext;

/// A channel that events of connections come by.
pub(super) struct EventChannel {
    channel: *mut RdmaEventChannel,
    library: Arc<RdmaLibrary>,
}

// SAFETY: what the library does with a channel is a system call on its descriptor.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

/// What an event says, copied: the library has its own back at once, as it waits for that before
/// it gives up an identifier.
pub(super) struct CmEvent {
    /// Whom it is about.
    pub(super) id: *mut RdmaCmId,
    /// A number of `enum rdma_cm_event_type`.
    pub(super) kind: c_int,
    /// A number of errno below 0, a reason, or 0.
    pub(super) status: c_int,
    /// What the peer sent along.
    pub(super) private_data: Vec<u8>,
    /// Reads of the peer that it would have outstanding at once.
    pub(super) ird: u8,
    /// Reads of ours that the peer bears at once.
    pub(super) ord: u8,
}

impl EventChannel {
    /// A new one, which never blocks.
    pub(super) fn new(library: &Arc<RdmaLibrary>) -> Result<Arc<Self>, RdmaError> {
        // SAFETY: it takes nothing.
        let channel = unsafe { (library.cm.create_event_channel)() };
        if channel.is_null() {
            return Err(match io::Error::last_os_error().raw_os_error() {
                // There is no /dev/infiniband/rdma_cm, or it has no device.
                Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => RdmaError::NoDevice,
                _ => RdmaError::last("rdma_create_event_channel", ""),
            });
        }
        let library = Arc::clone(library);
        let channel = Arc::new(Self { channel, library });
        let failed = |cause| RdmaError::Call {
            call: "fcntl",
            device: String::new(),
            cause,
        };
        unblock(channel.as_fd()).map_err(failed)?;
        Ok(channel)
    }

    /// The next event, if there is one.
    pub(super) fn next(&self) -> Option<CmEvent> {
        let mut event = ptr::null_mut();
        // SAFETY: our channel, and a place of ours.
        let result = unsafe { (self.library.cm.get_cm_event)(self.channel, &mut event) };
        if result != 0 || event.is_null() {
            return None;
        }
        // SAFETY: valid until it is acknowledged, which is next.
        let copied = unsafe { CmEvent::copied(&*event) };
        // SAFETY: as above; nothing refers to it any more.
        unsafe { (self.library.cm.ack_cm_event)(event) };
        Some(copied)
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel has an open descriptor until it is destroyed.
        unsafe { BorrowedFd::borrow_raw((*self.channel).fd) }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: ours; identifiers hold the channel, so there are none, and all events were
        // acknowledged.
        unsafe { (self.library.cm.destroy_event_channel)(self.channel) };
    }
}

impl CmEvent {
    /// # Safety
    ///
    /// The event is one of the library's that was not acknowledged.
    unsafe fn copied(event: &RdmaCmEvent) -> Self {
        let (data, len) = (event.conn.private_data, event.conn.private_data_len);
        let mut private_data = Vec::new();
        if !data.is_null() {
            // SAFETY: what the event refers to is as long as it says.
            let bytes = unsafe { std::slice::from_raw_parts(data.cast(), usize::from(len)) };
            private_data.extend_from_slice(bytes);
        }
        Self {
            id: event.id,
            kind: event.event,
            status: event.status,
            private_data,
            ird: event.conn.responder_resources,
            ord: event.conn.initiator_depth,
        }
    }
}

/// An identifier: one end of a connection, or what listens.
pub(super) struct CmId {
    id: *mut RdmaCmId,
    /// It came with a request that was not answered.
    is_asked: bool,
    /// Events of it come there. It goes after the identifier.
    channel: Arc<EventChannel>,
}

// SAFETY: the library locks what identifiers share; this one is used by its owner only.
unsafe impl Send for CmId {}

impl CmId {
    /// A new one, for connections as TCP has them.
    pub(super) fn new(channel: &Arc<EventChannel>) -> Result<Self, RdmaError> {
        let mut id = ptr::null_mut();
        let create = channel.library.cm.create_id;
        // SAFETY: our channel, a place of ours, and no context.
        match unsafe { create(channel.channel, &mut id, ptr::null_mut(), RDMA_PS_TCP) } {
            0 => Ok(Self {
                id,
                is_asked: false,
                channel: Arc::clone(channel),
            }),
            _ => Err(RdmaError::last("rdma_create_id", "")),
        }
    }

    /// One that came with a request on this channel. Dropped before that is answered, it refuses.
    pub(super) fn asked(id: *mut RdmaCmId, channel: &Arc<EventChannel>) -> Self {
        Self {
            id,
            is_asked: true,
            channel: Arc::clone(channel),
        }
    }

    /// The request was answered.
    pub(super) fn answered(&mut self) {
        self.is_asked = false;
    }

    /// For calls of the library that act on it.
    pub(super) fn as_ptr(&self) -> *mut RdmaCmId {
        self.id
    }

    pub(super) fn channel(&self) -> &Arc<EventChannel> {
        &self.channel
    }

    pub(super) fn library(&self) -> &Arc<RdmaLibrary> {
        &self.channel.library
    }

    /// Has its events come by another channel from now on.
    pub(super) fn migrate(&mut self, channel: &Arc<EventChannel>) -> Result<(), RdmaError> {
        let migrate = self.library().cm.migrate_id;
        // SAFETY: both are ours.
        match unsafe { migrate(self.id, channel.channel) } {
            0 => self.channel = Arc::clone(channel),
            _ => return Err(RdmaError::last("rdma_migrate_id", &self.device_name())),
        }
        Ok(())
    }

    /// The device that it is bound to, as opened; null if to none.
    pub(super) fn context(&self) -> *mut IbvContext {
        // SAFETY: valid until `drop`.
        unsafe { (*self.id).verbs }
    }

    /// The device's name; empty if it is bound to none.
    pub(super) fn device_name(&self) -> String {
        let context = self.context();
        if context.is_null() {
            return String::new();
        }
        // SAFETY: an open context has a device.
        device_info(unsafe { (*context).device }).name
    }

    /// Its own address.
    pub(super) fn local(&self) -> SocketAddr {
        // SAFETY: valid until `drop`; the address is copied.
        address_in(&unsafe { (*self.id).source })
    }

    /// The peer's address.
    pub(super) fn peer(&self) -> SocketAddr {
        // SAFETY: as above.
        address_in(&unsafe { (*self.id).destination })
    }
}

impl std::fmt::Debug for CmId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CmId({} to {})", self.local(), self.peer())
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        let cm = &self.library().cm;
        // SAFETY: ours. Its queue pair, if it had one, was destroyed before by its owner. The peer
        // may have given up, which changes nothing.
        unsafe {
            if self.is_asked {
                (cm.reject)(self.id, ptr::null(), 0);
            }
            (cm.destroy_id)(self.id);
        }
    }
}

/// What an address of the library is; `0.0.0.0:0` if it is none of IP.
fn address_in(storage: &libc::sockaddr_storage) -> SocketAddr {
    let place = ptr::from_ref(storage);
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: large enough, and of this kind.
            let v4 = unsafe { *place.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            SocketAddr::new(ip.into(), u16::from_be(v4.sin_port))
        }
        libc::AF_INET6 => {
            // SAFETY: large enough, and of this kind.
            let v6 = unsafe { *place.cast::<libc::sockaddr_in6>() };
            let (ip, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), v6.sin6_port);
            let (flow, scope) = (v6.sin6_flowinfo, v6.sin6_scope_id);
            SocketAddrV6::new(ip, u16::from_be(port), flow, scope).into()
        }
        _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    }
}

/// Has reads and events of a descriptor not wait.
pub(super) fn unblock(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?)
}

/// One descriptor that is readable while one of several is. They leave it by being closed.
///
/// When this goes, the descriptor becomes readable for ever, so that whoever watches it is told and
/// gives it back: else a ring would keep a descriptor and an operation for each connection that
/// there ever was.
pub(super) struct AllOf {
    all: Arc<OwnedFd>,
    library: Arc<RdmaLibrary>,
}

impl AllOf {
    pub(super) fn new(library: &Arc<RdmaLibrary>, fds: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let all = epoll::create(CreateFlags::CLOEXEC)?;
        for fd in fds {
            epoll::add(&all, *fd, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self {
            all: Arc::new(all),
            library: Arc::clone(library),
        })
    }

    /// To be watched.
    pub(super) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.all
    }
}

impl Drop for AllOf {
    fn drop(&mut self) {
        // Without memory for it a watch is left over, which costs a descriptor.
        let (data, flags) = (EventData::new_u64(0), EventFlags::IN);
        let _ = epoll::add(&self.all, self.library.always_readable(), data, flags);
    }
}
